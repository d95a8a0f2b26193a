"""The scopes that a worker holds in memory, brought up to date before each search."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .index import ScopeIndex
from .store import MemoryStore, ScopeChanges, Vector
from .traces import Scope

T = TypeVar("T")

MAX_BYTES = 1_000_000_000
"""Bytes of scopes that a worker holds; beyond it the one used longest ago goes."""


class _Held:
    """A scope in memory, and the version that it is at."""

    def __init__(self, scope: Scope, model: str | None) -> None:
        self.scope = scope
        self.model = model
        self.index = ScopeIndex(scope, model)
        self.version = 0
        self.lock = asyncio.Lock()


class ScopeCache:
    """Indexes of scopes.

    Everything that touches an index runs in one thread of the cache's own: a large scope does not
    hold up the worker, and no two searches meet in one index.

    Args:
        store: Where the traces are.
        max_bytes: What may be held.
    """

    def __init__(self, store: MemoryStore, max_bytes: int = MAX_BYTES) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[Scope, str | None], _Held] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gmi-memory")

    async def load(self, scopes: Sequence[Scope], model: str | None) -> list[ScopeIndex]:
        """The scopes as the store has them now; a scope that holds nothing is left out.

        Args:
            scopes: Which ones.
            model: Whose vectors come along.
        """
        versions = await self._store.versions(scopes)
        found: list[ScopeIndex] = []
        for scope in scopes:
            if not versions[scope]:
                continue
            key = (scope, model)
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _Held(scope, model)
            self._held.move_to_end(key)
            async with held.lock:
                if held.version < versions[scope]:
                    await self._catch_up(held)
            found.append(held.index)
        self._shrink(len(scopes))
        return found

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` where indexes may be touched."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Let the thread go; nothing can be loaded afterwards."""
        self._thread.shutdown(wait=False)

    async def _catch_up(self, held: _Held) -> None:
        changes = await self._store.changes(held.scope, held.version, held.model)

        def apply() -> ScopeIndex:
            index = ScopeIndex(held.scope, held.model) if changes.whole else held.index
            index.apply(changes.traces, arrays(changes))
            return index

        held.index = await self.run(apply)
        held.version = changes.version

    def _shrink(self, keep: int) -> None:
        total = sum(held.index.bytes for held in self._held.values())
        while total > self._max_bytes and len(self._held) > keep:
            _, dropped = self._held.popitem(last=False)
            total -= dropped.index.bytes


def arrays(changes: ScopeChanges) -> Mapping[str, NDArray[np.float32]]:
    """The vectors as arrays."""
    return {trace: array_of(vector) for trace, vector in changes.vectors.items()}


def array_of(vector: Vector) -> NDArray[np.float32]:
    """A kept vector as an array of shape ``(d,)``."""
    return np.frombuffer(vector.data, dtype="<f4")


def vector_of(model: str, values: NDArray[np.float32]) -> Vector:
    """An array of shape ``(d,)`` as it is kept."""
    return Vector(model, len(values), np.ascontiguousarray(values, dtype="<f4").tobytes())
