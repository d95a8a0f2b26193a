from __future__ import annotations

import httpx
import pytest

from gmi.activities.gateway import (
    KNOWN_PROVIDERS,
    ModelRequest,
    OfflineProvider,
    ProviderFailure,
    ProviderRegistry,
    default_model,
    parse_model,
)
from gmi.personas.errors import ConfigurationError, CredentialRefusedError
from gmi.personas.messages import Message
from gmi.personas.options import CompletionOptions

CLIENT = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(500)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("openai:gpt-4o", ("openai", "gpt-4o")),
        ("openai/gpt-4o", ("openai", "gpt-4o")),
        ("ollama:llama3:8b", ("ollama", "llama3:8b")),
        ("ollama/llama3:8b", ("ollama", "llama3:8b")),
        ("openrouter:anthropic/claude-sonnet-4-5", ("openrouter", "anthropic/claude-sonnet-4-5")),
        ("openrouter/openai/gpt-4o:free", ("openrouter", "openai/gpt-4o:free")),
        ("google:gemini-2.5-pro", ("gemini", "gemini-2.5-pro")),
        ("OpenAI:gpt-4o", ("openai", "gpt-4o")),
        ("offline", ("offline", "offline")),
        ("offline:offline", ("offline", "offline")),
    ],
)
def test_both_forms_of_a_model_string_are_read(given: str, expected: tuple[str, str]) -> None:
    assert parse_model(given) == expected


@pytest.mark.parametrize("given", ["gpt-4o", "", "openai:", "openai/ "])
def test_a_model_string_without_provider_or_model_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match="provider:model"):
        parse_model(given)


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="openrouter") as caught:
        parse_model("acme:gpt")
    assert caught.value.details["known"] == list(KNOWN_PROVIDERS)
    with pytest.raises(ConfigurationError, match="acme"):
        ProviderRegistry(CLIENT, {}).get("acme")


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        ({}, "offline:offline"),
        ({"OPENAI_API_KEY": "  "}, "offline:offline"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "openai:"),
        ({"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}, "anthropic:"),
        ({"GEMINI_API_KEY": "k"}, "gemini:"),
        ({"GOOGLE_API_KEY": "k", "OLLAMA_BASE_URL": "u"}, "gemini:"),
        ({"OLLAMA_BASE_URL": "http://localhost:11434"}, "ollama:"),
    ],
)
def test_the_first_key_set_chooses_the_default_model(settings: dict[str, str], model: str) -> None:
    chosen = default_model(settings)
    assert chosen.startswith(model)
    parse_model(chosen)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
        ("openai-compatible", "OPENAI_COMPATIBLE_BASE_URL"),
    ],
)
def test_a_provider_that_is_not_set_up_names_the_setting(name: str, setting: str) -> None:
    with pytest.raises(ProviderFailure, match=setting) as caught:
        ProviderRegistry(CLIENT, {}).get(name)
    assert caught.value.kind == "configuration"
    assert caught.value.retryable
    assert not caught.value.same_hop_retryable


@pytest.mark.parametrize("name", [n for n in KNOWN_PROVIDERS if n != "offline"])
def test_every_known_provider_can_be_built_and_hides_its_key(name: str) -> None:
    known = KNOWN_PROVIDERS[name]
    settings = dict.fromkeys(known.key_settings, "the-key") | dict.fromkeys(
        known.url_settings, "http://127.0.0.1:9/v1"
    )
    registry = ProviderRegistry(CLIENT, settings)
    provider = registry.get(name)
    assert provider.kind == known.wire
    assert provider is registry.get(name)
    assert "the-key" not in f"{provider!r}{registry!r}"


def test_the_offline_provider_needs_nothing() -> None:
    assert isinstance(ProviderRegistry(CLIENT, {}).get("offline"), OfflineProvider)


async def _call(registry: ProviderRegistry, credential: str | None) -> None:
    request = ModelRequest(model="m", messages=[Message(role="user", content="Hi")])
    with pytest.raises(ProviderFailure):
        async for _ in registry.get("openai", credential).stream(request):
            pass


async def test_a_named_credential_replaces_the_key() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(500)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        registry = ProviderRegistry(
            client, {"OPENAI_API_KEY": "house"}, credentials={"TENANT_KEY": "tenant"}
        )
        await _call(registry, None)
        await _call(registry, "env:TENANT_KEY")
    assert seen == ["Bearer house", "Bearer tenant"]


@pytest.mark.parametrize("credential", ["sk-raw-key-123456", "env:", "file:/etc/passwd"])
def test_a_key_in_place_of_a_name_is_refused_and_not_repeated(credential: str) -> None:
    with pytest.raises(CredentialRefusedError) as caught:
        ProviderRegistry(CLIENT, {}).get("openai", credential)
    assert caught.value.details == {}
    assert "sk-raw" not in str(caught.value)
    assert "passwd" not in str(caught.value)


def test_a_name_that_is_not_on_the_allow_list_is_refused_even_when_it_is_a_setting() -> None:
    registry = ProviderRegistry(CLIENT, {"OPENAI_API_KEY": "k"}, credentials={"OTHER": "x"})
    with pytest.raises(CredentialRefusedError, match="env:OPENAI_API_KEY") as caught:
        registry.get("openai", "env:OPENAI_API_KEY")
    assert caught.value.details == {"allowed": ["OTHER"]}


@pytest.mark.parametrize("key", ["has space", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ProviderFailure, match="OPENAI_API_KEY") as caught:
        ProviderRegistry(CLIENT, {"OPENAI_API_KEY": key}).get("openai")
    assert key not in f"{caught.value!r}"


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("http://gpu:11434", "http://gpu:11434/v1"),
        ("http://gpu:11434/v1/", "http://gpu:11434/v1"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434/v1"),
        ("gpu", "http://gpu/v1"),
    ],
)
def test_ollamas_address_may_be_written_as_its_own_program_takes_it(value: str, url: str) -> None:
    provider = ProviderRegistry(CLIENT, {"OLLAMA_BASE_URL": value}).get("ollama")
    assert url + "'" in repr(provider)


@pytest.mark.parametrize("value", ["ftp://host", "http://", "http://user:pass@host/v1"])
def test_an_unusable_base_url_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(ConfigurationError, match="VLLM_BASE_URL") as caught:
        ProviderRegistry(CLIENT, {"VLLM_BASE_URL": value}).get("vllm")
    assert "pass@" not in str(caught.value)


def test_another_server_under_openais_setting_gets_the_plain_format() -> None:
    request = ModelRequest(
        model="m",
        messages=[Message(role="user", content="Hi")],
        options=CompletionOptions(max_tokens=5),
    )
    own = ProviderRegistry(CLIENT, {"OPENAI_API_KEY": "k"}).get("openai")
    other = ProviderRegistry(
        CLIENT, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    ).get("openai")
    assert "max_completion_tokens" in own.request_body(request)
    assert "max_tokens" in other.request_body(request)


def test_a_provider_of_ones_own_is_found_by_its_name() -> None:
    registry = ProviderRegistry(CLIENT, {})
    mine = OfflineProvider()
    registry.register("mine", mine)
    assert registry.parse("mine:any") == ("mine", "any")
    assert registry.get("mine") is mine
