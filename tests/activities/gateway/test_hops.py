"""Which hops a step has, and what follows when one fails."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from gmi.activities.gateway.failures import ProviderFailure
from gmi.activities.gateway.hops import HOP_DELAY, Hop, Verdict, after_failure, chain
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.personas.errors import ConfigurationError
from gmi.personas.options import CompletionOptions
from gmi.personas.schema import Persona
from gmi.workflows.turns import HopSpec

NEXT = Verdict("next_hop", HOP_DELAY)
END = Verdict("give_up")


def http(status: int, **facts: Any) -> ProviderFailure:
    return ProviderFailure("x", kind="http", status=status, **facts)


def kind(name: Any) -> ProviderFailure:
    return ProviderFailure("x", kind=name)


@pytest.mark.parametrize(
    ("failure", "first", "only"),
    [
        (http(429), NEXT, Verdict("again", 1.0)),
        (http(429, retry_after=5.0), NEXT, Verdict("again", 5.0, counts=False)),
        (http(429, retry_after=0.0), NEXT, Verdict("again", HOP_DELAY, counts=False)),
        (http(429, retry_after=3601.0), NEXT, END),
        (http(503), NEXT, Verdict("again", 1.0)),
        (http(503, should_retry=False), NEXT, END),
        (http(400, should_retry=True), NEXT, Verdict("again", 1.0)),
        (http(529), NEXT, Verdict("again", 1.0)),
        (http(401), NEXT, END),
        (http(402), NEXT, END),
        (http(403), NEXT, END),
        (http(400), END, END),
        (http(404), END, END),
        (kind("network"), NEXT, Verdict("again", 1.0)),
        (kind("timeout"), NEXT, Verdict("again", 1.0)),
        (kind("stream"), NEXT, Verdict("again", 1.0)),
        (kind("refusal"), NEXT, END),
        (kind("unsupported"), NEXT, END),
        (kind("configuration"), END, END),
        (kind("aborted"), END, END),
    ],
)
def test_a_failure_of_the_first_of_two_hops_and_of_an_only_one(
    failure: ProviderFailure, first: Verdict, only: Verdict
) -> None:
    assert after_failure(failure, hop=0, last_hop=1, tries=0, max_wait=3600) == first
    assert after_failure(failure, hop=0, last_hop=0, tries=0, max_wait=3600) == only


def test_the_last_hop_is_tried_three_times_with_growing_waits() -> None:
    verdicts = [
        after_failure(http(500), hop=1, last_hop=1, tries=tries, max_wait=3600)
        for tries in range(3)
    ]
    assert verdicts == [Verdict("again", 1.0), Verdict("again", 2.0), END]


def test_a_hop_behind_that_is_misconfigured_is_left_out() -> None:
    assert after_failure(kind("configuration"), hop=1, last_hop=2, tries=0, max_wait=1) == NEXT


@pytest.fixture
def registry() -> ProviderRegistry:
    return ProviderRegistry(httpx.AsyncClient(), {})


def persona(**given: Any) -> Persona:
    return Persona.model_validate(
        {
            "id": "p",
            "name": "P",
            "description": "d",
            "version": "1.0.0",
            "baseSystemPrompt": "x",
            **given,
        }
    )


def names(hops: list[Hop]) -> list[str]:
    return [f"{hop.index} {hop.provider}:{hop.model}" for hop in hops]


def test_the_turns_model_wins_over_the_personas(registry: ProviderRegistry) -> None:
    own = persona(defaultProviderId="anthropic", defaultModelId="claude-x")
    assert names(chain(registry, {}, own, None, None)) == ["0 anthropic:claude-x"]
    assert names(chain(registry, {}, own, "groq:y", [])) == ["0 groq:y"]


def test_keys_make_a_chain_when_nobody_names_one(registry: ProviderRegistry) -> None:
    keys = {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}
    found = chain(registry, keys, persona(), None, None)
    assert [hop.provider for hop in found] == ["openai", "openrouter", "gemini"]
    assert [hop.headroom for hop in found] == [0, 0, 1024]
    assert [hop.provider for hop in chain(registry, keys, persona(), "gemini:g", None)] == [
        "gemini",
        "openai",
        "openrouter",
    ]
    assert names(chain(registry, keys, persona(), None, [])) == ["0 openai:gpt-4.1-mini"]


def test_without_a_key_the_offline_model_answers_alone(registry: ProviderRegistry) -> None:
    assert names(chain(registry, {}, persona(), None, None)) == ["0 offline:offline"]


def test_the_callers_chain_wins_over_the_personas(registry: ProviderRegistry) -> None:
    own = persona(fallback=[{"model": "groq:a", "effort": "low", "maxTokensHeadroom": 10}])
    [_, hop] = chain(registry, {}, own, "openai:b", None)
    assert (hop.provider, hop.headroom) == ("groq", 10)
    merged = hop.completed(CompletionOptions(max_tokens=5, effort="high", temperature=0.1))
    assert (merged.max_tokens, merged.effort, merged.temperature) == (15, "low", 0.1)
    assert hop.completed(CompletionOptions()).max_tokens is None
    given = [HopSpec(model="together:c")]
    assert names(chain(registry, {}, own, "openai:b", given)) == ["0 openai:b", "1 together:c"]


def test_a_model_of_nobody_is_a_configuration_error(registry: ProviderRegistry) -> None:
    with pytest.raises(ConfigurationError):
        chain(registry, {}, persona(), "openai:a", [HopSpec(model="nowhere:b")])
