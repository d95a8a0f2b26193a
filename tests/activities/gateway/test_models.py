from __future__ import annotations

import pytest

from gmi.activities.gateway import (
    KNOWN_PROVIDERS,
    ModelInfo,
    ModelRequest,
    ProviderFailure,
    ensure_supported,
    model_info,
    price,
)
from gmi.personas.messages import ImagePart, Message, ToolDefinition, Usage

USED = Usage(prompt_tokens=1000, completion_tokens=500, cache_read_tokens=400)


@pytest.mark.parametrize(
    ("model", "window", "images"),
    [
        ("gpt-4o-2024-08-06", 128_000, True),
        ("gpt-4.1-mini", 1_047_576, True),
        ("gpt-4", 8_192, False),
        ("claude-3-haiku-20240307", 200_000, True),
        ("anthropic/claude-sonnet-4-5", 200_000, True),
        ("models/gemini-2.5-flash", 1_048_576, True),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", 131_072, False),
        ("deepseek-chat", 131_072, False),
        ("offline", 131_072, False),
    ],
)
def test_well_known_families_are_recognised(model: str, window: int, images: bool) -> None:
    info = model_info(model)
    assert (info.window, info.images) == (window, images)


def test_an_unknown_model_has_the_small_window_and_unknown_abilities() -> None:
    assert model_info("acme-1") == ModelInfo(window=8192, max_output=None, images=None, tools=None)


def test_a_server_that_cuts_prompts_silently_counts_with_a_small_window() -> None:
    info = model_info("llama3.2", "ollama")
    assert info.window == 8192
    assert info.tools is True


@pytest.mark.parametrize("model", ["gpt-5-mini", "claude-opus-4-1", "gemini-3-pro", "o3"])
def test_an_answer_is_never_longer_than_the_window(model: str) -> None:
    info = model_info(model)
    assert info.max_output is not None
    assert info.max_output < info.window


def test_a_listed_model_has_a_price_that_counts_cached_tokens() -> None:
    pytest.importorskip("genai_prices", reason="the optional extra `prices` is not installed")
    priced = price("claude-sonnet-4-5", "anthropic", USED)
    fresh = price(
        "claude-sonnet-4-5", "anthropic", Usage(prompt_tokens=1000, completion_tokens=500)
    )
    assert priced.cost_usd is not None
    assert fresh.cost_usd is not None
    assert 0 < priced.cost_usd < fresh.cost_usd
    assert priced.model_copy(update={"cost_usd": None}) == USED


def test_an_unlisted_model_and_a_server_of_ones_own_have_no_price() -> None:
    assert price("acme-1", "openai", USED).cost_usd is None
    assert price("gpt-4o", "vllm", USED).cost_usd is None


def test_a_cost_that_the_provider_reported_stands() -> None:
    reported = USED.model_copy(update={"cost_usd": 0.5})
    assert price("gpt-4o", "openrouter", reported) is reported


def test_the_offline_model_costs_nothing() -> None:
    assert price("offline", "offline", USED).cost_usd == 0.0


@pytest.mark.parametrize("provider", list(KNOWN_PROVIDERS))
def test_asking_for_a_price_never_fails(provider: str) -> None:
    assert price("", provider, Usage()).prompt_tokens == 0


IMAGE = [Message(role="user", content=[ImagePart(url="https://example.org/cat.png")])]


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        (ModelRequest(model="gpt-3.5-turbo", messages=IMAGE), "images"),
        (ModelRequest(model="gemma-3-27b", messages=[], tools=[ToolDefinition(name="t")]), "tools"),
    ],
)
def test_what_a_model_is_known_to_lack_is_a_failure_that_the_next_hop_may_not_have(
    request_: ModelRequest, what: str
) -> None:
    with pytest.raises(ProviderFailure, match=f"takes no {what}") as caught:
        ensure_supported(request_, "p")
    assert caught.value.kind == "unsupported"
    assert caught.value.retryable


@pytest.mark.parametrize("model", ["gpt-4o", "acme-1"])
def test_an_able_or_unknown_model_is_given_the_request(model: str) -> None:
    ensure_supported(ModelRequest(model=model, messages=IMAGE, tools=[]), "p")
