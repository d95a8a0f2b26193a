"""What an agent may change about itself, and how far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gmi.personas.errors import SelfChangeRefusedError, error_from_code
from gmi.personas.self_changes import SelfChange, latest, learned_traits, strength
from gmi.personas.self_improvement import (
    EvaluationRules,
    PersonalityRules,
    SelfImprovementSettings,
    Skill,
    SkillRules,
    change_trait,
    check_param,
    check_skill,
    gated,
    moved,
    needs_approval,
    skills_on,
    with_learned,
)

CASES = json.loads((Path(__file__).parent / "data" / "trait_changes.json").read_text())["cases"]
DAY = 86400.0
NOON = 20_000 * DAY + DAY / 2


def trait(name: str, delta: float, at: float = NOON, **fields: Any) -> SelfChange:
    return SelfChange(f"{name}-{at}-{delta}", "trait", name, at=at, delta=delta, **fields)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_traits_move_within_their_budget_or_not_at_all(case: dict[str, Any]) -> None:
    rules = PersonalityRules(max_delta_per_session=case["budget"])
    traits, made = dict(case["start"]), []
    for name, delta, *expected in case["calls"]:
        if len(expected) == 1:
            with pytest.raises(SelfChangeRefusedError) as refused:
                change_trait(
                    "adapt_personality",
                    name,
                    delta,
                    current=traits.get(name),
                    session=made,
                    rules=rules,
                    layer=False,
                )
            assert refused.value.details == {"status": "rejected", "reason": expected[0]}
            continue
        change = change_trait(
            "adapt_personality",
            name,
            delta,
            current=traits.get(name),
            session=made,
            rules=rules,
            layer=False,
        )
        found = [change.previous, change.new, change.delta, change.clamped]
        assert [*found, change.session_total, change.remaining] == expected
        traits[name] = change.new
        made.append(trait(name, change.delta))


def layered(delta: float, made: list[SelfChange]) -> str | None:
    try:
        change_trait(
            "adapt_personality",
            "openness",
            delta,
            current=0.5,
            session=made,
            rules=PersonalityRules(),
            layer=True,
        )
    except SelfChangeRefusedError as error:
        return str(error.details["reason"])
    return None


@pytest.mark.parametrize(
    ("delta", "reason"),
    [(0.02, None), (-0.02, None), (0.0200001, "step_bound"), (-0.021, "step_bound")],
)
def test_with_a_layer_a_step_is_small(delta: float, reason: str | None) -> None:
    assert layered(delta, []) == reason


def test_with_a_layer_the_fourth_change_of_a_session_is_refused() -> None:
    made = [trait("openness", 0.01), trait("agreeableness", 0.01), trait("extraversion", 0.0)]
    assert layered(0.01, made[:2]) is None
    assert layered(0.01, made) == "call_limit"


def test_undoing_a_change_gives_its_budget_back_to_nobody() -> None:
    undone = [trait("openness", 0.15, undone_at=NOON)]
    assert layered(0.01, undone) == "budget_spent"


def test_a_refusal_says_who_refused_why_and_that_nothing_changed() -> None:
    error = gated("forge_tool", "no_learner")
    assert error.message.startswith("forge_tool refused (no_learner): ")
    assert error.message.endswith("; nothing was changed.")
    again = error_from_code(error.code, error.message, error.details)
    assert isinstance(again, SelfChangeRefusedError)


@pytest.mark.parametrize(
    ("days", "left"), [(0, 1), (1, 0.95), (10, 0.5), (17, 0.15), (18, 0), (400, 0)]
)
def test_a_change_fades_once_a_day_and_is_gone_at_a_tenth(days: int, left: float) -> None:
    assert strength(trait("openness", 0.1, rate=0.05), NOON + days * DAY) == left


def test_a_change_fades_at_midnight_and_not_before() -> None:
    change = trait("openness", 0.1, rate=0.05)
    assert strength(change, NOON + DAY / 2 - 1) == 1
    assert strength(change, NOON + DAY / 2) == 0.95
    assert strength(change, NOON - 5 * DAY) == 1


def test_what_was_learned_is_the_sum_of_what_is_left() -> None:
    changes = [
        trait("openness", 0.1, at=NOON - 10 * DAY, rate=0.05),
        trait("openness", 0.02, rate=0.05),
        trait("extraversion", 0.1, undone_at=NOON),
        trait("agreeableness", -0.1),
    ]
    assert learned_traits(changes, NOON) == {"agreeableness": -0.1, "openness": 0.07}


def test_learned_traits_move_the_authored_ones_within_their_range() -> None:
    authored = {"openness": 0.98, "humor": "dry", "extraversion": 5}
    learned = {"openness": 0.1, "extraversion": 0.1, "agreeableness": 0.1}
    assert with_learned(authored, learned) == {
        "openness": 1,
        "humor": "dry",
        "extraversion": 5,
        "agreeableness": 0.6,
    }
    assert moved(5, -0.1) == 4.9


def test_the_newest_standing_change_of_a_name_counts() -> None:
    old = SelfChange("a", "skill", "s", {"on": True}, at=1)
    new = SelfChange("b", "skill", "s", {"on": False}, at=2)
    undone = SelfChange("c", "skill", "s", {"on": True}, at=3, undone_at=4)
    assert latest([new, undone, old], "skill")["s"] is new


SKILLS = [
    Skill(id="chess", name="Chess", category="games", enabled=True),
    Skill(id="go", name="Go", category="games"),
    Skill(id="tax", name="Tax", category="law"),
    Skill(id="core", name="Core", category="law", locked=True),
]


def test_skills_are_as_the_author_set_them_until_they_are_switched() -> None:
    switched = [
        SelfChange("a", "skill", "go", {"on": True}, at=1),
        SelfChange("b", "skill", "core", {"on": True}, at=1),
    ]
    assert skills_on(SKILLS, []) == {"chess": True, "go": False, "tax": False, "core": False}
    assert skills_on(SKILLS, switched) == {"chess": True, "go": True, "tax": False, "core": False}


def test_a_skill_of_a_new_category_is_for_somebody_else_to_decide() -> None:
    on = skills_on(SKILLS, [])
    assert not needs_approval(SKILLS[1], SKILLS, on, SkillRules())
    assert needs_approval(SKILLS[2], SKILLS, on, SkillRules())
    free = SkillRules(require_approval_for_new_categories=False)
    assert not needs_approval(SKILLS[2], SKILLS, on, free)


@pytest.mark.parametrize(
    ("skill", "allowlist", "reason"),
    [(3, ["*"], "locked"), (1, ["chess", "t*"], "not_allowed"), (2, ["chess", "t*"], None)],
)
def test_locked_and_unlisted_skills_are_refused(
    skill: int, allowlist: list[str], reason: str | None
) -> None:
    rules = SkillRules(allowlist=tuple(allowlist))
    if reason is None:
        check_skill("manage_skills", SKILLS[skill], rules)
        return
    with pytest.raises(SelfChangeRefusedError, match=rf"\({reason}\)"):
        check_skill("manage_skills", SKILLS[skill], rules)


@pytest.mark.parametrize(
    ("param", "value", "taken"),
    [("temperature", 0.4, 0.4), ("temperature", 2, 2.0), ("verbosity", "brief", "concise")],
)
def test_settings_take_what_fits(param: Any, value: Any, taken: Any) -> None:
    assert check_param("self_evaluate", param, value, EvaluationRules()) == taken


@pytest.mark.parametrize(
    ("param", "value", "rules", "reason"),
    [
        ("temperature", 2.1, {}, "invalid_value"),
        ("temperature", True, {}, "invalid_value"),
        ("temperature", "hot", {}, "invalid_value"),
        ("verbosity", "loud", {}, "invalid_value"),
        ("verbosity", "brief", {"adjustableParams": ["temperature"]}, "not_allowed"),
        ("temperature", 0.4, {"autoAdjust": False}, "not_allowed"),
    ],
)
def test_settings_refuse_the_rest(param: Any, value: Any, rules: Any, reason: str) -> None:
    with pytest.raises(SelfChangeRefusedError, match=rf"\({reason}\)"):
        check_param("self_evaluate", param, value, EvaluationRules.model_validate(rules))


def test_nothing_may_be_changed_unless_it_is_enabled() -> None:
    rules = SelfImprovementSettings()
    assert not rules.enabled
    assert rules.personality.max_delta_per_session == 0.15
    assert (rules.personality.persist_with_decay, rules.personality.decay_rate) == (True, 0.05)
    assert (rules.skills.allowlist, rules.workflows.max_steps) == (("*",), 10)
    assert rules.self_eval.max_evaluations_per_session == 10
