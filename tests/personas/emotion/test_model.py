from __future__ import annotations

import math
from typing import Any

import pytest

from gmi.personas.affect import Vad
from gmi.personas.emotion import (
    EMOTIONS,
    AppraisalVector,
    EmotionState,
    Event,
    Relationship,
    Traits,
    advanced,
    baseline,
    dominant,
    felt,
    impact,
    initial,
    label,
    perceived,
)
from gmi.personas.errors import ValidationError

from .cases import CASES, EVENTS, near, numbers_of, state_of


@pytest.mark.parametrize("row", CASES["baseline"], ids=lambda row: str(row["traits"]))
def test_feelings_rest_where_the_character_lies(row: dict[str, Any]) -> None:
    traits = Traits.of(row["traits"])
    assert baseline(traits) == near(tuple(row["is"]))
    fresh = initial(traits, 5.0)
    assert fresh.core.point == fresh.mood.point == near(tuple(row["is"]))
    assert (fresh.body, fresh.needs.autonomy, fresh.at) == (0.8, 0.5, 5.0)


@pytest.mark.parametrize("row", CASES["impact"], ids=lambda row: row["event"])
def test_an_event_acts_by_what_it_means_and_on_whom(row: dict[str, Any]) -> None:
    made = impact(
        AppraisalVector.of(EVENTS[row["event"]]),
        Relationship.of(row.get("relationship", {})),
        Traits.of(row.get("traits")),
        row.get("body", 0.8),
    )
    assert made.change == near(tuple(row["change"]))
    if "calls" in row:
        assert made.relevance == near(row["relevance"])
        called = {name: value for name, value in made.activations.items() if value}
        assert called == near(row["calls"])
        assert len(made.activations) == 9


@pytest.mark.parametrize("row", CASES["settling"], ids=lambda row: f"{row['seconds']} s")
def test_feelings_settle_with_time(row: dict[str, Any]) -> None:
    start = state_of(row["from"])
    later = advanced(start, start.at + row["seconds"], Traits.of(row["traits"]))
    assert numbers_of(later) == near(numbers_of(state_of(row["to"])))


@pytest.mark.parametrize(
    "row", CASES["perceiving"], ids=lambda row: row.get("event", "stimulus only")
)
def test_what_is_perceived_changes_the_state_and_what_is_felt(row: dict[str, Any]) -> None:
    given: dict[str, Any] = {key: row[key] for key in ("stimulus", "relationship") if key in row}
    if "event" in row:
        given["appraisal"] = EVENTS[row["event"]]
    found = perceived(
        state_of(row["state"]), Event.of(given), Traits.of(row.get("traits")), row["now"]
    )
    assert numbers_of(found.state) == near(numbers_of(state_of(row["after"])))
    assert found.delta.point == near(tuple(row["delta"]))
    assert found.felt.point == near(tuple(row["felt"]))
    assert (found.label, found.intensity) == (row["label"][0], near(row["label"][1]))
    assert found.importance == near(row["importance"])
    assert found.event_intensity == near(min(1.0, math.hypot(*row["delta"])))


@pytest.mark.parametrize("row", CASES["label"], ids=lambda row: row["label"][0])
def test_a_feeling_has_a_name(row: dict[str, Any]) -> None:
    named = label(Vad.at(tuple(row["vad"])))
    assert (named.primary, named.intensity) == (row["label"][0], near(row["label"][1]))


@pytest.mark.parametrize("name", sorted(EMOTIONS))
def test_every_emotion_is_named_at_its_own_point(name: str) -> None:
    assert label(Vad.at(EMOTIONS[name])).primary == name


def test_a_feeling_has_a_name_from_a_length_of_a_tenth_on() -> None:
    assert label(Vad(valence=0.1)).primary != "neutral"
    assert label(Vad(valence=0.0999)).primary == "neutral"
    assert label(Vad(valence=0.0999)).intensity == near(0.0999 / math.sqrt(3))


def test_the_longest_feeling_has_the_intensity_one() -> None:
    assert label(Vad(valence=-1, arousal=1, dominance=-1)).intensity == 1.0


