from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from gmi.activities.memory.mechanisms.feeling_of_knowing import Near, feelings
from gmi.activities.memory.mechanisms.involuntary_recall import involuntary, seeded
from gmi.activities.memory.mechanisms.reconsolidation import reconsolidated
from gmi.activities.memory.mechanisms.retrieval_induced_forgetting import suppressed
from gmi.activities.memory.modulation import modulated
from gmi.activities.memory.ranges import intensity
from gmi.activities.memory.traces import DAY, Affect, Trace
from gmi.personas.errors import ValidationError
from gmi.personas.memory import (
    FeelingOfKnowing,
    InvoluntaryRecall,
    MechanismSettings,
    Reconsolidation,
    RetrievalInducedForgetting,
)

from .making import NOW, affect, everybody, trace
from .rows import rows


def of(level: float | None) -> MechanismSettings:
    return modulated(MechanismSettings(), everybody(level))


@pytest.mark.parametrize("row", rows("mechanisms", "reconsolidation"))
def test_a_recalled_memory_drifts_to_the_mood_and_stops_at_the_limit(row: dict[str, Any]) -> None:
    settings = of(row["traits"]).reconsolidation
    memory = trace(affect=affect(row["before"]))
    for _ in range(row["recalls"]):
        after = reconsolidated(
            memory, affect(row["mood"]), settings, perspective=row["perspective"]
        )
        memory = after or memory
    found = memory.affect
    assert [found.valence, found.arousal, found.dominance] == pytest.approx(row["after"])
    assert memory.mechanisms["reconsolidation"] == {
        "drift": pytest.approx(row["drift"]),
        "events": row["events"],
    }
    assert memory.intensity == intensity(memory.affect)


def test_the_limit_is_never_passed_whatever_the_moods() -> None:
    chance = random.Random(5)
    memory = trace(affect=Affect(0.3, -0.2, 0.1))
    settings = Reconsolidation(drift_rate=0.3)
    travelled = 0.0
    for _ in range(200):
        mood = Affect(*(chance.uniform(-1, 1) for _ in range(3)))
        after = reconsolidated(memory, mood, settings)
        if after is None:
            break
        travelled += (
            abs(after.affect.valence - memory.affect.valence)
            + abs(after.affect.arousal - memory.affect.arousal)
            + abs(after.affect.dominance - memory.affect.dominance)
        )
        memory = after
    assert travelled == pytest.approx(0.4)
    assert memory.mechanisms["reconsolidation"]["drift"] == 0.4


def test_drift_keeps_what_other_mechanisms_noted_and_leaves_the_given_memory() -> None:
    memory = trace(mechanisms={"temporal_gist": {"words": 3}})
    after = reconsolidated(memory, Affect(1, 0, 0), Reconsolidation())
    assert after is not None
    assert after.mechanisms["temporal_gist"] == {"words": 3}
    assert memory.mechanisms == {"temporal_gist": {"words": 3}}
    assert memory.affect == Affect()


def test_nothing_drifts_when_it_is_off_or_where_the_mood_is_the_same() -> None:
    assert reconsolidated(trace(), Affect(1, 1, 1), Reconsolidation(enabled=False)) is None
    assert reconsolidated(trace(), Affect(), Reconsolidation()) is None
    with pytest.raises(ValidationError, match="valence"):
        reconsolidated(trace(), Affect(valence=math.nan), Reconsolidation())


@pytest.mark.parametrize("row", rows("mechanisms", "forgetting"))
def test_competitors_of_the_recalled_lose_stability(row: dict[str, Any]) -> None:
    settings = of(row["traits"]).retrieval_induced_forgetting
    assert settings.suppression_factor == pytest.approx(row["factor"])
    candidates = [
        trace(name, strength=strength, stability=before)
        for name, strength, before, _ in row["competitors"]
    ]
    similar = {memory.id: 0.7 for memory in candidates}
    found = {memory.id: memory for memory in suppressed(candidates, ["a"], similar, settings)}
    assert list(found) == row["suppressed"]
    for name, _, before, after in row["competitors"]:
        stability = found[name].stability if name in found else before
        assert stability == pytest.approx(after)


def test_only_what_is_similar_enough_competes() -> None:
    candidates = [trace(name) for name in "abc"]
    similar = {"a": 0.7, "b": 0.6999}
    found = suppressed(candidates, (), similar, RetrievalInducedForgetting())
    assert [memory.id for memory in found] == ["a"]
    off = RetrievalInducedForgetting(enabled=False)
    assert suppressed(candidates, (), similar, off) == []
    with pytest.raises(ValidationError, match="similarity"):
        suppressed(candidates, (), {"a": math.nan}, RetrievalInducedForgetting())


