"""Embedding models behind HTTP: OpenAI's format, Gemini's and Ollama's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import httpx
import numpy as np

from ..gateway.http import Endpoint
from .answers import batches, checked, post
from .embedder import EmbedderError, EmbedKind, Vectors
from .models import known_dimension, prepared


class ServedEmbedder(ABC):
    """What the adapters share.

    Args:
        client: Sends the requests; the caller closes it.
        model: The provider's name of the model.
        name: The provider's name; with the model's it names the vectors.
        base_url: URL without the method's path.
        api_key: The key, or ``None`` for a server without one.
    """

    most = 100
    """Texts in one request."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        model: str,
        *,
        name: str,
        base_url: str,
        api_key: str | None = None,
    ) -> None:
        self._client = client
        self._name = model
        self._model = f"{name}:{model}"
        self._dimension = known_dimension(model)
        self._endpoint = Endpoint(
            provider=name,
            base_url=base_url.rstrip("/"),
            headers=self._headers(api_key) if api_key else {},
            secrets=(api_key,) if api_key else (),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self._model!r})"

    @property
    def model(self) -> str:
        """``provider:model``."""
        return self._model

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; ``None`` before the first answer of a model that is not known."""
        return self._dimension

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        """See :class:`~.embedder.Embedder`.

        Raises:
            EmbedderDownError: The model cannot be reached now.
            EmbedderError: The model refused, or its answer has another size than expected.
        """
        found: list[Vectors] = [np.zeros((0, self._dimension or 0), np.float32)]
        for part in batches([prepared(text, self._name, kind) for text in texts], self.most):
            answer = await self._ask(part, kind)
            vectors = checked(self._vectors(answer), len(part), self._model, self._dimension)
            self._dimension = vectors.shape[1]
            found.append(vectors)
        return np.concatenate(found if len(found) == 1 else found[1:])

    def _headers(self, api_key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {api_key}"}

    async def _ask(self, texts: list[str], kind: EmbedKind) -> Mapping[str, object]:
        return await post(self._client, self._endpoint, self._path(), self._body(texts, kind), kind)

    @abstractmethod
    def _path(self) -> str: ...

    @abstractmethod
    def _body(self, texts: list[str], kind: EmbedKind) -> dict[str, object]: ...

    @abstractmethod
    def _vectors(self, answer: Mapping[str, object]) -> list[object]: ...

    def _list(self, answer: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
        found = answer.get(name)
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise EmbedderError(f"{self._model}: the answer has no list of {name}")
        return found


class OpenAIEmbedder(ServedEmbedder):
    """OpenAI, and every server that has its ``/embeddings``."""

    def _path(self) -> str:
        return "/embeddings"

    def _body(self, texts: list[str], kind: EmbedKind) -> dict[str, object]:
        return {"model": self._name, "input": texts, "encoding_format": "float"}

    def _vectors(self, answer: Mapping[str, object]) -> list[object]:
        data = self._list(answer, "data")
        places = [item.get("index") for item in data]
        # The format promises a number for each, not their order.
        if sorted(map(str, places)) == sorted(map(str, range(len(data)))):
            data = sorted(data, key=lambda item: int(str(item["index"])))
        return [item.get("embedding") for item in data]


class GeminiEmbedder(ServedEmbedder):
    """Gemini, by an API key."""

    def _headers(self, api_key: str) -> dict[str, str]:
        return {"x-goog-api-key": api_key}

    def _path(self) -> str:
        return f"/models/{quote(self._name.removeprefix('models/'), safe='')}:batchEmbedContents"

    def _body(self, texts: list[str], kind: EmbedKind) -> dict[str, object]:
        shared: dict[str, object] = {"model": f"models/{self._name.removeprefix('models/')}"}
        # From its second generation on, the model is told in the text.
        if "gemini-embedding-2" not in self._name:
            shared["taskType"] = "RETRIEVAL_QUERY" if kind == "query" else "RETRIEVAL_DOCUMENT"
        return {"requests": [{**shared, "content": {"parts": [{"text": t}]}} for t in texts]}

    def _vectors(self, answer: Mapping[str, object]) -> list[object]:
        return [item.get("values") for item in self._list(answer, "embeddings")]


class OllamaEmbedder(ServedEmbedder):
    """An Ollama server."""

    most = 32

    def _path(self) -> str:
        return "/api/embed"

    def _body(self, texts: list[str], kind: EmbedKind) -> dict[str, object]:
        return {"model": self._name, "input": texts, "truncate": True}

    def _vectors(self, answer: Mapping[str, object]) -> list[object]:
        found = answer.get("embeddings")
        if not isinstance(found, list):
            raise EmbedderError(f"{self._model}: the answer has no list of embeddings")
        return found
