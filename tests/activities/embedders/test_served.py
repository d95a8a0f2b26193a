"""The adapters over HTTP, against a server that answers what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from gmi.activities.embedders import (
    EmbedderDownError,
    EmbedderError,
    GeminiEmbedder,
    OllamaEmbedder,
    OpenAIEmbedder,
)

KEY = "sk-test-not-secret"
URL = "http://models.test/v1"

Answer = Callable[[httpx.Request], httpx.Response]


class Server:
    """Keeps the requests and answers each as told."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[httpx.Request] = []
        self._answer = answer

    @property
    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self._handle))

    @property
    def bodies(self) -> list[dict[str, object]]:
        return [json.loads(request.content) for request in self.requests]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self._answer(request)


def vector_for(text: str) -> list[float]:
    return [float(len(text)), 1.0, 0.0]


def openai_answer(request: httpx.Request) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    data = [{"index": i, "embedding": vector_for(text)} for i, text in enumerate(texts)]
    return httpx.Response(200, json={"object": "list", "data": data[::-1], "model": "m"})


def gemini_answer(request: httpx.Request) -> httpx.Response:
    texts = [r["content"]["parts"][0]["text"] for r in json.loads(request.content)["requests"]]
    return httpx.Response(200, json={"embeddings": [{"values": vector_for(t)} for t in texts]})


def ollama_answer(request: httpx.Request) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    return httpx.Response(200, json={"model": "m", "embeddings": [vector_for(t) for t in texts]})


def lengths(vectors: np.ndarray) -> list[int]:
    """Which texts the vectors are of, by their first number."""
    return [round(float(v[0] / v[1])) for v in vectors]


async def test_openai_is_asked_in_its_format_and_answers_in_order() -> None:
    server = Server(openai_answer)
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL, api_key=KEY)
    assert embedder.dimension is None
    found = await embedder.embed(["a", "bbb", "cc"], "passage")
    assert found.dtype == np.float32
    assert lengths(found) == [1, 3, 2]
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)
    assert (embedder.model, embedder.dimension) == ("openai:m", 3)
    request = server.requests[0]
    assert str(request.url) == f"{URL}/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert server.bodies == [
        {"model": "m", "input": ["a", "bbb", "cc"], "encoding_format": "float"}
    ]


@pytest.mark.parametrize(
    ("model", "kind", "told"),
    [
        ("gemini-embedding-001", "query", {"taskType": "RETRIEVAL_QUERY"}),
        ("gemini-embedding-001", "passage", {"taskType": "RETRIEVAL_DOCUMENT"}),
        ("models/text-embedding-x", "passage", {"taskType": "RETRIEVAL_DOCUMENT"}),
    ],
)
async def test_gemini_is_told_what_the_texts_are(
    model: str, kind: str, told: dict[str, str]
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        count = len(json.loads(request.content)["requests"])
        size = 3072 if "001" in model else 3
        return httpx.Response(200, json={"embeddings": [{"values": [1.0] * size}] * count})

    server = Server(answer)
    embedder = GeminiEmbedder(server.client, model, name="gemini", base_url=URL, api_key=KEY)
    assert (await embedder.embed(["hello"], kind)).shape[0] == 1  # type: ignore[arg-type]
    name = model.removeprefix("models/")
    request = server.requests[0]
    assert str(request.url) == f"{URL}/models/{name}:batchEmbedContents"
    assert request.headers["x-goog-api-key"] == KEY
    asked = {"model": f"models/{name}", "content": {"parts": [{"text": "hello"}]}}
    assert server.bodies == [{"requests": [{**told, **asked}]}]


async def test_the_second_gemini_is_told_in_the_text() -> None:
    server = Server(gemini_answer)
    embedder = GeminiEmbedder(
        server.client, "gemini-embedding-2", name="gemini", base_url=URL, api_key=KEY
    )
    with pytest.raises(EmbedderError, match="3 numbers where its vectors have 3072"):
        await embedder.embed(["hello"], "query")
    assert "taskType" not in json.dumps(server.bodies)
    assert "task: search result | query: hello" in json.dumps(server.bodies)


async def test_ollama_is_asked_at_its_own_address_and_needs_no_key() -> None:
    server = Server(ollama_answer)
    embedder = OllamaEmbedder(server.client, "m:latest", name="ollama", base_url="http://o.test")
    assert lengths(await embedder.embed(["aa", "b"], "query")) == [2, 1]
    assert str(server.requests[0].url) == "http://o.test/api/embed"
    assert "authorization" not in server.requests[0].headers
    assert server.bodies == [{"model": "m:latest", "input": ["aa", "b"], "truncate": True}]


async def test_a_model_that_wants_a_mark_before_the_text_gets_it() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        count = len(json.loads(request.content)["input"])
        return httpx.Response(200, json={"embeddings": [[1.0] * 768] * count})

    server = Server(answer)
    embedder = OllamaEmbedder(
        server.client, "nomic-embed-text:v1.5", name="ollama", base_url="http://o.test"
    )
    assert embedder.dimension == 768
    await embedder.embed(["hello"], "query")
    await embedder.embed(["hello"], "passage")
    asked = [body["input"] for body in server.bodies]
    assert asked == [["search_query: hello"], ["search_document: hello"]]


async def test_many_texts_go_in_several_requests_and_come_back_in_order() -> None:
    server = Server(openai_answer)
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL)
    texts = ["x" * (1 + n % 50) for n in range(250)]
    assert lengths(await embedder.embed(texts, "passage")) == [len(text) for text in texts]
    assert [len(body["input"]) for body in server.bodies] == [100, 100, 50]  # type: ignore[arg-type]


