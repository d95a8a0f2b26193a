"""The scopes that a worker holds in memory, brought up to date before each search."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .index import ScopeIndex
from .store import MemoryStore, ScopeChanges, Vector
from .traces import Scope, Trace
from .vectors import usual_size

T = TypeVar("T")

MAX_BYTES = 1_000_000_000
"""Bytes of scopes that a worker holds; beyond it the one used longest ago goes."""

ALWAYS = 4
"""Scopes that are read together whatever they weigh: as many as a session has."""

_PART = 2000
"""Traces that are taken in before others may use the thread."""


class _Held:
    """A scope in memory, and the version that it is at."""

    def __init__(self, scope: Scope, model: str | None) -> None:
        self.scope = scope
        self.model = model
        self.index = ScopeIndex(scope, model)
        self.version = 0
        self.bytes = 0
        self.loading: asyncio.Task[None] | None = None

    def fits(self, dimension: int | None) -> bool:
        """Whether its vectors can be compared with one of so many numbers."""
        vectors = self.index.vectors
        return dimension is None or vectors is None or vectors.dimension in (None, dimension)


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

    async def load(
        self, scopes: Sequence[Scope], model: str | None, dimension: int | None = None
    ) -> list[ScopeIndex]:
        """The scopes as the store has them now; a scope that holds nothing is left out.

        A caller that stops waiting does not stop the loading: the next one finds it done, or
        further on.

        Args:
            scopes: Which ones. Beyond :data:`ALWAYS` of them, no more are read than may be held
                together; see :meth:`is_full`.
            model: Whose vectors come along.
            dimension: Numbers in a vector of the model; those of another size are left out.
        """
        versions = await self._store.versions(scopes)
        found: list[ScopeIndex] = []
        size = 0
        for scope in scopes:
            if not versions[scope]:
                continue
            if len(found) >= ALWAYS and size >= self._max_bytes:
                break
            key = (scope, model)
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _Held(scope, model)
            self._held.move_to_end(key)
            while held.version < versions[scope] or not held.fits(dimension):
                loading = held.loading
                # One that is done has nothing to wait for: waiting for it would not yield.
                if loading is None or loading.done():
                    loading = self._start(held, dimension)
                await asyncio.shield(loading)
            found.append(held.index)
            size += held.bytes
            self._shrink(max(ALWAYS, len(found)))
        return found

    def is_full(self, indexes: Sequence[ScopeIndex]) -> bool:
        """Whether these are as many as can be read together, so that others may be left out."""
        return len(indexes) >= ALWAYS and sum(i.bytes for i in indexes) >= self._max_bytes

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` where indexes may be touched."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Let the thread go; nothing can be loaded afterwards."""
        for held in self._held.values():
            if held.loading is not None:
                held.loading.cancel()
        self._thread.shutdown(wait=False)

    def _start(self, held: _Held, dimension: int | None) -> asyncio.Task[None]:
        loading = asyncio.create_task(self._catch_up(held, dimension))

        def ended(task: asyncio.Task[None]) -> None:
            if held.loading is task:
                held.loading = None
            if not task.cancelled():
                # Nobody may wait any longer who would look at it.
                task.exception()

        loading.add_done_callback(ended)
        held.loading = loading
        return loading

    async def _catch_up(self, held: _Held, dimension: int | None) -> None:
        since = held.version if held.fits(dimension) else 0
        changes = await self._store.changes(held.scope, since, held.model)
        vectors = arrays(changes)
        index = held.index
        if since == 0 or changes.whole:
            size = dimension or await self.run(lambda: usual_size(vectors.values()))
            index = ScopeIndex(held.scope, held.model, size)
        try:
            for start in range(0, len(changes.traces) or 1, _PART):
                part = changes.traces[start : start + _PART]
                await self.run(partial(_take, index, part, vectors))
            await self.run(partial(index.apply, (), vectors))
        except Exception:
            # Half of a change is none: the scope is read anew.
            held.index, held.version, held.bytes = ScopeIndex(held.scope, held.model), 0, 0
            raise
        held.index, held.version = index, changes.version
        held.bytes = await self.run(lambda: index.bytes)

    def _shrink(self, keep: int) -> None:
        """Let go of what was used longest ago; what was used last stays, and what is loading."""
        total = sum(held.bytes for held in self._held.values())
        if total <= self._max_bytes:
            return
        for key, held in list(self._held.items())[: max(0, len(self._held) - keep)]:
            if held.loading is None:
                del self._held[key]
                total -= held.bytes
            if total <= self._max_bytes:
                return


def _take(
    index: ScopeIndex, traces: Sequence[Trace], vectors: dict[str, NDArray[np.float32]]
) -> None:
    theirs = {trace.id: vectors.pop(trace.id) for trace in traces if trace.id in vectors}
    index.apply(traces, theirs)


def arrays(changes: ScopeChanges) -> dict[str, NDArray[np.float32]]:
    """The vectors as arrays."""
    return {trace: array_of(vector) for trace, vector in changes.vectors.items()}


def array_of(vector: Vector) -> NDArray[np.float32]:
    """A kept vector as an array of shape ``(d,)``."""
    return np.frombuffer(vector.data, dtype="<f4")


def vector_of(model: str, values: NDArray[np.float32]) -> Vector:
    """An array of shape ``(d,)`` as it is kept."""
    return Vector(model, len(values), np.ascontiguousarray(values, dtype="<f4").tobytes())
