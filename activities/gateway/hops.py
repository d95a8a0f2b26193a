"""The fallback chain of a step, and what a failed attempt leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...personas.errors import GMIError
from ...personas.options import CompletionOptions
from ...personas.schema import Persona
from ...workflows.turns import HopSpec
from .circuits import CircuitRegistry
from .failures import ProviderFailure
from .provider import Provider
from .registry import ProviderRegistry, default_model, usual_model

LAST_HOP_TRIES = 3
"""Tries of the last hop; waits that the provider asked for do not count."""

HOP_DELAY = 0.001
"""Seconds before the next hop; the least that the server does not take for unset."""

_KEY_CHAIN: tuple[tuple[str, str, HopSpec], ...] = (
    ("openai", "OPENAI_API_KEY", HopSpec(model=usual_model("openai"))),
    (
        "anthropic",
        "ANTHROPIC_API_KEY",
        HopSpec(
            model=usual_model("anthropic"),
            options=CompletionOptions(effort="low"),
            max_tokens_headroom=1024,
        ),
    ),
    ("openrouter", "OPENROUTER_API_KEY", HopSpec(model=usual_model("openrouter"))),
    (
        "gemini",
        "GEMINI_API_KEY",
        HopSpec(
            model=usual_model("gemini"),
            options=CompletionOptions(effort="low"),
            max_tokens_headroom=1024,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Hop:
    """One leg of a chain.

    Attributes:
        index: 0 for the primary.
        provider: The provider's name.
        model: The model's id at that provider.
        options: Options that this hop adds to the step's.
        headroom: Tokens added to ``max_tokens`` where that is set.
    """

    index: int
    provider: str
    model: str
    options: CompletionOptions | None = None
    headroom: int = 0

    def completed(self, options: CompletionOptions) -> CompletionOptions:
        """The step's options as this hop sends them."""
        merged = options.merged(self.options)
        if self.headroom and merged.max_tokens is not None:
            merged = merged.model_copy(update={"max_tokens": merged.max_tokens + self.headroom})
        return merged


def chain(
    registry: ProviderRegistry,
    settings: Mapping[str, str],
    persona: Persona,
    model: str | None,
    fallback: list[HopSpec] | None,
) -> list[Hop]:
    """The hops of a step, the primary first.

    Args:
        registry: The providers.
        settings: The worker's settings; their keys make the chain when nobody names one.
        persona: The frozen persona.
        model: The turn's or session's model, over the persona's.
        fallback: Their fallback chain, over the persona's.

    Raises:
        ConfigurationError: A model string names no known provider.
    """
    primary = model or persona_model(persona) or default_model(settings)
    specs = fallback if fallback is not None else persona_fallback(persona)
    provider, name = registry.parse(primary)
    if specs is None:
        specs = [
            spec
            for other, setting, spec in _KEY_CHAIN
            if other != provider and provider != "offline" and settings.get(setting)
        ]
    hops = [Hop(0, provider, name)]
    for index, spec in enumerate(specs, start=1):
        other, other_model = registry.parse(spec.model)
        hops.append(Hop(index, other, other_model, spec.options, spec.max_tokens_headroom))
    return hops


def persona_model(persona: Persona) -> str | None:
    """The persona's own model as ``provider:model``."""
    if persona.default_model_id is None:
        return None
    if persona.default_provider_id:
        return f"{persona.default_provider_id}:{persona.default_model_id}"
    return persona.default_model_id


def persona_fallback(persona: Persona) -> list[HopSpec] | None:
    """The persona's own chain; ``None`` leaves the choice to the worker."""
    if persona.fallback is None:
        return None
    return [
        HopSpec(
            model=hop.model,
            options=CompletionOptions(effort=hop.effort, cache=hop.cache),
            max_tokens_headroom=hop.max_tokens_headroom,
        )
        for hop in persona.fallback
    ]


def provider_of(
    hop: Hop,
    registry: ProviderRegistry,
    circuits: CircuitRegistry,
    credentials: Mapping[str, str],
    *,
    waited: bool = False,
) -> Provider:
    """The provider of a hop that is asked now.

    Args:
        hop: The hop.
        registry: The providers.
        circuits: Their circuit breakers.
        credentials: Provider to ``env:NAME``, as the session has them.
        waited: The caller waited for this very provider, and is not turned away by an open
            circuit that it made itself.

    Raises:
        ProviderFailure: It is not set up, or its circuit is open.
        GMIError: The primary's settings or credential cannot be used.
    """
    try:
        provider = registry.get(hop.provider, credentials.get(hop.provider))
    except GMIError as error:
        if hop.index == 0:
            raise
        raise ProviderFailure(error.message, kind="configuration", provider=hop.provider) from error
    if not waited and circuits.is_open(hop.provider):
        raise ProviderFailure(
            f"{hop.provider}: its circuit is open after repeated failures",
            kind="circuit_open",
            provider=hop.provider,
            status=503,
        )
    return provider


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a failure before any output.

    Attributes:
        action: ``next_hop``; ``again`` on the same hop; ``give_up``.
        delay: Seconds to wait first.
        counts: Whether the failure counts against the hop's tries.
    """

    action: Literal["next_hop", "again", "give_up"]
    delay: float = 0.0
    counts: bool = True


def after_failure(
    failure: ProviderFailure, *, hop: int, last_hop: int, tries: int, max_wait: float
) -> Verdict:
    """Decide what follows a failure of ``hop`` before any output.

    A primary that is misconfigured is the caller's mistake and ends the step. Each hop is tried
    once; the last one up to three times, 1 and 2 seconds apart, and again after each wait that
    the provider asks for, up to ``max_wait``.

    Args:
        failure: What happened.
        hop: Index of the hop that failed.
        last_hop: Index of the chain's last hop.
        tries: Failures of this hop before this one.
        max_wait: Longest ``Retry-After`` to wait for, in seconds.
    """
    if failure.kind == "configuration" and hop == 0:
        return Verdict("give_up")
    if hop < last_hop:
        return Verdict("next_hop", HOP_DELAY) if failure.retryable else Verdict("give_up")
    if not failure.same_hop_retryable:
        return Verdict("give_up")
    if failure.retry_after is not None:
        if failure.retry_after > max_wait:
            return Verdict("give_up")
        return Verdict("again", max(failure.retry_after, HOP_DELAY), counts=False)
    if tries + 1 >= LAST_HOP_TRIES:
        return Verdict("give_up")
    return Verdict("again", float(2**tries))
