"""The session workflow: one long-lived run of handlers around a lane of turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.contrib.workflow_streams import WorkflowStream
from temporalio.exceptions import ActivityError, ApplicationError

from ..personas.errors import GMIError, SessionUserMismatchError, TurnNotFoundError
from . import views
from .chunk_log import ChunkLog, first_stream_state
from .chunks import ChunkBatch
from .core import Core
from .decode import MISSING, carried, decode, nothing
from .failures import error_from_activity, refusal, refusing
from .history import History
from .intending import Intending
from .lane import Lane
from .mind_calls import WORDS_FORGOTTEN, WordsForgotten
from .mind_handlers import MindHandlers
from .minding import Minding
from .opening import open_session
from .pauses import OVERTAKEN, Pauses
from .policies import STORE
from .ports import StorePort
from .requests import Requests, check_form
from .session_records import RefreshInput
from .state import SessionStart
from .trace import TraceTail
from .turns import (
    AwaitTurn,
    CloseSession,
    PendingView,
    PersonaAck,
    RefreshPersona,
    ReplaceHistory,
    Settled,
    StateView,
    StopAck,
    StopTurn,
    SubmitTurn,
    ToolResults,
    ToolResultsAck,
    TurnList,
    TurnTicket,
    TurnView,
    UsageView,
)
from .writes import Done

UNUSED_SECONDS = 10


@workflow.defn(name="GMISession", sandboxed=False)
class GMISession(MindHandlers):
    """A durable mind: one session of one user with one persona.

    Started by update-with-start or signal-with-start; it opens with the first call that it
    accepts, and lives until it is closed or, when asked to, idle for long enough.
    """

    @workflow.init
    def __init__(self, raw: RawValue = MISSING) -> None:
        self._open_error: GMIError | None = None
        handed_over = workflow.info().continued_run_id is not None
        try:
            start = carried(raw, SessionStart) if handed_over else decode(raw, SessionStart)
        except GMIError as error:
            if handed_over:
                # Never an end: the task fails, and a worker of the release that wrote it goes on.
                raise RuntimeError(f"the state handed over is not readable: {error}") from error
            # Whoever calls is told, and the run ends, so that the id is free.
            self._open_error = error
            start = SessionStart(session_id="", user_id="")
        self._start = start
        stream = WorkflowStream(prior_state=start.stream or first_stream_state())
        # The library's own publisher is not used: nothing it sends could be fenced.
        workflow.set_signal_handler("__temporal_workflow_stream_publish", passed_over)
        self._chunks = ChunkLog(stream, start.stream_marks)
        self._wanted = start.state is not None
        self._refreshing = asyncio.Lock()
        self._core: Core | None = None
        if start.state is not None:
            self._assemble(Core(start, start.state, self._chunks))

    def _assemble(self, core: Core) -> None:
        self._core = core
        self._requests = Requests(core)
        self._pauses = Pauses(core)
        self._history = History(core)
        self._intending = Intending(core)
        self._minding = Minding(core)
        self._lane = Lane(core, self._pauses, self._intending, self._minding)

    @workflow.run
    async def run(self, raw: RawValue = MISSING) -> None:
        """Serve the session; a cancel from outside closes it."""
        try:
            if self._core is not None or await self._open():
                await self._lane.serve()
        except asyncio.CancelledError:
            if self._core is not None and not self._core.closed:
                self._lane.begin_close()
                await self._lane.close()
            raise

    async def _open(self) -> bool:
        """Open the session once somebody wants it; returns whether it is open."""
        with_limit = timedelta(seconds=UNUSED_SECONDS)
        try:
            await workflow.wait_condition(lambda: self._wanted, timeout=with_limit)
        except TimeoutError:
            if not self._wanted:
                return False
        try:
            if self._open_error is not None:
                raise self._open_error
            state = await open_session(self._start)
        except (GMIError, ActivityError) as error:
            self._open_error = error if isinstance(error, GMIError) else error_from_activity(error)
            await workflow.wait_condition(workflow.all_handlers_finished)
            return False
        self._assemble(Core(self._start, state, self._chunks))
        return True

    def _ready(self) -> Core:
        if self._core is None:
            raise ApplicationError("The session is not open.", type="SYS_NOT_INITIALIZED")
        return self._core

    async def _opened(self) -> Core:
        """The open session, for a handler.

        Raises:
            ApplicationError: It could not be opened.
        """
        self._wanted = True
        await workflow.wait_condition(
            lambda: self._core is not None or self._open_error is not None
        )
        if self._open_error is not None:
            raise refusal(self._open_error)
        self._lane.touch()
        return self._ready()

    # Updates

    @workflow.update
    async def initialize(self, raw: RawValue = MISSING) -> StateView:
        """Open the session, which the first call does anyway, and say what it is doing."""
        with refusing():
            nothing(raw, "initialize")
            return views.state(await self._opened(), self._start, self._chunks)

    @workflow.update
    async def submit_turn(self, raw: RawValue = MISSING) -> TurnTicket:
        """Queue a turn; answers with its output when that comes soon, else with a ticket."""
        with refusing():
            submit = decode(raw, SubmitTurn)
            check_form(submit)
            core = await self._opened()
            self._requests.check(submit)
            overtakes = submit.on_pause == "answer" and bool(core.state.paused)
            if overtakes:
                self._pauses.answer_for_host(OVERTAKEN)
            record, turn, request_id = self._requests.accept(submit)
            if record is not None:
                record.overtakes = overtakes
                await self._history.take_input(record)
            if not submit.hold:
                return views.ticket(core, turn, request_id)
            return await self._lane.hold(turn, request_id)

    @submit_turn.validator
    def _validate_submit_turn(self, raw: RawValue = MISSING) -> None:
        with refusing():
            submit = decode(raw, SubmitTurn)
            check_form(submit)
            if self._open_error is not None:
                # Accepted, so that the handler says why and the run ends.
                return
            if self._core is not None:
                self._requests.check(submit)
            elif submit.user_id != self._start.user_id or submit.org not in (
                None,
                self._start.org,
            ):
                raise SessionUserMismatchError("The session was started for another user.")

    @workflow.update
    async def await_turn(self, raw: RawValue = MISSING) -> TurnTicket:
        """Wait for a turn's end or pause; answers with a ticket when that takes long."""
        with refusing():
            asked = decode(raw, AwaitTurn)
            core = await self._opened()
            known = core.state
            if not (known.record(asked.turn) or known.output(asked.turn) or known.card(asked.turn)):
                raise TurnNotFoundError(
                    f"The session has no recent turn {asked.turn!r}; older ones are read with "
                    "GMIRead.",
                    details={"turn": asked.turn},
                )
            return await self._lane.hold(asked.turn, None)

    @workflow.update(name="tool_results")
    async def tool_results_update(self, raw: RawValue = MISSING) -> ToolResultsAck:
        """Answer the calls of a paused turn."""
        with refusing():
            payload = decode(raw, ToolResults)
            await self._opened()
            return await self._pauses.answer(payload)

    @tool_results_update.validator
    def _validate_tool_results(self, raw: RawValue = MISSING) -> None:
        with refusing():
            payload = decode(raw, ToolResults)
            if self._core is not None:
                self._pauses.check(payload)

    @workflow.update(name="stop_turn")
    async def stop_turn_update(self, raw: RawValue = MISSING) -> StopAck:
        """Stop a turn, or everything that runs, waits or is queued."""
        with refusing():
            request = decode(raw, StopTurn)
            await self._opened()
            return self._lane.stop(request)

    @workflow.update
    async def replace_history(self, raw: RawValue = MISSING) -> TurnTicket:
        """Make a given list of messages the whole history."""
        with refusing():
            request = decode(raw, ReplaceHistory)
            await self._opened()
            return await self._lane.exclusively(lambda: self._history.replace(request))

    @workflow.update
    async def clear_history(self, raw: RawValue = MISSING) -> TurnTicket:
        """Empty the history."""
        with refusing():
            nothing(raw, "clear_history")
            await self._opened()
            return await self._lane.exclusively(
                lambda: self._history.replace(ReplaceHistory(messages=[]))
            )

    @workflow.update
    async def refresh_persona(self, raw: RawValue = MISSING) -> PersonaAck:
        """Run another persona, or the newest version of this one, from the next turn on."""
        with refusing():
            request = decode(raw, RefreshPersona)
            core = await self._opened()
            # One at a time: answered in another order, the session would run another persona
            # than the store records.
            async with self._refreshing:
                frozen = await workflow.execute_activity_method(
                    StorePort.refresh_persona,
                    RefreshInput(
                        at=core.at(),
                        persona=request.persona or core.state.rules.persona,
                        config=core.state.config,
                    ),
                    summary="refresh the persona",
                    **STORE,
                )
                self._minding.become(frozen)
            core.trace.add(
                "STATE_CHANGE",
                f"The session runs persona {frozen.rules.persona}.",
                details={"digest": frozen.persona_digest},
            )
            self._lane.describe()
            if workflow.patched("refresh-touches"):
                # An idle session that was about to be released must not forget it.
                self._lane.touch()
            return PersonaAck(
                persona=frozen.rules.persona,
                digest=frozen.persona_digest,
                warnings=frozen.warnings,
            )

    @workflow.update
    async def settle(self, raw: RawValue = MISSING) -> Settled:
        """Wait, but not for long, until what follows the done turns is done."""
        with refusing():
            nothing(raw, "settle")
            await self._opened()
            return Settled(done=await self._lane.settle())

    @workflow.update(name="close")
    async def close_update(self, raw: RawValue = MISSING) -> Done:
        """Close the session: what runs is stopped, and the id is free."""
        with refusing():
            request = decode(raw, CloseSession)
            await self._opened()
            self._lane.begin_close(request.reason)
            return Done()

    # Signals, with the updates' payloads

    @workflow.signal
    async def tool_results(self, raw: RawValue = MISSING) -> None:
        """Answer the calls of a paused turn, without waiting for an answer."""
        await self._signalled("tool_results", raw, self._take_results)

    @workflow.signal
    async def stop_turn(self, raw: RawValue = MISSING) -> None:
        """Stop a turn, without waiting."""
        await self._signalled("stop_turn", raw, self._take_stop)

    @workflow.signal
    async def close(self, raw: RawValue = MISSING) -> None:
        """Close the session, without waiting."""
        await self._signalled("close", raw, self._take_close)

    @workflow.signal(name=WORDS_FORGOTTEN)
    async def words_forgotten(self, raw: RawValue = MISSING) -> None:
        """Memories were forgotten: the mind at hand forgets the words of their turns too."""
        try:
            told = decode(raw, WordsForgotten)
        except GMIError as error:
            self._warn(WORDS_FORGOTTEN, error)
            return
        # One that is not open yet goes on from the store, which has forgotten them.
        if self._core is not None and self._core.state.session == told.session:
            self._core.state.forget_words(told.turns)

    @workflow.signal
    async def chunks(self, raw: RawValue = MISSING) -> None:
        """Chunks of a running step."""
        try:
            batch = decode(raw, ChunkBatch)
        except GMIError as error:
            self._warn("chunks", error)
            return
        if self._core is None or batch.turn not in self._core.stopping:
            self._chunks.receive(batch)

    async def _take_results(self, raw: RawValue) -> None:
        await self._pauses.answer(decode(raw, ToolResults))

    async def _take_stop(self, raw: RawValue) -> None:
        self._lane.stop(decode(raw, StopTurn))

    async def _take_close(self, raw: RawValue) -> None:
        self._lane.begin_close(decode(raw, CloseSession).reason)

    async def _signalled(
        self, name: str, raw: RawValue, take: Callable[[RawValue], Awaitable[None]]
    ) -> None:
        try:
            await self._opened()
            await take(raw)
        except GMIError as error:
            self._warn(name, error)
        except ApplicationError as error:
            if self._core is not None:
                self._warn(name, GMIError(error.message, code=error.type))

    def _warn(self, name: str, error: GMIError) -> None:
        """A signal cannot be refused: what was wrong is in the trace and in ``list_pending``."""
        if self._core is None:
            return
        text = f"Signal {name} was not used: {error.code}: {error.message}"
        self._core.trace.add("WARNING", text, details=error.details)
        self._core.state.signal_warnings.append(text[:300])
        self._core.state.trim()

    # Queries

    @workflow.query
    def get_state(self) -> StateView:
        """What the session is doing."""
        return views.state(self._core, self._start, self._chunks)

    @workflow.query
    def get_turn(self, asked: AwaitTurn) -> TurnView:
        """A recent turn."""
        return views.turn(self._ready(), asked.turn)

    @workflow.query
    def list_turns(self) -> TurnList:
        """The newest turns."""
        return views.turns(self._ready())

    @workflow.query
    def list_pending(self) -> PendingView:
        """The calls that wait for the host."""
        return views.pending(self._ready())

    @workflow.query
    def trace_tail(self) -> TraceTail:
        """The newest entries of the reasoning trace."""
        return self._ready().trace.tail()

    @workflow.query
    def usage(self) -> UsageView:
        """Tokens and USD so far."""
        return views.usage(self._ready())


async def passed_over(raw: RawValue = MISSING) -> None:
    """A signal that says nothing to a session."""
