"""What holds for every event, character and state; tried on many drawn by chance."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gmi.personas.affect import Vad
from gmi.personas.emotion import (
    AppraisalVector,
    EmotionState,
    Event,
    Needs,
    Perceived,
    Relationship,
    Traits,
    advanced,
    baseline,
    felt,
    impact,
    perceived,
)

from .cases import numbers_of

ROUNDS = 3000
SLACK = 2e-9
SIGNED = (
    "goal_relevance",
    "goal_congruence",
    "agency",
    "norm_compatibility",
    "internal_standards",
)
DAYS_30 = 30 * 86_400.0


class Draw:
    """One round's character, state, event and relationship."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.traits = Traits(*(self.share() for _ in range(6)))
        self.state = EmotionState(
            core=Vad.at((self.signed(), self.signed(), self.signed())),
            mood=Vad.at((self.signed(), self.signed(), self.signed())),
            body=self.share(),
            needs=Needs(autonomy=self.share(), competence=self.share(), relatedness=self.share()),
            at=chance.uniform(0, 2e9),
        )
        self.appraisal = {
            name: self.signed() if name in SIGNED else self.share()
            for name in AppraisalVector.model_fields
        }
        self.relationship = {"trust": self.share(), "familiarity": self.share()}

    def share(self) -> float:
        return self.chance.choice([0.0, 1.0, *(self.chance.random() for _ in range(6))])

    def signed(self) -> float:
        return 2.0 * self.share() - 1.0

    def rise(self, value: float) -> float:
        return value + self.chance.random() * (1.0 - value)

    def perceived(
        self,
        appraisal: dict[str, float] | None = None,
        relationship: dict[str, float] | None = None,
    ) -> Perceived:
        event = Event.of(
            {
                "appraisal": appraisal or self.appraisal,
                "relationship": relationship or self.relationship,
            }
        )
        return perceived(self.state, event, self.traits, self.state.at)

    def raised(self, name: str) -> dict[str, float]:
        return self.appraisal | {name: self.rise(self.appraisal[name])}


def draws(seed: int) -> list[Draw]:
    chance = random.Random(seed)
    return [Draw(chance) for _ in range(ROUNDS)]


def within(numbers: Any, low: float) -> bool:
    return all(low <= value <= 1.0 for value in numbers)


def test_nothing_ever_leaves_its_range() -> None:
    for draw in draws(1):
        state = draw.state
        stimulus = {
            "vadDelta": {"V": 3 * draw.signed(), "A": 3 * draw.signed(), "D": 3 * draw.signed()},
            "bodyBudgetDelta": 2 * draw.signed(),
            "needsDelta": {"autonomy": 2 * draw.signed(), "relatedness": 2 * draw.signed()},
        }
        event = Event.of(
            {
                "appraisal": draw.appraisal,
                "relationship": draw.relationship,
                "stimulus": stimulus if draw.chance.random() < 0.3 else None,
            }
        )
        for later in (0.0, 60.0, DAYS_30):
            found = perceived(state, event, draw.traits, state.at + later)
            state = found.state
            assert within(state.core.point, -1.0)
            assert within(state.mood.point, -1.0)
            assert within(found.felt.point, -1.0)
            assert within(found.delta.point, -1.0)
            assert within(
                [
                    state.body,
                    *state.needs.model_dump().values(),
                    found.intensity,
                    found.importance,
                    found.event_intensity,
                ],
                0.0,
            )


@pytest.mark.parametrize("name", ["goal_congruence", "norm_compatibility", "internal_standards"])
def test_valence_never_falls_with_a_better_event(name: str) -> None:
    moved = 0
    for draw in draws(2):
        less, more = draw.perceived(), draw.perceived(draw.raised(name))
        assert more.delta.valence >= less.delta.valence - SLACK
        assert more.state.core.valence >= less.state.core.valence - SLACK
        moved += more.delta.valence > less.delta.valence
    assert moved > ROUNDS / 4


def test_valence_never_falls_with_trust() -> None:
    moved = 0
    for draw in draws(3):
        relationship = draw.relationship
        trusted = relationship | {"trust": draw.rise(relationship["trust"])}
        less, more = draw.perceived(), draw.perceived(relationship=trusted)
        assert more.delta.valence >= less.delta.valence - SLACK
        assert more.state.core.valence >= less.state.core.valence - SLACK
        moved += more.delta.valence > less.delta.valence
    assert moved > ROUNDS / 4