async def test_a_long_text_is_cut() -> None:
    server = Server(openai_answer)
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL)
    assert lengths(await embedder.embed(["x" * 100_000], "passage")) == [6000]


async def test_no_texts_are_no_request() -> None:
    server = Server(openai_answer)
    embedder = OpenAIEmbedder(server.client, "text-embedding-3-small", name="openai", base_url=URL)
    assert (await embedder.embed([], "passage")).shape == (0, 1536)
    assert server.requests == []


def refused(status: int, **headers: str) -> Answer:
    body = {"error": {"message": f"no, and {KEY} is the key", "type": "some_error"}}
    return lambda request: httpx.Response(status, json=body, headers=headers)


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
async def test_an_overloaded_model_is_down_and_may_be_asked_again(status: int) -> None:
    server = Server(refused(status, **{"retry-after": "7"}))
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL, api_key=KEY)
    with pytest.raises(EmbedderDownError) as caught:
        await embedder.embed(["a"], "query")
    assert caught.value.retryable
    assert caught.value.details["retry_after"] == 7
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404])
async def test_a_refusal_is_no_outage(status: int) -> None:
    server = Server(refused(status))
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL, api_key=KEY)
    with pytest.raises(EmbedderError) as caught:
        await embedder.embed(["a"], "query")
    assert not caught.value.retryable
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("fault", [httpx.ConnectError, httpx.ReadTimeout, httpx.ReadError])
async def test_a_model_that_cannot_be_reached_is_down(fault: type[httpx.TransportError]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise fault("gone", request=request)

    embedder = OllamaEmbedder(
        Server(answer).client, "m", name="ollama", base_url="http://o.test", api_key=KEY
    )
    with pytest.raises(EmbedderDownError) as caught:
        await embedder.embed(["a"], "query")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": "no"},
        {"data": [1]},
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": None}]},
        {"data": [{"index": 0, "embedding": ["a"]}]},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
    ],
)
async def test_an_answer_without_the_vectors_is_an_error(answer: dict[str, object]) -> None:
    server = Server(lambda request: httpx.Response(200, json=answer))
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL)
    with pytest.raises(EmbedderError, match="openai:m"):
        await embedder.embed(["a"], "query")
    assert embedder.dimension is None


async def test_a_page_in_place_of_vectors_points_to_the_base_url() -> None:
    server = Server(lambda request: httpx.Response(200, text="<html>"))
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL)
    with pytest.raises(EmbedderError, match="check the base URL"):
        await embedder.embed(["a"], "query")


async def test_a_model_that_changes_its_size_is_refused() -> None:
    sizes = iter([3, 4])
    server = Server(
        lambda request: httpx.Response(
            200, json={"data": [{"index": 0, "embedding": [1.0] * next(sizes)}]}
        )
    )
    embedder = OpenAIEmbedder(server.client, "m", name="openai", base_url=URL)
    await embedder.embed(["a"], "query")
    with pytest.raises(EmbedderError, match="4 numbers where its vectors have 3"):
        await embedder.embed(["a"], "query")
