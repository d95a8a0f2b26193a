"""Calls beside the turns: a metaprompt is asked, and its answer becomes a patch of the mind.

An attempt that fails hands on what it has found out, so that the next one asks only what is still
open, and every bill is counted once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from ..personas.errors import GMIError
from ..personas.metaprompts.answers import AnswerForm, answer_form, read_answer
from ..personas.metaprompts.json_text import MAX_ANSWER
from ..personas.metaprompts.merge import find
from ..personas.metaprompts.variables import (
    EVIDENCE_MESSAGES,
    filled,
    template_of,
    variables,
)
from ..personas.metaprompts.wording import repair_text, system_text
from ..personas.mood import MoodSettings
from ..personas.parts import MetaPrompt
from ..personas.schema import Persona
from ..workflows.model_calls import CallResult, ModelCall
from .asking import Asker, Bill, NoAnswerError
from .call_progress import CallBill, CallProgress
from .catalog import Catalog
from .handing_on import handing_on
from .store.protocol import Shown, Store, UsageRow
from .store_port import serving

TEMPERATURE = 0.3
MAX_TOKENS = 512
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
        """Ask the metaprompt and read its answer.

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
                except Exception as error:
                    progress.crashes += 1
                    progress.beat()
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
        except NoAnswerError as failure:
            result = await self._after_failure(failure)
        except GMIError as error:
            if error.retryable:
                raise
            result = self.refused(error.code, error.message)
        await self._record()
        return result

    async def _come_to_result(self) -> CallResult:
        request = self._request
        persona = await self._catalog.persona(request.persona_digest)
        prompt = find(persona, request.id)
        if prompt is None:
            return self.refused(
                "METAPROMPT_UNKNOWN",
                f"The persona {persona.id!r} has no metaprompt {request.id!r}.",
            )
        form = answer_form(prompt, _allowed_moods(persona))
        problems: tuple[str, ...] = ()
        for answer in self._progress.answers:
            result, problems = self._read(answer, form)
            if result is not None:
                return result
        question = None
        while len(self._progress.answers) < ANSWERS:
            left = self._left()
            if left <= 0:
                return self._too_late()
            if question is None:
                question = await self._question(prompt)
            said = self._progress.answers
            text = repair_text(question, said[-1], problems) if said else question
            answer = await self._ask(persona, prompt, form, text)
            result, problems = self._read(answer, form)
            if result is not None:
                return result
        return self.refused(
            "METAPROMPT_ANSWER_INVALID",
            f"The metaprompt {request.id!r} was answered {ANSWERS} times, and no answer could be "
            "used.",
            problems,
        )

    def refused(self, code: str, message: str, reasons: Sequence[str] = ()) -> CallResult:
        """The result of a call that came to nothing."""
        return self._result(refused=message, code=code, reasons=list(reasons))

    async def _question(self, prompt: MetaPrompt) -> str:
        request = self._request
        shown = Shown(request.path, None, [], EVIDENCE_MESSAGES)
        conversation = await self._store.conversation(request.at, shown)
        return filled(template_of(prompt), variables(request.view, conversation))

    async def _ask(self, persona: Persona, prompt: MetaPrompt, form: AnswerForm, text: str) -> str:
        request, progress = self._request, self._progress
        step = len(progress.answers)
        try:
            asked = await self._asker.ask(
                persona,
                text,
                system=system_text(persona.name, form),
                model=_model(prompt, persona) or request.model,
                fallback=request.fallback,
                max_tokens=prompt.max_output_tokens or MAX_TOKENS,
                temperature=TEMPERATURE if prompt.temperature is None else prompt.temperature,
                credentials=request.credentials,
                # Understood by more servers than a schema is; the schema stands in the prompt.
                response_format={"type": "json_object", "schema": form.schema()},
                user=request.user_id,
                deadline=max(0.001, self._left()),
            )
        except NoAnswerError as failure:
            self._take(failure.bills, step)
            raise
        # Enough of it to see that it is too long.
        progress.answers.append(asked.text[: MAX_ANSWER + 1])
        progress.provider, progress.model = asked.provider, asked.model
        self._take(asked.bills, step)
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

    async def _record(self) -> None:
        """Write every bill into the ledger; those that stand there already stay as they are."""
        request = self._request
        rows = [
            UsageRow(
                turn=request.at.turn,
                step=bill.step,
                attempt=bill.attempt,
                hop=bill.hop,
                provider=bill.provider,
                model=bill.model,
                state="failed" if bill.failed else "done",
                usage=bill.usage,
                purpose=f"{request.purpose}:{request.id}",
            )
            for bill in self._progress.bills
        ]
        await self._store.record_usage(request.at, rows)

    async def _after_failure(self, failure: NoAnswerError) -> CallResult:
        """No model answered: another attempt follows, or the call is over."""
        if failure.late:
            return self._too_late()
        wait = failure.retry_after
        if wait is None:
            wait = min(_FIRST_WAIT * 2 ** min(self._attempt - 1, 10), _LONGEST_WAIT)
        if failure.passing and wait < self._left():
            await self._record()
            raise ApplicationError(
                failure.message,
                failure.details,
                type=failure.code,
                # 0 counts as unset.
                next_retry_delay=timedelta(seconds=max(wait, 0.001)),
            )
        return self.refused(failure.code, failure.message)

    def _read(self, answer: str, form: AnswerForm) -> tuple[CallResult | None, tuple[str, ...]]:
        read = read_answer(answer, form)
        if read.patch is None:
            return None, read.problems
        return self._result(patch=read.patch, repaired=len(self._progress.answers) > 1), ()

    def _result(self, **fields: Any) -> CallResult:
        progress = self._progress
        return CallResult(
            usage=progress.usage,
            provider=progress.provider,
            model=progress.model,
            attempts=self._attempt,
            **fields,
        )

    def _left(self) -> float:
        return self._end - asyncio.get_running_loop().time()

    def _too_late(self) -> CallResult:
        request = self._request
        return self.refused(
            "METAPROMPT_DEADLINE",
            f"The metaprompt {request.id!r} had no answer within {request.deadline:g} s.",
        )


def _allowed_moods(persona: Persona) -> tuple[str, ...] | None:
    """The moods that an answer may name; a mood that does not move is left to who applies it."""
    settings, _ = MoodSettings.from_adaptation(persona.mood_adaptation)
    return settings.allowed if settings.adapts else None


def _model(prompt: MetaPrompt, persona: Persona) -> str | None:
    """The metaprompt's own model as ``provider:model``."""
    name = prompt.model_id
    if name is None:
        return None
    if prompt.provider_id:
        return f"{prompt.provider_id}:{name}"
    if persona.default_provider_id and not {":", "/"} & set(name):
        return f"{persona.default_provider_id}:{name}"
    return name
