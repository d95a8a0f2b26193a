from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from gmi.personas.affect import Vad
from gmi.personas.builtin import BUILT_IN_PERSONAS
from gmi.personas.mood import (
    HALF_LIFE,
    MOODS,
    PAD,
    MoodSettings,
    MoodState,
    decayed,
    mood_of,
    mood_word,
    moved,
)
from gmi.personas.parts import MoodAdaptation

NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
HALF = timedelta(seconds=HALF_LIFE)
ANY = MoodSettings()

POINTS = [
    ("neutral", 0, 0, 0),
    ("focused", 0.2, 0.1, 0.55),
    ("empathetic", 0.55, 0.15, 0.25),
    ("curious", 0.35, 0.45, 0.15),
    ("assertive", 0.15, 0.35, 0.7),
    ("analytical", 0.1, -0.1, 0.45),
    ("frustrated", -0.65, 0.6, 0.2),
    ("creative", 0.45, 0.35, 0.35),
]


def settings(**given: object) -> MoodSettings:
    adaptation = MoodAdaptation.model_validate({"enabled": True, **given})
    found, warnings = MoodSettings.from_adaptation(adaptation)
    assert warnings == ()
    return found


@pytest.mark.parametrize(("word", "valence", "arousal", "dominance"), POINTS)
def test_every_mood_has_its_point_and_every_point_its_mood(
    word: str, valence: float, arousal: float, dominance: float
) -> None:
    point = Vad(valence=valence, arousal=arousal, dominance=dominance)
    assert PAD[word] == point
    assert mood_of(point) == word


def test_there_are_eight_moods() -> None:
    assert tuple(word for word, *_ in POINTS) == MOODS


def test_the_nearest_mood_is_looked_for_among_those_given() -> None:
    angry = Vad(valence=-0.7, arousal=0.7, dominance=0.3)
    assert mood_of(angry) == "frustrated"
    assert mood_of(angry, ["neutral", "empathetic"]) == "neutral"
    assert mood_of(angry, []) == "frustrated"
    assert mood_of(angry, ["grumpy"]) == "frustrated"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("curious", "curious"),
        (" Curious ", "curious"),
        ("helpful_engaged", "empathetic"),
        ("Helpful-Engaged", "empathetic"),
        ("careful", "analytical"),
        ("grumpy", None),
        ("", None),
    ],
)
def test_a_name_stands_for_a_mood_or_for_none(name: str, word: str | None) -> None:
    assert mood_word(name) == word


def test_a_session_starts_at_the_default_mood() -> None:
    state = MoodState.resting(settings(defaultMood="curious"), NOW)
    assert (state.word, state.pad, state.since) == ("curious", PAD["curious"], NOW)


def test_a_move_goes_a_share_of_the_way_and_repeated_ones_arrive() -> None:
    state = MoodState.resting(ANY, NOW)
    rules = settings(sensitivityFactor=0.5)
    first = moved(state, "creative", rules, NOW)
    assert first.state.pad == Vad(valence=0.225, arousal=0.175, dominance=0.175)
    assert (first.state.word, first.changed) == ("neutral", False)
    second = moved(first.state, "creative", rules, NOW + timedelta(seconds=0))
    assert (second.state.word, second.changed) == ("creative", True)
    assert second.state.since == NOW
    state = second.state
    for _ in range(40):
        state = moved(state, "creative", rules, NOW).state
    assert state.pad.point == pytest.approx(PAD["creative"].point, abs=1e-8)


@pytest.mark.parametrize("aim", MOODS)
def test_without_a_setting_one_move_from_neutral_arrives_and_the_word_stays_for_hours(
    aim: str,
) -> None:
    result = moved(MoodState.resting(ANY, NOW), aim, ANY, NOW)
    assert result.state.word == aim
    assert result.changed is (aim != "neutral")
    assert decayed(result.state, NOW + timedelta(hours=4), ANY).word == aim
    assert decayed(result.state, NOW + timedelta(hours=12), ANY).word == "neutral"


@pytest.mark.parametrize("start", MOODS)
@pytest.mark.parametrize("aim", MOODS)
@pytest.mark.parametrize("sensitivity", [0.1, 0.5, 0.9])
def test_every_move_comes_nearer_until_the_word_is_the_aim(
    start: str, aim: str, sensitivity: float
) -> None:
    rules = settings(sensitivityFactor=sensitivity)
    state = MoodState(word=start, pad=PAD[start], since=NOW, at=NOW)
    words = [start]
    for _ in range(40):
        before = math.dist(state.pad.point, PAD[aim].point)
        state = moved(state, aim, rules, NOW).state
        assert math.dist(state.pad.point, PAD[aim].point) <= before * (1 - sensitivity) + 1e-8
        words.append(state.word)
    assert words == [start] * words.count(start) + [aim] * words.count(aim) or start == aim
    assert state.word == aim


def test_a_share_of_one_jumps_and_of_none_stays() -> None:
    state = MoodState.resting(ANY, NOW)
    assert moved(state, "frustrated", ANY, NOW, share=1.0).state.pad == PAD["frustrated"]
    still = moved(state, "frustrated", settings(sensitivityFactor=0), NOW)
    assert (still.state, still.refused) == (state, None)


def test_a_mood_comes_back_to_the_default_by_halves() -> None:
    rules = settings(defaultMood="focused")
    far = moved(MoodState.resting(rules, NOW), "frustrated", rules, NOW, share=1.0).state
    half = decayed(far, NOW + HALF, rules)
    assert half.pad == Vad(valence=-0.225, arousal=0.35, dominance=0.375)
    assert half.at == NOW + HALF
    late = decayed(far, NOW + 40 * HALF, rules)
    assert (late.word, late.pad) == ("focused", PAD["focused"])
    ages = decayed(far, NOW + timedelta(days=36_500), rules)
    assert ages.pad == PAD["focused"]


