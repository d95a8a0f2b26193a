from __future__ import annotations

import pytest

from gmi.personas.affect import Vad
from gmi.personas.emotion import (
    AppraisalVector,
    EmotionState,
    Event,
    Relationship,
    Traits,
    impact,
    inertia,
    perceived,
)
from gmi.personas.emotion.impact import gain

from .cases import EVENTS, near

RESTED = 0.8


@pytest.mark.parametrize("emotion", ["joy", "gratitude", "admiration", "pride"])
def test_extraverts_feel_what_is_pleasant_more(emotion: str) -> None:
    assert gain(emotion, Traits(), 0.0) == near(1.0)
    assert gain(emotion, Traits(extraversion=1.0, emotionality=1.0), 0.0) == near(1.3)
    assert gain(emotion, Traits(extraversion=0.0), 0.0) == near(0.7)


@pytest.mark.parametrize("emotion", ["distress", "fear", "anger", "reproach", "shame"])
def test_emotional_and_spent_characters_feel_what_is_unpleasant_more(emotion: str) -> None:
    assert gain(emotion, Traits(), RESTED) == gain(emotion, Traits(), 1.0) == near(1.0)
    assert gain(emotion, Traits(emotionality=1.0, extraversion=1.0), RESTED) == near(1.5)
    assert gain(emotion, Traits(), 0.4) == near(1.25)
    assert gain(emotion, Traits(emotionality=1.0), 0.0) == near(2.25)


def test_conscientious_characters_are_prouder_and_honest_ones_more_ashamed() -> None:
    assert gain("pride", Traits(conscientiousness=1.0), RESTED) == near(1.2)
    assert gain("joy", Traits(conscientiousness=1.0), RESTED) == near(1.0)
    assert gain("shame", Traits(honesty=1.0), RESTED) == near(1.3)
    assert gain("distress", Traits(honesty=1.0), RESTED) == near(1.0)


def test_agreeable_characters_blame_others_less() -> None:
    for emotion, wanted in {"anger": 0.6, "reproach": 0.6, "fear": 1.0, "shame": 1.0}.items():
        assert gain(emotion, Traits(agreeableness=1.0), RESTED) == near(wanted)


def test_open_characters_are_less_stirred_by_what_is_new() -> None:
    def stirred(openness: float) -> float:
        new = AppraisalVector(expectedness=0.0)
        return impact(new, Relationship(), Traits(openness=openness), RESTED).change[1]

    assert [stirred(0.0), stirred(0.5), stirred(1.0)] == near([0.1625, 0.125, 0.0875])


def test_feelings_of_emotional_characters_resist_change_and_last_longer() -> None:
    assert [inertia(Traits(emotionality=value)) for value in (0, 0.5, 1)] == near([0.2, 0.3, 0.4])
    start = EmotionState(core=Vad(valence=0.8))
    calm = perceived(start, Event(), Traits(emotionality=0.0, agreeableness=0.5), 3600.0)
    tense = perceived(start, Event(), Traits(emotionality=1.0, agreeableness=0.5), 3600.0)
    assert tense.state.core.valence < start.core.valence
    assert calm.state.core.valence == near(0.076 + 0.724 * 0.5 ** (3600 / 1260))
    assert tense.state.core.valence == near(-0.076 + 0.876 * 0.5 ** (3600 / 2340))


def test_what_a_friend_does_matters_more_and_is_taken_better() -> None:
    def taken(trust: float, familiarity: float) -> tuple[float, float]:
        known = Relationship(trust=trust, familiarity=familiarity)
        made = impact(AppraisalVector.of(EVENTS["insult"]), known, Traits(), RESTED)
        return made.relevance, made.change[0]

    stranger, friend = taken(0.5, 0.0), taken(1.0, 1.0)
    assert friend[0] == near(1.3 * stranger[0])
    assert taken(1.0, 0.0)[1] > stranger[1] > taken(0.0, 0.0)[1]
