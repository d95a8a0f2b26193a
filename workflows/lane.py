"""The lane: turns run here one at a time, and here a run ends, rests or continues as new."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow

from ..personas.errors import SessionBusyError, TurnNotFoundError
from . import views
from .core import Core
from .intending import Intending
from .mind_calls import Reflected
from .minding import Minding
from .pauses import Pauses
from .policies import STORE
from .ports import StorePort
from .reflecting import Reflecting
from .remembering import Remembering
from .session_records import SaveSession
from .state import TurnRecord
from .turn_end import TurnEnd
from .turn_loop import TurnLoop
from .turns import StopAck, StopTurn, TurnTicket

HELD_CALLS = 2
HELD_SECONDS = 20


class Lane:
    """Runs a session's turns.

    Args:
        core: The session.
        pauses: Its paused turns.
        intending: What it means to do later.
        minding: Its mind.
    """

    def __init__(self, core: Core, pauses: Pauses, intending: Intending, minding: Minding) -> None:
        self._core = core
        self._start = core.start
        self._chunks = core.chunks
        self._pauses = pauses
        self._intending = intending
        self._minding = minding
        self._remembering = Remembering(core, minding)
        self._reflecting = Reflecting(core, minding)
        self._loop = TurnLoop(core, minding, self._remembering, self._reflecting)
        self._end = TurnEnd(core)
        self._held = 0
        self._reserved = False
        self._last_work = workflow.now()

    def touch(self) -> None:
        """Somebody called: the session is not idle."""
        self._last_work = workflow.now()

    async def serve(self) -> None:
        """Run turns and wait for them, until the session closes or is released."""
        core = self._core
        self.describe()
        self._minding.wake()
        self._remembering.start()
        self._reflecting.start()
        self._apply_patches()
        while True:
            await self._wait_for_work()
            if core.closing:
                await self.close()
                return
            self._pauses.expire()
            await self._intending.start_due()
            self._intending.keep()
            record = self._next_record()
            if record is not None:
                if core.state.partials:
                    # What a stopped turn kept is written by its closing; the next turn shows it.
                    await core.settled()
                outcome = await self._loop.run(record)
                self._apply_patches()
                self._intending.keep()
                self._last_work = workflow.now()
                self.describe()
                if outcome == "paused":
                    self._pauses.give_way()
                if outcome == "rolled":
                    await self._roll()
            elif core.should_roll() and not self._busy_after:
                # What follows a turn may take longer than a run that rolls again and again lasts.
                await self._roll()
            elif self._idle_left() == timedelta(0):
                if await self._release():
                    return
                # Readers were sent away for the release: the next run serves them again.
                await self._roll()

    async def _wait_for_work(self) -> None:
        core = self._core
        next_start = self._intending.next_start
        ends = (self._idle_left(), self._pause_left(), self._intending.left())
        timeout = min((left for left in ends if left is not None), default=None)
        if timeout == timedelta(0):
            return
        busy_after = self._busy_after
        try:
            await workflow.wait_condition(
                lambda: (
                    core.closing
                    or self._next_record() is not None
                    or (core.should_roll() and not self._busy_after)
                    # Only now the session may count as idle.
                    or (busy_after and not self._busy_after)
                    # Something was noted or cancelled: there is another time to wait for.
                    or self._intending.next_start != next_start
                ),
                timeout=timeout,
            )
        except TimeoutError:
            return

    def _next_record(self) -> TurnRecord | None:
        """The turn that may run now."""
        state = self._core.state
        if self._reserved:
            return None
        if state.active is not None:
            return state.active
        for record in state.queue:
            if not record.ready:
                return None
            if record.phase != "queued" or not state.paused:
                state.queue = [other for other in state.queue if other is not record]
                state.active = record
                return record
        return None

    def _idle_left(self) -> timedelta | None:
        state = self._core.state
        limit = state.config.idle_timeout
        if limit is None or self._reserved or state.paused or state.queue or state.active:
            return None
        if self._busy_after or self._intending.next_start is not None:
            return None
        left = self._last_work + timedelta(seconds=limit) - workflow.now()
        return max(left, timedelta(0))

    def _pause_left(self) -> timedelta | None:
        ends = [
            record.pause.expires_at
            for record in self._core.state.paused
            if record.pause is not None and record.pause.expires_at is not None
        ]
        if not ends:
            return None
        return max(min(ends) - workflow.now(), timedelta(0))

    async def _roll(self) -> None:
        """Continue as new, with everything that was accepted; returns only when asked to close."""
        core = self._core
        core.rolling = True
        try:
            await self._wind_up()
        finally:
            # Whoever closes the session instead, as a cancellation does, still has work to do.
            core.rolling = False
        if core.closing:
            return
        core.state.run += 1
        core.state.trim()
        workflow.continue_as_new(
            self._start.model_copy(
                update={
                    "state": core.state,
                    "stream": self._chunks.carry(),
                    "stream_marks": self._chunks.marks,
                    "expect_key": None,
                }
            )
        )

    async def _wind_up(self) -> None:
        """Wait until nothing of the run is left to do, or the session is asked to close."""
        core = self._core
        await self._remembering.pause()
        await self._reflecting.pause()
        await core.settled()
        self._chunks.detach()
        while True:
            await workflow.wait_condition(workflow.all_handlers_finished)
            if core.closing:
                return
            active = core.state.active
            if active is not None and active.turn in core.stopping:
                # Only this run knows that the stop was accepted.
                self._end.stopped(active)
            if core.after is None:
                return
            await core.settled()

    async def _release(self) -> bool:
        """Leave the record in the store and complete, unless new work came meanwhile."""
        core = self._core
        await core.settled()
        core.state.trim()
        trace = core.trace.pending()
        at, touched = core.at(), self._last_work
        await workflow.execute_activity_method(
            StorePort.save_session,
            SaveSession(at=at, closed=False, state=core.state.model_dump(mode="json"), trace=trace),
            summary="release the idle session",
            **STORE,
        )
        core.trace.flushed(trace)
        self._chunks.detach()
        await workflow.wait_condition(workflow.all_handlers_finished)
        idle = self._idle_left()
        # What was written meanwhile is not in the record that was left behind.
        moved = core.state.counter != at.counter or self._last_work != touched
        return idle == timedelta(0) and not core.closing and not moved

    def begin_close(self, reason: str | None = None) -> None:
        """Take no more turns, and stop everything; :meth:`serve` closes the session then."""
        self._core.closing = True
        self.stop(StopTurn(reason=reason))

    async def close(self) -> None:
        """End everything and record that the session is closed."""
        core = self._core
        for record in [*core.state.paused, *core.state.queue]:
            self._end.stopped(record)
        if core.state.active is not None:
            self._end.stopped(core.state.active)
        self._intending.drop()
        core.trace.add("LIFECYCLE", "The session closed.")
        await core.settled()
        await self._remembering.finish()
        await self._reflecting.pause()
        trace = core.trace.pending()
        await workflow.execute_activity_method(
            StorePort.save_session,
            SaveSession(at=core.at(), closed=True, trace=trace),
            summary="close the session",
            **STORE,
        )
        core.trace.flushed(trace)
        core.closed = True
        self.describe()
        self._chunks.detach()
        await workflow.wait_condition(workflow.all_handlers_finished)

    async def hold(self, turn: str, request_id: str | None) -> TurnTicket:
        """Hold a caller until the turn ends or pauses, but not for long and not many."""
        core = self._core
        if self._held < HELD_CALLS and not core.rolling:
            self._held += 1
            try:
                await workflow.wait_condition(
                    lambda: (
                        core.rolling
                        or core.state.output(turn) is not None
                        or core.state.record(turn) is None
                    ),
                    timeout=timedelta(seconds=HELD_SECONDS),
                )
            except TimeoutError:
                pass
            finally:
                self._held -= 1
        return views.ticket(core, turn, request_id)

    async def settle(self) -> bool:
        """Wait, but not for long, until what follows the done turns is done; says whether it is."""
        core = self._core
        try:
            await workflow.wait_condition(
                lambda: core.rolling or (not self._busy_after and core.quiet),
                timeout=timedelta(seconds=HELD_SECONDS),
            )
        except TimeoutError:
            return False
        return not self._busy_after and core.quiet

    def _apply_patches(self) -> None:
        """What metaprompts wanted to change while a turn ran, unless one still does."""
        if self._core.state.active is None:
            self._reflecting.apply()

    @property
    def _busy_after(self) -> bool:
        """Whether something that follows a done turn is not done yet."""
        return self._remembering.waiting or self._reflecting.waiting

    def reflect(self) -> Reflected:
        """Run the persona's self-reflection now."""
        return self._reflecting.reflect()

    async def exclusively(self, work: Callable[[], Awaitable[TurnTicket]]) -> TurnTicket:
        """Run ``work`` between two turns.

        Raises:
            SessionBusyError: A turn runs, waits or is queued.
            SessionClosedError: The session is closing.
        """
        core = self._core
        if self._reserved or core.state.active or core.state.queue or core.state.paused:
            raise SessionBusyError("A turn runs, waits or is queued; stop it or wait for it.")
        core.check_open()
        self._reserved = True
        try:
            return await work()
        finally:
            self._reserved = False

    def stop(self, request: StopTurn) -> StopAck:
        """Stop a turn, or everything that runs, waits or is queued.

        Raises:
            TurnNotFoundError: The session has no recent turn of this id.
        """
        core, state = self._core, self._core.state
        reached: list[str] = []
        live = [*state.paused, *state.queue, *([state.active] if state.active else [])]
        for record in live:
            if request.turn not in (None, record.turn):
                continue
            reached.append(record.turn)
            core.trace.add(
                "STATE_CHANGE", "A stop was asked for.", record.turn, {"reason": request.reason}
            )
            if record is state.active:
                core.stopping.add(record.turn)
            else:
                self._end.stopped(record)
        known = request.turn is None or reached or state.card(request.turn) is not None
        if not known:
            raise TurnNotFoundError(
                f"The session has no recent turn {request.turn!r}.",
                details={"turn": request.turn},
            )
        return StopAck(stopped=reached)

    def describe(self) -> None:
        """Show the session in Temporal's UI and to its searches."""
        core = self._core
        views.describe(core)
        views.upsert_search_attributes(core)