def test_two_steps_of_time_lead_to_the_same_point_as_one() -> None:
    far = moved(MoodState.resting(ANY, NOW), "frustrated", ANY, NOW, share=1.0).state
    there = NOW + timedelta(hours=31, seconds=7)
    once = decayed(far, there, ANY)
    step = far
    for hours in (1, 2, 3.5, 11, 30):
        step = decayed(step, NOW + timedelta(hours=hours), ANY)
    step = decayed(step, there, ANY)
    assert step.pad.point == pytest.approx(once.pad.point, abs=1e-8)
    assert step.word == once.word == "neutral"


def test_a_clock_that_goes_back_changes_nothing() -> None:
    far = moved(MoodState.resting(ANY, NOW), "curious", ANY, NOW, share=1.0).state
    assert decayed(far, NOW - HALF, ANY) == far
    again = moved(far, "curious", ANY, NOW - HALF).state
    assert (again.at, again.pad) == (far.at, far.pad)


def test_a_move_counts_what_time_has_done_before_it() -> None:
    rules = settings(sensitivityFactor=0.5)
    far = moved(MoodState.resting(rules, NOW), "frustrated", rules, NOW, share=1.0).state
    later = moved(far, "frustrated", rules, NOW + HALF).state
    assert later.pad == Vad(valence=-0.4875, arousal=0.45, dominance=0.15)


def test_a_mood_that_is_not_allowed_or_not_known_is_refused_with_a_reason() -> None:
    rules = settings(allowedMoods=["focused", "curious"], defaultMood="analytical")
    state = MoodState.resting(rules, NOW)
    assert rules.allowed == ("focused", "curious", "analytical")
    refused = moved(state, "frustrated", rules, NOW)
    assert refused.state == state
    assert not refused.changed
    assert refused.refused == (
        "The persona may not be 'frustrated', only focused, curious, analytical."
    )
    unknown = moved(state, "grumpy", rules, NOW)
    assert unknown.state == state
    assert "'grumpy' is no mood" in str(unknown.refused)
    assert moved(state, "curious", rules, NOW).refused is None


def test_a_refused_move_lets_time_pass_all_the_same() -> None:
    far = moved(MoodState.resting(ANY, NOW), "frustrated", ANY, NOW, share=1.0).state
    refused = moved(far, "grumpy", ANY, NOW + 9 * HALF)
    assert refused.state == decayed(far, NOW + 9 * HALF, ANY)
    assert refused.changed


def test_the_word_is_never_one_that_is_not_allowed() -> None:
    rules = settings(allowedMoods=["frustrated"], sensitivityFactor=0.3)
    state = MoodState.resting(rules, NOW)
    words = []
    for _ in range(6):
        state = moved(state, "frustrated", rules, NOW).state
        words.append(state.word)
    assert set(words) == {"neutral", "frustrated"}


def test_a_persona_whose_adaptation_is_off_keeps_its_mood() -> None:
    rules, _ = MoodSettings.from_adaptation(MoodAdaptation(default_mood="focused"))
    state = MoodState.resting(rules, NOW)
    result = moved(state, "curious", rules, NOW)
    assert result.state == state
    assert result.refused == "The persona's mood does not adapt, it stays 'focused'."


def test_a_persona_that_says_nothing_starts_neutral_and_may_take_any_mood() -> None:
    assert MoodSettings.from_adaptation(None) == (ANY, ())
    assert (ANY.default, ANY.allowed, ANY.adapts) == ("neutral", MOODS, True)


def test_odd_settings_are_repaired_with_a_warning_each() -> None:
    adaptation = MoodAdaptation(
        enabled=True,
        default_mood="helpful_engaged",
        allowed_moods=["Focused", "grumpy", "playful"],
        sensitivity_factor=3.0,
    )
    found, warnings = MoodSettings.from_adaptation(adaptation)
    assert found == MoodSettings(
        default="empathetic", allowed=("focused", "empathetic", "creative"), sensitivity=1.0
    )
    assert len(warnings) == 4
    assert "defaultMood 'helpful_engaged' is taken as 'empathetic'" in warnings[0]
    assert "allowedMoods 'grumpy' is no mood, it is left out" in warnings[1]
    assert "allowedMoods 'playful' is taken as 'creative'" in warnings[2]
    assert "sensitivityFactor 3.0 is not in [0, 1], 1 is used" in warnings[3]


def test_an_unknown_default_mood_becomes_neutral() -> None:
    found, warnings = MoodSettings.from_adaptation(
        MoodAdaptation(enabled=True, default_mood="grumpy", sensitivity_factor=float("nan"))
    )
    assert found == ANY
    assert ["neutral is used" in warnings[0], "0.8 is used" in warnings[1]] == [True, True]
    with pytest.raises(ValidationError, match="no mood"):
        MoodSettings(default="grumpy")


def test_the_built_in_personas_ask_for_moods_that_there_are() -> None:
    for persona in BUILT_IN_PERSONAS:
        found, warnings = MoodSettings.from_adaptation(persona.mood_adaptation)
        assert warnings == ()
        assert found.default in MOODS


def test_a_mood_survives_json_exactly_and_is_rounded() -> None:
    rules = settings(sensitivityFactor=1 / 3)
    state = moved(MoodState.resting(rules, NOW), "frustrated", rules, NOW).state
    state = decayed(state, NOW + timedelta(seconds=12345.678), rules)
    assert MoodState.model_validate_json(state.model_dump_json()) == state
    for value in state.pad.point:
        assert value == round(value, 9)
        assert math.copysign(1, value) == 1 or value < 0
