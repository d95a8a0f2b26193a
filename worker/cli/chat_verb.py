"""The verb chat: talking to a session in the terminal, or line by line through a pipe."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ...personas.errors import SessionNotFoundError
from ...workflows.turns import PendingCall, TurnOutput
from ..client import Client
from ..dev_server import answers
from ..session import Session
from ..settings import DATA_DIRECTORY
from .answering import NO_KEY
from .arguments import Context, Grammar
from .asking import Declined, ask
from .chat_commands import run_command
from .chat_turn import ChatTurn, Left
from .connecting import (
    configured_address,
    configured_namespace,
    connected,
    is_open,
    opened,
    patience,
    server_address,
)
from .exit_codes import ExitCode, error_of
from .local import Local
from .painter import Painter
from .turn_verbs import turn_error

T = TypeVar("T")

DEFAULT_SESSION = "chat"


def add(grammar: Grammar) -> None:
    """Add the verb."""
    parser = grammar.session_verb(
        "chat",
        chat,
        "Talk to a session; without a server, one is started here. Reads lines from a pipe.",
        optional=True,
    )
    parser.add_argument("--persona", help="the persona to talk to")
    parser.add_argument("--model", help="provider:model of the answers")


def chat(context: Context) -> int:
    """Talk until the input ends.

    The loop runs only while something is awaited: reading a line is left to the terminal, with
    its own editing and its own Ctrl-C.
    """
    piped = not (sys.stdin.isatty() and sys.stdout.isatty())
    with asyncio.Runner() as runner:
        talk: Chat | None = None
        try:
            talk = runner.run(Chat.start(context, quiet=piped))
            return _pipe(runner, talk) if piped else _terminal(runner, talk)
        except Left:
            return ExitCode.INTERRUPTED
        finally:
            if talk is not None and talk.local is not None:
                runner.run(talk.local.stop())


class Chat:
    """A conversation on the command line.

    Attributes:
        session: The session.
        local: The server and worker that were started for it, if any.
        painter: Shows the turns.
        told_offline: Whether it was said that no model answers.
        persona: The persona that speaks.
        turns: Turns made before.
        waiting: Calls that an earlier conversation left waiting.
    """

    def __init__(
        self, context: Context, client: Client, session: Session, local: Local | None
    ) -> None:
        self.context = context
        self.client = client
        self.session = session
        self.local = local
        self.painter = Painter(context.output.console)
        self.told_offline = False
        self.persona: str | None = None
        self.turns = 0
        self.waiting: list[PendingCall] = []

    @classmethod
    async def start(cls, context: Context, *, quiet: bool) -> Chat:
        """Connect, starting a server and a worker here when nobody configured or runs one."""
        local: Local | None = None
        address = await server_address(context)
        if configured_address(context) is None and not await answers(address):
            if not quiet:
                context.output.note(f"Starting a Temporal server and a worker in {DATA_DIRECTORY}/")
            local = await Local.start(
                context.settings,
                namespace=configured_namespace(context),
                told=context.output.note,
            )
            address = local.server.place.address
        try:
            if local is not None:
                # A query that no worker takes at once is answered only seconds later.
                await local.ready()
            client = await connected(context, address)
            named = context.args.session or context.args.workflow_id
            session = opened(context, client, None if named else DEFAULT_SESSION)
            talk = cls(context, client, session, local)
            async with patience(context, client, session.id):
                await talk.unless_failed(talk._open())
        except BaseException:
            if local is not None:
                await local.stop()
            raise
        return talk

    async def unless_failed(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work``; ends with an error when the worker that it needs cannot run."""
        task = asyncio.create_task(work)
        waited: set[asyncio.Future[Any]] = {task}
        if self.local is not None:
            waited.add(self.local.failed)
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        if self.local is not None and self.local.failed.done():
            raise self.local.failed.result()
        return task.result()

    async def _open(self) -> None:
        """Open the session without disturbing what runs or waits in it."""
        wanted = self.context.args.persona
        try:
            is_new = not await is_open(self.client, self.session)
        except SessionNotFoundError:
            is_new = True
        state = await (self.session.initialize() if is_new else self.session.state())
        persona = state.persona
        if wanted is not None and persona != wanted:
            persona = (await self.session.refresh_persona(wanted)).persona
        self.persona = persona
        self.turns = state.turns
        self.waiting = state.pending

    def tell_offline(self, output: TurnOutput) -> None:
        """Say once that no model answers."""
        if output.provider == "offline" and not self.told_offline:
            self.told_offline = True
            self.context.output.note(NO_KEY)


