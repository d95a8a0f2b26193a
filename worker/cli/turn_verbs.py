"""Verbs that make a turn or follow it: send, watch."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus

from ...personas.errors import GMIError, error_from_code
from ...personas.messages import ImagePart, Part, TextPart
from ...workflows.chunks import Chunk
from ...workflows.turns import ToolCallView, TurnOutput
from ..client import Client
from ..session import Session
from .arguments import Context, Grammar
from .connecting import connected, open_session, opened, patience
from .exit_codes import ExitCode, UsageError
from .output import Output, shortened, spent
from .painter import Painter

_LOOK_SECONDS = 1.0


def add(grammar: Grammar) -> None:
    """Add the verbs."""
    parser = grammar.session_verb("send", send, "Say something and print the answer.")
    parser.add_argument("text", metavar="TEXT", help="the message; - reads it from stdin")
    parser.add_argument("--persona", help="persona of a new session")
    parser.add_argument("--model", help="provider:model of this turn, and of a new session")
    parser.add_argument(
        "--image", action="append", default=[], metavar="URL", help="add an image (repeatable)"
    )
    parser.add_argument("--no-wait", action="store_true", help="print the turn's ticket and end")
    parser.add_argument(
        "--request-id", help="repeating a send with the same id makes no second turn"
    )
    parser.add_argument(
        "--on-pause",
        choices=("refuse", "answer"),
        default="refuse",
        help="when a turn waits for answers: refuse, or answer its calls as not run",
    )
    grammar.session_verb("watch", watch, "Follow a session's turns until it closes.")


async def send(context: Context) -> int:
    """Say something."""
    args = context.args
    content = _content(args.text, args.image)
    client = await connected(context)
    session = opened(context, client)
    options: dict[str, Any] = {
        "request_id": args.request_id,
        "model": args.model,
        "on_pause": args.on_pause,
    }
    async with patience(context, client):
        if args.no_wait:
            ticket = (await session.stream(content, **options)).ticket
            if context.output.as_json:
                context.output.json(ticket.model_dump(mode="json"))
            else:
                context.output.text(ticket.turn)
            return ExitCode.OK
        output = await session.send(content, **options)
    return show_output(context.output, session, output)


def show_output(out: Output, session: Session, output: TurnOutput) -> int:
    """Print what a turn came to; returns the exit code."""
    if out.as_json:
        out.json(output.model_dump(mode="json"))
    elif output.response_text:
        out.text(output.response_text)
    if output.status == "waiting":
        for call in output.tool_calls:
            out.note(f"{call.name} waits: gmi answer {session.id} {call.id} {_how(call)}")
            out.note(f"    {shortened(call.arguments)}")
    elif output.is_final and output.status == "done":
        out.note(f"{output.provider}:{output.model} · {spent(output.usage)}")
    if output.status in ("failed", "stopped", "abandoned"):
        out.error(turn_error(output))
        return ExitCode.FAILED
    return ExitCode.OK


async def watch(context: Context) -> int:
    """Follow a session."""
    client = await connected(context)
    session = await open_session(context, client)
    context.output.note(f"Watching {session.id}; Ctrl-C ends it.")
    async with patience(context, client):
        await _show_turns(context, client, session)
    return ExitCode.OK


async def _show_turns(context: Context, client: Client, session: Session) -> None:
    painter = Painter(context.output.console)
    turn: str | None = None
    async for chunk in _until_closed(client, session):
        if context.output.as_json:
            context.output.json(chunk.model_dump(mode="json"))
            continue
        if chunk.turn != turn:
            turn = chunk.turn
            painter.begin()
            painter.aside(f"turn {turn}")
        painter.take(chunk)
        if chunk.type == "final_response_marker":
            painter.finish(TurnOutput.model_validate(chunk.content))


async def _until_closed(client: Client, session: Session) -> AsyncIterator[Chunk]:
    """The session's chunks; ends when its workflow does, also in the middle of a turn."""
    chunks = session.watch()
    closed = asyncio.create_task(_closed(client, session))
    following: asyncio.Task[Chunk] | None = None
    try:
        while True:
            following = asyncio.ensure_future(anext(chunks))
            await asyncio.wait({following, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                return
            try:
                chunk = following.result()
            except StopAsyncIteration:
                return
            yield chunk
    finally:
        for task in (closed, following):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await task
        await chunks.aclose()  # type: ignore[attr-defined]


async def _closed(client: Client, session: Session) -> None:
    handle = client.temporal.get_workflow_handle(session.workflow_id)
    while True:
        found = await handle.describe()
        if found.status != WorkflowExecutionStatus.RUNNING:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _content(text: str, images: list[str]) -> str | list[Part]:
    said = sys.stdin.read() if text == "-" else text
    if not images:
        return said
    parts: list[Part] = [TextPart(text=said)] if said.strip() else []
    for url in images:
        if not url.startswith(("https:", "http:", "data:")):
            hint = " Files are not read; make it a data: URL." if Path(url).exists() else ""
            raise UsageError(f"--image takes an https: or data: URL, not {url!r}.{hint}")
        parts.append(ImagePart(url=url))
    return parts


def _how(call: ToolCallView) -> str:
    return {"approval": "--approve | --deny", "lost": "VALUE | --rerun"}.get(
        call.reason or "", "VALUE"
    )


def turn_error(output: TurnOutput) -> GMIError:
    """Why a turn did not end done."""
    if output.error is not None:
        return error_from_code(output.error.code, output.error.message, output.error.details)
    return GMIError(f"The turn was {output.status}.", code=f"TURN_{output.status.upper()}")
