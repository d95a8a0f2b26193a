"""Verbs that only read: turns, trace, usage, list."""

from __future__ import annotations

from ...personas.errors import ConfigurationError
from ...workflows.search_attributes import PERSONA, STATUS, USER
from ...workflows.trace import TraceEntry
from ..client import SessionInfo
from .arguments import Context, Grammar, at_least
from .connecting import connected, is_open, opened, patience
from .exit_codes import ExitCode
from .output import shortened, spent


def add(grammar: Grammar) -> None:
    """Add the verbs."""
    turns_parser = grammar.session_verb("turns", turns, "List a session's turns.")
    turns_parser.add_argument("--limit", type=at_least(0), default=0, help="only the last ones")
    trace_parser = grammar.session_verb("trace", trace, "Show what a session did and why.")
    trace_parser.add_argument("--turn", help="only this turn's entries")
    trace_parser.add_argument("--limit", type=at_least(0), default=0, help="only the last ones")
    trace_parser.add_argument(
        "--full", action="store_true", help="whole messages and details; without, … marks a cut"
    )
    grammar.session_verb("usage", usage, "Show a session's tokens and cost.")
    list_parser = grammar.verb("list", list_sessions, "List sessions, the newest first.")
    list_parser.add_argument("--persona", help="only this persona's")
    list_parser.add_argument("--user", help="only this user's")
    list_parser.add_argument("--all", action="store_true", help="closed ones too")
    list_parser.add_argument("--limit", type=at_least(1), default=100, help="at most so many (100)")


async def turns(context: Context) -> int:
    """List the turns, from the store."""
    client = await connected(context)
    async with patience(context, client):
        found = await opened(context, client).turns()
    found = found[-context.args.limit :]
    if context.output.as_json:
        context.output.json(found)
        return ExitCode.OK
    context.output.table(
        ["turn", "kind", "status", "model", "tokens", "begun", "said"],
        [
            (
                row["turn"],
                row["kind"],
                row["status"],
                row["model"] or "",
                row["usage"].get("prompt_tokens", 0) + row["usage"].get("completion_tokens", 0),
                row["created_at"][:19].replace("T", " "),
                shortened(row["preview"], 60),
            )
            for row in found
        ],
    )
    return ExitCode.OK


async def trace(context: Context) -> int:
    """Show the reasoning trace."""
    client = await connected(context)
    async with patience(context, client):
        entries = await opened(context, client).get_reasoning_trace()
    turn: str | None = context.args.turn
    chosen = [entry for entry in entries if turn in (None, entry.turn)][-context.args.limit :]
    if context.output.as_json:
        context.output.json([entry.model_dump(mode="json") for entry in chosen])
    else:
        full: bool = context.args.full
        context.output.table(TRACE_COLUMNS, [trace_row(entry, full=full) for entry in chosen])
        cut = 0 if full else sum(is_cut(entry) for entry in chosen)
        if cut:
            context.output.note(
                f"{cut} of {len(chosen)} entries are cut short (…); --full shows them whole, and "
                "--json as data."
            )
    return ExitCode.OK


TRACE_COLUMNS = ("at", "type", "message", "details")


def trace_row(entry: TraceEntry, *, full: bool = False) -> tuple[str, str, str, str]:
    """A trace entry as a table shows it; not ``full``, its long texts end with an ellipsis."""
    message = shortened(entry.message, None if full else 200)
    details = shortened(entry.details, None if full else 80) if entry.details else ""
    return (f"{entry.at:%H:%M:%S}", entry.type, message, details)


def is_cut(entry: TraceEntry) -> bool:
    """Whether a table shows only a part of a trace entry."""
    return trace_row(entry) != trace_row(entry, full=True)


async def usage(context: Context) -> int:
    """Show the totals."""
    client = await connected(context)
    async with patience(context, client):
        session = opened(context, client)
        await is_open(client, session)
        view = await session.usage()
    if context.output.as_json:
        context.output.json(view.model_dump(mode="json"))
        return ExitCode.OK
    rows = [*view.by_model.items(), ("all", view.usage)]
    context.output.table(
        ["model", "input", "output", "cost (USD)"],
        [
            (
                model,
                used.prompt_tokens,
                used.completion_tokens,
                "unknown" if used.cost_usd is None else f"{used.cost_usd:.6f}",
            )
            for model, used in rows
        ],
    )
    context.output.note(f"{view.turns} turns · {spent(view.usage)}")
    return ExitCode.OK


async def list_sessions(context: Context) -> int:
    """List sessions."""
    args = context.args
    client = await connected(context)
    if (args.persona or args.user) and not client.search_attributes:
        raise ConfigurationError(
            "The namespace lacks the search attributes that --persona and --user need; "
            "`gmi doctor` shows how to register them."
        )
    rows: list[SessionInfo] = []
    async for found in client.sessions(
        persona=args.persona, user_id=args.user, running=not args.all
    ):
        if len(rows) >= args.limit:
            break
        rows.append(found)
    if context.output.as_json:
        context.output.json(
            [
                {
                    "session_id": found.session_id,
                    "workflow_id": found.workflow_id,
                    "status": found.status,
                    "started_at": found.started_at.isoformat(),
                    "attributes": found.attributes,
                }
                for found in rows
            ]
        )
        return ExitCode.OK
    context.output.table(
        ["session", "workflow", "state", "persona", "user", "started"],
        [
            (
                found.session_id,
                found.status,
                found.attributes.get(STATUS.name, ""),
                found.attributes.get(PERSONA.name, ""),
                found.attributes.get(USER.name, ""),
                f"{found.started_at:%Y-%m-%d %H:%M:%S}",
            )
            for found in rows
        ],
    )
    return ExitCode.OK
