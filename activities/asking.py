"""Asking a model something beside the turn: a short question, a short text back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from ..personas.errors import ProviderError
from ..personas.messages import Message, Usage
from ..personas.options import CompletionOptions
from ..personas.schema import Persona
from ..workflows.turns import HopSpec
from .gateway.circuits import CircuitRegistry
from .gateway.failures import ProviderFailure
from .gateway.hops import chain
from .gateway.models import price
from .gateway.provider import ModelRequest
from .gateway.registry import ProviderRegistry
from .reply import Reply


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model answered.

    Attributes:
        usage: What the call was billed, failed hops included.
    """

    text: str
    provider: str
    model: str
    usage: Usage


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

        Raises:
            ProviderError: No hop answered; the details name each failure.
            ConfigurationError: A model string names no known provider.
        """
        messages = [
            *([Message(role="system", content=system)] if system else []),
            Message(role="user", content=question),
        ]
        options = CompletionOptions(max_tokens=max_tokens, temperature=temperature)
        failed: list[ProviderFailure] = []
        billed = Usage()
        for hop in chain(self._providers, self._settings, persona, model, fallback):
            request = ModelRequest(
                model=hop.model, messages=messages, options=hop.completed(options)
            )
            try:
                reply = await self._stream(hop.provider, request, credentials or {})
            except ProviderFailure as failure:
                failed.append(failure)
                billed = billed + (failure.usage or Usage())
                continue
            usage = price(hop.model, hop.provider, reply.usage)
            return Asked(reply.text, hop.provider, hop.model, billed + usage)
        raise ProviderError(
            "No model answered: " + "; ".join(failure.message for failure in failed),
            details={"hops": [failure.as_details() for failure in failed]},
        )

    async def _stream(
        self, provider: str, request: ModelRequest, credentials: Mapping[str, str]
    ) -> Reply:
        if self._circuits.is_open(provider):
            raise ProviderFailure(
                f"{provider}: its circuit is open after repeated failures",
                kind="circuit_open",
                provider=provider,
                status=503,
            )
        reply = Reply(provider, request.model)
        try:
            served = self._providers.get(provider, credentials.get(provider))
            async with aclosing(served.stream(request)) as events:
                async for event in events:
                    reply.take(event)
            reply.check_finished()
        except ProviderFailure as failure:
            self._circuits.record_failure(provider, failure)
            raise
        self._circuits.record_success(provider)
        return reply


def asked_usage(answers: Sequence[Asked]) -> Usage:
    """What several answers were billed together."""
    total = Usage()
    for answer in answers:
        total = total + answer.usage
    return total
