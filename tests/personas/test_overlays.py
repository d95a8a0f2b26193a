from typing import Any

import pytest

from gmi.personas import OverlayContext, OverlayRule, Persona, apply_overlays

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
