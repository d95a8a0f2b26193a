from typing import Any

import pytest

from gmi.personas import (
    OverlayContext,
    OverlayEffect,
    OverlayRule,
    Persona,
    apply_overlays,
    overlay_effect,
)
from gmi.personas.overlays import overlay_warnings

PERSONA = Persona(
    id="p",
    name="P",
    description="d",
    version="1.0.0",
    base_system_prompt="x",
    personality_traits={"openness": 0.5, "extraversion": 0.5, "honesty": 0.5},
)


def rule(rule_id: str, trigger: Any, **patch: Any) -> OverlayRule:
    return OverlayRule.model_validate({"id": rule_id, "trigger": trigger, "patch": patch})


def test_a_later_rule_builds_on_an_earlier_one() -> None:
    result = apply_overlays(
        PERSONA,
        [
            rule("first", "always", personaTraits={"openness": 0.9}),
            rule("second", "always", personaTraits={"extraversion": 0.1}),
        ],
        OverlayContext(),
    )
    assert result.persona.hexaco == {"honesty": 0.5, "extraversion": 0.1, "openness": 0.9}
    assert result.applied == ["first", "second"]
    assert PERSONA.personality_traits["openness"] == 0.5


def test_the_last_mood_counts_and_metadata_adds_up() -> None:
    result = apply_overlays(
        PERSONA,
        [
            rule("a", "always", mood="focused", metadata={"x": 1, "y": 1}),
            rule("b", "always", mood="curious", metadata={"y": 2}),
            rule("c", "always"),
        ],
        OverlayContext(),
    )
    assert result.mood == "curious"
    assert result.metadata == {"x": 1, "y": 2}
    assert result.persona is PERSONA


@pytest.mark.parametrize(
    ("trigger", "context", "applies"),
    [
        ("always", OverlayContext(), True),
        ("first_activation", OverlayContext(first_activation=True), True),
        ("first_activation", OverlayContext(), False),
        ("task_completed", OverlayContext(last_event="task_completed"), True),
        ("task_completed", OverlayContext(), False),
        ("error", OverlayContext(last_event="on_error"), True),
        ("on_error", OverlayContext(last_event="error"), True),
        ("on_error", OverlayContext(state="errored"), True),
        ("on_error", OverlayContext(), False),
        ("handover", OverlayContext(last_event="handover"), True),
        ("drafting", OverlayContext(state="drafting"), True),
        ("critic", OverlayContext(role_id="critic"), True),
        ("critic", OverlayContext(role_id="author"), False),
        ({"roleId": "critic"}, OverlayContext(role_id="critic"), True),
        ({"roleId": "critic", "round": 2}, OverlayContext(role_id="critic"), False),
        ({"round": 2}, OverlayContext(facts={"round": 2}), True),
        ({"missing": None}, OverlayContext(), False),
    ],
)
def test_a_rule_applies_when_its_trigger_fits(
    trigger: Any, context: OverlayContext, applies: bool
) -> None:
    result = apply_overlays(PERSONA, [rule("r", trigger)], context)
    assert result.applied == (["r"] if applies else [])


@pytest.mark.parametrize("name", ["honesty", "honestyHumility", "emotionality"])
def test_no_rule_changes_honesty_or_emotionality(name: str) -> None:
    result = apply_overlays(
        PERSONA,
        [rule("sly", "always", personaTraits={name: 0.0, "openness": 0.8})],
        OverlayContext(),
    )
    assert result.persona.hexaco == {"honesty": 0.5, "extraversion": 0.5, "openness": 0.8}
    (warning,) = result.warnings
    assert "'p'" in warning
    assert ("emotionality" if name == "emotionality" else "honesty") in warning


def test_later_rules_add_to_what_earlier_ones_change() -> None:
    effect = overlay_effect(
        [
            rule(
                "a", "always", personaTraits={"openness": 0.9, "extraversion": 0.2}, mood="focused"
            ),
            rule("no", "never", personaTraits={"openness": 0.1}, mood="curious"),
            rule("b", "first_activation", personaTraits={"extraversion": 0.8}, metadata={"x": 1}),
        ],
        OverlayContext(first_activation=True),
    )
    assert effect == OverlayEffect(
        {"openness": 0.9, "extraversion": 0.8}, "focused", {"x": 1}, ["a", "b"]
    )
    assert overlay_effect([], OverlayContext()) == OverlayEffect()


def test_a_prompt_is_given_traits_that_are_numbers_in_range_only() -> None:
    odd = {"openness": 1.2, "extraversion": "high", "agreeableness": True, "wit": 0.5}
    effect = overlay_effect(
        [rule("odd", "always", personaTraits={**odd, "honesty": 0.1, "conscientiousness": 1})],
        OverlayContext(),
    )
    assert effect.numbers == {"conscientiousness": 1.0}
    assert "honesty" not in effect.traits


@pytest.mark.parametrize(
    ("trigger", "context", "applies"),
    [
        ("task_completed", OverlayContext(task_completed=True), True),
        ({"taskCompleted": True}, OverlayContext(task_completed=True), True),
        ({"taskCompleted": True}, OverlayContext(), False),
        ({"firstActivation": False}, OverlayContext(), True),
    ],
)
def test_the_end_of_a_task_is_a_situation(
    trigger: Any, context: OverlayContext, applies: bool
) -> None:
    assert overlay_effect([rule("r", trigger)], context).applied == (["r"] if applies else [])


def test_what_a_rule_will_never_get_is_said_whether_or_not_it_applies() -> None:
    warnings = overlay_warnings(
        PERSONA,
        [
            rule(
                "one", "never", personaTraits={"honesty": 0, "wit": 1, "openness": 7}, mood="blue"
            ),
            rule("fine", "always", personaTraits={"openness": 0}, mood="focused"),
        ],
    )
    assert len(warnings) == 4
    assert all("'one'" in warning for warning in warnings)
    for words in ("honesty of persona 'p'", "sets wit, which is no trait", "openness", "'blue'"):
        assert sum(words in warning for warning in warnings) >= 1
