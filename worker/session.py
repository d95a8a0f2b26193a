"""A session as a client sees it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, TypedDict, Unpack

from ..personas.emotion import Interlocutor
from ..personas.errors import SessionClosedError, SessionNotFoundError, ValidationError
from ..personas.messages import Message, Part
from ..personas.options import CompletionOptions
from ..workflows.chunks import Chunk
from ..workflows.decode import parse
from ..workflows.requests import check_form
from ..workflows.turns import (
    CloseSession,
    HopSpec,
    HostResult,
    OnPause,
    PersonaAck,
    RefreshPersona,
    ReplaceHistory,
    Sends,
    StateView,
    StopTurn,
    SubmitTurn,
    ToolResults,
    ToolResultsAck,
    TurnOutput,
    TurnTicket,
)
from .calls import calling
from .session_chat import ChatResult, OnToolCall, ToolCallWatch, given_history, result_of
from .session_feelings import SessionFeelings, Speaker
from .turn_stream import QUIET_SECONDS, TurnStream

STOP_WAIT = 10.0
"""Seconds that :meth:`Session.stop` waits for the turn's end; it comes within one."""


class _Given(TypedDict, total=False):
    """What :meth:`Session.send` may be given beside the words."""

    request_id: str | None
    options: CompletionOptions | None
    model: str | None
    fallback: Sequence[HopSpec | str] | None
    history: Sequence[Message] | None
    suffix: str | None
    sender: str | None
    interlocutor: Speaker | None
    sends: Sends
    on_pause: OnPause
    max_tool_iterations: int | None
    ceiling: int | None
    user_context: Mapping[str, Any] | None
    task_context: Mapping[str, Any] | None
    kind: Literal["text", "system"]
    stream: bool