def _pipe(runner: asyncio.Runner, talk: Chat) -> int:
    """Answer each line; only answers go to stdout."""
    out = talk.context.output
    code = ExitCode.OK
    for line in sys.stdin:
        if not line.strip():
            continue
        output = runner.run(_answered(talk, line.strip()))
        if out.as_json:
            out.json(output.model_dump(mode="json"))
        elif output.response_text:
            out.text(output.response_text)
        talk.tell_offline(output)
        if output.status != "done":
            code = ExitCode.FAILED
            out.error(turn_error(output))
    return code


async def _answered(talk: Chat, line: str) -> TurnOutput:
    async def work() -> TurnOutput:
        model = talk.context.args.model
        # Somebody else's waiting call is not this pipe's to give up.
        output = await talk.session.send(line, model=model)
        while output.status == "waiting":
            names = ", ".join(call.name for call in output.tool_calls)
            talk.context.output.note(f"Nobody can answer {names} here; it counts as not run.")
            ack = await talk.session.answer([], turn=output.turn)
            output = await talk.session.complete(await talk.session.wait(ack.turn))
        return output

    async with patience(talk.context, talk.client, talk.session.id):
        return await talk.unless_failed(work())


def _terminal(runner: asyncio.Runner, talk: Chat) -> int:
    """Talk to a person."""
    # Imported for its effect: the prompt gets editing and a history.
    with suppress(ImportError):
        import readline  # noqa: F401

    out = talk.context.output
    known = "" if not talk.turns else f", {talk.turns} turns so far"
    out.console.print(
        f"{talk.session.id} · {talk.persona}{known} · /help", style="dim", soft_wrap=True
    )
    if talk.local is not None and not talk.context.settings.providers:
        talk.told_offline = True
        out.note(NO_KEY)
    if talk.waiting:
        _answer_waiting(runner, talk)
    while True:
        try:
            line = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            out.console.print()
            return ExitCode.OK
        if line in ("/quit", "/exit"):
            return ExitCode.OK
        try:
            if line.startswith("/"):
                runner.run(run_command(talk.session, talk.context.output, line))
            elif line:
                _say(runner, talk, line)
        except KeyboardInterrupt:
            out.console.print()
        except Exception as error:
            shown = error_of(error)
            if shown is None or (talk.local is not None and talk.local.failed.done()):
                raise
            out.error(shown)


def _say(runner: asyncio.Runner, talk: Chat, line: str) -> None:
    talk.painter.begin()
    turn = ChatTurn(talk.session, talk.painter)
    output = _followed(runner, talk, turn.say(line, talk.context.args.model))
    _see_through(runner, talk, output)


def _answer_waiting(runner: asyncio.Runner, talk: Chat) -> None:
    """Ask for what an earlier conversation left waiting."""
    for turn in dict.fromkeys(found.turn for found in talk.waiting):
        talk.painter.begin()
        talk.painter.aside("a turn is waiting for you")
        output = runner.run(talk.session.get_turn(turn))
        if output is not None:
            _see_through(runner, talk, output)


def _see_through(runner: asyncio.Runner, talk: Chat, output: TurnOutput) -> None:
    """Ask the person whatever the turn waits for, until it ends."""
    while output.status == "waiting":
        try:
            results = [ask(talk.context.output, call) for call in output.tool_calls]
        except Declined:
            runner.run(talk.session.stop(output.turn))
            talk.painter.aside("stopped")
            return
        turn = ChatTurn(talk.session, talk.painter)
        output = _followed(runner, talk, turn.answer(output, results))
    talk.tell_offline(output)


def _followed(
    runner: asyncio.Runner, talk: Chat, work: Coroutine[Any, Any, TurnOutput]
) -> TurnOutput:
    async def follow() -> TurnOutput:
        async with patience(talk.context, talk.client, talk.session.id):
            return await talk.unless_failed(work)

    return runner.run(follow())
