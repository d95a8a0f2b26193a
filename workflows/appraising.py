"""Asking a model what an event means, for a persona that wants it so."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from .core import Core
from .failures import info_from_activity
from .mind_calls import Perceive
from .model_calls import APPRAISAL_DEADLINE, ModelCall
from .policies import model_call_options
from .ports import ModelPort
from .state import TurnRecord


class Appraising:
    """Has events appraised.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def appraised(self, record: TurnRecord, event: Perceive) -> Perceive:
        """The event with what it means to the persona.

        One that says so itself, or acts on the persona's state, is returned as it is; so is one
        whose appraisal fails, with a warning in the trace. Returns early when the turn is stopped.
        """
        core = self._core
        if event.appraisal is not None or event.stimulus is not None:
            return event
        if not core.state.rules.mind.appraises:
            return event
        handle = workflow.start_activity_method(
            ModelPort.call,
            self._call(record, event),
            summary=f"appraise the event of turn {record.seq}",
            cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
            **model_call_options(APPRAISAL_DEADLINE),
        )
        if not await core.ends(handle, record.turn):
            return event
        try:
            result = handle.result()
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            info = info_from_activity(error)
            self._failed(record, info.code, info.message)
            return event
        record.usage = record.usage + result.usage
        if result.model:
            record.provider, record.model = result.provider, result.model
        if result.appraisal is None:
            why = result.refused or "it came to nothing"
            self._failed(record, result.code or "APPRAISAL_FAILED", why, result.reasons)
            return event
        core.trace.add(
            "DEBUG",
            "The event was appraised.",
            record.turn,
            {
                "model": f"{result.provider}:{result.model}",
                "attempts": result.attempts,
                "appraisal": result.appraisal.model_dump(mode="json"),
            },
        )
        return event.model_copy(update={"appraisal": result.appraisal})

    def _call(self, record: TurnRecord, event: Perceive) -> ModelCall:
        core, config = self._core, self._core.state.config
        return ModelCall(
            at=core.at(record.turn, counter=core.state.counter),
            purpose="appraise",
            # What a host keeps with an event is nothing to judge it by.
            event=event.model_copy(update={"payload": {}}),
            persona_digest=record.persona_digest,
            model=config.model,
            fallback=config.fallback,
            credentials=config.credentials,
            user_id=core.start.user_id,
            deadline=APPRAISAL_DEADLINE,
        )

    def _failed(
        self, record: TurnRecord, code: str, why: str, reasons: list[str] | None = None
    ) -> None:
        self._core.trace.add(
            "WARNING",
            f"The event was not appraised: {why}",
            record.turn,
            {"code": code, "reasons": reasons or []},
        )
