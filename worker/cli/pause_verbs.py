"""Verbs for turns that wait for the host: pending, answer."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ...workflows.turns import HostResult
from .arguments import Context, Grammar
from .connecting import connected, open_session, patience
from .exit_codes import ExitCode, UsageError
from .output import shortened
from .turn_verbs import show_output


def add(grammar: Grammar) -> None:
    """Add the verbs."""
    grammar.session_verb("pending", pending, "List the calls that wait for an answer.")
    parser = grammar.session_verb("answer", answer, "Answer a call that waits.")
    parser.add_argument("call_id", metavar="CALL_ID")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("value", metavar="VALUE", nargs="?", help="the result, a text")
    how.add_argument("--json-value", metavar="JSON", help="the result, any JSON value")
    how.add_argument("--error", metavar="MESSAGE", help="the tool failed")
    how.add_argument("--approve", action="store_true", help="let the tool run")
    how.add_argument(
        "--deny", metavar="REASON", nargs="?", const="", help="do not let the tool run"
    )
    how.add_argument("--rerun", action="store_true", help="run a tool of unknown outcome again")
    parser.add_argument(
        "--rest",
        choices=("fail", "wait"),
        default="fail",
        help="other calls that wait: answer them as not run and go on, or keep waiting for them",
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the turn's end")


async def pending(context: Context) -> int:
    """List the calls that wait."""
    client = await connected(context)
    async with patience(context, client):
        session = await open_session(context, client)
        view = await session.pending()
    if context.output.as_json:
        context.output.json(view.model_dump(mode="json"))
        return ExitCode.OK
    context.output.table(
        ["call", "tool", "reason", "since", "arguments"],
        [
            (
                found.call.id,
                found.call.name,
                found.call.reason or "",
                f"{found.since:%Y-%m-%d %H:%M:%S}",
                shortened(found.call.arguments),
            )
            for found in view.calls
        ],
    )
    for warning in view.warnings:
        context.output.note(warning)
    return ExitCode.OK


async def answer(context: Context) -> int:
    """Answer a call and print how the turn goes on."""
    result = _result(context.args)
    client = await connected(context)
    async with patience(context, client):
        session = await open_session(context, client)
        ack = await session.answer([result], rest=context.args.rest)
        if context.args.no_wait or not ack.resumed:
            if context.output.as_json:
                context.output.json(ack.model_dump(mode="json"))
            else:
                waiting = ", ".join(ack.pending)
                context.output.note(f"Accepted; still waiting: {waiting or 'none'}")
            return ExitCode.OK
        output = await session.complete(await session.wait(ack.turn))
    return show_output(context.output, session, output)


def _result(args: argparse.Namespace) -> HostResult:
    call_id: str = args.call_id
    if args.approve:
        return HostResult(call_id=call_id, approved=True)
    if args.deny is not None:
        return HostResult(call_id=call_id, approved=False, reason=args.deny or None)
    if args.rerun:
        return HostResult(call_id=call_id, rerun=True)
    if args.error is not None:
        return HostResult(call_id=call_id, content=args.error, is_error=True)
    if args.json_value is not None:
        return HostResult(call_id=call_id, content=_json(args.json_value))
    if args.value is not None:
        return HostResult(call_id=call_id, content=args.value)
    raise UsageError("Say how: VALUE, --json-value, --error, --approve, --deny or --rerun.")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"--json-value is not JSON: {error}") from error
