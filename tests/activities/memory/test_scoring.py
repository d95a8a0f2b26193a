from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gmi.activities.memory.scoring import (
    Columns,
    emotional_congruence,
    partial_recalls,
    ranked,
    recency,
    score,
    scores,
)
from gmi.activities.memory.traces import DAY, HOUR, Affect, Trace
from gmi.personas.errors import ValidationError
from gmi.personas.memory import ScoreWeights

from .making import NOW, affect, trace
from .rows import rows

WEIGHTS = ScoreWeights()
MEMORIES = rows("scoring", "memories")
SIMILARITY = np.array([row["similarity"] for row in MEMORIES])
ACTIVATION = np.array([row["activation"] for row in MEMORIES], dtype=float)


def memories() -> list[Trace]:
    return [
        trace(
            row["id"],
            strength=row["strength"],
            stability=row["stability"],
            last_access=NOW - row["accessed_ago"],
            affect=Affect(valence=row["valence"]),
            importance=row["importance"],
        )
        for row in MEMORIES
    ]


@pytest.mark.parametrize("row", rows("scoring", "recency"))
def test_recency_falls_to_a_third_in_a_day(row: dict[str, Any]) -> None:
    assert recency(row["elapsed"]) == pytest.approx(row["recency"], abs=1e-12)


@pytest.mark.parametrize("row", rows("scoring", "congruence"))
def test_mood_and_memory_agree_by_their_valence(row: dict[str, Any]) -> None:
    found = emotional_congruence(row["mood"], row["trace"])
    assert found == pytest.approx(row["congruence"], abs=1e-12)


@pytest.mark.parametrize("row", rows("scoring", "ranking"))
def test_memories_are_ranked_by_six_parts(row: dict[str, Any]) -> None:
    now = NOW + row["later"]
    mood = affect(row["mood"])
    neutral = row["neutral_mood"]
    found = scores(
        Columns.of(memories()), SIMILARITY, mood, now, WEIGHTS, ACTIVATION, neutral_mood=neutral
    )
    places = ranked(found, 20)
    assert [MEMORIES[place]["id"] for place in places] == [line[0] for line in row["ranked"]]
    for place, line in zip(places, row["ranked"], strict=True):
        one = score(
            memories()[place],
            float(SIMILARITY[place]),
            mood,
            now,
            WEIGHTS,
            float(ACTIVATION[place]),
            neutral_mood=neutral,
        )
        assert found[place] == pytest.approx(line[1], abs=1e-12)
        assert [
            one.total,
            one.similarity,
            one.strength,
            one.emotional_congruence,
            one.recency,
            one.graph_activation,
            one.importance,
        ] == pytest.approx(line[1:], abs=1e-12)


def test_other_weights_are_kept() -> None:
    alone = ScoreWeights(
        similarity=1,
        strength=0,
        emotional_congruence=0,
        recency=0,
        graph_activation=0,
        importance=0,
    )
    found = scores(Columns.of(memories()), SIMILARITY, Affect(), NOW, alone, ACTIVATION)
    told = [(MEMORIES[place]["id"], found[place]) for place in ranked(found, 20)]
    assert told == [(row["id"], row["total"]) for row in rows("scoring", "similarity_alone")]


def test_the_memorys_own_importance_counts_and_not_its_sources_confidence() -> None:
    great = trace(importance=0.9, confidence=0.1)
    small = trace(importance=0.1, confidence=0.9)
    better = score(great, 0.5, Affect(), NOW, WEIGHTS)
    worse = score(small, 0.5, Affect(), NOW, WEIGHTS)
    assert better.importance == 0.9
    assert better.total - worse.total == pytest.approx(0.05 * 0.8)


def test_activation_lifts_a_memory_over_another() -> None:
    columns = Columns.of([trace("a", strength=0.5), trace("b", strength=0.45)])
    similar = np.array([0.5, 0.5])
    before = scores(columns, similar, Affect(), NOW, WEIGHTS)
    after = scores(columns, similar, Affect(), NOW, WEIGHTS, np.array([0.0, 0.5]))
    assert ranked(before, 1).tolist() == [0]
    assert ranked(after, 1).tolist() == [1]


