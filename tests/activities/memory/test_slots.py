from __future__ import annotations

import math
from typing import Any

import pytest

from gmi.activities.memory.slots import WorkingMemory, capacity, decayed, focus, rehearse
from gmi.personas.errors import ValidationError

from .rows import rows


@pytest.mark.parametrize("row", rows("slots", "capacity"))
def test_a_character_holds_five_to_nine_things(row: dict[str, Any]) -> None:
    assert capacity(row["traits"], row["base"]) == row["capacity"]


def test_slots_are_filled_warmed_and_lost_step_by_step() -> None:
    memory = WorkingMemory(capacity=5)
    seen: dict[str, tuple[list[str], WorkingMemory]] = {}
    for key, activation in [("a", 0.9), ("b", 0.5), ("c", 0.3), ("d", 0.8), ("e", 0.6)]:
        memory = focus(memory, key, f"about {key}", activation)
    seen["filled"] = [], memory
    memory = focus(memory, "f", "about f")
    seen["one more"] = [], memory
    memory = focus(memory, "a", "about a")
    seen["again"] = [], memory
    memory = rehearse(memory, "b")
    for step in range(1, 7):
        memory, lost = decayed(memory)
        seen[f"faded {step}"] = [slot.key for slot in lost], memory
    for row in rows("slots", "steps"):
        lost_keys, found = seen[row["step"]]
        assert lost_keys == row["lost"]
        assert [slot.key for slot in found.slots] == [line[0] for line in row["slots"]]
        for slot, line in zip(found.slots, row["slots"], strict=True):
            assert [slot.activation, slot.rehearsals, slot.attention] == pytest.approx(line[1:])
    assert memory.utilization == pytest.approx(0.6)


def test_slots_show_their_content_and_how_vivid_it_is() -> None:
    memory = focus(WorkingMemory(), "t1", "Ada's cat is ill", 0.71)
    memory = focus(memory, "t2", "the flat in Lyon", 0.7)
    memory = focus(memory, "t3", "tea", 0.4)
    assert [slot.content for slot in memory.slots] == [
        "Ada's cat is ill",
        "the flat in Lyon",
        "tea",
    ]
    assert [slot.vividness for slot in memory.slots] == ["vivid", "present", "fading"]
    again = focus(memory, "t1", "Ada's cat is better")
    assert again.slots[0].content == "Ada's cat is better"
    assert rehearse(memory, "unknown") == memory


def test_the_oldest_of_equals_gives_way() -> None:
    memory = WorkingMemory(capacity=5)
    for key in "abcdef":
        memory = focus(memory, key, key)
    assert [slot.key for slot in memory.slots] == list("bcdef")


def test_activation_stays_in_its_range() -> None:
    memory = focus(WorkingMemory(), "a", "a", 7.0)
    assert rehearse(memory, "a").slots[0].activation == 1.0
    empty, lost = decayed(memory, 5.0)
    assert empty.slots == ()
    assert lost[0].activation == 0.0


def test_empty_contents_and_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValidationError, match="content"):
        focus(WorkingMemory(), "a", "  ")
    with pytest.raises(ValidationError, match="activation"):
        focus(WorkingMemory(), "a", "a", math.nan)
    with pytest.raises(ValidationError, match="amount"):
        decayed(WorkingMemory(), math.inf)
