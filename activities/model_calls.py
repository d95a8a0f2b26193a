"""Calls beside the turns: a metaprompt becomes a patch of the mind, an event is appraised.

An attempt that fails hands on what it has found out, so that the next one asks only what is still
open, and every bill is counted once. What a call that is cancelled was billed until then is in the
ledger too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from ..personas.errors import GMIError
from ..personas.metaprompts.json_text import MAX_ANSWER
from ..personas.metaprompts.merge import find
from ..personas.schema import Persona
from ..workflows.model_calls import CallResult, ModelCall
from .asking import Asker, Bill, NoAnswerError
from .beside import bill_anyway
from .call_progress import CallBill, CallProgress
from .call_questions import AppraisalQuestion, MetapromptQuestion, Question
from .catalog import Catalog
from .handing_on import handing_on
from .store.protocol import Store, UsageRow
from .store_port import serving

ANSWERS = 2
"""Answers that are read: the first one, and one more after it was of no use."""

MAX_CRASHES = 3
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0


class ModelCalls:
    """Serves ``gmi.model.call``.

    Args:
        store: The store.
        catalog: Frozen personas.
        asker: Asks the models.
    """

    def __init__(self, store: Store, catalog: Catalog, asker: Asker) -> None:
        self._store = store
        self._catalog = catalog
        self._asker = asker

    async def serve(self, request: ModelCall) -> CallResult:
        """Ask, and read the answer.

        What ends the call for good is a result that says so. What may pass (a provider or the
        store is down, a worker was lost) is a failure that is retried until the deadline.
        """
        info = activity.info()
        progress = CallProgress.resume(info.heartbeat_details)
        # Both by the server's clock; a worker's own may be minutes off.
        gone = (info.started_time - info.scheduled_time).total_seconds()
        attempt = _Attempt(
            self._store,
            self._catalog,
            self._asker,
            request,
            progress,
            info.attempt,
            asyncio.get_running_loop().time() + request.deadline - gone,
        )
        with handing_on():
            async with serving(progress.beat):
                try:
                    return await attempt.run()
                except (GMIError, ApplicationError):
                    raise
                except asyncio.CancelledError:
                    # Also where the worker shuts down: the next attempt writes the same rows
                    # again, and there may be none.
                    await bill_anyway(attempt.record)
                    raise
                except Exception as error:
                    progress.crashes += 1
                    progress.beat()
                    await bill_anyway(attempt.record)
                    if progress.crashes < MAX_CRASHES:
                        raise
                    return attempt.refused(
                        "GMI_PROCESSING_ERROR",
                        f"The call failed {MAX_CRASHES} times: {type(error).__name__}: {error}",
                    )


class _Attempt:
    """One attempt of a call; ``end`` is when its deadline is over, by the loop's clock."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        asker: Asker,
        request: ModelCall,
        progress: CallProgress,
        attempt: int,
        end: float,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._asker = asker
        self._request = request
        self._progress = progress
        self._attempt = attempt
        self._end = end

    async def run(self) -> CallResult:
        """Come to a result, and have every bill in the ledger before it is told.

        Raises:
            ApplicationError: No model answered, and the deadline leaves time to ask again.
            GMIError: Something that may pass.
        """
        try:
            result = await self._come_to_result()
        except GMIError as error:
            if error.retryable:
                raise
            result = self.refused(error.code, error.message)
        await self.record()
        return result

    async def _come_to_result(self) -> CallResult:
        request = self._request
        persona = await self._catalog.persona(request.persona_digest)
        asks = self._question(persona)
        if asks is None:
            return self.refused(
                "METAPROMPT_UNKNOWN",
                f"The persona {persona.id!r} has no metaprompt {request.id!r}.",
            )
        problems: tuple[str, ...] = ()
        for answer in self._progress.answers:
            result, problems = self._read(answer, asks)
            if result is not None:
                return result
        question = None
        while len(self._progress.answers) < ANSWERS:
            if self._left() <= 0:
                return self._too_late(asks)
            if question is None:
                question = await asks.text()
            said = self._progress.answers
            if said:
                # In the ledger before more is asked: a worker that is lost loses no bill by it.
                await self.record()
            text = asks.again(question, said[-1], problems) if said else question
            try:
                answer = await self._ask(persona, asks, text)
            except NoAnswerError as failure:
                return await self._after_failure(asks, failure)
            result, problems = self._read(answer, asks)
            if result is not None:
                return result
        return self.refused(
            f"{asks.code}_ANSWER_INVALID",
            f"The {asks.called} was answered {ANSWERS} times, and no answer could be used.",
            problems,
        )

    def refused(self, code: str, message: str, reasons: Sequence[str] = ()) -> CallResult:
        """The result of a call that came to nothing."""
        return self._result(refused=message, code=code, reasons=list(reasons))

    def _question(self, persona: Persona) -> Question | None:
        """What is asked; ``None`` for a metaprompt that the persona does not have."""
        request = self._request
        if request.event is not None:
            return AppraisalQuestion(persona, request.event)
        prompt = find(persona, request.id)
        if prompt is None:
            return None
        return MetapromptQuestion(request, persona, prompt, self._store)

    async def _ask(self, persona: Persona, asks: Question, text: str) -> str:
        request, progress = self._request, self._progress
        step = len(progress.answers)
        bills: list[Bill] = []
        try:
            asked = await self._asker.ask(
                persona,
                text,
                system=asks.system(),
                model=asks.model or request.model,
                fallback=request.fallback,
                max_tokens=asks.max_tokens,
                temperature=asks.temperature,
                credentials=request.credentials,
                # Understood by more servers than a schema is; the schema stands in the prompt.
                response_format={"type": "json_object", "schema": asks.schema()},
                user=request.user_id,
                deadline=max(0.001, self._left()),
                bills=bills,
            )
            # Enough of it to see that it is too long.
            progress.answers.append(asked.text[: MAX_ANSWER + 1])
            progress.provider, progress.model = asked.provider, asked.model
        finally:
            # Whatever it came to, a cancel included.
            self._take(bills, step)
        return progress.answers[-1]

    def _take(self, bills: Sequence[Bill], step: int) -> None:
        """Hand the bills on to later attempts, before anything else can fail."""
        self._progress.bills += [
            CallBill(
                step=step,
                attempt=self._attempt,
                hop=bill.hop,
                provider=bill.provider,
                model=bill.model,
                usage=bill.usage,
                failed=bill.failed,
            )
            for bill in bills
        ]
        self._progress.beat()

    async def record(self) -> None:
        """Write every bill into the ledger; those that stand there already stay as they are."""
        request = self._request
        rows = [
            UsageRow(
                turn=request.at.turn,
                # Its own for each call of the turn, and the same in each attempt of one.
                step=request.number * ANSWERS + bill.step,
                attempt=bill.attempt,
                hop=bill.hop,
                provider=bill.provider,
                model=bill.model,
                state="failed" if bill.failed else "done",
                usage=bill.usage,
                purpose=f"{request.purpose}:{request.id}" if request.id else request.purpose,
            )
            for bill in self._progress.bills
        ]
        await self._store.record_usage(request.at, rows)

    async def _after_failure(self, asks: Question, failure: NoAnswerError) -> CallResult:
        """No model answered: another attempt follows, or the call is over."""
        if failure.late:
            return self._too_late(asks)
        wait = failure.retry_after
        if wait is None:
            wait = min(_FIRST_WAIT * 2 ** min(self._attempt - 1, 10), _LONGEST_WAIT)
        if failure.passing and wait < self._left():
            await self.record()
            raise ApplicationError(
                failure.message,
                failure.details,
                type=failure.code,
                # 0 counts as unset.
                next_retry_delay=timedelta(seconds=max(wait, 0.001)),
            )
        return self.refused(failure.code, failure.message)

    def _read(self, answer: str, asks: Question) -> tuple[CallResult | None, tuple[str, ...]]:
        taken = asks.read(answer)
        if taken.fields is None:
            return None, taken.problems
        repaired = len(self._progress.answers) > 1
        return self._result(repaired=repaired, **taken.fields), ()

    def _result(self, **fields: Any) -> CallResult:
        progress = self._progress
        return CallResult(
            usage=progress.usage,
            by_model=progress.by_model,
            provider=progress.provider,
            model=progress.model,
            attempts=self._attempt,
            **fields,
        )

    def _left(self) -> float:
        return self._end - asyncio.get_running_loop().time()

    def _too_late(self, asks: Question) -> CallResult:
        return self.refused(
            f"{asks.code}_DEADLINE",
            f"The {asks.called} had no answer within {self._request.deadline:g} s.",
        )