def test_equal_scores_keep_their_order_and_top_k_cuts() -> None:
    assert ranked(np.array([0.2, 0.7, 0.7, 0.1, 0.7]), 4).tolist() == [1, 2, 4, 0]
    assert ranked(np.array([]), 4).tolist() == []


def test_a_hundred_thousand_memories_score_as_one_does() -> None:
    count = 100_000
    chance = np.random.default_rng(7)
    columns = Columns(
        strength=chance.random(count),
        stability=chance.random(count) * 30 * DAY + 60,
        last_access=NOW - chance.random(count) * 3650 * DAY,
        valence=chance.random(count) * 2 - 1,
        importance=chance.random(count),
    )
    similar = chance.random(count)
    mood = Affect(valence=0.4)
    found = scores(columns, similar, mood, NOW, WEIGHTS)
    for place in (0, 1, count // 2, count - 1):
        one = trace(
            strength=float(columns.strength[place]),
            stability=float(columns.stability[place]),
            last_access=float(columns.last_access[place]),
            affect=Affect(valence=float(columns.valence[place])),
            importance=float(columns.importance[place]),
        )
        assert score(one, float(similar[place]), mood, NOW, WEIGHTS).total == pytest.approx(
            float(found[place]), abs=1e-12
        )


def test_a_similarity_in_single_precision_is_taken() -> None:
    single = score(trace(), np.float32(0.5), Affect(), NOW, WEIGHTS)  # type: ignore[arg-type]
    assert single == score(trace(), 0.5, Affect(), NOW, WEIGHTS)
    assert type(single.total) is float


def test_numbers_that_are_not_finite_and_wrong_lengths_are_refused() -> None:
    columns = Columns.of(memories())
    with pytest.raises(ValidationError, match="similarity"):
        scores(columns, np.array([0.1, 0.2, math.nan, 0.3]), Affect(), NOW, WEIGHTS)
    with pytest.raises(ValidationError, match="shape"):
        scores(columns, np.array([0.1]), Affect(), NOW, WEIGHTS)
    with pytest.raises(ValidationError, match="valence"):
        scores(columns, SIMILARITY, Affect(valence=math.inf), NOW, WEIGHTS)
    broken = Columns.of([trace(strength=math.nan)])
    with pytest.raises(ValidationError, match="not finite"):
        scores(broken, np.array([0.5]), Affect(), NOW, WEIGHTS)
    with pytest.raises(ValidationError, match="activation"):
        score(trace(), 0.5, Affect(), NOW, WEIGHTS, math.nan)


@pytest.mark.parametrize("row", rows("scoring", "partial"))
def test_a_faint_or_doubtful_memory_is_half_recalled(row: dict[str, Any]) -> None:
    candidates = [
        trace("a", content="q" * 150, strength=0.2, affect=Affect(0.8), entities=("x", "y", "z")),
        trace("b", strength=0.9, confidence=0.3, affect=Affect(-0.8)),
        trace("strong", strength=0.3, confidence=0.4),
        trace("unlike", strength=0.2),
    ]
    mood = None if row["mood_valence"] is None else Affect(valence=row["mood_valence"])
    found = partial_recalls(candidates, [0.9, 0.9, 0.9, 0.6], mood, NOW)
    assert {partial.trace_id: partial.confidence for partial in found} == pytest.approx(
        row["confidences"]
    )
    assert found[0].content == "q" * 100 + "..."
    assert found[0].cues == ("x", "y", "z")
    assert found[1].content == "the cat sat"
    assert found[1].cues == ()


def test_a_memory_that_faded_is_half_recalled_later() -> None:
    memory = trace(strength=0.9, stability=HOUR)
    assert partial_recalls([memory], [0.8], None, NOW) == []
    assert len(partial_recalls([memory], [0.8], None, NOW + 2 * HOUR)) == 1
