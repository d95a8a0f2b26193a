"""How well a memory answers a question: one score from six parts.

The parts are similarity to the question, strength, accord with the mood (mood-congruent recall,
Bower 1981), recency, activation along links, and the memory's own importance. The weights are
conventions. Everything comes for one memory and for many at once, with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...personas.errors import ValidationError
from ...personas.memory import ScoreWeights
from .decay import strength_at, strengths
from .ranges import finite, within
from .traces import DAY, Affect, Trace

Floats = NDArray[np.float64]

RECENCY_SCALE = DAY
PARTIAL_SIMILARITY = 0.6
PARTIAL_STRENGTH = 0.3
PARTIAL_CONFIDENCE = 0.4
PARTIAL_CHARS = 100
PARTIAL_CUES = 3


@dataclass(frozen=True, slots=True)
class Score:
    """A memory's score and what it is made of.

    Attributes:
        total: In [0, 1].
        similarity: To the question, as given.
        strength: At present.
        emotional_congruence: In [0, 1]; 0 where mood and memory do not agree.
        recency: 1 at the last access, 1/e a day later.
        graph_activation: Along links.
        importance: The memory's own.
    """

    total: float
    similarity: float
    strength: float
    emotional_congruence: float
    recency: float
    graph_activation: float
    importance: float


@dataclass(frozen=True, slots=True)
class Columns:
    """What the score needs of many memories, one array of length n for each part."""

    strength: Floats
    stability: Floats
    last_access: Floats
    valence: Floats
    importance: Floats

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> Columns:
        """The columns of these memories, in their order."""
        rows = [
            (t.strength, t.stability, t.last_access, t.affect.valence, t.importance) for t in traces
        ]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 5)
        return cls(*(np.ascontiguousarray(column) for column in table.T))


@dataclass(frozen=True, slots=True)
class PartialRecall:
    """A memory that fits the question but is faint or doubtful.

    Attributes:
        trace_id: Which.
        confidence: That it is the right one, in [0, 1].
        content: Its beginning.
        cues: What could bring the rest back.
    """

    trace_id: str
    confidence: float
    content: str
    cues: tuple[str, ...]


def recency(elapsed: float) -> float:
    """How recent something is after so many seconds: 1 at once, 1/e after a day.

    Raises:
        ValidationError: The time is not finite.
    """
    return math.exp(-max(0.0, finite("elapsed", elapsed)) / RECENCY_SCALE)


def emotional_congruence(mood_valence: float, trace_valence: float) -> float:
    """How far mood and memory agree, in [0, 1]; only their valence counts.

    Raises:
        ValidationError: A valence is not finite.
    """
    mood = within("mood valence", mood_valence, -1.0, 1.0)
    return max(0.0, mood * within("trace valence", trace_valence, -1.0, 1.0))


def score(
    trace: Trace,
    similarity: float,
    mood: Affect,
    now: float,
    weights: ScoreWeights,
    activation: float = 0.0,
    *,
    neutral_mood: bool = False,
) -> Score:
    """The score of one memory.

    Args:
        trace: The memory.
        similarity: Its relevance to the question, in [-1, 1].
        mood: The present mood.
        now: Seconds since the epoch.
        weights: Of the parts.
        activation: Along links, in [0, 1].
        neutral_mood: Whether the mood is left out of account.

    Raises:
        ValidationError: A number is not finite.
    """
    similarity = within("similarity", similarity, -1.0, 1.0)
    activation = within("activation", activation, 0.0, 1.0)
    strength = strength_at(trace, now)
    congruence = 0.0
    if not neutral_mood:
        congruence = emotional_congruence(mood.valence, trace.affect.valence)
    recent = recency(now - trace.last_access)
    importance = within("importance", trace.importance, 0.0, 1.0)
    total = (
        weights.similarity * similarity
        + weights.strength * strength
        + weights.emotional_congruence * congruence
        + weights.recency * recent
        + weights.graph_activation * activation
        + weights.importance * importance
    )
    return Score(
        total=min(1.0, max(0.0, total)),
        similarity=similarity,
        strength=strength,
        emotional_congruence=congruence,
        recency=recent,
        graph_activation=activation,
        importance=importance,
    )


def scores(
    columns: Columns,
    similarity: Floats,
    mood: Affect,
    now: float,
    weights: ScoreWeights,
    activation: Floats | None = None,
    *,
    neutral_mood: bool = False,
) -> Floats:
    """The scores of many memories, in their order; the arguments are those of :func:`score`.

    Raises:
        ValidationError: A number is not finite, or the arrays differ in length.
    """
    similarity = _column("similarity", similarity, len(columns.strength), -1.0)
    total = weights.similarity * similarity
    total += weights.strength * strengths(
        columns.strength, columns.stability, columns.last_access, now
    )
    mood_valence = within("mood valence", mood.valence, -1.0, 1.0)
    if not neutral_mood:
        congruence = np.maximum(0.0, mood_valence * np.clip(columns.valence, -1.0, 1.0))
        total += weights.emotional_congruence * congruence
    elapsed = np.maximum(0.0, now - columns.last_access)
    total += weights.recency * np.exp(-elapsed / RECENCY_SCALE)
    if activation is not None:
        total += weights.graph_activation * _column("activation", activation, len(total), 0.0)
    total += weights.importance * np.clip(columns.importance, 0.0, 1.0)
    if not np.isfinite(total).all():
        raise ValidationError("A memory holds a number that is not finite; correct or erase it.")
    return np.clip(total, 0.0, 1.0)


def ranked(values: Floats, top_k: int) -> NDArray[np.intp]:
    """The places of the ``top_k`` greatest values, greatest first, equal ones in their order."""
    return np.argsort(-values, kind="stable")[:top_k]


def partial_recalls(
    traces: Sequence[Trace], similarities: Sequence[float], mood: Affect | None, now: float
) -> list[PartialRecall]:
    """The memories that fit well but are faint or doubtful, in their order.

    Args:
        traces: Candidates.
        similarities: Of each to the question.
        mood: The present mood; a memory in accord with it is felt more surely.
        now: Seconds since the epoch.

    Raises:
        ValidationError: A number is not finite.
    """
    found: list[PartialRecall] = []
    for trace, similarity in zip(traces, similarities, strict=True):
        if finite("similarity", similarity) <= PARTIAL_SIMILARITY:
            continue
        faint = strength_at(trace, now) < PARTIAL_STRENGTH
        if not faint and trace.confidence >= PARTIAL_CONFIDENCE:
            continue
        confidence = min(trace.confidence, similarity / 2.0)
        if mood is not None:
            confidence *= 1.0 + 0.25 * emotional_congruence(mood.valence, trace.affect.valence)
        content = trace.content
        if len(content) > PARTIAL_CHARS:
            content = content[:PARTIAL_CHARS] + "..."
        cues = tuple(dict.fromkeys((*trace.entities, *trace.tags)))[:PARTIAL_CUES]
        found.append(PartialRecall(trace.id, min(1.0, confidence), content, cues))
    return found


def _column(name: str, values: Floats, length: int, low: float) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (length,):
        raise ValidationError(
            f"{name} has the shape {array.shape}; give one number for each of {length} memories."
        )
    if not np.isfinite(array).all():
        raise ValidationError(f"{name} holds a number that is not finite; give finite ones.")
    return np.clip(array, low, 1.0)
