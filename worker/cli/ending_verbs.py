"""Verbs that end something: stop, close."""

from __future__ import annotations

from .arguments import Context, Grammar
from .connecting import connected, open_session, patience
from .exit_codes import ExitCode


def add(grammar: Grammar) -> None:
    """Add the verbs."""
    parser = grammar.session_verb("stop", stop, "Stop a turn, or whatever runs or waits.")
    parser.add_argument("turn", metavar="TURN", nargs="?", help="only this turn")
    parser.add_argument("--reason", help="why; kept in the trace")
    grammar.session_verb("close", close, "Close a session: what runs is stopped, its id is free.")


async def stop(context: Context) -> int:
    """Stop turns and print how each ended."""
    turn: str | None = context.args.turn
    client = await connected(context)
    async with patience(context, client):
        session = await open_session(context, client)
        if turn is not None:
            await session.get_turn(turn)
            reached = [turn]
        else:
            state = await session.state()
            queued = (await session.list_turns()).queued
            waiting = [found.turn for found in state.pending]
            running = [state.active_turn] if state.active_turn else []
            reached = list(dict.fromkeys([*running, *waiting, *queued]))
        await session.stop(turn, reason=context.args.reason)
        ended = {found: (await session.wait(found, timeout=30)).status for found in reached}
    if context.output.as_json:
        context.output.json({"turns": ended})
    else:
        context.output.table(["turn", "status"], list(ended.items()))
    return ExitCode.OK


async def close(context: Context) -> int:
    """Close the session."""
    client = await connected(context)
    async with patience(context, client):
        session = await open_session(context, client)
        await session.close()
    if context.output.as_json:
        context.output.json({"session_id": session.id, "closed": True})
    else:
        context.output.note(f"The session {session.id} is closed.")
    return ExitCode.OK
