"""What a session's client reads: its turns, its history, its trace, what it is doing."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime
from typing import Any

from ..personas.errors import (
    RequestMismatchError,
    SessionClosedError,
    SessionNotFoundError,
    TurnNotFoundError,
)
from ..personas.messages import Message
from ..personas.schema import Persona
from ..personas.trace_limits import DEFAULT_MAX_ENTRIES
from ..workflows.decode import parse
from ..workflows.trace import TraceEntry, TraceTail
from ..workflows.turns import (
    FINAL_STATUSES,
    AwaitTurn,
    PendingView,
    Settled,
    StateView,
    TurnList,
    TurnOutput,
    TurnView,
    UsageView,
)
from .calls import calling
from .session_calls import SessionCalls
from .status import SessionStatus, pending_activities

POLL_SECONDS = 0.25
"""Pause between two looks at a turn that has not ended."""


class SessionReads(SessionCalls):
    """Reading a session; nothing here changes it, and most of it works on a closed one."""

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
                view = await self._view(turn)
                output = view.output or await self._stored(turn, view)
                if output is not None:
                    return output
                await asyncio.sleep(POLL_SECONDS)

    async def get_turn(self, turn: str) -> TurnOutput | None:
        """A turn's output, or ``None`` while it runs.

        Raises:
            TurnNotFoundError: The session never made this turn.
            SessionClosedError: The session was ended from outside while the turn ran.
        """
        view = await self._view(turn)
        if view.output is not None and not _is_mismatch(view.output):
            return view.output
        return await self._stored(turn, view)

    async def _view(self, turn: str) -> TurnView:
        asked = parse({"turn": turn}, AwaitTurn)
        try:
            return await self._query("get_turn", asked, TurnView, running=True)
        except SessionNotFoundError:
            return TurnView()

    async def _stored(self, turn: str, view: TurnView) -> TurnOutput | None:
        """The output that the store has of a turn that ended."""
        if view.card is not None and view.card.status not in FINAL_STATUSES:
            return None
        try:
            page = await self._read("turn", turn=turn)
        except TurnNotFoundError:
            if view.card is not None:
                # It ended a moment ago, and its end is still being written.
                return None
            raise
        found = page.items[0]
        if found["output"] is not None:
            return TurnOutput.model_validate(found["output"])
        if view.card is None and found["status"] not in FINAL_STATUSES:
            raise SessionClosedError(
                "The session was ended from outside while the turn ran; send the message again, "
                "with the same request id.",
                details={"turn": turn},
            )
        return None

    async def complete(self, output: TurnOutput) -> TurnOutput:
        """The output with its whole text, which the session does not carry when it is long.

        Raises:
            RequestMismatchError: The turn's request id was used long ago with another input.
        """
        if output.error is not None and _is_mismatch(output):
            raise RequestMismatchError(output.error.message, details=output.error.details)
        self.key = output.session_key
        self._counter = max(self._counter, output.write_counter)
        if not output.text_stored or output.response_text is not None:
            return output
        text = "".join([item["text"] async for item in self.read("text", turn=output.turn)])
        return output.model_copy(update={"response_text": text})

    async def pending(self) -> PendingView:
        """The calls that wait for the host."""
        return await self._query("list_pending", None, PendingView)

    async def state(self) -> StateView:
        """What the session is doing."""
        state = await self._query("get_state", None, StateView)
        self.key = state.session_key or self.key
        self._counter = max(self._counter, state.write_counter if state.active_turn is None else 0)
        return state

    async def status(self) -> SessionStatus:
        """What the session is doing and what it waits for: a provider, a worker, the store."""
        handle = self._handle()
        description = await calling(handle.describe)
        return SessionStatus(state=await self.state(), activities=pending_activities(description))

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
        """The conversation's messages with their turn, step, index and size, oldest first.

        One of over 256 KB is cut and has ``"truncated": true``; :meth:`message` reads it whole.
        """
        return [item async for item in self.read("messages")]

    async def message(self, turn: str, step: int, index: int) -> Message:
        """One message, whole however large it is.

        Args:
            turn: Its turn.
            step: Its step in the turn, as :meth:`messages` lists it.
            index: Its place in the step.

        Raises:
            GMIError: There is no such message.
        """
        pieces = self.read("message", turn=turn, step=step, index=index)
        return Message.model_validate_json("".join([item["json"] async for item in pieces]))

    async def get_conversation_history(self) -> list[Message]:
        """The messages that the conversation is made of now, oldest first, each one whole."""
        return [await self._whole(row) for row in await self.messages()]

    async def get_last_turn_history(self) -> list[Message]:
        """The messages of the last turn, from its input on."""
        turns = (await self.list_turns()).turns
        if not turns:
            return []
        rows = [item async for item in self.read("messages", turn=turns[-1].turn)]
        return [await self._whole(row) for row in rows]

    async def _whole(self, row: dict[str, Any]) -> Message:
        if row.get("truncated"):
            return await self.message(row["turn"], row["step"], row["index"])
        return Message.model_validate(row["message"])

    async def settle(self) -> None:
        """Wait until every done turn is closed and remembered.

        A session that does not run has nothing left to do.
        """
        while True:
            try:
                settled = await self._ask("settle", Settled)
            except SessionNotFoundError:
                return
            if settled.done:
                return

    async def get_reasoning_trace(self, *, limit: int | None = None) -> list[TraceEntry]:
        """The newest entries of the reasoning trace: the store's and the session's tail.

        Args:
            limit: Most entries; the persona's ``reasoningTraceConfig.maxEntries`` without, which
                is 500 unless it says more. The store keeps them all (``read("trace")``).
        """
        if limit is None:
            try:
                limit = (await self._query("get_state", None, StateView)).trace_limit
            except SessionNotFoundError:
                limit = DEFAULT_MAX_ENTRIES
        try:
            tail = (await self._query("trace_tail", None, TraceTail)).entries
        except SessionNotFoundError:
            tail = []
        entries = {entry.seq: entry for entry in tail}
        async for item in self.read("trace"):
            entry = TraceEntry.model_validate(item)
            entries.setdefault(entry.seq, entry)
        newest = sorted(entries)[max(0, len(entries) - limit) :]
        return [entries[seq] for seq in newest]

    async def get_persona(self) -> Persona:
        """The persona that the session runs, as it was frozen."""
        digest = (await self.state()).persona_digest
        pieces = [base64.b64decode(i["data"]) async for i in self.read("blob", digest=digest)]
        return Persona.from_json(b"".join(pieces))

    async def persona_id(self) -> str | None:
        """Id of the persona that the session runs."""
        return (await self.state()).persona

    async def gmi_id(self) -> str | None:
        """Id of the mind instance."""
        return (await self.state()).gmi_id

    async def created_at(self) -> datetime:
        """When the session was opened first."""
        return (await self.state()).created_at


def _is_mismatch(output: TurnOutput) -> bool:
    """Whether this tells the sender of another input that the turn's request id was used."""
    return output.error is not None and output.error.code == RequestMismatchError.default_code
