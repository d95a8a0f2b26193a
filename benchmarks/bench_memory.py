"""A store of memories in a temporary directory, and a recall over it."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmi.activities.embedders import Embedder
from gmi.activities.memory.cache import ScopeCache, vector_of
from gmi.activities.memory.recall import Recaller
from gmi.activities.memory.store import MemoryStore, Writing
from gmi.activities.memory.traces import Trace
from gmi.activities.store import SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore

_WRITTEN_AT_ONCE = 2000


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


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    packages = ("numpy", "snowballstemmer", "SQLAlchemy", "durable-gmi")
    return {
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "os": platform.platform(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
