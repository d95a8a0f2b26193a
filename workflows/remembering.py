"""After a turn: it is made into memories, beside whatever comes next, one turn after another."""

from __future__ import annotations

import asyncio
import contextlib

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from .core import Core
from .decode import encoded_size
from .failures import info_from_activity
from .intentions import offered, reminders
from .memory import Encode, Encoded
from .minding import Minding
from .policies import AFTER_TURN
from .ports import MemoryPort
from .session_records import Unremembered
from .state import TurnRecord
from .steps import Opened, RecallOrder

MAX_WAITING = 64
MAX_WAITING_BYTES = 32 * 1024
"""Turns that wait for an embedding model; when more wait, the oldest are written without it."""


GRACE_SECONDS = 2.0
"""For so long a session that closes lets its turns be embedded before it goes on without."""


class Remembering:
    """Keeps a session's turns in long-term memory.

    The turns that are not encoded yet are part of the session's state: a run that continues as
    new hands them over, and the next one encodes them. Encoding a turn twice changes nothing.

    Args:
        core: The session.
        minding: Its mind.
    """

    def __init__(self, core: Core, minding: Minding) -> None:
        self._core = core
        self._minding = minding
        self._work: asyncio.Task[None] | None = None
        self._paused = False
        self._hurried = False

    @property
    def waiting(self) -> bool:
        """Whether a turn is not encoded yet."""
        return bool(self._core.state.unencoded)

    def order(self, record: TurnRecord) -> RecallOrder | None:
        """What a turn that opens now shall bring to mind."""
        core = self._core
        meant = reminders(core.state, workflow.now(), record.input.ceiling)
        record.offered = offered(core.state, meant)
        if not core.state.rules.memory:
            # What was meant to be done is told to a persona without a memory too.
            return RecallOrder(org=core.start.org, reminders=meant) if meant else None
        return RecallOrder(
            org=core.start.org,
            feeling=self._minding.feeling(),
            slots=list(core.state.mind.slots),
            reminders=meant,
        )

    def took(self, record: TurnRecord, opened: Opened) -> None:
        """Record what a turn's opening brought to mind."""
        core = self._core
        record.reminded = opened.reminded
        for warning in opened.warnings:
            core.trace.add("WARNING", warning, record.turn)
        if opened.reminded:
            core.trace.add(
                "STATE_CHANGE",
                "The turn is reminded of what was meant to be done.",
                record.turn,
                {"intentions": opened.reminded},
            )
        if not core.state.rules.memory:
            return
        core.state.mind = core.state.mind.but(slots=tuple(opened.slots))
        core.trace.add(
            "DEBUG",
            f"Recalled {len(opened.recalled)} memories.",
            record.turn,
            opened.model_dump(mode="json", exclude={"warnings", "slots"}, exclude_defaults=True),
        )

    def add(self, record: TurnRecord) -> None:
        """A turn is done: encode it."""
        state = self._core.state
        keeps = state.rules.memory
        began = record.keeps
        if began is not None and began != keeps and workflow.patched("began-with"):
            # The session runs another persona by now, and the turn's own counts.
            keeps = began
        if not keeps or record.kind == "import":
            return
        perception = record.perception
        if record.kind == "event" and not (perception and perception.remembered):
            return
        state.unencoded.append(
            Unremembered(
                turn=record.turn,
                persona_digest=record.persona_digest,
                feeling=self._minding.feeling(),
            )
        )
        self.start()

    def start(self) -> None:
        """Go on encoding, where something is left."""
        if self._core.rolling:
            return
        self._paused = False
        if self.waiting and (self._work is None or self._work.done()):
            self._work = asyncio.create_task(self._encode_all())

    async def pause(self) -> None:
        """Stop encoding; what is left is in the state."""
        self._paused = True
        if self._work is not None and not self._work.done():
            self._work.cancel()
            await workflow.wait_condition(self._work.done)

    async def finish(self) -> None:
        """Encode all that is left; an embedding model is waited for a moment and not longer."""
        if self.waiting:
            self.start()
            # What was said last would otherwise have no vector until a consolidation.
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(lambda: not self.waiting, timeout=GRACE_SECONDS)
        self._hurried = True
        await self.pause()
        self.start()
        await workflow.wait_condition(lambda: self._paused or not self.waiting)

    async def _encode_all(self) -> None:
        core, state = self._core, self._core.state
        try:
            while state.unencoded and not self._paused:
                # The turn's end has to be in the store before it is read from there.
                await core.settled()
                await self._encode(state.unencoded[0])
        except asyncio.CancelledError:
            return

    async def _encode(self, item: Unremembered) -> None:
        core, state = self._core, self._core.state
        waiting = len(state.unencoded)
        size = sum(encoded_size(other) for other in state.unencoded)
        hurried = self._hurried or waiting > MAX_WAITING or size > MAX_WAITING_BYTES
        request = Encode(
            # Not a write that anybody waits for, so it takes no counter of its own.
            at=core.at(item.turn, counter=state.counter),
            session_id=core.start.session_id,
            user_id=core.start.user_id,
            org=core.start.org,
            persona_digest=item.persona_digest,
            feeling=item.feeling,
            domain=state.mind.task.domain,
            patient=not hurried,
        )
        try:
            encoded = await workflow.execute_activity_method(
                MemoryPort.encode,
                request,
                summary="remember a turn",
                cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
                **AFTER_TURN,
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                # The run rests, or nobody wants to wait any longer: the next one tries again.
                raise asyncio.CancelledError from error
            info = info_from_activity(error)
            core.trace.add("WARNING", f"The turn was not remembered: {info.message}", item.turn)
        else:
            self._took(item, encoded)
        state.unencoded = [other for other in state.unencoded if other is not item]

    def _took(self, item: Unremembered, encoded: Encoded) -> None:
        core = self._core
        for warning in encoded.warnings:
            core.trace.add("WARNING", warning, item.turn)
        core.trace.add(
            "DEBUG",
            f"Remembered the turn in {len(encoded.traces)} traces.",
            item.turn,
            encoded.model_dump(mode="json", exclude={"warnings"}, exclude_defaults=True),
        )