class Draws:
    """Gives the listed numbers, one after the other."""

    def __init__(self, numbers: list[float]) -> None:
        self.numbers = numbers
        self.used = 0

    def random(self) -> float:
        self.used += 1
        return self.numbers[self.used - 1]


def pool() -> list[Trace]:
    return [
        trace(
            row["id"],
            created_at=NOW - row["age"],
            strength=row["strength"],
            active=row["active"],
            affect=Affect(row["valence"], row["arousal"]),
        )
        for row in rows("mechanisms", "involuntary_pool")
    ]


@pytest.mark.parametrize("row", rows("mechanisms", "involuntary"))
def test_an_old_memory_comes_up_when_the_draws_say_so(row: dict[str, Any]) -> None:
    draws = Draws(row["draws"])
    found = involuntary(pool(), {"got"}, NOW, draws, of(row["traits"]).involuntary_recall)
    assert (found.id if found else None) == row["came"]
    assert draws.used == row["used"]


def test_old_memories_come_up_as_often_as_they_should_and_felt_ones_more() -> None:
    chance = seeded("session", "turn")
    settings = InvoluntaryRecall()
    memories = pool()
    came = [involuntary(memories, {"got"}, NOW, chance, settings) for _ in range(20_000)]
    names = [memory.id for memory in came if memory]
    assert 0.07 < len(names) / len(came) < 0.09
    assert set(names) == {"old", "oldneg"}
    assert names.count("old") > 20 * names.count("oldneg")


def test_the_same_turn_draws_the_same_numbers() -> None:
    assert seeded("s", "t").random() == seeded("s", "t").random()
    assert seeded("s", "t").random() != seeded("st", "").random()


def test_no_memory_comes_up_from_an_empty_pool_or_when_it_is_off() -> None:
    sure = InvoluntaryRecall(probability=1.0)
    draws = Draws([0.0])
    assert involuntary([trace()], (), NOW, draws, sure) is None
    assert draws.used == 1
    off = InvoluntaryRecall(enabled=False, probability=1.0)
    assert involuntary(pool(), (), NOW, Draws([]), off) is None


def test_memories_are_looked_at_only_when_one_comes_up() -> None:
    def costly() -> Iterator[Trace]:
        raise AssertionError("the memories were looked at")
        yield trace()

    assert involuntary(costly(), (), NOW, Draws([0.08]), InvoluntaryRecall()) is None
    with pytest.raises(AssertionError, match="looked at"):
        involuntary(costly(), (), NOW, Draws([0.079]), InvoluntaryRecall())


def near() -> list[Near]:
    return [
        Near(
            trace(
                row["id"],
                entities=tuple(row["entities"]),
                mood=row["mood"],
                created_at=NOW - row["age"],
            ),
            row["score"],
            row["similarity"],
        )
        for row in rows("mechanisms", "near")
    ]


@pytest.mark.parametrize("row", rows("mechanisms", "feelings"))
def test_what_almost_came_up_is_felt(row: dict[str, Any]) -> None:
    settings = of(row["traits"]).feeling_of_knowing
    found = feelings(near(), row["entities"], row["cutoff"], NOW, settings)
    assert [(feeling.trace_id, feeling.kind) for feeling in found] == [
        (name, kind) for name, kind, _ in row["found"]
    ]
    assert [feeling.value for feeling in found] == pytest.approx(
        [value for _, _, value in row["found"]]
    )
    assert all(feeling.age == 3 * DAY for feeling in found)


def test_a_feeling_tells_what_is_known_of_the_memory() -> None:
    feeling = feelings(near(), ["BOB"], 0.6, NOW, FeelingOfKnowing())[1]
    assert feeling.entities == ("bob", "Ann")
    assert feeling.mood == "curious"


def test_weak_feelings_are_left_out_where_they_are_not_wanted() -> None:
    settings = FeelingOfKnowing(surface_tip_of_tongue=False)
    found = feelings(near(), ["bob"], 0.6, NOW, settings)
    assert [feeling.kind for feeling in found] == ["high_confidence", "high_confidence"]
    assert feelings(near(), ["bob"], 0.6, NOW, FeelingOfKnowing(enabled=False)) == []


def test_a_feeling_stays_in_its_range_and_refuses_what_is_not_finite() -> None:
    opposite = Near(trace(), 0.3, -1.0)
    assert feelings([opposite], (), 0.6, NOW, FeelingOfKnowing())[0].value == 0.0
    with pytest.raises(ValidationError, match="score"):
        feelings([Near(trace(), math.nan, 0.5)], (), 0.6, NOW, FeelingOfKnowing())
    with pytest.raises(ValidationError, match="cutoff"):
        feelings(near(), (), math.inf, NOW, FeelingOfKnowing())