class Session(SessionFeelings):
    """One session of one user with one persona.

    Made by :meth:`Client.session`; nothing is sent before the first call. Every call may be
    repeated: a message with the same ``request_id`` makes one turn.

    Attributes:
        id: The session's id.
        user_id: The user it serves.
        key: The session's key once it is known; an id that was closed and opened again has
            another one.
    """

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
        interlocutor: Speaker | None = None,
        sends: Sends = "queue",
        on_pause: OnPause = "refuse",
        max_tool_iterations: int | None = None,
        ceiling: int | None = None,
        user_context: Mapping[str, Any] | None = None,
        task_context: Mapping[str, Any] | None = None,
        kind: Literal["text", "system"] = "text",
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
            sender: The speaker's name, as the model's message carries it.
            interlocutor: Who speaks, for the system message: a name, or a name with a description
                and extensions.
            sends: Wait while another turn runs, or be refused.
            on_pause: What to do when a turn waits for the host.
            max_tool_iterations: Tool rounds before the model must answer.
            ceiling: The highest tier of intentions that the turn may be reminded of.
            user_context: What the mind is told of the user, from this turn on: ``skillLevel``,
                ``preferences`` (merged with those it knows) and anything else; at most 2 KB.
                ``None`` as a value takes it back to the usual one.
            task_context: The same of the task: ``domain``, ``complexity``, ``status``.
            kind: ``text`` for the user's words, ``system`` for a note of the host.
            stream: Whether the text also reaches the stream piece by piece, for watchers.

        Raises:
            GMIError: The message was refused; ``code`` says why. A turn that fails is not an
                error of the call: its output holds it.
        """
        submit = self._submit(
            content,
            request_id=request_id,
            options=options,
            model=model,
            fallback=fallback,
            history=history,
            suffix=suffix,
            sender=sender,
            interlocutor=interlocutor,
            sends=sends,
            on_pause=on_pause,
            max_tool_iterations=max_tool_iterations,
            ceiling=ceiling,
            user_context=user_context,
            task_context=task_context,
            kind=kind,
            stream=stream,
        )
        return await self._completed(await self._submitted(submit))

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
        interlocutor: Speaker | None = None,
        sends: Sends = "queue",
        on_pause: OnPause = "refuse",
        max_tool_iterations: int | None = None,
        ceiling: int | None = None,
        user_context: Mapping[str, Any] | None = None,
        task_context: Mapping[str, Any] | None = None,
        kind: Literal["text", "system"] = "text",
    ) -> TurnStream:
        """Say something and watch the turn; see :meth:`send` for the arguments."""
        submit = self._submit(
            content,
            request_id=request_id,
            options=options,
            model=model,
            fallback=fallback,
            history=history,
            suffix=suffix,
            sender=sender,
            interlocutor=interlocutor,
            sends=sends,
            on_pause=on_pause,
            max_tool_iterations=max_tool_iterations,
            ceiling=ceiling,
            user_context=user_context,
            task_context=task_context,
            kind=kind,
            stream=True,
        )
        return await self._streamed(submit)

    async def chat(
        self,
        message: str,
        *,
        from_: Speaker | None = None,
        history: Sequence[Message | Mapping[str, Any]] | None = None,
        consumer_suffix: str | None = None,
        on_tool_call: OnToolCall | None = None,
        request_id: str | None = None,
        options: CompletionOptions | None = None,
        model: str | None = None,
        on_pause: OnPause = "refuse",
        user_context: Mapping[str, Any] | None = None,
        task_context: Mapping[str, Any] | None = None,
    ) -> ChatResult:
        """Say something and get the answer with a history to hand back the next time.

        Args:
            message: The user's words.
            from_: Who speaks; ``user`` without.
            history: What was said before, as messages or ``{"role", "content"}``; not changed.
                Without one the session's own history counts, and ``updated_history`` holds this
                exchange alone.
            consumer_suffix: Text at the end of the system message.
            on_tool_call: Called with ``{"name", "args", "result"}`` when a call's result is
                known, once for each; plain or async. What it raises is logged.
            request_id: Repeating a call with the same one makes no second turn.
            options: Completion options of this turn.
            model: ``provider:model`` of this turn.
            on_pause: What to do when a turn waits for the host.
            user_context: What the mind is told of the user; see :meth:`send`.
            task_context: The same of the task.

        Raises:
            GMIError: The message was refused; ``code`` says why.
        """
        before = given_history(history)
        submit = self._submit(
            message,
            request_id=request_id,
            options=options,
            model=model,
            history=before,
            suffix=consumer_suffix,
            interlocutor=from_,
            on_pause=on_pause,
            user_context=user_context,
            task_context=task_context,
            stream=False,
        )
        if on_tool_call is None:
            output = await self._completed(await self._submitted(submit))
            return result_of(message, output, before)
        watch = ToolCallWatch(on_tool_call)
        stream = await self._streamed(submit)
        await watch.follow(stream)
        output = await stream.result()
        if output.tool_calls:
            rows = [row async for row in self.read("messages", turn=output.turn)]
            await watch.catch_up([await self._whole(row) for row in rows])
        return result_of(message, output, before)

    async def process_turn_stream(self, content: str | Sequence[Part]) -> AsyncIterator[Chunk]:
        """Say something and yield the turn's chunks, up to its end or its pause."""
        stream = await self.stream(content)
        async for chunk in stream:
            yield chunk

    async def stop(self, turn: str | None = None, *, reason: str | None = None) -> None:
        """Stop a turn, or everything that runs, waits or is queued.

        Returns when the session has it; a running turn has then ended ``stopped`` within a
        second, with the steps that it finished.

        Raises:
            TurnNotFoundError: The session never made this turn.
        """
        asked = parse({"turn": turn, "reason": reason}, StopTurn)
        try:
            await self._signal("stop_turn", asked)
        except SessionNotFoundError:
            if await self._is_released():
                return
            raise
        if turn is not None:
            try:
                await self.wait(turn, timeout=STOP_WAIT)
            except (TimeoutError, SessionNotFoundError, SessionClosedError):
                return

    async def handle_tool_result(
        self, call_id: str, content: Any = None, *, is_error: bool = False
    ) -> TurnOutput:
        """Answer one pending call; calls left out are answered as not run, and the turn goes on."""
        given = {"call_id": call_id, "content": content, "is_error": is_error}
        return await self.handle_tool_results([parse(given, HostResult)])

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
        return await self.complete(await self.wait(ack.turn))

    async def answer(
        self, results: Sequence[HostResult], *, rest: str = "fail", turn: str | None = None
    ) -> ToolResultsAck:
        """Answer pending calls without waiting for the turn."""
        given = {"results": results, "rest": rest, "user_id": self.user_id, "turn": turn}
        payload = parse(given, ToolResults)
        return await self._update("tool_results", payload, ToolResultsAck)

    async def replace_history(
        self, messages: Sequence[Message], *, forget: bool = True
    ) -> TurnOutput:
        """Make ``messages`` the whole history; an empty list empties it.

        Args:
            messages: The history; ``error`` and ``thought`` messages are left out.
            forget: Also drop what was recorded about turns that it no longer holds.
        """
        payload = parse({"messages": messages, "forget": forget}, ReplaceHistory)
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
        asked = parse({"persona": persona}, RefreshPersona)
        ack = await self._update("refresh_persona", asked, PersonaAck)
        self._persona = persona
        return ack

    async def initialize(self) -> StateView:
        """Open the session without saying anything.

        Raises:
            GMIError: The persona, a tool or the configuration does not fit.
        """
        state = await self._update("initialize", None, StateView)
        self.key = state.session_key or self.key
        return state

    async def close(self) -> None:
        """Close the session: what runs is stopped, and the id is free for a new one."""
        self._closed = True
        handle = self._handle()
        try:
            await calling(lambda: handle.signal("close", CloseSession()))
        except SessionNotFoundError:
            if not await self._is_released():
                return
            handle = await self._start_with_signal("close", CloseSession())
        await calling(handle.result)

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
            start = state.stream_offset if start is None else min(start, state.stream_offset)
            if state.stream_offset > start or state.active_turn is not None:
                async with aclosing(self.feed.listen(start, quiet=QUIET_SECONDS)) as items:
                    async for item in items:
                        if item is None:
                            break
                        start = item.offset + 1
                        yield item.chunk
                        if item.chunk.type == "final_response_marker":
                            break
            elif state.status in ("shutting_down", "shutdown"):
                return
            else:
                await asyncio.sleep(1.0)

    def _submit(self, content: str | Sequence[Part], **given: Unpack[_Given]) -> SubmitTurn:
        """The turn's input, checked as the session will check it."""
        self._check_open()
        asked: dict[str, Any] = {
            **given,
            "content": _content(content),
            "request_id": given.get("request_id") or str(uuid.uuid4()),
            "user_id": self.user_id,
            "org": self._org,
            "session_key": self.key,
            "persona": self._persona,
        }
        if (speaker := given.get("interlocutor")) is not None:
            asked["interlocutor"] = Interlocutor.of(speaker)
        submit = parse(asked, SubmitTurn)
        check_form(submit)
        return submit

    async def _streamed(self, submit: SubmitTurn) -> TurnStream:
        start = await calling(self.feed.offset)
        ticket = await self._submitted(submit, hold=False)
        return TurnStream(self, ticket, start)

    async def _submitted(self, submit: SubmitTurn, *, hold: bool = True) -> TurnTicket:
        submit = submit.model_copy(update={"hold": hold})
        # Not the request's id: a run that was ended from outside would go on giving the answer
        # of its last call. The session itself makes one turn of a request.
        ticket = await self._update("submit_turn", submit, TurnTicket)
        self.key = ticket.session_key
        return ticket


def _content(content: object) -> str | list[Any]:
    if isinstance(content, str):
        return content
    if isinstance(content, Iterable) and not isinstance(content, bytes | bytearray | Mapping):
        return list(content)
    raise ValidationError(
        f"The message is of type {type(content).__name__}; send text, or a list of text and image "
        "parts."
    )
