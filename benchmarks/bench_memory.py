"""A store of memories in a temporary directory, and a recall over it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gmi.activities.embedders import Embedder
from gmi.activities.memory.cache import ScopeCache, vector_of
from gmi.activities.memory.encoding import encode
from gmi.activities.memory.features import attention_features
from gmi.activities.memory.recall import Recaller
from gmi.activities.memory.store import MemoryStore, Writing
from gmi.activities.memory.traces import Affect, Trace
from gmi.activities.store import SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore

_WRITTEN_AT_ONCE = 2000

PACKAGES = ("numpy", "snowballstemmer", "SQLAlchemy")
"""Those that a recall is done with."""


@dataclass
class Memory:
    """A store and what recalls from it."""

    store: MemoryStore
    cache: ScopeCache

    def recaller(self, embedder: Embedder | None) -> Recaller:
        """The recall as a worker has it, with an embedder or by words alone."""
        return Recaller(self.store, self.cache, embedder)

    async def write(
        self,
        traces: Sequence[Trace],
        model: str | None = None,
        vectors: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """Keep traces and their vectors, as encoding does."""
        for start in range(0, len(traces), _WRITTEN_AT_ONCE):
            part = traces[start : start + _WRITTEN_AT_ONCE]
            kept = {}
            if model is not None and vectors is not None:
                kept = {t.id: vector_of(model, vectors[t.id]) for t in part if t.id in vectors}
            await self.store.write(Writing(now=part[-1].created_at, new=part, vectors=kept))


@asynccontextmanager
async def memory() -> AsyncIterator[Memory]:
    """An empty memory in a SQLite file that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="gmi-bench-") as directory:
        sessions = SQLStore.connect(f"sqlite:///{Path(directory) / 'memory.db'}")
        await sessions.prepare()
        store = SQLMemoryStore(sessions.database)
        cache = ScopeCache(store, max_bytes=4_000_000_000)
        try:
            yield Memory(store, cache)
        finally:
            cache.close()
            await sessions.close()


def encoded(trace: Trace, feeling: float, words: str) -> Trace:
    """A memory with the strength and importance that encoding gives it.

    Args:
        trace: The memory; it is not recalled since it was made.
        feeling: The valence of what was said, from -1 to 1.
        words: What was said.
    """
    found = encode(Affect(), feeling, attention_features(words), None)
    return replace(
        trace,
        affect=found.affect,
        intensity=found.intensity,
        strength=found.strength,
        stability=found.stability,
        importance=found.importance,
        last_access=trace.created_at,
        updated_at=trace.created_at,
    )
