"""One round of tool calls: run what the session runs, and say what the host has to answer.

Every call of a round gets exactly one answer before the model is asked again, whatever failed,
was stopped, was lost or left out.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError, RetryState

from ..personas.learning import TurnLearning
from ..personas.messages import Message
from .core import Core
from .decode import encoded_size, misfit, undecodable
from .failures import info_from_activity, never_started, outcome_unknown, root_cause
from .minding import Minding
from .policies import NOT_REGISTERED, tool_attempts, tool_options
from .state import ToolResult, TurnRecord
from .steps import (
    INLINE_TEXT_BYTES,
    MAX_RESULT_BYTES,
    ROUND_BYTES,
    SMALL_BYTES,
    PlannedCall,
    Route,
    StoredMessage,
    ToolCallInput,
    ToolOutcome,
    ToolPatch,
)
from .turns import ErrorInfo, PauseReason

MAX_ERROR_DETAILS = 1024

NOT_RUN = "TOOL_NOT_RUN"
EXTERNAL_NOT_RUN = "EXTERNAL_TOOL_NOT_RUN"
OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"
INTERRUPTED = "TOOL_INTERRUPTED"
DENIED = "TOOL_DENIED"
RESULT_TOO_LARGE = "TOOL_RESULT_TOO_LARGE"
RESULT_NOT_JSON = "TOOL_RESULT_NOT_JSON"


def result_text(value: Any) -> str:
    """A tool's result as the model reads it: a string as it is, anything else as JSON."""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    )


def error_text(name: str, error: ErrorInfo) -> str:
    """A tool's error as the model reads it."""
    facts = {"code": error.code, "message": error.message, **error.details}
    return f"Error from {name}: {json.dumps(facts, ensure_ascii=False)}"


def error_result(call: PlannedCall, error: ErrorInfo) -> ToolResult:
    """The answer to a call that failed or did not run."""
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=error_text(call.name, error)[: INLINE_TEXT_BYTES // 2],
        is_error=True,
        error=small_error(error),
    )


def small_error(error: ErrorInfo) -> dict[str, Any]:
    """An error as the trace and the chunks tell it; large details are left out."""
    told: dict[str, Any] = {"code": error.code, "message": error.message[:1000]}
    if error.details and encoded_size(error.details) <= MAX_ERROR_DETAILS:
        told["details"] = error.details
    return told


def told_learning(record: TurnRecord) -> TurnLearning | None:
    """What each tool call is told of learning, where there is a layer."""
    if record.learning is None or record.learning.mode is None:
        return None
    return record.learning.told()


def not_run(call: PlannedCall, why: str, code: str = NOT_RUN) -> ToolResult:
    """The answer to a call that was never run."""
    return error_result(call, ErrorInfo(code=code, message=f"The call was not run: {why}."))


def interrupted(call: PlannedCall) -> ToolResult:
    """The answer to a call that was running when its turn ended."""
    why = "The call was stopped while it ran; what it had done by then is unknown."
    return error_result(call, ErrorInfo(code=INTERRUPTED, message=why))


async def value_result(core: Core, record: TurnRecord, call: PlannedCall, value: Any) -> ToolResult:
    """The answer that holds ``value``; over 2 MB it is refused.

    It is kept in the store when it is over 8 KB, or when the round's answers together are over
    :data:`~.steps.ROUND_BYTES`.
    """
    try:
        text = result_text(value)
    except (TypeError, ValueError) as error:
        return error_result(call, not_json(str(error)))
    size = len(text.encode())
    # As JSON once more, which is how it is kept: quotes and backslashes count twice.
    if encoded_size(text) > MAX_RESULT_BYTES:
        return error_result(call, too_large(encoded_size(text)))
    held = sum(len((known.content or "").encode()) for known in record.results.values())
    if size > INLINE_TEXT_BYTES or (size > SMALL_BYTES and held + size > ROUND_BYTES):
        [ref] = await core.put_blobs([text])
        return ToolResult(call_id=call.id, name=call.name, content_ref=ref)
    return ToolResult(call_id=call.id, name=call.name, content=text)


def too_large(size: int) -> ErrorInfo:
    """The error for a result over 2 MB."""
    return ErrorInfo(
        code=RESULT_TOO_LARGE,
        message=f"The result has {size} bytes and the limit is {MAX_RESULT_BYTES}; "
        "ask for less, or for a part.",
        details={"bytes": size, "limit": MAX_RESULT_BYTES},
    )


