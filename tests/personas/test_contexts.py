"""What a host tells a mind of the user and of the task."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.contexts import MAX_CONTEXT_BYTES, check_context, told
from gmi.personas.errors import MessageTooLargeError, ValidationError
from gmi.personas.mind import Mind, TaskContext, UserContext

USUAL = UserContext()


def test_preferences_are_merged_and_the_rest_is_replaced() -> None:
    before = UserContext(preferences={"verbosity": "short", "tone": {"a": 1}})
    after, changed = told(
        before,
        {"skillLevel": "expert", "preferences": {"tone": {"b": 2}}, "goals": ["x"]},
        USUAL,
    )
    assert after.skill_level == "expert"
    assert after.preferences == {"verbosity": "short", "tone": {"b": 2}}
    assert changed == {
        "skill_level": "expert",
        "preferences": after.preferences,
        "goals": ["x"],
    }
    again, changed = told(after, {"goals": ["y"]}, USUAL)
    assert again.model_dump()["goals"] == ["y"]
    assert changed == {"goals": ["y"]}
    assert told(again, {"goals": ["y"]}, USUAL) == (again, {})


def test_none_takes_a_value_back_to_what_the_persona_starts_with() -> None:
    usual = TaskContext(domain="law", complexity="simple")
    before = usual.model_copy(update={"complexity": "complex"})
    before, _ = told(before, {"deadline": "today", "domain": "tax"}, usual)
    after, changed = told(before, {"complexity": None, "domain": None, "deadline": None}, usual)
    assert after == usual
    assert changed == {"complexity": "simple", "domain": "law", "deadline": None}


def test_what_is_told_stays_small_however_much_is_said() -> None:
    context = UserContext(skill_level="expert")
    for number in range(30):
        given = {f"note{number}": "n" * 300, "preferences": {f"p{number}": "v" * 100}}
        context, _ = told(context, given, USUAL)
        assert len(context.model_dump_json()) <= MAX_CONTEXT_BYTES
    assert context.skill_level == "expert"
    assert "p29" in context.preferences
    assert "p0" not in context.preferences


def test_a_context_comes_back_from_json_as_it_was() -> None:
    user, _ = told(USUAL, {"name": "Kim", "copy": 1, "preferences": {"x": None, "y": 1}}, USUAL)
    mind = Mind(user=user)
    assert Mind.model_validate_json(mind.model_dump_json()) == mind


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (UserContext, {"skillLevel": "wizard"}),
        (UserContext, {"skill_level": ["expert"]}),
        (UserContext, {"preferences": "short"}),
        (UserContext, {"age": float("nan")}),
        (UserContext, {"name": "\ud800"}),
        (TaskContext, {"complexity": "medium"}),
        (TaskContext, {"domain": ""}),
        (TaskContext, {"status": 3}),
    ],
)
def test_a_context_that_does_not_fit_is_refused(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check_context(given, kind)


def test_a_context_has_at_most_two_kilobytes() -> None:
    check_context({"x": "y" * 2000}, UserContext)
    check_context(None, UserContext)
    check_context({"complexity": None, "anything": {"at": ["all"]}}, TaskContext)
    with pytest.raises(MessageTooLargeError, match="task_context"):
        check_context({"x": "y" * 2048}, TaskContext)
