"""One attempt of a model step: it serves one hop, and says what follows a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import NoReturn

from temporalio.exceptions import ApplicationError

from ..personas.errors import (
    ConfigurationError,
    GMIError,
    ProviderError,
    ProviderUnavailableError,
)
from ..personas.learning import TurnLearning
from ..personas.messages import Message, Usage
from ..personas.prompt import AssembledPrompt, assemble
from ..personas.schema import Persona
from ..personas.sentiment import Sentiment
from ..workflows.chunks import bill_item
from ..workflows.drafts import closing_output
from ..workflows.failures import refusal
from ..workflows.steps import (
    RESULT_TEXT_BYTES,
    HopFailure,
    RunStep,
    StepFailure,
    StepResult,
)
from ..workflows.turns import ErrorInfo
from .asking import Bill
from .beside import count
from .blobs import load_value
from .catalog import Catalog, Toolset
from .chunk_sender import ChunkSender, Send
from .content import ContentLoader
from .feelings import Feelings
from .gateway.circuits import CircuitRegistry
from .gateway.failures import ProviderFailure
from .gateway.hops import Hop, after_failure, chain, provider_of
from .gateway.models import ensure_supported, model_info, price
from .gateway.provider import ModelRequest, Provider
from .gateway.registry import ProviderRegistry
from .learning import Learning, prompt_parts, with_params
from .memory.memories import Memories, Reminded
from .progress import Progress
from .prompting import left_out, prompt_context, spoken_sections, with_traits
from .reply import Reply, planned_calls, unique_calls
from .store.protocol import Begun, Closing, History, Shown, Store, UsageRow

DEFAULT_HISTORY = 20
SMALLER_WINDOWS = 3

MAX_CALLS = 64
"""Calls of one step; a model that asks for more is asked again after these."""


@dataclass(frozen=True, slots=True)
class StepParts:
    """What all steps of a worker share.

    Attributes:
        store: The store.
        catalog: Frozen personas and tools.
        providers: The providers.
        circuits: Their circuit breakers, one set for the process.
        settings: The worker's settings, by the names of their variables.
        send: Delivers a batch of chunks to the session whose step runs.
        content: Loads what messages refer to.
        feelings: Scores how words feel.
        memories: Long-term memory; without it a turn brings nothing to mind.
        learning: What personas learn about their users and change about themselves.
    """

    store: Store
    catalog: Catalog
    providers: ProviderRegistry
    circuits: CircuitRegistry
    settings: Mapping[str, str]
    send: Send
    content: ContentLoader
    feelings: Feelings
    memories: Memories | None = None
    learning: Learning | None = None


class StepAttempt:
    """One attempt of a step.

    Args:
        parts: What all steps share.
        request: The step.
        progress: What earlier attempts found out.
        attempt: The activity's attempt, from 1.
    """

    def __init__(
        self, parts: StepParts, request: RunStep, progress: Progress, attempt: int
    ) -> None:
        self._parts = parts
        self._request = request
        self._progress = progress
        self._attempt = attempt
        self._warnings: list[str] = []
        self._bill = partial(count, parts.store, request, progress, attempt)

    async def run(self) -> StepResult:
        """Serve the step on the first hop that can start."""
        parts, request = self._parts, self._request
        persona = await parts.catalog.persona(request.persona_digest)
        toolset = await parts.catalog.toolset(request.toolset_digest)
        hops = chain(parts.providers, parts.settings, persona, request.model, request.fallback)
        hop, provider = self._start(hops)
        new = [await parts.content.message(stored) for stored in request.new]
        limit = request.max_messages or persona.max_messages or DEFAULT_HISTORY
        begun = await parts.store.begin_step(
            request.at,
            self._attempt,
            step=request.step,
            opening=request.opening,
            new=new,
            expect_messages=request.expect_messages,
            reserve=self._usage_row(hop, "reserved", Usage()),
            trace=request.trace,
            shown=self._shown(limit),
        )
        if begun.existing is not None:
            return StepResult(existing=begun.existing, attempt=self._attempt)
        history = await self._history(begun)
        learning = await self._learn(persona)
        persona = with_traits(persona, request)
        reminded = await self._remind(persona, history)
        sentiment = await self._score(persona, history)
        shown, learned = prompt_parts(persona, learning)
        options = with_params(persona.default_model_completion_options, learning)
        options = options.merged(request.options)
        known = model_info(hop.model, hop.provider)
        definitions = toolset.definitions if request.with_tools else []
        if definitions and known.tools is False:
            self._warnings.append(f"{hop.provider}:{hop.model} takes no tools; none were offered.")
            definitions = []
        sender = ChunkSender(
            parts.send, request.at.turn, request.step, self._attempt, live=request.stream
        )
        sender.announce()
        smaller = 0
        while True:
            prompt = assemble(
                shown,
                history.earlier,
                history.turn,
                window_tokens=known.window >> smaller,
                model=f"{hop.provider}:{hop.model}",
                max_messages=limit,
                tools=len(definitions),
                extra_sections=[*spoken_sections(request), *learned],
                context=prompt_context(request, learning),
                retrieved=reminded.text,
            )
            reply = Reply(hop.provider, hop.model)
            for bill in filter(None, map(bill_item, self._progress.failures)):
                sender.put(bill)
            try:
                call = ModelRequest(
                    model=hop.model,
                    messages=prompt.messages,
                    tools=definitions,
                    options=hop.completed(options),
                    user=request.user_id,
                )
                await self._ask(provider, call, reply, sender)
            except ProviderFailure as problem:
                too_long = problem.window_exceeded and not reply.said_something
                if not too_long or smaller == SMALLER_WINDOWS or not history.earlier:
                    await self._failed(hop, hops, reply, problem)
                self._warnings.append(
                    f"CONTEXT_WINDOW_EXCEEDED: {hop.provider}:{hop.model} refused the prompt as "
                    "too long; it was sent again with less history."
                )
                smaller += 1
            else:
                parts.circuits.record_success(hop.provider)
                result = await self._finish(hop, reply, sender, toolset, history, prompt, len(new))
                return result.model_copy(
                    update={
                        "opened": reminded.opened,
                        "sentiment": sentiment,
                        "learning": learning if request.opening is not None else None,
                    }
                )

    async def _learn(self, persona: Persona) -> TurnLearning | None:
        """What the prompt is told of what was learned; a failure is a warning."""
        if self._parts.learning is None:
            return None
        learning = await self._parts.learning.for_step(self._request, persona)
        if learning is not None and self._request.opening is not None:
            self._warnings.extend(learning.warnings)
        return learning

    async def _remind(self, persona: Persona, history: History) -> Reminded:
        """What the prompt shows of the memory."""
        memories, bills = self._parts.memories, list[Bill]()
        if memories is None:
            return Reminded()
        try:
            return await memories.for_step(self._request, self._attempt, persona, history, bills)
        finally:
            await self._bill(bills, "hyde")

    async def _score(self, persona: Persona, history: History) -> Sentiment | None:
        """How the user's words felt; a failure is a warning, and says nothing of them."""
        request, parts = self._request, self._parts
        scores = request.opening is not None and request.opening.score
        if not scores or self._progress.scored:
            return self._progress.sentiment
        bills: list[Bill] = []
        try:
            found = await parts.feelings.score(request, persona, history, bills)
            if found.problem is not None:
                why = f"the words were not scored: {found.problem}"
                self._warnings.append(f"SENTIMENT_UNKNOWN: {why}")
            self._progress.scored, self._progress.sentiment = True, found.sentiment
        finally:
            await self._bill(bills, "sentiment")
        return found.sentiment

    async def _ask(
        self, provider: Provider, call: ModelRequest, reply: Reply, sender: ChunkSender
    ) -> None:
        try:
            ensure_supported(call, reply.provider)
            call = replace(call, messages=await self._parts.content.with_images(call.messages))
            # Closed here, so that a stop ends the provider's connection at once.
            async with aclosing(provider.stream(call)) as events:
                async for event in events:
                    for item in reply.take(event):
                        sender.put(item)
            reply.check_finished()
        except asyncio.CancelledError:
            # Frees the circuit's probe, which nobody else will report on.
            self._parts.circuits.record_failure(
                reply.provider, ProviderFailure("the step was stopped", kind="aborted")
            )
            await sender.drop()
            raise
        except BaseException:
            await sender.drop()
            raise

    async def _finish(
        self,
        hop: Hop,
        reply: Reply,
        sender: ChunkSender,
        toolset: Toolset,
        history: History,
        prompt: AssembledPrompt,
        new: int,
    ) -> StepResult:
        request, parts = self._request, self._parts
        finished = reply.finished
        used = {call.id for message in (*history.earlier, *history.turn) for call in message.calls}
        calls = unique_calls(finished.calls, used, f"{request.at.turn[:8]}-{request.step}")
        if calls and not request.with_tools:
            self._warnings.append("The model asked for tools although none were offered.")
            calls = []
        if len(calls) > MAX_CALLS:
            self._warnings.append(
                f"The model asked for {len(calls)} calls at once; the first {MAX_CALLS} are taken."
            )
            calls = calls[:MAX_CALLS]
        usage = price(hop.model, hop.provider, reply.usage)
        for item in reply.closing_items(calls):
            sender.put(item)
        text = reply.text
        message = Message(
            role="assistant", content=text or None, calls=calls, replay=finished.replay
        )
        result = StepResult(
            text=text if len(text.encode()) <= RESULT_TEXT_BYTES else None,
            calls=await planned_calls(calls, toolset, parts.store),
            finish_reason=finished.finish_reason,
            usage=usage + self._progress.beside,
            failures=self._progress.failures,
            hop=hop.index,
            provider=hop.provider,
            model=hop.model,
            response_model=finished.response_model,
            message_id=finished.message_id,
            service_tier=finished.service_tier,
            written=new + 1,
            attempt=self._attempt,
            closed=request.draft is not None and not calls,
            prompt_messages=len(prompt.messages),
            prompt_tokens=prompt.estimated_tokens,
            left_out=left_out(history, prompt),
            warnings=[*self._warnings, *prompt.warnings],
        )
        await parts.store.save_reply(
            request.at,
            self._attempt,
            step=request.step,
            index=new,
            reply=message,
            usage=self._usage_row(hop, "done", usage),
            closing=self._closing(result),
        )
        await sender.finish()
        return result.model_copy(update={"chunks": sender.count})

    def _closing(self, result: StepResult) -> Closing | None:
        """The end of the turn, when this step is its last."""
        request = self._request
        if request.draft is None or not result.closed:
            return None
        return Closing(
            output=closing_output(request.draft, request.at, result),
            messages=request.expect_messages + result.written,
        )

    def _shown(self, limit: int) -> Shown:
        """Which earlier messages the prompt shows: the session's own, unless others are given."""
        request = self._request
        if request.history_ref is not None:
            return Shown([], None, [], limit)
        return Shown(request.path, request.parent, request.partials, limit)

    async def _history(self, begun: Begun) -> History:
        given = self._request.history_ref
        history = begun.history or History()
        if given is None:
            return history
        raw = load_value(await self._parts.store.get_blob(given))
        return replace(history, earlier=[Message.model_validate(item) for item in raw], left_out=0)

    def _start(self, hops: list[Hop]) -> tuple[Hop, Provider]:
        """The hop to serve: skips those that cannot start, at no cost.

        Raises:
            ConfigurationError: The primary is misconfigured.
            ProviderUnavailableError: No hop is left that can start.
        """
        parts, progress = self._parts, self._progress
        for hop in hops[progress.hop :]:
            try:
                provider = provider_of(
                    hop,
                    parts.providers,
                    parts.circuits,
                    self._request.credentials,
                    waited=progress.waited,
                )
            except ProviderFailure as failure:
                if failure.kind == "configuration" and hop.index == 0:
                    raise ConfigurationError(
                        failure.message, details=failure.as_details()
                    ) from failure
                self._note(hop, failure, None)
                progress.move(hop.index + 1)
                continue
            progress.hop = hop.index
            return hop, provider
        raise ProviderUnavailableError(
            "No provider of the chain could start: "
            + "; ".join(f.error.message for f in progress.failures),
            details={"hops": [f"{hop.provider}:{hop.model}" for hop in hops]},
        )

    def _last_hop(self, hop: Hop, hops: list[Hop]) -> int:
        """The last hop that can be asked after ``hop``, or ``hop`` itself."""
        for later in reversed(hops[hop.index + 1 :]):
            try:
                self._parts.providers.get(
                    later.provider, self._request.credentials.get(later.provider)
                )
            except (ProviderFailure, GMIError):
                continue
            if self._parts.circuits.stats(later.provider).state == "closed":
                return later.index
        return hop.index

    async def _failed(
        self, hop: Hop, hops: list[Hop], reply: Reply, failure: ProviderFailure
    ) -> NoReturn:
        """Record a failed attempt and say what follows: another hop, a wait, or the end."""
        parts, progress, request = self._parts, self._progress, self._request
        parts.circuits.record_failure(hop.provider, failure)
        billed = failure.usage or (reply.usage if reply.usage.total_tokens else None)
        if billed is not None:
            billed = price(hop.model, hop.provider, billed)
        # In the ledger before the next hop starts, so that a lost heartbeat loses no bill.
        row = self._usage_row(hop, "failed", billed or Usage())
        await parts.store.record_usage(request.at, [row])
        self._note(hop, failure, billed)
        if reply.said_something:
            self._give_up(
                ProviderError(
                    f"{failure.message}; it failed after it had begun to answer, so no other "
                    "provider was asked.",
                    details=failure.as_details(),
                )
            )
        verdict = after_failure(
            failure,
            hop=hop.index,
            last_hop=self._last_hop(hop, hops),
            tries=progress.tries,
            max_wait=request.max_wait,
        )
        if verdict.action == "give_up":
            error: GMIError
            if failure.kind == "configuration" and hop.index == 0:
                error = ConfigurationError(failure.message, details=failure.as_details())
            else:
                error = ProviderError(failure.message, details=failure.as_details())
            self._give_up(error)
        if verdict.action == "next_hop":
            progress.move(hop.index + 1)
        else:
            progress.waited = True
            progress.tries += verdict.counts
        progress.beat()
        raise ApplicationError(
            failure.message,
            failure.as_details(),
            type="LLM_HOP_FAILED",
            next_retry_delay=timedelta(seconds=verdict.delay),
        )

    def _note(self, hop: Hop, failure: ProviderFailure, billed: Usage | None) -> None:
        details = failure.as_details()
        details.pop("message", None)
        self._progress.failures = [
            *self._progress.failures[-15:],
            HopFailure(
                hop=hop.index,
                attempt=self._attempt,
                provider=hop.provider,
                model=hop.model,
                error=ErrorInfo(
                    code="LLM_PROVIDER_ERROR", message=failure.message, details=details
                ),
                usage=billed,
            ),
        ]

    def refuse(self, error: GMIError) -> NoReturn:
        """Turn an error into the activity's failure: retried for a store that is down."""
        if error.retryable:
            raise refusal(error) from error
        self._give_up(error)

    def _give_up(self, error: GMIError) -> NoReturn:
        known = self._progress
        failure = StepFailure(failures=known.failures, warnings=self._warnings, beside=known.beside)
        raise ApplicationError(
            error.message,
            error.details,
            failure.model_dump(mode="json"),
            type=error.code,
            non_retryable=True,
        ) from error

    def _usage_row(self, hop: Hop, state: str, usage: Usage) -> UsageRow:
        return UsageRow(
            turn=self._request.at.turn,
            step=self._request.step,
            attempt=self._attempt,
            hop=hop.index,
            provider=hop.provider,
            model=hop.model,
            state=state,
            usage=usage,
            at=self._request.at.now,
        )
