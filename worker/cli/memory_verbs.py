"""The verb memory: list, search, show, forget, stats."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import Any

from ...personas.errors import ValidationError
from ..client import Client
from .arguments import Context, Grammar, Parser, add_global, at_least
from .connecting import connected, patience
from .exit_codes import ExitCode, UsageError
from .output import shortened

COLUMNS = ("id", "scope", "type", "strength", "age", "content")


def add(grammar: Grammar) -> None:
    """Add the verb."""
    parser = grammar.verb("memory", memory, "Look at long-term memories, and erase some.")
    verbs = parser.add_subparsers(dest="memory_verb", metavar="WHAT", required=True)

    def verb(name: str, run: Callable[[Context], Any], help: str) -> argparse.ArgumentParser:
        found: Parser = verbs.add_parser(name, help=help, description=help)
        add_global(found, argparse.SUPPRESS)
        found.set_defaults(run=run)
        return found

    listing = verb("list", list_memories, "List memories, the newest first.")
    _narrowing(listing)
    listing.add_argument("--turn", help="only what was made of this turn")
    listing.add_argument("--text", help="only those that contain these words")
    listing.add_argument("--faded", action="store_true", help="also what is no longer recalled")
    listing.add_argument("--limit", type=at_least(1), default=50, help="at most so many (50)")

    searching = verb("search", search, "Show what a text would bring to mind; changes nothing.")
    searching.add_argument("text", metavar="TEXT", help="what to look for")
    _narrowing(searching)
    searching.add_argument("--limit", type=at_least(1), default=10, help="at most so many (10)")

    showing = verb("show", show, "Show everything about one memory.")
    showing.add_argument("id", metavar="ID", help="the memory's id")

    forgetting = verb("forget", forget, "Erase memories for good, and all that was made of them.")
    forgetting.add_argument("ids", metavar="ID", nargs="*", help="these memories")
    _narrowing(forgetting)
    forgetting.add_argument("--turn", help="what was made of this turn")
    forgetting.add_argument("--text", help="only those that contain these words")
    forgetting.add_argument(
        "--yes", action="store_true", help="do not ask; needed where no terminal is"
    )

    counting = verb("stats", stats, "Count memories: kinds, scopes, strengths, vectors.")
    _narrowing(counting)


def _narrowing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which memories")
    group.add_argument(
        "--scope", action="append", metavar="KIND:ID", help="of this scope, such as user:anna"
    )
    group.add_argument("--user", help="of this user: the scope, and what was made in the sessions")
    group.add_argument("--org", default="", help="the organization of that user")
    group.add_argument("--persona", help="of this persona")
    group.add_argument("--session", help="made in this session; for search, what it reads")
    group.add_argument("--type", action="append", metavar="TYPE", help="of this type")


def _which(context: Context) -> dict[str, Any]:
    args = context.args
    return {
        "scopes": args.scope,
        "user_id": args.user,
        "org": args.org,
        "persona": args.persona,
        "session_id": args.session,
    }


async def memory(context: Context) -> int:
    """Never run: one of its verbs is."""
    raise UsageError("Say what to do with memories; `gmi memory --help` shows what there is.")


async def list_memories(context: Context) -> int:
    """List memories."""
    args = context.args
    client = await connected(context)
    rows: list[dict[str, Any]] = []
    async with patience(context, client):
        found = client.memory.list(
            **_which(context), turn=args.turn, text=args.text, types=args.type, faded=args.faded
        )
        async for item in found:
            if len(rows) >= args.limit:
                break
            rows.append(item)
    if context.output.as_json:
        context.output.json(rows)
    else:
        context.output.table(COLUMNS, [_row(item) for item in rows])
    return ExitCode.OK


async def search(context: Context) -> int:
    """Search as a recall does; without a place in the user's own memory."""
    which = _which(context)
    if all(value is None for name, value in which.items() if name != "org"):
        which["user_id"] = context.user
    client = await connected(context)
    async with patience(context, client):
        answer = await client.memory.care(
            "search",
            text=context.args.text,
            types=context.args.type,
            limit=context.args.limit,
            **which,
        )
    if context.output.as_json:
        context.output.json(answer.items)
    else:
        for warning in answer.warnings:
            context.output.note(warning)
        context.output.table(
            ["score", *COLUMNS], [(f"{item['score']:.3f}", *_row(item)) for item in answer.items]
        )
    return ExitCode.OK


async def show(context: Context) -> int:
    """Show one memory as a JSON document."""
    client = await connected(context)
    async with patience(context, client):
        found = await client.memory.show(context.args.id)
    context.output.document(found)
    return ExitCode.OK


async def forget(context: Context) -> int:
    """Erase memories, after asking; where nobody can answer only with ``--yes``."""
    args = context.args
    which = {
        **_which(context),
        "ids": args.ids or None,
        "turn": args.turn,
        "types": args.type,
        "text": args.text,
    }
    if all(which[name] is None for name in which if name not in ("org", "types", "text")):
        raise ValidationError(
            "forget does not say which memories; name ids, --turn, --session, --user, --scope or "
            "--persona."
        )
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("Nobody can be asked whether to erase them; add --yes to do it.")
    client = await connected(context)
    if not args.yes and not await _agreed(context, client, which):
        context.output.note("Nothing was erased.")
        return ExitCode.INTERRUPTED
    async with patience(context, client):
        erased = await client.memory.forget(**which)
    if context.output.as_json:
        context.output.json(erased)
    else:
        context.output.text(
            f"Erased {erased['traces']} memories, {erased['derived']} made of them, "
            f"{erased['vectors']} vectors, {erased['links']} links, and what {erased['contexts']} "
            "turns were shown of them."
            + (f" Forgot {erased['learned']} learned changes." if "learned" in erased else "")
        )
    return ExitCode.OK


async def _agreed(context: Context, client: Client, which: dict[str, Any]) -> bool:
    """Show what is meant, and ask."""
    async with patience(context, client):
        first = await client.memory.care("list", limit=5, faded=True, **which)
    if first.items:
        context.output.table(COLUMNS, [_row(item) for item in first.items])
    if first.next is not None:
        context.output.note("… and more.")
    question = "Erase these memories for good? [y/N] "
    try:
        answer = await asyncio.to_thread(input, question)
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")


async def stats(context: Context) -> int:
    """Count memories."""
    client = await connected(context)
    async with patience(context, client):
        answer = await client.memory.stats(**_which(context), types=context.args.type)
    if context.output.as_json:
        context.output.json({"counts": answer.counts, **answer.details})
        return ExitCode.OK
    strengths = [
        (f"strength {n / 10:.1f}-{(n + 1) / 10:.1f}", count)
        for n, count in enumerate(answer.details["strength"])
        if count
    ]
    models = [(f"vectors of {name}", count) for name, count in answer.details["vectors"].items()]
    context.output.table(["what", "number"], [*answer.counts.items(), *strengths, *models])
    return ExitCode.OK


def _row(item: dict[str, Any]) -> tuple[Any, ...]:
    return (
        item["id"],
        item["scope"],
        item["type"] if item["active"] else f"{item['type']} (faded)",
        f"{item['strength']:.2f}",
        item["age"],
        shortened(item["content"], 80),
    )