@pytest.mark.parametrize(
    ("event", "name"),
    [("insult", "reproach"), ("threat", "fear"), ("loss", "distress"), ("own_fault", "shame")],
)
def test_an_event_tells_which_emotion_it_called_up_most(event: str, name: str) -> None:
    found = perceived(EmotionState(), Event.of({"appraisal": EVENTS[event]}), Traits(), 0.0)
    assert found.dominant == name


def test_of_emotions_called_up_alike_the_first_by_the_alphabet_is_told() -> None:
    assert dominant({"joy": 0.3, "admiration": 0.3, "fear": 0.1}) == "admiration"
    assert dominant({"joy": 0.0}) is None
    assert dominant({}) is None


def test_what_does_not_concern_the_persona_calls_up_nothing() -> None:
    found = perceived(EmotionState(), Event.of({"appraisal": EVENTS["irrelevant"]}), Traits(), 0.0)
    assert found.dominant is None
    assert found.state == EmotionState()


def test_an_event_without_meaning_and_stimulus_only_lets_time_pass() -> None:
    start = EmotionState(core=Vad(valence=-0.8), at=10.0)
    found = perceived(start, Event(), Traits(), 1810.0)
    assert found.state == advanced(start, 1810.0, Traits())
    assert found.state.core.valence == near(-0.4)
    assert (found.importance, found.event_intensity, found.dominant) == (0.0, 0.0, None)
    assert not found.memorable


def test_small_talk_is_not_worth_a_memory_and_a_threat_is() -> None:
    def event(name: str) -> Event:
        return Event.of({"appraisal": EVENTS[name]})

    assert not perceived(EmotionState(), event("neutral"), Traits(), 0.0).memorable
    assert perceived(EmotionState(), event("threat"), Traits(), 0.0).memorable


def test_a_set_feeling_has_the_last_word_over_an_added_one() -> None:
    event = Event.of({"stimulus": {"vadDelta": {"V": 0.4, "A": 0.3}, "vadOverride": {"V": -0.2}}})
    core = perceived(EmotionState(), event, Traits(), 0.0).state.core
    assert core.point == (-0.2, 0.3, 0.0)


def test_a_stimulus_never_leaves_the_ranges() -> None:
    event = Event.of(
        {
            "stimulus": {
                "vadDelta": {"V": -9, "A": 9, "D": 9},
                "bodyBudgetDelta": -9,
                "needsDelta": {"autonomy": 9, "competence": -9},
            }
        }
    )
    state = perceived(EmotionState(core=Vad(valence=1.0)), event, Traits(), 0.0).state
    assert state.core.point == (-1.0, 1.0, 1.0)
    assert (state.body, state.needs.autonomy, state.needs.competence) == (0.0, 1.0, 0.0)


def test_rest_and_full_needs_feel_better_than_exhaustion_and_want() -> None:
    rested = felt(EmotionState(body=1.0))
    spent = felt(EmotionState(body=0.1))
    assert rested.valence > 0 > spent.valence
    assert rested.arousal > 0 > spent.arousal


def test_a_clock_that_went_back_changes_nothing() -> None:
    state = EmotionState(core=Vad(valence=0.5), at=100.0)
    assert advanced(state, 40.0, Traits()) is state
    found = perceived(state, Event.of({"stimulus": {"vadDelta": {"A": 0.2}}}), Traits(), 40.0)
    assert found.state.core.point == (0.5, 0.2, 0.0)
    assert found.state.at == 100.0


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_not_finite_is_refused(now: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        advanced(EmotionState(), now, Traits())
    with pytest.raises(ValidationError, match="finite"):
        perceived(EmotionState(), Event(), Traits(), now)


def test_a_state_reads_back_as_it_was_written() -> None:
    state = EmotionState()
    for name in ("insult", "compliment", "threat"):
        found = perceived(
            state, Event.of({"appraisal": EVENTS[name]}), Traits(emotionality=0.9), state.at + 77.7
        )
        state = found.state
        assert EmotionState.model_validate_json(state.model_dump_json()) == state
        assert type(found).model_validate_json(found.model_dump_json()) == found
        assert all(value == round(value, 9) for value in numbers_of(state))
    assert len(state.model_dump_json()) < 500


def test_a_state_of_a_newer_form_is_read() -> None:
    kept = EmotionState(body=0.4).model_dump() | {"somatic": ["tense"]}
    assert EmotionState.model_validate(kept) == EmotionState(body=0.4)
