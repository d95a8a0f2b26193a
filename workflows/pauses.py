"""Answering paused turns: results from the host, approvals, reruns, time-outs."""

from __future__ import annotations

import asyncio
import json

from temporalio import workflow

from ..personas.errors import NotPendingError, SessionUserMismatchError, ValidationError
from .core import Core
from .decode import short_digest
from .state import Answered, ToolResult, TurnRecord
from .steps import PlannedCall
from .tool_round import DENIED, EXTERNAL_NOT_RUN, error_result, not_run, record_result, value_result
from .turn_end import TurnEnd, pending_calls
from .turns import ErrorInfo, HostResult, ToolResults, ToolResultsAck

OVERTAKEN = "the user sent a new message instead"


class Pauses:
    """Answers the calls of paused turns.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._end = TurnEnd(core)
        self._lock = asyncio.Lock()

    def check(self, payload: ToolResults) -> TurnRecord | None:
        """Refuse a payload that answers nothing that waits.

        Returns:
            The paused turn, or ``None`` when every result repeats one that was taken before.

        Raises:
            ValidationError: The payload is empty, or does not fit what a call waits for.
            SessionUserMismatchError: The session serves another user.
            NotPendingError: A call does not wait; the details name those that do.
        """
        core, state = self._core, self._core.state
        if payload.user_id is not None and payload.user_id != core.start.user_id:
            raise SessionUserMismatchError(
                "The session belongs to another user; use a session of your own."
            )
        if not payload.results and payload.rest == "wait":
            raise ValidationError("The payload has no results; name at least one call.")
        waiting = [
            (record, call)
            for record in state.paused
            for call in asked_calls(record)
            if payload.turn in (None, record.turn)
        ]
        found: TurnRecord | None = None
        unknown: list[str] = []
        for result in payload.results:
            hit = next(((r, c) for r, c in waiting if c.id == result.call_id), None)
            if hit is None:
                taken = state.answered.get(result.call_id)
                if taken is None or taken.digest != digest(result):
                    unknown.append(result.call_id)
                continue
            record, call = hit
            check_fits(record, call, result)
            if found is not None and found is not record:
                raise ValidationError("The results belong to several turns; send one payload each.")
            found = record
        if not payload.results:
            asked = [record for record in state.paused if payload.turn in (None, record.turn)]
            found = asked[0] if len(asked) == 1 else None
        if unknown or (found is None and not payload.results):
            pending = [c.call.id for record in state.paused for c in pending_calls(record)]
            raise NotPendingError(
                f"No call {', '.join(map(repr, unknown)) or 'at all'} waits for a result; "
                f"pending: {', '.join(pending) or 'none'}.",
                details={"unknown": unknown, "pending": pending},
            )
        return found

    async def answer(self, payload: ToolResults) -> ToolResultsAck:
        """Take the host's results; the turn goes on once nothing is left to wait for."""
        # One payload at a time: while a large result is being stored, another payload must not
        # answer the same call as not run.
        async with self._lock:
            return await self._answer(payload)

    async def _answer(self, payload: ToolResults) -> ToolResultsAck:
        core, state = self._core, self._core.state
        record = self.check(payload)
        duplicates = [r.call_id for r in payload.results if r.call_id in state.answered]
        if record is None:
            turn = state.answered[duplicates[0]].turn
            return ToolResultsAck(turn=turn, duplicates=duplicates)
        accepted: list[str] = []
        for result in payload.results:
            call = next((c for c in asked_calls(record) if c.id == result.call_id), None)
            if call is None:
                continue
            state.answered[call.id] = Answered(digest=digest(result), turn=record.turn)
            accepted.append(call.id)
            if result.approved or result.rerun:
                record.approved.append(call.id)
                if record.pause is not None:
                    record.pause.reasons.pop(call.id, None)
                continue
            record_result(core, record, await self._result(record, call, result))
        core.trace.add(
            "STATE_CHANGE",
            "The host answered.",
            record.turn,
            {"accepted": accepted, "rest": payload.rest},
        )
        resumed = False
        if record in state.paused:
            if payload.rest == "fail":
                self._answer_rest(record, "the host gave no result for it")
            resumed = self._resume(record)
        return ToolResultsAck(
            turn=record.turn,
            accepted=accepted,
            duplicates=duplicates,
            pending=[c.call.id for c in pending_calls(record)],
            resumed=resumed,
        )

    def answer_for_host(self, why: str) -> None:
        """Answer every open call of every pause as not run."""
        for record in list(self._core.state.paused):
            self._answer_rest(record, why)
            self._resume(record)

    def give_way(self) -> None:
        """Answer for the host where a message waits that was sent so as not to wait for it."""
        if any(record.overtakes for record in self._core.state.queue):
            self.answer_for_host(OVERTAKEN)

    def expire(self) -> None:
        """Answer the pauses whose time is over."""
        now = workflow.now()
        for record in list(self._core.state.paused):
            pause = record.pause
            if pause is not None and pause.expires_at is not None and pause.expires_at <= now:
                self._core.trace.add("WARNING", "The pause timed out.", record.turn)
                self._answer_rest(record, "the host did not answer in time")
                self._resume(record)

    def _answer_rest(self, record: TurnRecord, why: str) -> None:
        given_up = pending_calls(record)
        for pending in given_up:
            call = next(c for c in record.calls if c.id == pending.call.id)
            record_result(self._core, record, not_run(call, why, EXTERNAL_NOT_RUN))
        if given_up:
            self._core.trace.add(
                "WARNING",
                f"Calls that waited for the host were answered as not run: {why}.",
                record.turn,
                {"not_run": [{"id": c.call.id, "name": c.call.name} for c in given_up]},
            )

    def _resume(self, record: TurnRecord) -> bool:
        """Put the turn at the front when nothing is pending any more."""
        state = self._core.state
        if pending_calls(record):
            return False
        record.pause = None
        record.phase = "tools"
        state.paused = [other for other in state.paused if other is not record]
        state.outputs = [out for out in state.outputs if out.turn != record.turn]
        state.queue.insert(0, record)
        self._end.show(record, "running")
        return True

    async def _result(
        self, record: TurnRecord, call: PlannedCall, result: HostResult
    ) -> ToolResult:
        if result.approved is False:
            reason = result.reason or "no reason was given"
            return error_result(
                call, ErrorInfo(code=DENIED, message=f"The call was denied: {reason}.")
            )
        if result.is_error:
            facts = result.error or {}
            code = str(facts.get("code") or "EXTERNAL_TOOL_ERROR")[:100]
            message = facts.get("message") or result.content or "the host reported an error"
            details = {k: v for k, v in facts.items() if k not in ("code", "message")}
            return error_result(call, ErrorInfo(code=code, message=str(message), details=details))
        return await value_result(self._core, record, call, result.content)


def asked_calls(record: TurnRecord) -> list[PlannedCall]:
    """The open calls that the host is asked about; one that it allowed already is not."""
    reasons = record.pause.reasons if record.pause is not None else {}
    return [call for call in record.open_calls() if call.id in reasons]


def check_fits(record: TurnRecord, call: PlannedCall, result: HostResult) -> None:
    """Refuse an approval for a call that wants a result, and the other way round."""
    reason = record.pause.reasons.get(call.id) if record.pause is not None else None
    if reason == "approval" and result.approved is None and not result.is_error:
        raise ValidationError(
            f"The call {call.id!r} waits for an approval; send approved=true or approved=false."
        )
    if reason != "approval" and result.approved is not None:
        raise ValidationError(f"The call {call.id!r} waits for a result, not for an approval.")
    if result.rerun and reason != "lost":
        raise ValidationError(
            f"The call {call.id!r} cannot be run again; only a call with an unknown outcome can."
        )


def digest(result: HostResult) -> str:
    """Digest of a host's result, to recognise a repeated delivery; 16 hex characters."""
    text = json.dumps(result.model_dump(mode="json"), sort_keys=True)
    return short_digest(text)
