"""Vectors for memories that have none of the configured model: new ones, and all after a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..embedders.embedder import Embedder, EmbedderDownError, EmbedderError
from .cache import vector_of
from .candidates import passage
from .encode import MAX_CONTENT
from .store import MemoryStore, Vector, Writing
from .traces import Scope, Trace

BATCH = 32
MAX_REFUSED = 100
"""Texts that the model may refuse before a run gives the scope up."""


@dataclass(slots=True)
class Embedded:
    """What an embedding run did.

    Attributes:
        done: Traces that got a vector.
        waiting: Traces that have none still.
        problem: Why not, or ``""``.
    """

    done: int = 0
    waiting: int = 0
    problem: str = ""


class _Reworded(Exception):
    """A text changed while it was embedded."""


class Reembedder:
    """Embeds what has no vector of its model; vectors of other models stay beside them, unused.

    Args:
        store: The memories.
        embedder: The model.
    """

    def __init__(self, store: MemoryStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._size = embedder.dimension

    async def embed(self, scope: Scope, now: float, said: Callable[[int], None]) -> Embedded:
        """Embed the traces of a scope, in batches that are each kept at once.

        A model that does not answer is not waited for: the next consolidation goes on.

        Args:
            scope: The scope; all personas' traces in it.
            now: Seconds since the epoch.
            said: Told after each batch how many traces have got their vector.

        Raises:
            StoreError: The store does not answer.
        """
        result = Embedded()
        refused: set[str] = set()
        while True:
            found = await self._missing(scope, BATCH + len(refused))
            batch = [trace for trace in found if trace.id not in refused][:BATCH]
            if not batch:
                break
            try:
                result.done += await self._batch(batch, now, refused, result)
            except EmbedderDownError as error:
                result.problem = error.message
                break
            said(result.done)
            if len(refused) > MAX_REFUSED:
                break
        if result.problem:
            result.waiting = len(await self._missing(scope, 100_000))
        return result

    async def _missing(self, scope: Scope, limit: int) -> list[Trace]:
        return await self._store.without_vector(self._embedder.model, scope, limit, self._size)

    async def _batch(
        self, batch: Sequence[Trace], now: float, refused: set[str], result: Embedded
    ) -> int:
        """Embed a batch; of one that is refused, each text by itself."""
        texts = await self._texts(batch)
        try:
            vectors = await self._vectors(batch, texts)
        except EmbedderDownError:
            raise
        except EmbedderError as error:
            if len(batch) == 1:
                refused.add(batch[0].id)
                result.problem = error.message
                return 0
            return sum([await self._batch([trace], now, refused, result) for trace in batch])
        try:
            await self._store.write(
                Writing(
                    now=now,
                    vectors=vectors,
                    touched=[trace.id for trace in batch],
                    change=_unless_reworded(batch),
                )
            )
        except _Reworded:
            # It is still without a vector, and comes again with its new text.
            return 0
        return len(batch)

    async def _vectors(self, batch: Sequence[Trace], texts: Sequence[str]) -> dict[str, Vector]:
        made = await self._embedder.embed(texts, "passage")
        # The model's word on its size; it may not have been known before.
        self._size = made.shape[1]
        return {
            trace.id: vector_of(self._embedder.model, made[row]) for row, trace in enumerate(batch)
        }

    async def _texts(self, batch: Sequence[Trace]) -> list[str]:
        turns: dict[tuple[str, str], tuple[str, str]] = {}
        texts = []
        for trace in batch:
            place = (trace.session, trace.turn)
            if trace.turn and place not in turns:
                turn = await self._store.finished_turn(*place)
                turns[place] = (
                    (turn.before, turn.said[:MAX_CONTENT]) if turn is not None else ("", "")
                )
            before, said = turns.get(place, ("", ""))
            earlier = (said or before) if trace.role == "assistant" else before
            texts.append(passage(trace, replace(trace, content=earlier) if earlier else None))
        return texts


def _unless_reworded(
    batch: Sequence[Trace],
) -> Callable[[Mapping[str, Trace]], Sequence[Trace]]:
    """Refuses the transaction in which a text is no longer the one that was embedded."""
    embedded = {trace.id: trace.content for trace in batch}

    def check(standing: Mapping[str, Trace]) -> Sequence[Trace]:
        for id_, trace in standing.items():
            if trace.content != embedded[id_]:
                raise _Reworded(id_)
        return ()

    return check
