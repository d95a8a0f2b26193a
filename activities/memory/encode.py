"""Encoding: a done turn becomes memories, and what it recalled changes those that stand.

Both happen in one transaction under a marker of the turn, so that a retry adds nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...personas.errors import GMIError, StoreError
from ...personas.memory import MechanismSettings, MemorySettings
from ...workflows.memory import user_scope_id
from ...workflows.steps import At
from ..embedders.embedder import Embedder, EmbedderError
from ..sentiment import valence
from .cache import ScopeCache, vector_of
from .candidates import passage
from .clusters import centroids
from .decay import after_retrieval, interference, strength_at
from .encoding import encode
from .entities import entities_of
from .features import attention_features
from .index import ScopeIndex
from .likeness import cosine_at, likeness
from .mechanisms.reconsolidation import reconsolidated
from .mechanisms.retrieval_induced_forgetting import suppressed
from .mechanisms.schema_encoding import fit
from .store import FinishedTurn, Link, Marker, MemoryStore, Vector, Writing
from .traces import Affect, Scope, SourceType, Trace, TraceType, trace_id

logger = logging.getLogger(__name__)

MAX_CONTENT = 4000
"""Characters of a trace; the whole message stays with its turn."""

SIMILAR = 20
"""Standing memories that a new one is compared with."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose session a turn belongs to.

    Attributes:
        user_id: The user, or ``""``: then what was said stays with the session.
        persona_id: The persona that answered.
        domain: What the conversation is about, or ``""``.
    """

    user_id: str
    org: str
    persona_id: str
    domain: str = ""

    def user_scope(self, session: str) -> Scope:
        """Where what the user said belongs."""
        return Scope("user", user_scope_id(self.user_id or session, self.org))


@dataclass(frozen=True, slots=True)
class Happened:
    """That a turn was an event, not something that was said.

    Attributes:
        type: What kind of event.
        source: Who or what it came from.
        importance: How much it moved the persona, in [0, 1].
    """

    type: str
    source: str
    importance: float


@dataclass(frozen=True, slots=True)
class Moment:
    """What an encoding needs to know of the mind.

    Attributes:
        settings: The persona's, its mechanisms scaled by its traits.
        traits: HEXACO values in [0, 1].
        affect: What the mind felt.
        mood: The mood's word.
        happened: The turn was an event.
    """

    settings: MemorySettings
    traits: Mapping[str, float]
    affect: Affect
    mood: str = "neutral"
    happened: Happened | None = None


@dataclass(frozen=True, slots=True)
class EncodedTurn:
    """What an encoding did.

    Attributes:
        ids: The turn's traces, whether this attempt wrote them or an earlier one.
        applied: Whether this attempt wrote them.
        changed: Traces that changed by having been recalled, suppressed or resembled.
        links: Links that grew.
    """

    ids: list[str] = field(default_factory=list)
    applied: bool = False
    changed: int = 0
    links: int = 0
    warnings: list[str] = field(default_factory=list)


class Encoder:
    """Encodes turns.

    Args:
        store: The memories.
        cache: The scopes that this worker holds.
        embedder: Makes the vectors; without one, words alone find the traces.
    """

    def __init__(
        self, store: MemoryStore, cache: ScopeCache, embedder: Embedder | None = None
    ) -> None:
        self._store = store
        self._cache = cache
        self._embedder = embedder

    async def encode(
        self, at: At, turn: FinishedTurn, owner: Owner, moment: Moment, *, patient: bool = True
    ) -> EncodedTurn:
        """Write the turn's traces and the effects of its recall, once.

        Args:
            at: Names the session and the turn.
            turn: The turn.
            owner: Whose it is.
            moment: The mind's state.
            patient: Raise when the embedding model is down, so that the caller tries again. The
                traces are written all the same, and their words find them meanwhile. Without it
                the model is not asked at all: nobody waits for it, and a consolidation embeds the
                turn later.

        Raises:
            EmbedderDownError: The embedding model cannot be reached, and ``patient`` is on.
            StoreError: The store does not answer.
        """
        drafts = drafted(turn, owner, moment)
        warnings: list[str] = []
        down: EmbedderError | None = None
        vectors: dict[str, NDArray[np.float32]] = {}
        try:
            if patient:
                vectors = await self._vectors(drafts, turn.before)
            elif self._embedder is not None:
                warnings.append(
                    "ENCODED_WITHOUT_VECTORS: the embedding model was not waited for; a "
                    "consolidation embeds the turn later."
                )
        except EmbedderError as error:
            down = error
            warnings.append(
                f"ENCODED_WITHOUT_VECTORS: {error.message}; a consolidation embeds the turn later."
            )
        new, weakened = await self._compared(drafts, vectors, turn, owner, moment, warnings)
        context = turn.context or {}
        accessed = [item["id"] for item in context.get("recalled", []) if item.get("accessed")]
        held: dict[str, float] = dict(context.get("suppressed", {}))
        effects = _Effects(accessed, held, weakened, moment, turn.ended_at)
        links = [
            Link(a, b, "co_recalled", moment.settings.spreading.hebbian_learning_rate)
            for a, b in combinations(sorted(set(accessed)), 2)
        ]
        kept = {id_: self._kept(vector) for id_, vector in vectors.items()}
        words = {trace.id: trace.content for trace in drafts}
        applied = await self._store.write(
            Writing(
                now=turn.ended_at,
                marker=Marker(at, "encode"),
                new=new,
                vectors=kept,
                words=words,
                touched=sorted({*accessed, *held, *weakened}),
                change=effects.apply,
                links=links,
                replaces=(turn.branch, turn.depth),
            )
        )
        if not applied and kept:
            # An earlier attempt wrote the words while the embedding model was down.
            await self._store.write(Writing(now=turn.ended_at, vectors=kept, words=words))
        if down is not None and down.retryable and patient:
            raise down
        return EncodedTurn(
            ids=[trace.id for trace in drafts],
            applied=applied,
            changed=effects.changed if applied else 0,
            links=len(links) if applied else 0,
            warnings=warnings,
        )

    async def _compared(
        self,
        drafts: list[Trace],
        vectors: Mapping[str, NDArray[np.float32]],
        turn: FinishedTurn,
        owner: Owner,
        moment: Moment,
        warnings: list[str],
    ) -> tuple[list[Trace], dict[str, float]]:
        """The traces as what stands already leaves them, and what it loses to them."""
        if self._embedder is None or not vectors:
            return drafts, {}
        model = self._embedder.model
        try:
            marks = await self._store.consolidated(owner.persona_id, owner.user_scope(turn.session))
            known = centroids(marks, model)
            new = [fitted(trace, vectors.get(trace.id), known, moment, model) for trace in drafts]
            return interfered(new, await self._rivals(new, vectors, model), turn.ended_at)
        except StoreError:
            raise
        except Exception as error:
            # What was said is kept, whatever it cannot be compared with.
            why = error.message if isinstance(error, GMIError) else type(error).__name__
            logger.exception("A turn was encoded without its likes")
            warnings.append(f"ENCODED_ALONE: the turn was compared with no other memory: {why}")
            return drafts, {}

    def _kept(self, vector: NDArray[np.float32]) -> Vector:
        assert self._embedder is not None
        return vector_of(self._embedder.model, vector)

    async def _vectors(
        self, traces: Sequence[Trace], before: str
    ) -> dict[str, NDArray[np.float32]]:
        if self._embedder is None or not traces:
            return {}
        said = [replace(traces[0], content=before) if before else None, *traces]
        texts = [passage(trace, said[i]) for i, trace in enumerate(traces)]
        vectors = await self._embedder.embed(texts, "passage")
        return {trace.id: vectors[i] for i, trace in enumerate(traces)}

    async def _rivals(
        self, new: Sequence[Trace], vectors: Mapping[str, NDArray[np.float32]], model: str
    ) -> dict[str, list[tuple[Trace, float]]]:
        """For each new trace the standing ones that are most like it."""
        found: dict[str, list[tuple[Trace, float]]] = {}
        own = {trace.id for trace in new}
        for trace in new:
            vector = vectors.get(trace.id)
            if vector is None:
                continue
            for index in await self._cache.load([trace.scope], model, len(vector)):
                alike = partial(_most_alike, index, vector, own)
                found[trace.id] = await self._cache.run(alike)
        return found


class _Effects:
    """What recalling and being resembled does to traces, as they stand in the transaction."""

    def __init__(
        self,
        accessed: Sequence[str],
        held: Mapping[str, float],
        weakened: Mapping[str, float],
        moment: Moment,
        now: float,
    ) -> None:
        self._accessed = accessed
        self._held = held
        self._weakened = weakened
        self._moment = moment
        self._now = now
        self.changed = 0

    def apply(self, standing: Mapping[str, Trace]) -> list[Trace]:
        mechanisms = self._moment.settings.mechanisms
        changed: dict[str, Trace] = {}
        for id_ in self._accessed:
            if id_ in standing:
                changed[id_] = self._recalled(standing[id_], mechanisms)
        if mechanisms is not None and mechanisms.retrieval_induced_forgetting.enabled:
            others = [standing[id_] for id_ in self._held if id_ in standing]
            rule = mechanisms.retrieval_induced_forgetting
            for trace in suppressed(others, self._accessed, self._held, rule):
                changed.setdefault(trace.id, trace)
        for id_, lost in self._weakened.items():
            if id_ in standing:
                trace = changed.get(id_, standing[id_])
                changed[id_] = replace(trace, strength=max(0.0, trace.strength - lost))
        self.changed = len(changed)
        return list(changed.values())

    def _recalled(self, trace: Trace, mechanisms: MechanismSettings | None) -> Trace:
        trace = after_retrieval(trace, self._now)
        if mechanisms is None or not mechanisms.reconsolidation.enabled:
            return trace
        moved = reconsolidated(trace, self._moment.affect, mechanisms.reconsolidation)
        return trace if moved is None else moved


def drafted(turn: FinishedTurn, owner: Owner, moment: Moment) -> list[Trace]:
    """The traces of a turn: what the user said under the user, the reply under the thread."""
    found: list[Trace] = []
    thread = Scope("thread", turn.session)
    happened = moment.happened
    parts: list[tuple[str, str, Scope, TraceType, SourceType]] = [
        (
            "user" if happened is None else "event",
            turn.said,
            owner.user_scope(turn.session),
            "episodic",
            "user_statement" if happened is None else "observation",
        ),
        ("assistant", turn.answered, thread, "semantic", "agent_inference"),
    ]
    for role, text, scope, type_, source in parts:
        content = text.strip()
        if not content:
            continue
        if len(content) > MAX_CONTENT:
            content = content[: MAX_CONTENT - 1] + "…"
        encoding = encode(
            moment.affect,
            valence(content),
            attention_features(content),
            moment.traits,
            base_stability=moment.settings.decay.base_stability,
        )
        found.append(
            Trace(
                id=trace_id(turn.session, turn.turn, role),
                scope=scope,
                content=content,
                type=type_,
                source=source,
                session=turn.session,
                turn=turn.turn,
                branch=turn.branch,
                depth=turn.depth,
                role=role,
                persona_id=owner.persona_id,
                tags=tags_of(role, owner, happened),
                entities=tuple(entities_of(content)),
                affect=encoding.affect,
                intensity=encoding.intensity,
                mood=moment.mood,
                strength=encoding.strength,
                stability=encoding.stability,
                importance=(
                    encoding.importance
                    if happened is None
                    else max(encoding.importance, happened.importance)
                ),
                source_id=happened.source if happened is not None else "",
                last_access=turn.ended_at,
                created_at=turn.ended_at,
                updated_at=turn.ended_at,
                mechanisms={"flashbulb": True} if encoding.flashbulb else {},
            )
        )
    return found


def tags_of(role: str, owner: Owner, happened: Happened | None) -> tuple[str, ...]:
    """A trace's tags, each once: who said it, to whom, about what, and what event it was."""
    named = [role, owner.persona_id, owner.user_id, owner.domain]
    if happened is not None:
        named += [happened.type, happened.source]
    return tuple(dict.fromkeys(tag.strip() for tag in named if tag.strip()))


