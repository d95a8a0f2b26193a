"""Asking a model something beside the turn: a short question, a short text back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ..personas.errors import ProviderError
from ..personas.messages import Message, Usage
from ..personas.options import CompletionOptions
from ..personas.schema import Persona
from ..workflows.turns import HopSpec
from .gateway.circuits import CircuitRegistry
from .gateway.failures import ProviderFailure
from .gateway.hops import Hop, chain, provider_of
from .gateway.models import price
from .gateway.provider import ModelRequest, Provider
from .gateway.registry import ProviderRegistry
from .reply import Reply


@dataclass(frozen=True, slots=True)
class Bill:
    """What one hop was billed.

    Attributes:
        hop: Its place in the chain, from 0.
        failed: It did not answer; then the usage may be unknown, and is empty.
    """

    hop: int
    provider: str
    model: str
    usage: Usage
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model answered.

    Attributes:
        usage: What the call was billed, failed hops included.
        bills: The same for each hop that was asked.
    """

    text: str
    provider: str
    model: str
    usage: Usage
    bills: tuple[Bill, ...] = ()


class NoAnswerError(ProviderError):
    """No hop answered; the details name each failure.

    Args:
        failures: What happened at each hop.
        bills: What the hops that were asked have billed.
        late: The time was over before an answer was there.

    Attributes:
        passing: Whether the same question may be answered a little later.
        retry_after: Seconds to wait first, where every provider that may answer says so.
    """

    def __init__(
        self, failures: Sequence[ProviderFailure], bills: Sequence[Bill], *, late: bool
    ) -> None:
        super().__init__(
            "No model answered: " + "; ".join(failure.message for failure in failures),
            details={"hops": [failure.as_details() for failure in failures]},
        )
        passing = [f for f in failures if f.same_hop_retryable or f.kind == "circuit_open"]
        waits = [f.retry_after for f in passing if f.retry_after is not None]
        self.bills = tuple(bills)
        self.late = late
        self.passing = bool(passing)
        self.retry_after = min(waits) if waits and len(waits) == len(passing) else None


class Asker:
    """Asks models.

    Args:
        providers: The providers.
        circuits: Their circuit breakers.
        settings: The worker's settings, by the names of their variables.
    """

    def __init__(
        self,
        providers: ProviderRegistry,
        circuits: CircuitRegistry,
        settings: Mapping[str, str],
    ) -> None:
        self._providers = providers
        self._circuits = circuits
        self._settings = settings

    async def ask(
        self,
        persona: Persona,
        question: str,
        *,
        system: str | None = None,
        model: str | None = None,
        fallback: list[HopSpec] | None = None,
        max_tokens: int = 256,
        temperature: float | None = None,
        credentials: Mapping[str, str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        user: str | None = None,
        deadline: float | None = None,
        bills: MutableSequence[Bill] | None = None,
    ) -> Asked:
        """Ask once; each hop of the chain is tried once, without waiting.

        Args:
            persona: Whose model is asked where ``model`` names none.
            question: What to ask.
            system: What stands ahead of it.
            model: ``provider:model``.
            fallback: Further models; the persona's without it.
            max_tokens: Of the answer.
            temperature: Of the answer.
            credentials: Provider to ``env:NAME``, as the session has them.
            response_format: The answer's form; see
                :class:`~gmi.personas.options.CompletionOptions`.
            user: Opaque id of the end user.
            deadline: Seconds that all hops have together; as long as they take without.
            bills: Takes the bill of each hop that was asked, whatever the question comes to. When
                it is cancelled nothing else tells of them.

        Raises:
            NoAnswerError: No hop answered in time.
            ConfigurationError: A model string names no known provider, or the first one is not
                set up.
            CredentialRefusedError: The worker does not hold the first provider's credential.
        """
        messages = [
            *([Message(role="system", content=system)] if system else []),
            Message(role="user", content=question),
        ]
        options = CompletionOptions(
            max_tokens=max_tokens,
            temperature=temperature,
            response_format=dict(response_format) if response_format is not None else None,
        )
        end = None if deadline is None else asyncio.get_running_loop().time() + deadline
        failed: list[ProviderFailure] = []
        bills = [] if bills is None else bills
        first = len(bills)
        late = False
        for hop in chain(self._providers, self._settings, persona, model, fallback):
            request = ModelRequest(
                model=hop.model, messages=messages, options=hop.completed(options), user=user
            )
            reply = Reply(hop.provider, hop.model)
            try:
                provider = provider_of(hop, self._providers, self._circuits, credentials or {})
            except ProviderFailure as failure:
                failed.append(failure)
                continue
            limit = asyncio.timeout_at(end)
            try:
                async with limit:
                    await self._stream(provider, request, reply)
            except TimeoutError:
                bills.append(_bill(hop, reply.usage, failed=True))
                if not limit.expired():
                    raise
                late = True
                failed.append(
                    ProviderFailure(
                        f"{hop.provider}: there was no answer within {deadline:g} s",
                        kind="timeout",
                        provider=hop.provider,
                    )
                )
                break
            except ProviderFailure as failure:
                failed.append(failure)
                bills.append(_bill(hop, failure.usage or reply.usage, failed=True))
                continue
            except BaseException:
                # Cancelled, most often: what the hop has said of its bill by now is owed.
                bills.append(_bill(hop, reply.usage, failed=True))
                raise
            bills.append(_bill(hop, reply.usage))
            return Asked(
                reply.text,
                hop.provider,
                hop.model,
                billed(bill.usage for bill in bills[first:]),
                tuple(bills[first:]),
            )
        raise NoAnswerError(failed, bills[first:], late=late)

    async def _stream(self, provider: Provider, request: ModelRequest, reply: Reply) -> None:
        try:
            async with aclosing(provider.stream(request)) as events:
                async for event in events:
                    reply.take(event)
            reply.check_finished()
        except ProviderFailure as failure:
            self._circuits.record_failure(reply.provider, failure)
            raise
        except BaseException:
            # Frees the circuit's probe, which nobody else will report on.
            self._circuits.record_failure(
                reply.provider, ProviderFailure("the call was given up", kind="aborted")
            )
            raise
        self._circuits.record_success(reply.provider)


def _bill(hop: Hop, usage: Usage, *, failed: bool = False) -> Bill:
    known = usage.total_tokens or not failed
    priced = price(hop.model, hop.provider, usage) if known else usage
    return Bill(hop.index, hop.provider, hop.model, priced, failed)


def billed(usages: Iterable[Usage]) -> Usage:
    """What several hops were billed together."""
    return sum(usages, Usage())
