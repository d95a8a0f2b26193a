"""The turn loop: model steps and tool rounds until the turn ends, pauses or is carried on.

Deterministic: it decides and records; whatever touches the world is an activity.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Literal

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from ..personas.errors import RequestMismatchError, ToolError
from ..personas.errors import ValidationError as InvalidEventError
from .appraising import Appraising
from .beginning import Beginning
from .chunks import ChunkItem, calls_item, usage_content, usage_item
from .core import Core
from .drafts import draft_of, joined_text, with_warnings
from .failures import as_error_info, info_from_activity, root_cause
from .minding import Minding
from .policies import STEP, STORE
from .ports import ModelPort, StorePort
from .reflecting import Reflecting
from .remembering import Remembering
from .state import Pause, TurnRecord
from .steps import HopFailure, OpenTurn, RunStep, Segment, StepFailure, StepResult
from .tool_round import ToolRound, result_messages
from .turn_end import TurnEnd, add_made, input_message, opened_turn
from .turns import PauseReason, TurnOutput
from .writes import KnownTurn

Outcome = Literal["ended", "paused", "rolled"]


class TurnLoop:
    """Runs one turn at a time in a session's lane.

    Args:
        core: The session.
        minding: Its mind.
        remembering: Its way into long-term memory.
        reflecting: Its metaprompts.
    """

    def __init__(
        self, core: Core, minding: Minding, remembering: Remembering, reflecting: Reflecting
    ) -> None:
        self._core = core
        self._end = TurnEnd(core)
        self._minding = minding
        self._remembering = remembering
        self._reflecting = reflecting
        self._beginning = Beginning(core)
        self._appraising = Appraising(core)

    async def run(self, record: TurnRecord) -> Outcome:
        """Carry a turn on from wherever its record stands."""
        core = self._core
        core.state.active = record
        if record.phase == "queued":
            if core.should_roll():
                # Before it begins, so that what it changes by that can still be taken back.
                return "rolled"
            self._begin(record)
        while True:
            if record.turn in core.stopping:
                self._end.stopped(record)
                return "ended"
            if record.phase == "model":
                if core.should_roll():
                    return "rolled"
                if record.kind == "event":
                    await self._happen(record)
                    return "ended"
                if not await self._step(record):
                    return "ended"
            elif not await self._round(record):
                return "paused" if record.phase == "paused" else "ended"

    def _begin(self, record: TurnRecord) -> None:
        core, state = self._core, self._core.state
        self._reflecting.apply()
        overlaid = self._beginning.begin(record)
        record.brief = self._minding.brief(overlaid)
        record.persona, record.keeps = state.rules.persona, state.rules.memory
        record.parent = state.head
        record.branch = state.branch
        record.depth = state.depth + 1
        record.persona_digest = state.persona_digest
        record.toolset_digest = state.toolset_digest
        record.reads = list(state.partials) if state.config.show_partial else []
        record.phase = "model"
        record.new = [input_message(record)]
        core.chunks.begin_turn()
        core.trace.add(
            "INTERACTION_START",
            "A turn began.",
            record.turn,
            {"input_type": record.kind, "preview": record.preview},
        )
        self._end.show(record, "running")

    async def _step(self, record: TurnRecord) -> bool:
        """One model step; returns whether the turn goes on."""
        core = self._core
        request = self._request(record)
        core.chunks.begin_step(record.turn, record.step)
        handle = workflow.start_activity_method(
            ModelPort.run_step,
            request,
            summary=f"step {record.step} of turn {record.seq}",
            cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
            **STEP,
        )
        if not await core.ends(handle, record.turn):
            text = core.chunks.live_text
            core.chunks.end_step()
            self._end.stopped(record, text)
            return False
        try:
            result = handle.result()
        except ActivityError as error:
            core.chunks.end_step()
            self._step_failed(record, error)
            return False
        core.trace.flushed(request.trace)
        if result.existing is not None:
            core.chunks.end_step()
            self._repeated(record, result.existing)
            return False
        self._take(record, result)
        core.chunks.end_step()
        if result.calls:
            record.phase = "tools"
            return True
        if record.turn in core.stopping:
            self._end.stopped(record)
        else:
            self._end.done(record, request.at.counter if result.closed else None)
            self._ended(record)
        return False

    async def _happen(self, record: TurnRecord) -> None:
        """A turn without an answer: something happened, and the persona feels it."""
        event = record.input.event
        if event is None or not self._minding.feels:
            self._not_felt(record)
            return
        if await self._was_made_before(record):
            return
        event = await self._appraising.appraised(record, event)
        if record.turn in self._core.stopping:
            self._end.stopped(record)
            return
        if not self._minding.feels:
            self._not_felt(record)
            return
        record.input.event = event
        record.new = []
        record.perception = self._minding.perceive(event, record.turn)
        self._end.done(record)
        self._ended(record)

    def _not_felt(self, record: TurnRecord) -> None:
        """The persona was another one when the event was accepted."""
        persona = self._core.state.rules.persona
        problem = InvalidEventError(f"The persona {persona!r} has no emotions to feel it with.")
        record.new = []
        self._end.failed(record, as_error_info(problem))

    async def _was_made_before(self, record: TurnRecord) -> bool:
        """Whether the event has happened already; then its turn ends as it ended before.

        A message is known by its first step. The store is asked where the session may have
        forgotten a request: it keeps the last ones.
        """
        core, state = self._core, self._core.state
        if len(state.requests) >= state.seq or not workflow.patched("known-events"):
            return False
        request = KnownTurn(at=core.at(record.turn), opening=opened_turn(record))
        handle = workflow.start_activity_method(
            StorePort.known_turn, request, summary="look the event up", **STORE
        )
        if not await core.ends(handle, record.turn):
            self._end.stopped(record)
            return True
        try:
            known = handle.result()
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            self._step_failed(record, error)
            return True
        if known.output is None:
            return False
        self._repeated(record, known.output)
        return True

    def _repeated(self, record: TurnRecord, output: TurnOutput) -> None:
        """The store has the turn: what it began with is taken back."""
        self._beginning.undo(record)
        self._end.known(record, output)

    def _ended(self, record: TurnRecord) -> None:
        """What follows a done turn, beside whatever comes next."""
        if record.kind != "event":
            self._minding.answered()
        self._remembering.add(record)
        self._reflecting.after(record)
        self._minding.keep(record.turn)

    def _request(self, record: TurnRecord) -> RunStep:
        core, state = self._core, self._core.state
        limit = record.input.max_tool_iterations
        limit = state.config.max_tool_iterations if limit is None else limit
        with_tools = record.iterations < limit
        if not with_tools and record.iterations > 0 and not record.limit_reached:
            record.limit_reached = True
            core.trace.add(
                "WARNING",
                f"The limit of {limit} tool rounds is reached; the model is asked to answer "
                "without tools.",
                record.turn,
                {"max_tool_iterations": limit},
            )
        options = state.config.options
        if record.input.options is not None:
            options = options.merged(record.input.options) if options else record.input.options
        at = core.at(record.turn)
        record.step_counter = at.counter
        return RunStep(
            at=at,
            step=record.step,
            opening=None if record.opened else self._opening(record),
            remembers=record.remembers,
            mind=record.brief,
            interlocutor=record.input.interlocutor,
            learning=record.learning,
            path=path(record),
            parent=record.parent,
            partials=record.reads,
            expect_messages=record.messages,
            new=record.new,
            history_ref=record.input.history_ref,
            persona_digest=record.persona_digest,
            toolset_digest=record.toolset_digest,
            session_id=core.start.session_id,
            user_id=core.start.user_id,
            model=record.input.model or state.config.model,
            fallback=(
                record.input.fallback
                if record.input.fallback is not None
                else state.config.fallback
            ),
            options=options,
            max_messages=state.config.max_messages,
            suffix=record.input.suffix,
            with_tools=with_tools,
            start_hop=record.start_hop,
            max_wait=state.config.max_wait,
            credentials=state.config.credentials,
            stream=record.input.stream,
            trace=core.trace.pending(),
            draft=draft_of(record),
        )

    def _opening(self, record: TurnRecord) -> OpenTurn:
        recall = self._remembering.order(record)
        record.remembers = recall is not None
        score = self._core.state.rules.mind.sentiment.enabled and record.kind == "text"
        learn = self._minding.learn_order(record)
        return opened_turn(record).model_copy(
            update={"recall": recall, "score": score, "learn": learn}
        )

    def _take(self, record: TurnRecord, result: StepResult) -> None:
        """Record a finished step."""
        core = self._core
        if result.opened is not None:
            self._remembering.took(record, result.opened)
        if result.learning is not None:
            self._minding.took_learning(record, result.learning)
        if result.sentiment is not None:
            self._minding.heard(record, result.sentiment)
        self._trace_step(record, result)
        items = closing_items(result)
        whole = core.chunks.finish_step(result.attempt, result.chunks, items, result.text)
        core.chunks.say(
            "step_finished",
            turn=record.turn,
            step=record.step,
            content={
                "step_index": record.step,
                "text": result.text,
                "finish_reason": result.finish_reason,
                "provider_id": result.provider,
                "model_id": result.model,
                "hop": result.hop,
                "response_model": result.response_model,
                "provider_message_id": result.message_id,
                "service_tier": result.service_tier,
            },
            usage=result.usage,
            finish_reason=result.finish_reason,
            metadata={} if whole else {"text_missing": True},
        )
        record.opened = True
        record.layout.append(result.written)
        record.step += 1
        record.new = []
        record.start_hop = result.hop
        record.provider, record.model = result.provider, result.model
        record.finish_reason = result.finish_reason
        record.usage = record.usage + result.usage
        record.warnings = with_warnings(record.warnings, result.warnings)
        record.calls = list(result.calls)
        add_made(record, result.calls)
        record.results = {}
        record.approved = []
        record.texts = joined_text(record.texts, result.text)

    def _trace_step(self, record: TurnRecord, result: StepResult) -> None:
        trace, turn = self._core.trace, record.turn
        for failure in result.failures:
            self._take_failure(record, failure)
        details: dict[str, Any] = {
            "step": record.step,
            "messages": result.prompt_messages,
            "estimated_tokens": result.prompt_tokens,
        }
        if result.left_out is not None:
            details["left_out"] = result.left_out.model_dump()
        trace.add("PROMPT_CONSTRUCTION_COMPLETE", "The prompt was built.", turn, details)
        for warning in result.warnings:
            trace.add("WARNING", warning, turn, {"step": record.step})
        trace.add(
            "LLM_CALL_START",
            f"Asked {result.provider}:{result.model}.",
            turn,
            {"step": record.step, "hop": result.hop, "attempt": result.attempt},
        )
        if result.calls:
            trace.add(
                "TOOL_CALL_REQUESTED",
                f"The model asked for {', '.join(call.name for call in result.calls)}.",
                turn,
                {"calls": [{"id": call.id, "name": call.name} for call in result.calls]},
            )
        trace.add(
            "LLM_CALL_COMPLETE",
            "The model answered.",
            turn,
            {"finish_reason": result.finish_reason, "usage": usage_content(result.usage)},
        )

    def _take_failure(self, record: TurnRecord, failure: HopFailure) -> None:
        """Trace a hop that failed before output, and count what it billed."""
        core = self._core
        core.trace.add(
            "WARNING",
            f"Hop {failure.hop} ({failure.provider}:{failure.model}) failed: "
            f"{failure.error.message}",
            record.turn,
            {"hop": failure.hop, **failure.error.details},
        )
        if failure.usage is not None:
            record.usage = record.usage + failure.usage
            core.chunks.say_bill(failure, record.turn, record.step)

    def _step_failed(self, record: TurnRecord, error: ActivityError) -> None:
        info = info_from_activity(error)
        if info.code == RequestMismatchError.default_code and not record.opened:
            self._beginning.undo(record)
            self._end.mismatched(record, info)
            return
        cause = root_cause(error)
        if isinstance(cause, ApplicationError) and len(cause.details) > 1:
            try:
                failure = StepFailure.model_validate(cause.details[1])
            except ValidationError:
                failure = StepFailure()
            for hop in failure.failures:
                self._take_failure(record, hop)
            record.usage = record.usage + failure.beside
            for warning in failure.warnings:
                self._core.trace.add("WARNING", warning, record.turn, {"step": record.step})
        self._end.failed(record, info)

    async def _round(self, record: TurnRecord) -> bool:
        """The open tool round; returns whether the turn goes on with another step."""
        core = self._core
        tools = ToolRound(core, record, self._minding)
        asked = await tools.run()
        failed = tools.failed()
        if asked or failed is not None or record.turn in core.stopping:
            # What some of its calls have changed stands, however the round goes on.
            self._changed(record)
        if record.turn in core.stopping:
            self._end.stopped(record)
            return False
        if failed is not None:
            problem = ToolError(
                f"Tool {failed.name} failed and the session fails turns for that: "
                f"{(failed.error or {}).get('message', '')}",
                details={"call_id": failed.call_id},
            )
            self._end.failed(record, as_error_info(problem))
            return False
        if asked:
            self._pause(record, asked)
            return False
        self._minding.patch(record)
        self._close_round(record)
        return True

    def _changed(self, record: TurnRecord) -> None:
        """Take what the calls that are done have changed in the mind."""
        made = any(result.patch is not None for result in record.results.values())
        if made and workflow.patched("early-changes"):
            self._minding.patch(record)

    def _close_round(self, record: TurnRecord) -> None:
        """Every call is answered: the next step takes the answers along."""
        record.new = result_messages(record)
        record.calls = []
        record.results = {}
        record.iterations += 1
        record.phase = "model"

    def _pause(self, record: TurnRecord, asked: dict[str, PauseReason]) -> None:
        state = self._core.state
        timeout = state.config.pause_timeout
        record.pause = Pause(
            reasons=asked,
            since=workflow.now(),
            expires_at=None if timeout is None else workflow.now() + timedelta(seconds=timeout),
        )
        record.phase = "paused"
        self._end.paused(record)


def path(record: TurnRecord) -> list[Segment]:
    """The branch path before the turn."""
    if record.depth <= 1:
        return []
    return [Segment(branch=record.branch, depth=record.depth - 1)]


def closing_items(result: StepResult) -> list[ChunkItem]:
    """A step's calls and its usage, as the step itself would have sent them."""
    items = [calls_item(result.calls)] if result.calls else []
    return [*items, usage_item(result.usage)] if result.usage.total_tokens else items
