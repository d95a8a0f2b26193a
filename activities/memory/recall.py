"""Recall: from what is said now to the memories that it brings up. It only reads.

Four layers: an imagined memory to search with (where the persona asks for it), candidates from
words and vectors with one composite score, activation along links, and a reranker where the host
has one. What a recall changes is applied when its turn is encoded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...personas.errors import GMIError
from ...personas.memory import InvoluntaryRecall, MemorySettings
from ..embedders.embedder import Embedder
from .cache import ScopeCache
from .candidates import Candidates, find_candidates
from .entities import entities_of
from .index import ScopeIndex, SearchFilter
from .likeness import likeness
from .mechanisms.feeling_of_knowing import Feeling, Near, feelings
from .mechanisms.involuntary_recall import involuntary, seeded
from .provider import Reranker
from .scoring import Columns, PartialRecall, partial_recalls, ranked, scores
from .spreading import activations
from .store import Link, MemoryStore
from .traces import DAY, Affect, Scope, Trace
from .trust import policy_of
from .words import tokenize

Imagine = Callable[[str], Awaitable[str]]
"""Asks a model for a memory that could answer a text."""

ACCESSED = 5
"""The best memories of a recall are those that count as remembered."""

CANDIDATES_PER_RESULT = 3
MAX_LINKED = 500
"""Traces whose links are followed in one recall."""

COGNITIVE_SHARE, RERANKER_SHARE = 0.7, 0.3

MAX_QUERY_CHARS = 4000

MAX_INVOLUNTARY = 500
"""About so many memories, drawn from all, are those of which one may come up by itself."""

MAX_SCOPES = 200
"""Scopes that one recall reads; of more, those that most was written to."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What a recall starts from.

    Attributes:
        text: What is said now.
        scopes: Whose memories are read; none brings nothing up.
        now: Seconds since the epoch.
        settings: The persona's, its mechanisms scaled by its traits.
        mood: What the mind feels.
        where: Which traces count.
        seed: Makes chance repeatable, such as the turn's id.
    """

    text: str
    scopes: Sequence[Scope]
    now: float
    settings: MemorySettings
    mood: Affect = field(default_factory=Affect)
    where: SearchFilter = field(default_factory=SearchFilter)
    seed: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that came up.

    Attributes:
        score: In [0, 1].
        relevance: To what is said, in [0, 1].
        activation: Along links, in [0, 1].
    """

    trace: Trace
    score: float
    relevance: float
    activation: float = 0.0


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a recall brings up.

    Attributes:
        items: The best first.
        half: Memories that fit but are faint or doubtful.
        feelings: Of knowing more than came up.
        involuntary: A memory that came up by itself.
        suppressed: Memories that were not recalled, and how like they are to those that were.
        warnings: What went wrong without stopping the recall.
    """

    items: list[Recalled] = field(default_factory=list)
    half: list[PartialRecall] = field(default_factory=list)
    feelings: list[Feeling] = field(default_factory=list)
    involuntary: Trace | None = None
    suppressed: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def accessed(self) -> list[str]:
        """Ids of the memories that count as remembered."""
        return [item.trace.id for item in self.items[:ACCESSED]]


class Recaller:
    """Recalls memories.

    Args:
        store: The memories.
        cache: The scopes that this worker holds.
        embedder: Turns texts into vectors; without one, words alone find memories.
        reranker: Has a say in the order, where the persona's settings want it.
    """

    def __init__(
        self,
        store: MemoryStore,
        cache: ScopeCache,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._store = store
        self._cache = cache
        self._embedder = embedder
        self._reranker = reranker

    async def recall(self, query: RecallQuery, imagine: Imagine | None = None) -> Recollection:
        """Bring up what belongs to the query.

        Args:
            query: What to start from.
            imagine: Asks a model for a memory to search with; used where the settings want it.

        Raises:
            StoreError: The store does not answer.
        """
        text = query.text.strip()[:MAX_QUERY_CHARS]
        if not query.scopes or not text:
            return Recollection()
        model = self._embedder.model if self._embedder is not None else None
        warnings: list[str] = []
        scopes = await self._most_used(query.scopes, warnings)
        indexes = await self._cache.load(scopes, model)
        if not any(len(index) for index in indexes):
            return Recollection(warnings=warnings)
        imagined = await self._imagined(text, query, imagine, warnings)
        vector = await self._vector(imagined or text, warnings)
        if vector is not None:
            indexes = await self._of_size(len(vector), indexes, scopes, warnings)
        if self._cache.is_full(indexes):
            warnings.append(
                f"RECALL_NARROWED: {len(indexes)} scopes are as much as can be searched at once; "
                "name fewer scopes to search the others."
            )
        words = f"{text} {imagined}" if imagined else text
        limit = max(query.settings.top_k * CANDIDATES_PER_RESULT, 50)
        found = await self._cache.run(
            lambda: find_candidates(
                indexes, words, vector=vector, model=model, wanted=query.where, limit=limit
            )
        )
        pool = await self._cache.run(lambda: _Pool.of(found, query))
        await self._spread(pool, indexes, query)
        order = ranked(pool.score, len(pool.traces))
        if self._reranker is not None and query.settings.rerank:
            order = await self._reranked(self._reranker, pool, order, query, warnings)
        return await self._cache.run(lambda: _collect(pool, order, indexes, query, warnings))

    async def _imagined(
        self, text: str, query: RecallQuery, imagine: Imagine | None, warnings: list[str]
    ) -> str:
        if imagine is None or not query.settings.hyde:
            return ""
        try:
            return (await imagine(text)).strip()[:MAX_QUERY_CHARS]
        except GMIError as error:
            warnings.append(f"RECALL_WITHOUT_HYDE: no memory was imagined: {error.message}")
            return ""

    async def _most_used(self, scopes: Sequence[Scope], warnings: list[str]) -> Sequence[Scope]:
        """The scopes that are read: all, as long as they are not too many."""
        if len(scopes) <= MAX_SCOPES:
            return scopes
        versions = await self._store.versions(scopes)
        warnings.append(
            f"RECALL_NARROWED: {MAX_SCOPES} of {len(scopes)} scopes were searched, those that most "
            "was written to; name fewer scopes to search the others."
        )
        return sorted(scopes, key=lambda scope: -versions[scope])[:MAX_SCOPES]

    async def _of_size(
        self,
        size: int,
        indexes: list[ScopeIndex],
        scopes: Sequence[Scope],
        warnings: list[str],
    ) -> list[ScopeIndex]:
        """The scopes with vectors that can be compared with one of ``size`` numbers."""
        if self._embedder is None:
            return indexes
        model = self._embedder.model
        if any(i.vectors and i.vectors.dimension not in (None, size) for i in indexes):
            indexes = await self._cache.load(scopes, model, size)
        foreign = sum(len(index.foreign) for index in indexes)
        if foreign:
            warnings.append(
                f"RECALL_WITHOUT_VECTORS: {foreign} memories have vectors of another size than the "
                f"{size} numbers that {model} answers now; words alone find them until a "
                "consolidation embeds them again."
            )
        return indexes

    async def _vector(self, text: str, warnings: list[str]) -> NDArray[np.float32] | None:
        if self._embedder is None:
            return None
        try:
            vectors = await self._embedder.embed([text], "query")
        except GMIError as error:
            warnings.append(
                f"RECALL_WITHOUT_VECTORS: the embedding model {self._embedder.model} did not "
                f"answer, words alone were searched: {error.message}"
            )
            return None
        found: NDArray[np.float32] = vectors[0]
        return found

    async def _spread(
        self,
        pool: _Pool,
        indexes: Sequence[ScopeIndex],
        query: RecallQuery,
    ) -> None:
        """Let the best memories wake those linked with them, and score all of them anew."""
        settings = query.settings.spreading
        if not settings.enabled or not pool.traces:
            return
        seeds = [pool.traces[i].id for i in ranked(pool.score, settings.seeds)]
        links = await self._links(seeds, settings.max_depth)
        if not links:
            return

        def rescore() -> None:
            held = _reachable(links, indexes, query.where)
            near: dict[str, list[tuple[str, float]]] = {}
            for link in links:
                if link.a in held and link.b in held:
                    near.setdefault(link.a, []).append((link.b, link.weight))
                    near.setdefault(link.b, []).append((link.a, link.weight))
            woken = activations(lambda id_: near.get(id_, ()), seeds, settings)
            pool.wake(woken, held, query)

        await self._cache.run(rescore)

    async def _links(self, seeds: Sequence[str], depth: int) -> list[Link]:
        """The links within ``depth`` of the seeds."""
        found: dict[tuple[str, str, str], Link] = {}
        seen: set[str] = set()
        frontier = list(seeds)
        for _ in range(depth):
            if not frontier or len(seen) >= MAX_LINKED:
                break
            seen.update(frontier)
            links = await self._store.links(frontier)
            found |= {(link.a, link.b, link.kind): link for link in links}
            ends = {end for link in links for end in (link.a, link.b)}
            frontier = sorted(ends - seen)[: MAX_LINKED - len(seen)]
        return list(found.values())

    async def _reranked(
        self,
        reranker: Reranker,
        pool: _Pool,
        order: NDArray[np.intp],
        query: RecallQuery,
        warnings: list[str],
    ) -> NDArray[np.intp]:
        best = order[: query.settings.top_k * 2]
        try:
            says = await reranker.rerank(query.text, [pool.traces[i].content for i in best])
            given = np.clip(np.asarray(says, dtype=np.float64), 0.0, 1.0)
            if given.shape != best.shape or not np.isfinite(given).all():
                raise ValueError(f"it gave {len(says)} numbers for {len(best)} texts")
        except Exception as error:
            # A host's own code: whatever it raises, the recall goes on in its own order.
            warnings.append(f"RECALL_WITHOUT_RERANKER: the reranker failed: {error}")
            return order
        pool.score[best] = COGNITIVE_SHARE * pool.score[best] + RERANKER_SHARE * given
        return np.concatenate([best[ranked(pool.score[best], len(best))], order[len(best) :]])


@dataclass(slots=True)
class _Pool:
    """Candidates in arrays of one length."""

    found: Candidates
    traces: list[Trace]
    relevance: NDArray[np.float64]
    activation: NDArray[np.float64]
    score: NDArray[np.float64]

    @classmethod
    def of(cls, found: Candidates, query: RecallQuery) -> _Pool:
        usable = [i for i, trace in enumerate(found.traces) if _usable(trace, query)]
        traces = [found.traces[i] for i in usable]
        relevance = np.asarray(found.relevance, dtype=np.float64)[usable]
        pool = cls(found, traces, relevance, np.zeros(len(traces)), np.zeros(len(traces)))
        pool.rate(query)
        return pool

    def rate(self, query: RecallQuery) -> None:
        self.score = scores(
            Columns.of(self.traces),
            self.relevance,
            query.mood,
            query.now,
            query.settings.weights,
            self.activation,
        )

    def wake(
        self,
        woken: dict[str, float],
        held: dict[str, ScopeIndex],
        query: RecallQuery,
    ) -> None:
        """Add the memories that were woken, and score all of them anew."""
        known = {trace.id for trace in self.traces}
        new = [id_ for id_ in woken if id_ not in known and id_ in held]
        traces = [trace for id_ in new if (trace := held[id_].get(id_)) is not None]
        traces = [trace for trace in traces if _usable(trace, query)]
        near = [self.found.relevance_of(trace.id) for trace in traces]
        self.traces = [*self.traces, *traces]
        self.relevance = np.concatenate([self.relevance, np.asarray(near, dtype=np.float64)])
        self.activation = np.array([woken.get(trace.id, 0.0) for trace in self.traces])
        self.rate(query)


def _reachable(
    links: Sequence[Link], indexes: Sequence[ScopeIndex], where: SearchFilter
) -> dict[str, ScopeIndex]:
    """The ends of links that the query may see: activation does not cross its scopes or path."""
    ends = {end for link in links for end in (link.a, link.b)}
    found: dict[str, ScopeIndex] = {}
    for index in indexes:
        rows = {id_: row for id_ in ends if (row := index.row(id_)) is not None}
        if rows:
            allowed = index.mask(where)
            found |= {id_: index for id_, row in rows.items() if allowed[row]}
    return found


def _collect(
    pool: _Pool,
    order: NDArray[np.intp],
    indexes: Sequence[ScopeIndex],
    query: RecallQuery,
    warnings: list[str],
) -> Recollection:
    settings, now = query.settings, query.now
    best = [int(i) for i in order[: settings.top_k]]
    rest = [int(i) for i in order[settings.top_k :]]
    faint = partial_recalls(
        [pool.traces[i] for i in best], [float(pool.relevance[i]) for i in best], query.mood, now
    )
    items = [
        Recalled(
            pool.traces[i],
            float(pool.score[i]),
            float(pool.relevance[i]),
            float(pool.activation[i]),
        )
        for i in best
    ]
    result = Recollection(items=items, half=faint, warnings=warnings)
    mechanisms = settings.mechanisms
    if mechanisms is None:
        return result
    returned = {item.trace.id for item in items}
    if mechanisms.retrieval_induced_forgetting.enabled:
        alike = _alike(pool, best[:ACCESSED], rest, indexes)
        threshold = mechanisms.retrieval_induced_forgetting.similarity_threshold
        most = mechanisms.retrieval_induced_forgetting.max_suppressions_per_query
        near = {id_: value for id_, value in alike.items() if value >= threshold}
        result = replace(result, suppressed=dict(list(near.items())[:most]))
    if mechanisms.feeling_of_knowing.enabled and items:
        almost = [
            Near(pool.traces[i], float(pool.score[i]), float(pool.relevance[i])) for i in rest
        ]
        cutoff = min(item.score for item in items)
        known = entities_of(query.text)
        felt = feelings(almost, known, cutoff, now, mechanisms.feeling_of_knowing)
        result = replace(result, feelings=felt)
    if mechanisms.involuntary_recall.enabled:
        chance = seeded("involuntary", query.seed)
        rule = mechanisms.involuntary_recall
        came_up = involuntary(_old_enough(indexes, query, rule), returned, now, chance, rule)
        result = replace(result, involuntary=came_up)
    return result


def _usable(trace: Trace, query: RecallQuery) -> bool:
    """Whether the memory may be used for what the recall is for."""
    purpose = query.settings.purpose
    return purpose == "any" or policy_of(trace.source, trace.policy).allows(purpose)


def _old_enough(
    indexes: Sequence[ScopeIndex], query: RecallQuery, settings: InvoluntaryRecall
) -> Iterator[Trace]:
    """Memories that could come up by themselves; of many, some that are drawn from all."""
    found: list[tuple[ScopeIndex, NDArray[np.intp]]] = []
    for index in indexes:
        allowed = index.mask(query.where)
        allowed &= index.created_at < query.now - settings.min_age_days * DAY
        allowed &= index.strength >= settings.min_strength
        found.append((index, np.flatnonzero(allowed)))
    share = min(1.0, MAX_INVOLUNTARY / max(1, sum(len(rows) for _, rows in found)))
    chance = seeded("involuntary memories", query.seed)
    factor, shift = np.uint32(chance.getrandbits(32) | 1), np.uint32(chance.getrandbits(32))
    for index, rows in found:
        lots = index.lot[rows] * factor + shift
        drawn = np.flatnonzero(lots <= share * (2**32 - 1))
        for place in drawn[np.argsort(lots[drawn], kind="stable")]:
            trace = index.trace(int(rows[place]))
            if _usable(trace, query):
                yield trace


def _alike(
    pool: _Pool, returned: Sequence[int], rest: Sequence[int], indexes: Sequence[ScopeIndex]
) -> dict[str, float]:
    """How like each memory of ``rest`` is to the most similar one that was remembered."""
    kept = [_Meaning(pool.traces[i], indexes) for i in returned]
    model = indexes[0].model if indexes else None
    found: dict[str, float] = {}
    for i in rest:
        mine = _Meaning(pool.traces[i], indexes)
        found[mine.id] = max((mine.likeness_to(other, model) for other in kept), default=0.0)
    return found


class _Meaning:
    """What a memory is compared by: its vector, or where one has none, its words."""

    def __init__(self, trace: Trace, indexes: Sequence[ScopeIndex]) -> None:
        self.id = trace.id
        self._content = trace.content
        self._vector: NDArray[np.float32] | None = None
        for index in indexes:
            row = index.row(trace.id)
            if row is not None and index.vectors is not None:
                self._vector = index.vectors.get(row)

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(tokenize(self._content))

    def likeness_to(self, other: _Meaning, model: str | None) -> float:
        """The likeness of the vectors, or the share of the words that both have."""
        mine, theirs = self._vector, other._vector
        if mine is not None and theirs is not None and len(mine) == len(theirs):
            return likeness(float(mine @ theirs), model)
        either = self.words | other.words
        return len(self.words & other.words) / len(either) if either else 0.0