def fitted(
    trace: Trace,
    vector: NDArray[np.float32] | None,
    known: Mapping[str, NDArray[np.float32]],
    moment: Moment,
    model: str | None,
) -> Trace:
    """The trace as schema encoding leaves it: what is new is encoded stronger than the known."""
    mechanisms = moment.settings.mechanisms
    if mechanisms is None or not mechanisms.schema_encoding.enabled:
        return trace
    if vector is None:
        return trace
    known = {id_: centre for id_, centre in known.items() if len(centre) == len(vector)}
    if not known:
        return trace
    settings = mechanisms.schema_encoding
    least = cosine_at(settings.cluster_similarity_threshold, model)
    settings = settings.model_copy(update={"cluster_similarity_threshold": least})
    found = fit(vector, known, trace.strength, settings)
    noted = {"congruent": found.congruent, "cluster": found.cluster}
    return replace(
        trace, strength=found.strength, mechanisms={**trace.mechanisms, "schema_encoding": noted}
    )


def interfered(
    new: Sequence[Trace], rivals: Mapping[str, Sequence[tuple[Trace, float]]], now: float
) -> tuple[list[Trace], dict[str, float]]:
    """New traces and what those like them lose to each other.

    Returns:
        The new traces, and the strength that each standing one loses.
    """
    weakened: dict[str, float] = {}
    changed: list[Trace] = []
    for trace in new:
        near = [
            (other.id, similarity, strength_at(other, now))
            for other, similarity in rivals.get(trace.id, ())
        ]
        loss = interference(near)
        for id_, lost in loss.old.items():
            weakened[id_] = weakened.get(id_, 0.0) + lost
        changed.append(replace(trace, strength=max(0.0, trace.strength - loss.new)))
    return changed, weakened


def _most_alike(
    index: ScopeIndex, vector: NDArray[np.float32], own: Collection[str]
) -> list[tuple[Trace, float]]:
    near = likeness(index.similarity(vector), index.model)
    best = [int(row) for row in np.argsort(-near, kind="stable")[: SIMILAR + len(own)]]
    active = index.active
    found = [(index.trace(row), float(near[row])) for row in best if active[row]]
    return [pair for pair in found if pair[0].id not in own][:SIMILAR]