def not_json(problem: str) -> ErrorInfo:
    """The error for a result that is not JSON."""
    return ErrorInfo(
        code=RESULT_NOT_JSON,
        message=f"The result is not a JSON value: {problem}.",
    )


def result_messages(record: TurnRecord) -> list[StoredMessage]:
    """The round's answers as messages, in call order."""
    messages = []
    for call in record.calls:
        result = record.results[call.id]
        messages.append(
            StoredMessage(
                message=Message(
                    role="tool",
                    name=result.name,
                    call_id=result.call_id,
                    content=result.content,
                    is_error=result.is_error,
                ),
                content_ref=result.content_ref,
            )
        )
    return messages


class ToolRound:
    """Runs the open calls of a turn.

    Args:
        core: The session.
        record: The turn, in phase ``tools``.
        minding: The session's mind.
    """

    def __init__(self, core: Core, record: TurnRecord, minding: Minding) -> None:
        self._core = core
        self._minding = minding
        self._record = record
        self._lost: list[str] = []

    async def run(self) -> dict[str, PauseReason]:
        """Run every call that needs no host.

        Returns:
            The calls that the host has to answer, and why; empty when the round is answered.
        """
        record = self._record
        asked: dict[str, PauseReason] = {}
        running: dict[asyncio.Task[None], PlannedCall] = {}
        for call in record.open_calls():
            if call.route is None:
                problem = call.problem or ErrorInfo(code="TOOL_ERROR", message="no route")
                self._answer(call, error_result(call, problem))
        for call in record.open_calls():
            if call.route is None or self._interrupted():
                continue
            if call.route.external:
                asked[call.id] = "external"
            elif call.route.approval and call.id not in record.approved:
                asked[call.id] = "approval"
            else:
                running[asyncio.create_task(self._run_call(call))] = call
        if running:
            await workflow.wait_condition(
                lambda: all(task.done() for task in running) or self._interrupted()
            )
            for task, call in running.items():
                if not task.done():
                    task.cancel()
                    self._answer(call, interrupted(call))
            for outcome in await asyncio.gather(*running, return_exceptions=True):
                if isinstance(outcome, BaseException) and not isinstance(
                    outcome, asyncio.CancelledError
                ):
                    raise outcome
        asked.update(dict.fromkeys(self._lost, "lost"))
        return asked

    def failed(self) -> ToolResult | None:
        """The first error result, where the session fails a turn for it."""
        if self._core.state.config.tool_failure_mode == "fail_open":
            return None
        return next((r for r in self._record.results.values() if r.is_error), None)

    def _interrupted(self) -> bool:
        return self._record.turn in self._core.stopping or self.failed() is not None

    async def _run_call(self, call: PlannedCall) -> None:
        core, record, route = self._core, self._record, call.route
        assert route is not None  # chosen by run()
        core.trace.add(
            "TOOL_EXECUTION_START",
            f"Running {call.name}.",
            record.turn,
            {"call_id": call.id, "effect": route.effect, "task_queue": route.task_queue},
        )
        request = ToolCallInput(
            arguments=call.arguments,
            arguments_ref=call.arguments_ref,
            call_id=call.id,
            key=f"{core.state.session}:{record.turn}:{record.step - 1}:{call.id}",
            session_id=core.start.session_id,
            user_id=core.start.user_id,
            turn=record.turn,
            step=record.step - 1,
            learning=told_learning(record),
            mind=self._minding.tool_mind(record) if route.reads_mind else None,
        )
        try:
            # Raw, since a foreign tool may return bytes that no converter can read.
            raw = await workflow.execute_activity(
                route.activity,
                request,
                result_type=RawValue,
                summary=f"{call.name} for step {record.step - 1}",
                **tool_options(route),
            )
            result, attempt = await self._read_value(call, raw)
        except ActivityError as error:
            if call.id in record.results or record.turn in core.stopping:
                # It was answered as interrupted, or will be.
                raise asyncio.CancelledError from error
            answer = self._read_failure(call, error)
            if answer is None:
                self._lost.append(call.id)
                return
            result, attempt = answer, failed_attempt(route, error)
        self._answer(call, result, attempt)

    async def _read_value(self, call: PlannedCall, raw: RawValue) -> tuple[ToolResult, int | None]:
        """The answer in what a worker returned, and the attempt that gave it."""
        try:
            value = workflow.payload_converter().from_payload(raw.payload)
        except Exception as error:
            return error_result(call, not_json(undecodable(raw, error))), None
        attempt: int | None = None
        if isinstance(value, dict) and value.get("gmi_tool_outcome") == 1:
            try:
                outcome = ToolOutcome.model_validate(value)
            except ValidationError as error:
                problem = ErrorInfo(
                    code="TOOL_ERROR", message=f"malformed outcome: {misfit(error, 'outcome')}"
                )
                return error_result(call, problem), None
            attempt = outcome.attempt
            if outcome.is_error:
                fallback = ErrorInfo(code="TOOL_ERROR", message=result_text(outcome.value))
                return error_result(call, outcome.error or fallback), attempt
            if outcome.ref is not None:
                kept = ToolResult(call_id=call.id, name=call.name, content_ref=outcome.ref)
            else:
                kept = await value_result(self._core, self._record, call, outcome.value)
            return self._with_patch(call, kept, outcome), attempt
        return await value_result(self._core, self._record, call, value), attempt

    def _with_patch(self, call: PlannedCall, kept: ToolResult, outcome: ToolOutcome) -> ToolResult:
        """The answer, with what it changes in the mind where the tool may change it."""
        if kept.is_error or outcome.patch is None:
            return kept
        if call.route is None or not call.route.reads_mind:
            self._core.trace.add(
                "WARNING",
                f"{call.name} wanted to change the mind, which is not its business.",
                self._record.turn,
                {"call_id": call.id},
            )
            return kept
        try:
            kept.patch = ToolPatch.model_validate(outcome.patch)
        except ValidationError as error:
            problem = misfit(error, "patch")
            return error_result(
                call, ErrorInfo(code="TOOL_ERROR", message=f"malformed patch: {problem}")
            )
        return kept

    def _read_failure(self, call: PlannedCall, error: ActivityError) -> ToolResult | None:
        """The answer for a failed call, or ``None`` when the host is to be asked about it."""
        route = call.route
        assert route is not None  # chosen by run()
        cause = root_cause(error)
        if never_started(error):
            return not_run(call, f"no worker took it within {route.schedule_timeout} s")
        if isinstance(cause, ApplicationError) and cause.type == NOT_REGISTERED:
            return not_run(call, f"no worker serves the activity type {route.activity!r}")
        if outcome_unknown(error):
            self._core.trace.add(
                "WARNING",
                f"The outcome of {call.name} is unknown: its worker was lost.",
                self._record.turn,
                {"call_id": call.id, "effect": route.effect},
            )
            asks = self._core.state.config.on_lost == "pause" and self.failed() is None
            if route.effect == "once" and asks:
                return None
            return error_result(
                call,
                ErrorInfo(
                    code=OUTCOME_UNKNOWN,
                    message="The tool was started and its worker was lost or timed out; it may "
                    "have run. It was not run again.",
                ),
            )
        return error_result(call, info_from_activity(error))

    def _answer(self, call: PlannedCall, result: ToolResult, attempt: int | None = None) -> None:
        record, core = self._record, self._core
        details: dict[str, Any] = {
            "call_id": call.id,
            "is_error": result.is_error,
            "error": result.error,
        }
        said = f"{call.name} {'failed' if result.is_error else 'answered'}"
        if attempt is not None:
            details["attempt"] = attempt
            said += f" on attempt {attempt}" if attempt > 1 else ""
        core.trace.add("TOOL_EXECUTION_RESULT", f"{said}.", record.turn, details)
        record_result(core, record, result)


def failed_attempt(route: Route, error: ActivityError) -> int | None:
    """The attempt that a call failed on, where the failure tells it."""
    if never_started(error):
        return None
    if route.effect == "once" or error.retry_state == RetryState.MAXIMUM_ATTEMPTS_REACHED:
        return tool_attempts(route)
    return None


def record_result(core: Core, record: TurnRecord, result: ToolResult) -> None:
    """Take a call's answer into the round and publish it; a call that has one keeps it."""
    if result.call_id in record.results:
        return
    record.results[result.call_id] = result
    content: dict[str, Any] = {
        "tool_call_id": result.call_id,
        "name": result.name,
        "result": result.content,
        "is_error": result.is_error,
    }
    if result.content_ref is not None:
        content["result_ref"] = result.content_ref
    core.chunks.say(
        "tool_result",
        turn=record.turn,
        step=max(0, record.step - 1),
        content=content,
        error_details=result.error,
    )


def answer_open_calls(core: Core, record: TurnRecord, why: str) -> None:
    """Answer every open call of the round as not run, so that the history stays paired."""
    for call in record.open_calls():
        record_result(core, record, not_run(call, why))
