"""A session as a client sees it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel
from temporalio.client import WithStartWorkflowOperation, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy

from ..personas.errors import (
    GMIError,
    MessageTooLargeError,
    SessionClosedError,
    SessionNotFoundError,
)
from ..personas.messages import Message, Part
from ..personas.options import CompletionOptions
from ..personas.schema import Persona
from ..workflows.chunks import Chunk
from ..workflows.decode import MAX_INPUT_BYTES, encoded_size
from ..workflows.requests import check_credentials, check_form, input_digest
from ..workflows.session import GMISession
from ..workflows.state import SessionStart
from ..workflows.steps import Page, Read, ReadKind, SessionConfig
from ..workflows.trace import TraceEntry, TraceTail
from ..workflows.turns import (
    AwaitTurn,
    CloseSession,
    HopSpec,
    HostResult,
    OnPause,
    PendingView,
    PersonaAck,
    RefreshPersona,
    ReplaceHistory,
    Sends,
    StateView,
    StopAck,
    StopTurn,
    SubmitTurn,
    ToolResults,
    ToolResultsAck,
    TurnList,
    TurnOutput,
    TurnTicket,
    TurnView,
    UsageView,
)
from .calls import calling
from .feed import Feed
from .turn_stream import TurnStream

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")

POLL_SECONDS = 0.25
STOP_WAIT = 10.0


class Session:
    """One session of one user with one persona.

    Made by :meth:`Client.session`; nothing is sent before the first call. Every call may be
    repeated: a message with the same ``request_id`` makes one turn.

    Attributes:
        id: The session's id.
        user_id: The user it serves.
        key: The session's key once it is known; an id that was closed and opened again has
            another one.
    """

    def __init__(
        self,
        client: Client,
        session_id: str,
        *,
        user_id: str,
        persona: str | None,
        org: str,
        config: SessionConfig,
    ) -> None:
        check_credentials(config.credentials)
        self._client = client
        self.id = session_id
        self.user_id = user_id
        self._persona = persona
        self._org = org
        self._config = config
        self.key: str | None = None
        self._counter = 0
        self._closed = False

    @property
    def workflow_id(self) -> str:
        """Id of the session's workflow."""
        return f"gmi-session-{self.id}"

    @property
    def feed(self) -> Feed:
        """The session's chunk stream, shared by all readers of this client."""
        return self._client.feeds.of(self.workflow_id)

    async def send(
        self,
        content: str | Sequence[Part],
        *,
        request_id: str | None = None,
        options: CompletionOptions | None = None,
        model: str | None = None,
        fallback: Sequence[HopSpec | str] | None = None,
        history: Sequence[Message] | None = None,
        suffix: str | None = None,
        sender: str | None = None,
        sends: Sends = "queue",
        on_pause: OnPause = "refuse",
        max_tool_iterations: int | None = None,
        stream: bool = False,
    ) -> TurnOutput:
        """Say something and wait for the turn's end, or for its pause.

        Args:
            content: Text, or parts.
            request_id: Repeating a call with the same id makes no second turn.
            options: Completion options of this turn.
            model: ``provider:model`` of this turn.
            fallback: Fallback chain of this turn.
            history: A history to use instead of the session's own.
            suffix: Text at the end of the system message.
            sender: The speaker's name.
            sends: Wait while another turn runs, or be refused.
            on_pause: What to do when a turn waits for the host.
            max_tool_iterations: Tool rounds before the model must answer.
            stream: Whether the text also reaches the stream piece by piece, for watchers.

        Raises:
            GMIError: The message was refused; ``code`` says why. A turn that fails is not an
                error of the call: its output holds it.
        """
        submit = self._submit(
            content,
            request_id,
            options,
            model,
            fallback,
            history,
            suffix,
            sender,
            sends,
            on_pause,
            max_tool_iterations,
            stream,
        )
        ticket = await self._submitted(submit)
        output = ticket.output or await self.wait(ticket.turn)
        return await self.complete(output)

    async def stream(
        self,
        content: str | Sequence[Part],
        *,
        request_id: str | None = None,
        options: CompletionOptions | None = None,
        model: str | None = None,
        fallback: Sequence[HopSpec | str] | None = None,
        history: Sequence[Message] | None = None,
        suffix: str | None = None,
        sender: str | None = None,
        sends: Sends = "queue",
        on_pause: OnPause = "refuse",
        max_tool_iterations: int | None = None,
    ) -> TurnStream:
        """Say something and watch the turn; see :meth:`send` for the arguments."""
        submit = self._submit(
            content,
            request_id,
            options,
            model,
            fallback,
            history,
            suffix,
            sender,
            sends,
            on_pause,
            max_tool_iterations,
            True,
        )
        start = await calling(self.feed.offset)
        ticket = await self._submitted(submit, hold=False)
        return TurnStream(self, ticket, start)

    async def process_turn_stream(self, content: str | Sequence[Part]) -> AsyncIterator[Chunk]:
        """Say something and yield the turn's chunks, up to its end or its pause."""
        stream = await self.stream(content)
        async for chunk in stream:
            yield chunk

    async def wait(self, turn: str, *, timeout: float | None = None) -> TurnOutput:
        """Wait until a turn ends or pauses.

        Args:
            turn: The turn's id.
            timeout: Seconds; without one it waits for as long as it takes.

        Raises:
            TimeoutError: The time ran out; the turn goes on.
            GMIError: There is no such turn.
        """
        async with asyncio.timeout(timeout):
            while True:
                output = await self.get_turn(turn)
                if output is not None:
                    return output
                await asyncio.sleep(POLL_SECONDS)

    async def get_turn(self, turn: str) -> TurnOutput | None:
        """A turn's output, or ``None`` while it runs.

        Raises:
            TurnNotFoundError: The session never made this turn.
        """
        try:
            view = await self._query("get_turn", AwaitTurn(turn=turn), TurnView)
        except SessionNotFoundError:
            view = TurnView()
        if view.output is not None or view.card is not None:
            return view.output
        page = await self._read("turn", turn=turn)
        output = page.items[0].get("output") if page.items else None
        return None if output is None else TurnOutput.model_validate(output)

    async def complete(self, output: TurnOutput) -> TurnOutput:
        """The output with its whole text, which the session does not carry when it is long."""
        self.key = output.session_key
        self._counter = max(self._counter, output.write_counter)
        if not output.text_stored or output.response_text is not None:
            return output
        page = await self._read("text", turn=output.turn)
        text = "".join(item.get("text", "") for item in page.items)
        return output.model_copy(update={"response_text": text})

    async def stop(self, turn: str | None = None, *, reason: str | None = None) -> None:
        """Stop a turn, or everything that runs, waits or is queued.

        Returns when the session has it; a running turn has then ended ``stopped`` within a
        second, with the steps that it finished.
        """
        await self._signal("stop_turn", StopTurn(turn=turn, reason=reason))
        if turn is not None:
            try:
                await self.wait(turn, timeout=STOP_WAIT)
            except (TimeoutError, GMIError):
                return

    async def handle_tool_result(
        self, call_id: str, content: Any = None, *, is_error: bool = False
    ) -> TurnOutput:
        """Answer one pending call; calls left out are answered as not run, and the turn goes on."""
        return await self.handle_tool_results(
            [HostResult(call_id=call_id, content=content, is_error=is_error)]
        )

    async def handle_tool_results(
        self, results: Sequence[HostResult], *, rest: str = "fail"
    ) -> TurnOutput:
        """Answer pending calls and wait for the turn's end or its next pause.

        Args:
            results: The results, approvals or reruns.
            rest: ``fail`` answers the calls left out with ``EXTERNAL_TOOL_NOT_RUN``; ``wait``
                keeps waiting for them, and the output is then the pause's.

        Raises:
            NotPendingError: A call does not wait; the details name those that do.
        """
        ack = await self.answer(results, rest=rest)
        if not ack.turn:
            raise SessionClosedError("The results repeat an earlier answer; nothing waits.")
        return await self.complete(await self.wait(ack.turn))

    async def answer(
        self, results: Sequence[HostResult], *, rest: str = "fail", turn: str | None = None
    ) -> ToolResultsAck:
        """Answer pending calls without waiting for the turn."""
        payload = ToolResults.model_validate(
            {"results": list(results), "rest": rest, "user_id": self.user_id, "turn": turn}
        )
        _check_size(payload)
        return await self._update("tool_results", payload, ToolResultsAck)

    async def pending(self) -> PendingView:
        """The calls that wait for the host."""
        return await self._query("list_pending", None, PendingView)

    async def state(self) -> StateView:
        """What the session is doing."""
        state = await self._query("get_state", None, StateView)
        self.key = state.session_key or self.key
        self._counter = max(self._counter, state.write_counter if state.active_turn is None else 0)
        return state

    async def get_current_state(self) -> str:
        """The session's state in one word."""
        return (await self.state()).status

    async def usage(self) -> UsageView:
        """Tokens and USD so far."""
        return await self._query("usage", None, UsageView)

    async def list_turns(self) -> TurnList:
        """The newest turns and the queue; :meth:`turns` reads them all."""
        return await self._query("list_turns", None, TurnList)

    async def turns(self) -> list[dict[str, Any]]:
        """Every turn of the session, oldest first, from the store."""
        return [item async for item in self.read("turns")]

    async def messages(self) -> list[dict[str, Any]]:
        """Every message of the session, oldest first, from the store."""
        return [item async for item in self.read("messages")]

    async def get_conversation_history(self) -> list[Message]:
        """The messages that the conversation is made of now, oldest first."""
        rows = [item async for item in self.read("messages") if not item.get("hidden")]
        return [Message.model_validate(row["message"]) for row in rows]

    async def get_last_turn_history(self) -> list[Message]:
        """The messages of the last turn, from its input on."""
        turns = (await self.list_turns()).turns
        if not turns:
            return []
        rows = [item async for item in self.read("messages", turn=turns[-1].turn)]
        return [Message.model_validate(row["message"]) for row in rows]

    async def get_reasoning_trace(self) -> list[TraceEntry]:
        """The whole reasoning trace: the store's part and the session's tail."""
        try:
            tail = (await self._query("trace_tail", None, TraceTail)).entries
        except SessionNotFoundError:
            tail = []
        entries = {entry.seq: entry for entry in tail}
        async for item in self.read("trace"):
            entry = TraceEntry.model_validate(item)
            entries.setdefault(entry.seq, entry)
        return [entries[seq] for seq in sorted(entries)]

    async def replace_history(
        self, messages: Sequence[Message], *, forget: bool = True
    ) -> TurnOutput:
        """Make ``messages`` the whole history; an empty list empties it.

        Args:
            messages: The history; ``error`` and ``thought`` messages are left out.
            forget: Also drop what was recorded about turns that it no longer holds.
        """
        payload = ReplaceHistory(messages=list(messages), forget=forget)
        _check_size(payload)
        ticket = await self._update("replace_history", payload, TurnTicket)
        assert ticket.output is not None  # an import ends at once
        return await self.complete(ticket.output)

    async def hydrate_conversation_history(self, messages: Sequence[Message]) -> TurnOutput:
        """Like :meth:`replace_history`, but what was recorded about earlier turns stays."""
        return await self.replace_history(messages, forget=False)

    async def clear_history(self) -> TurnOutput:
        """Empty the history, and drop what was recorded about its turns."""
        return await self.replace_history([])

    async def refresh_persona(self, persona: str | None = None) -> PersonaAck:
        """Run another persona, or the newest version of this one, from the next turn on."""
        ack = await self._update("refresh_persona", RefreshPersona(persona=persona), PersonaAck)
        self._persona = None if persona is None else persona
        return ack

    async def get_persona(self) -> Persona:
        """The persona that the session runs, as it was frozen."""
        digest = (await self.state()).persona_digest
        page = await self._read("blob", digest=digest)
        return Persona.model_validate(page.items[0]["value"])

    async def persona_id(self) -> str | None:
        """Id of the persona that the session runs."""
        return (await self.state()).persona

    async def gmi_id(self) -> str | None:
        """Id of the mind instance."""
        return (await self.state()).gmi_id

    async def created_at(self) -> datetime:
        """When the session was opened first."""
        return (await self.state()).created_at

    async def initialize(self) -> StateView:
        """Open the session without saying anything.

        Raises:
            GMIError: The persona, a tool or the configuration does not fit.
        """
        await self._update("stop_turn", StopTurn(), StopAck)
        return await self.state()

    async def close(self) -> None:
        """Close the session: what runs is stopped, and the id is free for a new one."""
        self._closed = True
        try:
            handle = self._handle()
            await calling(lambda: handle.signal("close", CloseSession()))
            await calling(handle.result)
        except SessionNotFoundError:
            return

    async def watch(self) -> AsyncIterator[Chunk]:
        """Every chunk from now on, of all turns, until the session closes.

        Polls the stream only while a turn runs, so that idle watchers cost the session nothing.
        """
        start: int | None = None
        while True:
            try:
                state = await self.state()
            except SessionNotFoundError:
                return
            start = state.stream_offset if start is None else start
            if state.stream_offset > start or state.active_turn is not None:
                async for item in self.feed.read(start):
                    start = item.offset + 1
                    yield item.chunk
                    if item.chunk.type == "final_response_marker":
                        break
            else:
                await asyncio.sleep(1.0)

    async def read(self, what: ReadKind, **where: Any) -> AsyncIterator[dict[str, Any]]:
        """Everything of a kind that the store holds about the session, page by page."""
        after: str | None = None
        while True:
            page = await self._read(what, after=after, **where)
            for item in page.items:
                yield item
            if page.next is None:
                return
            after = page.next

    async def _read(self, what: ReadKind, **where: Any) -> Page:
        return await self._client.read(
            Read(
                what=what,
                session_id=self.id,
                session_key=self.key,
                min_counter=self._counter,
                **where,
            )
        )

    def _submit(
        self,
        content: str | Sequence[Part],
        request_id: str | None,
        options: CompletionOptions | None,
        model: str | None,
        fallback: Sequence[HopSpec | str] | None,
        history: Sequence[Message] | None,
        suffix: str | None,
        sender: str | None,
        sends: Sends,
        on_pause: OnPause,
        max_tool_iterations: int | None,
        stream: bool,
    ) -> SubmitTurn:
        if self._closed:
            raise SessionClosedError(
                f"The session {self.id!r} is closed; open it again with client.session()."
            )
        submit = SubmitTurn(
            content=content if isinstance(content, str) else list(content),
            request_id=request_id or str(uuid.uuid4()),
            user_id=self.user_id,
            session_key=self.key,
            persona=self._persona,
            sender=sender,
            options=options,
            model=model,
            fallback=None if fallback is None else [hop_spec(hop) for hop in fallback],
            history=None if history is None else list(history),
            suffix=suffix,
            sends=sends,
            on_pause=on_pause,
            stream=stream,
            max_tool_iterations=max_tool_iterations,
        )
        check_form(submit)
        _check_size(submit)
        return submit

    async def _submitted(self, submit: SubmitTurn, *, hold: bool = True) -> TurnTicket:
        submit = submit.model_copy(update={"hold": hold})
        update_id = f"{submit.request_id}-{input_digest(submit)}-{'hold' if hold else 'ticket'}"
        ticket = await self._update("submit_turn", submit, TurnTicket, update_id=update_id)
        self.key = ticket.session_key
        return ticket

    async def _update(
        self,
        name: str,
        payload: BaseModel,
        result: type[T],
        *,
        update_id: str | None = None,
    ) -> T:
        """Call an update; the session is started when it does not run."""

        async def call() -> T:
            answer: T = await self._client.temporal.execute_update_with_start_workflow(
                name,
                payload,
                start_workflow_operation=self._start(),
                id=update_id or str(uuid.uuid4()),
                result_type=result,
            )
            return answer

        return await calling(call)

    def _start(self) -> WithStartWorkflowOperation[GMISession, None]:
        return WithStartWorkflowOperation(
            "GMISession",
            self._start_input(),
            id=self.workflow_id,
            task_queue=self._client.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"GMI session {self.id}",
        )

    def _start_input(self) -> SessionStart:
        return SessionStart(
            session_id=self.id,
            user_id=self.user_id,
            org=self._org,
            persona=self._persona,
            expect_key=self.key,
            config=self._config,
            search_attributes=self._client.search_attributes,
        )

    async def _signal(self, name: str, payload: BaseModel) -> None:
        async def call() -> None:
            await self._handle().signal(name, payload)

        await calling(call)

    async def _query(self, name: str, payload: BaseModel | None, result: type[T]) -> T:
        async def call() -> T:
            handle = self._handle()
            args = [] if payload is None else [payload]
            answer: T = await handle.query(name, args=args, result_type=result)
            return answer

        return await calling(call)

    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._client.temporal.get_workflow_handle(self.workflow_id)


def hop_spec(hop: HopSpec | str) -> HopSpec:
    """A hop of a fallback chain, from its model string alone if need be."""
    return hop if isinstance(hop, HopSpec) else HopSpec(model=hop)


def _check_size(payload: BaseModel) -> None:
    size = encoded_size(payload)
    if size > MAX_INPUT_BYTES:
        raise MessageTooLargeError(
            f"The input has {size} bytes and the limit is {MAX_INPUT_BYTES}; keep large content "
            "elsewhere and send a reference.",
            details={"bytes": size, "limit": MAX_INPUT_BYTES},
        )
