from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gmi.activities.memory.decay import (
    LONGEST,
    after_retrieval,
    current_strength,
    interference,
    is_prunable,
    penalised,
    strength_at,
    strengths,
)
from gmi.activities.memory.traces import DAY, HOUR
from gmi.personas.errors import ValidationError

from .making import NOW, trace
from .rows import rows


def test_strength_fades_exponentially_in_every_row() -> None:
    found = rows("decay", "strength")
    assert len(found) == 144
    for row in found:
        now = current_strength(row["strength"], row["stability"], row["elapsed"])
        assert now == pytest.approx(row["now"], rel=1e-12, abs=1e-300), row


def test_many_memories_fade_as_each_of_them_does() -> None:
    found = rows("decay", "strength")
    table = np.array([[r["strength"], r["stability"], NOW - r["elapsed"]] for r in found])
    together = strengths(table[:, 0], table[:, 1], table[:, 2], NOW)
    assert together.tolist() == pytest.approx([r["now"] for r in found], rel=1e-12, abs=1e-300)


def test_a_memory_without_stability_is_forgotten_at_once() -> None:
    assert current_strength(0.9, 0.0, 0.0) == 0.9
    assert current_strength(0.9, 0.0, 1e-6) == 0.0
    zero = np.array([0.0, 0.0])
    found = strengths(np.array([0.9, 0.9]), zero, np.array([NOW, NOW - 1]), NOW)
    assert found.tolist() == [0.9, 0.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_refused(bad: float) -> None:
    for numbers in ((bad, HOUR, 1.0), (0.5, bad, 1.0), (0.5, HOUR, bad)):
        with pytest.raises(ValidationError, match="finite"):
            current_strength(*numbers)
    with pytest.raises(ValidationError, match="similarity"):
        interference([("a", bad, 1.0)])


def test_recalling_strengthens_as_every_row_says() -> None:
    found = rows("decay", "retrieval")
    assert len(found) == 122
    for row in found:
        before = trace(
            strength=row["strength"],
            stability=row["stability"],
            last_access=NOW - row["elapsed"],
            retrievals=row["retrievals"],
            accesses=row["retrievals"],
            intensity=row["intensity"],
            interval=row["interval"],
        )
        after = after_retrieval(before, NOW)
        assert after.strength == pytest.approx(row["new_strength"]), row
        assert after.stability == pytest.approx(row["new_stability"]), row
        assert after.retrievals == after.accesses == row["new_retrievals"]
        assert after.interval == row["new_interval"]
        assert after.next_at == NOW + row["next_in"]
        assert after.last_access == NOW
        assert before.strength == row["strength"], "the memory given is not changed"


def test_no_number_of_recalls_makes_a_memory_hold_less() -> None:
    # The growth formula alone falls below 1 from the eighth quick recall on.
    memory = trace(strength=1.0, stability=30 * DAY, retrievals=8)
    for _ in range(500):
        after = after_retrieval(memory, memory.last_access + 60)
        assert memory.stability <= after.stability <= LONGEST
        assert after.interval <= LONGEST
        memory = after
    assert math.isfinite(memory.next_at or math.nan)


def test_a_recall_told_of_late_does_not_move_the_last_access_back() -> None:
    later = after_retrieval(trace(last_access=NOW), NOW + DAY)
    late = after_retrieval(later, NOW + HOUR)
    assert late.last_access == NOW + DAY
    assert late.next_at == NOW + DAY + late.interval
    assert penalised(later, NOW).last_access == NOW + DAY


@pytest.mark.parametrize("row", rows("decay", "unused"))
def test_what_was_of_no_use_fades(row: dict[str, Any]) -> None:
    before = trace(
        strength=row["strength"],
        stability=row["stability"],
        last_access=NOW - row["elapsed"],
    )
    after = penalised(before, NOW)
    assert after.strength == pytest.approx(row["new_strength"], abs=1e-40)
    assert after.stability == row["new_stability"]
    assert after.last_access == NOW


@pytest.mark.parametrize("row", rows("decay", "interference"))
def test_similar_memories_get_into_each_others_way(row: dict[str, Any]) -> None:
    found = interference([tuple(similar) for similar in row["similar"]])
    assert found.old == pytest.approx(row["old"])
    assert found.new == pytest.approx(row["new"])


@pytest.mark.parametrize("row", rows("decay", "prunable"))
def test_the_faint_and_unfelt_is_given_up(row: dict[str, Any]) -> None:
    memory = trace(
        strength=row["strength"],
        stability=row["stability"],
        last_access=NOW - row["elapsed"],
        intensity=row["intensity"],
        active=row["active"],
    )
    assert is_prunable(memory, NOW) is row["prunable"]


def test_nothing_is_given_up_before_its_time() -> None:
    memory = trace(strength=0.5, stability=HOUR, last_access=NOW - 90 * DAY)
    assert is_prunable(memory, NOW, keep=90 * DAY)
    assert not is_prunable(memory, NOW - 1, keep=90 * DAY)
    assert strength_at(memory, NOW - 1) < 1e-100
