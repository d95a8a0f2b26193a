"""Models made for a test: one that embeds, one that writes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import httpx
import numpy as np

from gmi.activities.asking import Asker
from gmi.activities.embedders.embedder import (
    EmbedderDownError,
    EmbedderError,
    EmbedKind,
    Vectors,
)
from gmi.activities.gateway.circuits import CircuitRegistry
from gmi.activities.gateway.failures import ProviderFailure
from gmi.activities.gateway.provider import (
    Finished,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    UsageReport,
)
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.activities.memory.wording import Wording
from gmi.personas.messages import Usage
from gmi.personas.schema import Persona

TOPICS = ("coffee", "garden", "chess", "rain")


class TopicEmbedder:
    """Texts on one topic have almost the same vector, texts on two topics have nothing in common.

    Attributes:
        down: The model does not answer.
        refuses: Words that it refuses.
        texts: What it was asked to embed.
    """

    def __init__(self, model: str = "test:topics", dimension: int = 16) -> None:
        self.model = model
        self.dimension = dimension
        self.down = False
        self.refuses: str | None = None
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        await asyncio.sleep(0)
        if self.down:
            raise EmbedderDownError(f"{self.model} does not answer")
        if self.refuses is not None and any(self.refuses in text for text in texts):
            raise EmbedderError(f"{self.model} refused a text")
        self.texts += texts
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        vector = np.random.default_rng(seed).normal(0, 0.02, self.dimension)
        topics = [i for i, word in enumerate(TOPICS) if word in text.lower()]
        for i in topics or [len(TOPICS) + seed % (self.dimension - len(TOPICS))]:
            vector[i] += 1.0
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class Writer:
    """A provider that writes one sentence, and counts how often.

    Attributes:
        asked: The last message of each request.
        down: It fails.
        meanwhile: Awaited ahead of each answer.
    """

    kind = "openai"

    def __init__(self, sentence: str = "In short.") -> None:
        self.sentence = sentence
        self.asked: list[str] = []
        self.down = False
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        self.asked.append(request.messages[-1].text)
        if self.down:
            raise ProviderFailure("it is away", kind="stream", provider="writer")
        if self.meanwhile is not None:
            await self.meanwhile()
        yield TextDelta(self.sentence)
        yield UsageReport(Usage(prompt_tokens=10, completion_tokens=2))
        yield Finished("stop")

    def request_body(self, request: ModelRequest) -> dict[str, object]:
        return {}


def wording(writer: Writer) -> Wording:
    """Gists and schemas in the words of ``writer``."""
    providers = ProviderRegistry(httpx.AsyncClient(), {})
    providers.register("writer", writer)
    asker = Asker(providers, CircuitRegistry(lambda: 0.0), {})
    persona = Persona(
        id="p", name="P", description="p", version="1.0.0", base_system_prompt="You are P."
    )
    return Wording(asker, persona, "writer:one")
