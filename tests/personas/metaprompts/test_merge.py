from __future__ import annotations

import pytest

from gmi.personas.metaprompts import MAX_METAPROMPTS, PRESETS, SELF_REFLECTION, find, merged
from gmi.personas.metaprompts.variables import template_of

from .making import following, own, persona

FIVE = [
    "gmi_frustration_recovery",
    "gmi_confusion_clarification",
    "gmi_satisfaction_reinforcement",
    "gmi_error_recovery",
    "gmi_engagement_boost",
]


def ids(who: object) -> list[str]:
    return [prompt.id for prompt in merged(who).prompts]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("presets", "expected"),
    [
        ("all", FIVE),
        (["all"], FIVE),
        (["gmi_error_recovery"], ["gmi_error_recovery"]),
        (["error_recovery"], ["gmi_error_recovery"]),
        # In the presets' own order, each once, whichever of its names is used.
        (["engagement_boost", "frustration_recovery", "gmi_engagement_boost"], [FIVE[0], FIVE[4]]),
        ([], []),
    ],
)
def test_the_presets_are_chosen_by_name(presets: list[str] | str, expected: list[str]) -> None:
    assert ids(following(presets)) == expected


def test_without_sentiment_tracking_there_are_no_presets_but_its_own_metaprompts_stay() -> None:
    assert ids(following("all", own("mine"), enabled=False)) == ["mine"]
    assert ids(persona(own("mine"))) == ["mine"]
    assert ids(following([], own("mine"))) == ["mine"]


def test_an_own_metaprompt_takes_the_place_of_the_preset_and_others_follow() -> None:
    who = following("all", own("gmi_error_recovery", "my words"), own("mine"))
    assert ids(who) == [*FIVE, "mine"]
    replaced = find(who, "gmi_error_recovery")
    assert replaced is not None
    assert template_of(replaced) == "my words"
    assert replaced.output_schema is None


def test_an_own_metaprompt_without_words_keeps_those_of_the_preset() -> None:
    who = following("all", own("gmi_engagement_boost", "  ", type="turn_interval", intervalTurns=4))
    kept = find(who, "gmi_engagement_boost")
    assert kept is not None
    assert template_of(kept) == template_of(PRESETS[4])
    assert (kept.temperature, kept.trigger.interval_turns) == (0.5, 4)


def test_of_two_with_one_id_the_last_counts() -> None:
    who = persona(own("mine", "first"), own("other"), own("mine", "second"))
    assert ids(who) == ["mine", "other"]
    assert template_of(merged(who).prompts[0]) == "second"


def test_the_self_reflection_is_there_only_when_the_persona_has_it() -> None:
    assert find(following("all"), SELF_REFLECTION) is None
    whole = find(persona(own(SELF_REFLECTION, "")), SELF_REFLECTION)
    assert whole is not None
    assert "{{evidence}}" in template_of(whole)
    assert whole.max_output_tokens == 512


def test_what_never_runs_is_said_once_for_each_id() -> None:
    who = following(
        ["all", "cheering_up"],
        own("empty", ""),
        own("x" * 81),
        own("spoken", type="voice"),
        own("never", type="turn_interval", intervalTurns=0.5),
        own("lost", type="event_based", eventName="user_bored"),
        own("good", type="event_based", eventName="persona_drift"),
    )
    found = merged(who)
    assert [prompt.id for prompt in found.prompts] == [*FIVE, "spoken", "never", "lost", "good"]
    assert len(found.warnings) == 6
    for words in ("cheering_up", "'empty'", "x" * 80, "'spoken'", "'never'", "'lost'"):
        assert sum(words in warning for warning in found.warnings) == 1


def test_more_metaprompts_than_the_limit_are_passed_over_with_a_warning() -> None:
    found = merged(persona(*(own(f"p{n}") for n in range(MAX_METAPROMPTS + 3))))
    assert len(found.prompts) == MAX_METAPROMPTS
    assert "'p32'" in found.warnings[0]


@pytest.mark.parametrize(
    ("place", "event", "temperature", "strategy", "variables"),
    [
        (
            0,
            "user_frustrated",
            0.3,
            "recoveryStrategy",
            "current_mood user_skill task_complexity current_sentiment sentiment_score "
            "consecutive_frustration recent_conversation recent_errors",
        ),
        (
            1,
            "user_confused",
            0.3,
            "clarificationStrategy",
            "current_mood user_skill task_complexity current_sentiment consecutive_confusion "
            "recent_conversation confusion_keywords",
        ),
        (
            2,
            "user_satisfied",
            0.3,
            "engagementStrategy",
            "current_mood user_skill task_complexity current_sentiment sentiment_score "
            "consecutive_satisfaction recent_conversation",
        ),
        (
            3,
            "error_threshold_exceeded",
            0.3,
            "mitigationStrategy",
            "current_mood user_skill task_complexity recent_errors recent_conversation",
        ),
        (
            4,
            "low_engagement",
            0.5,
            "engagementStrategy",
            "current_mood user_skill task_complexity consecutive_neutral recent_conversation",
        ),
    ],
)
def test_a_preset_waits_for_its_event_and_asks_for_its_strategy(
    place: int, event: str, temperature: float, strategy: str, variables: str
) -> None:
    preset = PRESETS[place]
    assert (preset.trigger.type, preset.trigger.event_name) == ("event_based", event)
    assert (preset.temperature, preset.max_output_tokens) == (temperature, 512)
    assert preset.output_schema is not None
    assert preset.output_schema["required"] == ["adjustmentRationale", strategy]
    text = template_of(preset)
    for name in variables.split():
        assert f"{{{{{name}}}}}" in text
    assert text.count("{{") == text.count("}}") == len(variables.split())