def test_arousal_never_rises_with_what_was_expected() -> None:
    moved = 0
    for draw in draws(4):
        less, more = draw.perceived(), draw.perceived(draw.raised("expectedness"))
        assert more.delta.arousal <= less.delta.arousal + SLACK
        assert more.state.core.arousal <= less.state.core.arousal + SLACK
        moved += more.delta.arousal < less.delta.arousal
    assert moved > ROUNDS / 4


@pytest.mark.parametrize("name", ["controllability", "adjustment_potential"])
def test_dominance_never_falls_with_power_over_what_happens(name: str) -> None:
    moved = 0
    for draw in draws(5):
        less, more = draw.perceived(), draw.perceived(draw.raised(name))
        assert more.delta.dominance >= less.delta.dominance - SLACK
        assert more.state.core.dominance >= less.state.core.dominance - SLACK
        moved += more.delta.dominance > less.delta.dominance
    assert moved > ROUNDS / 4


def test_what_is_of_no_relevance_changes_nothing() -> None:
    for draw in draws(6):
        found = draw.perceived(draw.appraisal | {"goal_relevance": -1.0})
        assert found.state == draw.state
        assert found.delta == Vad()


def test_a_neutral_event_changes_nothing() -> None:
    for draw in draws(7):
        event = Event.of({"appraisal": {}, "relationship": draw.relationship})
        found = perceived(draw.state, event, draw.traits, draw.state.at)
        assert found.state == draw.state
        assert found.felt == felt(draw.state)


def test_emotional_and_spent_characters_never_take_a_bad_event_more_lightly() -> None:
    for draw in draws(8):
        bad = draw.appraisal | {
            "goal_congruence": -abs(draw.appraisal["goal_congruence"]),
            "norm_compatibility": -abs(draw.appraisal["norm_compatibility"]),
            "internal_standards": -abs(draw.appraisal["internal_standards"]),
        }
        appraisal, known = AppraisalVector.of(bad), Relationship.of(draw.relationship)
        lean = {name: getattr(draw.traits, name) for name in Traits.__dataclass_fields__}
        touchier = Traits(**(lean | {"emotionality": draw.rise(lean["emotionality"])}))
        body = draw.state.body
        usual = impact(appraisal, known, draw.traits, body).change[0]
        assert impact(appraisal, known, touchier, body).change[0] <= usual + SLACK
        spent = impact(appraisal, known, draw.traits, body * draw.chance.random()).change[0]
        assert spent <= usual + SLACK


def test_settling_in_two_steps_is_settling_in_one() -> None:
    for draw in draws(9):
        first, second = (draw.chance.choice([1, 60, 3600, 86_400]) for _ in range(2))
        start = draw.state.at
        once = advanced(draw.state, start + first + second, draw.traits)
        between = advanced(draw.state, start + first, draw.traits)
        twice = advanced(between, start + first + second, draw.traits)
        assert numbers_of(twice) == pytest.approx(numbers_of(once), abs=SLACK)


def test_settling_never_leads_away_from_rest_and_arrives_within_30_days() -> None:
    for draw in draws(10):
        rest = [*baseline(draw.traits) * 2, 0.8, 0.5, 0.5, 0.5]
        soon = advanced(draw.state, draw.state.at + draw.chance.uniform(1, 20_000), draw.traits)
        late = advanced(draw.state, draw.state.at + DAYS_30, draw.traits)
        rows = zip(numbers_of(draw.state), numbers_of(soon), numbers_of(late), rest, strict=False)
        for before, after, last, end in rows:
            assert abs(after - end) <= abs(before - end) + SLACK
            assert last == pytest.approx(end, abs=1e-6)


def test_the_same_events_make_the_same_state_to_the_last_digit() -> None:
    def lived() -> str:
        state = EmotionState()
        for draw in draws(11)[:300]:
            event = Event.of({"appraisal": draw.appraisal, "relationship": draw.relationship})
            state = perceived(state, event, Traits(), state.at + 30).state
        return state.model_dump_json()

    assert lived() == lived()
