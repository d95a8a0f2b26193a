"""Changes that an agent makes to itself: the gate, its traits, its skills, its settings."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.tools import Tool, ToolRegistry
from gmi.activities.tools.self_improvement import SELF_IMPROVEMENT_TOOLS, offered
from gmi.activities.tools.self_improvement.scores import read_scores
from gmi.personas.errors import ToolError
from gmi.personas.learning import Switches, TurnLearning
from gmi.personas.schema import Persona
from gmi.workflows.steps import ToolOutcome

from .conftest import Bench
from .improving import BOUND, Desk, Refused

CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("adapt_personality", {"trait": "openness", "delta": 0.01, "reasoning": "why"}),
    ("manage_skills", {"action": "enable", "skillId": "go"}),
    ("manage_skills", {"action": "disable", "skillId": "chess"}),
    (
        "create_workflow",
        {"action": "create", "name": "w", "steps": [{"tool": "look_up", "args": {"word": "a"}}]},
    ),
    (
        "self_evaluate",
        {"action": "adjust", "param": "temperature", "value": 0.2, "reasoning": "why"},
    ),
    (
        "forge_tool",
        {
            "name": "double",
            "description": "d",
            "inputSchema": {"type": "object"},
            "implementation": {"mode": "expression", "expression": "2 * x"},
            "testCases": [{"input": {"x": 2}, "expectedOutput": 4}],
        },
    ),
]
GATES = [
    (TurnLearning(mode="frozen", learner="bound"), False, "frozen"),
    (TurnLearning(mode="off", learner="bound"), False, "off"),
    (TurnLearning(mode="on", learner="none", reason="anonymous"), False, "no_learner"),
    (BOUND, True, "frozen"),
    (TurnLearning(mode="off", learner="none"), True, "frozen"),
    (None, True, "frozen"),
]


@pytest.mark.parametrize(("learning", "frozen", "reason"), GATES)
@pytest.mark.parametrize(("tool", "arguments"), CHANGES, ids=lambda part: str(part)[:30])
async def test_a_change_is_refused_where_nothing_may_be_learned(
    tool: str,
    arguments: dict[str, Any],
    learning: TurnLearning | None,
    frozen: bool,
    reason: str,
) -> None:
    desk = Desk(Switches(frozen_by="GMI_LEARNING_FREEZE") if frozen else None)
    refused = await desk.call(tool, learning=learning, **arguments)
    assert isinstance(refused, Refused)
    assert refused.code == "SELF_CHANGE_REFUSED"
    assert refused.details == {"status": "rejected", "reason": reason}
    assert refused.message.startswith(f"{tool} refused ({reason}): ")
    assert refused.message.endswith("; nothing was changed.")
    assert desk.store.kept == {}


@pytest.mark.parametrize("learning", [BOUND, None], ids=["a learner", "no layer"])
@pytest.mark.parametrize(("tool", "arguments"), CHANGES, ids=lambda part: str(part)[:30])
async def test_a_change_is_made_once_however_often_its_call_is_tried(
    tool: str, arguments: dict[str, Any], learning: TurnLearning | None
) -> None:
    desk = Desk()
    first = await desk.outcome(tool, learning=learning, key="k", **arguments)
    assert isinstance(first, ToolOutcome)
    again = await desk.outcome(tool, learning=learning, key="k", **arguments)
    assert again == first
    [change] = desk.store.kept.values()
    assert change.learner == (None if learning is None else BOUND.key)


async def test_what_was_made_is_told_again_also_after_a_freeze() -> None:
    tool, arguments = CHANGES[0]
    desk = Desk()
    made = await desk.call(tool, key="k", **arguments)
    frozen = TurnLearning(mode="frozen", learner="bound", key=BOUND.key)
    assert await desk.call(tool, key="k", learning=frozen, **arguments) == made


def adapt(trait: str, delta: float) -> dict[str, Any]:
    return {"trait": trait, "delta": delta, "reasoning": "because"}


async def test_a_trait_moves_and_the_session_is_told_by_how_much() -> None:
    desk = Desk()
    outcome = await desk.outcome(
        "adapt_personality", learning=None, traits={"openness": 0.5}, **adapt("openness", 0.1)
    )
    assert isinstance(outcome, ToolOutcome)
    assert outcome.value == {
        "trait": "openness",
        "previousValue": 0.5,
        "newValue": 0.6,
        "delta": 0.1,
        "clamped": False,
        "sessionTotal": 0.1,
        "remainingBudget": 0.05,
    }
    assert outcome.patch == {"traits": {"openness": 0.1}}


async def test_calls_of_one_round_build_on_each_other() -> None:
    desk = Desk()
    facts: dict[str, Any] = {"learning": None, "traits": {"openness": 0.5}, "step": 4}
    await desk.call("adapt_personality", **facts, **adapt("openness", 0.1))
    second = await desk.call("adapt_personality", **facts, **adapt("openness", 0.1))
    assert (second["previousValue"], second["newValue"], second["clamped"]) == (0.6, 0.65, True)
    later = await desk.call(
        "adapt_personality",
        learning=None,
        traits={"openness": 0.65},
        step=5,
        **adapt("openness", 0.1),
    )
    assert later.reason == "budget_spent"


async def test_each_session_has_a_budget_of_its_own() -> None:
    desk = Desk(personality={"maxDeltaPerSession": 0.02})
    for session in ("s1", "s2"):
        made = await desk.call("adapt_personality", session=session, **adapt("openness", 0.02))
        assert made["remainingBudget"] == 0
        spent = await desk.call("adapt_personality", session=session, **adapt("openness", 0.01))
        assert spent.reason == "budget_spent"


async def test_a_layers_bounds_hold_besides() -> None:
    desk = Desk()
    big = await desk.call("adapt_personality", **adapt("openness", 0.021))
    assert big.reason == "step_bound"
    for _ in range(3):
        assert (await desk.call("adapt_personality", **adapt("openness", 0.02)))["delta"] == 0.02
    assert (await desk.call("adapt_personality", **adapt("openness", 0.01))).reason == "call_limit"
    other = await desk.call("adapt_personality", session="s2", **adapt("openness", 0.01))
    assert other["delta"] == 0.01


@pytest.mark.parametrize("learning", [BOUND, None])
@pytest.mark.parametrize("trait", ["honesty", "emotionality"])
async def test_two_traits_are_the_authors(trait: str, learning: TurnLearning | None) -> None:
    refused = await Desk().call("adapt_personality", learning=learning, **adapt(trait, 0.01))
    assert refused.reason == "operator_only"


@pytest.mark.parametrize(
    "arguments",
    [
        {"trait": "warmth", "delta": 0.1, "reasoning": "r"},
        {"trait": "openness", "delta": "0.1", "reasoning": "r"},
        {"trait": "openness", "delta": float("nan"), "reasoning": "r"},
        {"trait": "openness", "delta": 0.1, "reasoning": "  "},
        {"trait": "openness", "reasoning": "r"},
    ],
)
async def test_a_call_that_does_not_say_what_it_wants_is_not_run(arguments: Any) -> None:
    desk = Desk()
    refused = await desk.call("adapt_personality", **arguments)
    assert refused.code == "TOOL_ARGUMENTS_INVALID"
    assert desk.store.kept == {}


async def test_a_change_that_is_not_to_be_kept_stays_with_its_session() -> None:
    desk = Desk(personality={"persistWithDecay": False})
    await desk.call("adapt_personality", **adapt("openness", 0.02))
    [change] = desk.store.kept.values()
    assert (change.learner, change.rate, change.session) == (None, 0, "s1")


async def test_a_kept_change_fades() -> None:
    desk = Desk(personality={"decayRate": 0.2})
    await desk.call("adapt_personality", **adapt("openness", 0.02))
    [change] = desk.store.kept.values()
    assert (change.learner, change.rate) == (BOUND.key, 0.2)


async def test_skills_are_listed_found_and_switched() -> None:
    desk = Desk()
    listed = (await desk.call("manage_skills", action="list"))["skills"]
    assert [(s["skillId"], s["enabled"]) for s in listed] == [
        ("chess", True),
        ("go", False),
        ("tax", False),
        ("core", False),
    ]
    found = await desk.call("manage_skills", action="search", query="BOARD games")
    assert [skill["skillId"] for skill in found["skills"]] == ["go"]
    assert await desk.call("manage_skills", action="enable", skillId="go") == {
        "status": "enabled",
        "skillId": "go",
    }
    again = await desk.call("manage_skills", action="enable", skillId="go")
    assert again["alreadyActive"] is True
    await desk.call("manage_skills", action="disable", skillId="chess", days=1)
    listed = (await desk.call("manage_skills", action="list", session="s2"))["skills"]
    assert [skill["skillId"] for skill in listed if skill["enabled"]] == ["go"]


async def test_a_new_category_needs_somebody_elses_word() -> None:
    desk = Desk()
    answer = await desk.call("manage_skills", action="enable", skillId="tax")
    assert (answer["status"], answer["category"]) == ("requires_approval", "law")
    assert desk.store.kept == {}
    free = Desk(skills={"requireApprovalForNewCategories": False})
    answer = await free.call("manage_skills", action="enable", skillId="tax")
    assert answer["status"] == "enabled"


@pytest.mark.parametrize(
    ("skill", "reason"), [("core", "locked"), ("poker", "unknown_skill"), ("go", "not_allowed")]
)
async def test_skills_that_may_not_be_switched_are_refused(skill: str, reason: str) -> None:
    desk = Desk(skills={"allowlist": ["chess", "core"]})
    refused = await desk.call("manage_skills", action="enable", skillId=skill)
    assert refused.reason == reason


async def test_lists_are_told_also_where_nothing_may_be_learned() -> None:
    desk = Desk()
    await desk.call("manage_skills", action="enable", skillId="go")
    off = TurnLearning(mode="off", learner="bound", key=BOUND.key)
    listed = (await desk.call("manage_skills", action="list", learning=off))["skills"]
    assert [skill["skillId"] for skill in listed if skill["enabled"]] == ["chess"]
    report = await desk.call("self_evaluate", action="report", learning=off)
    assert report["totalEvaluations"] == 0


def evaluate(response: str = "It is 4.") -> dict[str, Any]:
    return {"action": "evaluate", "response": response, "query": "What is 2 + 2?"}


async def test_an_answer_is_judged_counted_and_billed() -> None:
    desk = Desk(selfEval={"maxEvaluationsPerSession": 2})
    outcome = await desk.outcome("self_evaluate", key="k", **evaluate())
    assert isinstance(outcome, ToolOutcome)
    assert outcome.value == {"scores": desk.scores, "evalCount": 1, "remainingEvaluations": 1}
    assert outcome.patch is not None
    assert outcome.patch["usage"]["prompt_tokens"] == 10
    assert "2 + 2" in outcome.patch["remember"]
    assert await desk.outcome("self_evaluate", key="k", **evaluate()) == outcome
    assert desk.judged == 1
    assert (await desk.call("self_evaluate", **evaluate()))["remainingEvaluations"] == 0
    spent = await desk.call("self_evaluate", **evaluate())
    assert (spent.reason, desk.judged) == ("limit_reached", 2)
    other = await desk.call("self_evaluate", session="s2", **evaluate())
    assert other["evalCount"] == 1


async def test_a_turn_that_may_not_learn_is_judged_and_leaves_no_memory() -> None:
    desk = Desk()
    frozen = TurnLearning(mode="frozen", learner="bound", key=BOUND.key)
    outcome = await desk.outcome("self_evaluate", learning=frozen, **evaluate())
    assert isinstance(outcome, ToolOutcome)
    assert outcome.value["selfChangeRefused"] == "frozen"
    assert outcome.patch is not None
    assert "remember" not in outcome.patch
    report = await desk.call("self_evaluate", action="report", learning=frozen)
    assert report["averageScores"] == desk.scores


async def test_settings_are_adjusted_and_reported() -> None:
    desk = Desk()
    asked: dict[str, Any] = {"action": "adjust", "reasoning": "too long"}
    first = await desk.outcome("self_evaluate", param="verbosity", value="brief", **asked)
    assert isinstance(first, ToolOutcome)
    assert first.value == {
        "param": "verbosity",
        "previousValue": None,
        "newValue": "concise",
    }
    assert first.patch == {"params": {"verbosity": "concise"}}
    second = await desk.call("self_evaluate", param="verbosity", value="detailed", **asked)
    assert second["previousValue"] == "concise"
    value = {"trait": "openness", "delta": 0.02}
    third = await desk.outcome(
        "self_evaluate", param="personality", value=value, traits={"openness": 0.4}, **asked
    )
    assert isinstance(third, ToolOutcome)
    assert (third.value["param"], third.value["newValue"]) == ("personality", 0.42)
    assert third.patch == {"traits": {"openness": 0.02}}
    report = await desk.call("self_evaluate", action="report")
    assert [entry["param"] for entry in report["adjustments"]] == [
        "verbosity",
        "verbosity",
        "personality",
    ]
    assert report["personalityDrift"] == {"openness": 0.02}


@pytest.mark.parametrize(
    ("param", "value", "reason"),
    [
        ("temperature", 3, "invalid_value"),
        ("verbosity", "loud", "invalid_value"),
        ("personality", {"trait": "warmth", "delta": 0.01}, "invalid_value"),
        ("personality", {"trait": "honesty", "delta": 0.01}, "operator_only"),
        ("personality", {"trait": "openness", "delta": 0.5}, "step_bound"),
        ("personality", "more open", "invalid_value"),
    ],
)
async def test_an_adjustment_that_cannot_be_made_is_refused(
    param: str, value: Any, reason: str
) -> None:
    refused = await Desk().call(
        "self_evaluate", action="adjust", param=param, value=value, reasoning="r"
    )
    assert refused.reason == reason


async def test_an_action_names_what_it_lacks() -> None:
    desk = Desk()
    for tool, arguments, name in [
        ("self_evaluate", {"action": "evaluate", "query": "q"}, "response"),
        ("self_evaluate", {"action": "adjust", "param": "temperature", "value": 1}, "reasoning"),
        ("manage_skills", {"action": "enable"}, "skillId"),
        ("create_workflow", {"action": "run"}, "workflowId"),
    ]:
        refused = await desk.call(tool, **arguments)
        assert refused.code == "TOOL_ERROR"
        assert repr(name) in refused.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would say 0.9",
        '{"relevance": 1, "clarity": 1, "accuracy": 1}',
        '{"relevance": 1, "clarity": 1, "accuracy": 1, "helpfulness": 7}',
        '{"relevance": true, "clarity": 1, "accuracy": 1, "helpfulness": 1}',
        '{"relevance": 1,',
        '{"relevance": ' + "[" * 3_000 + "}",
    ],
)
def test_a_judge_that_gives_no_scores_is_not_believed(text: str) -> None:
    with pytest.raises(ToolError, match="could not be judged"):
        read_scores(text)


def test_scores_are_read_out_of_a_judges_words() -> None:
    said = 'Here: {"relevance": 1, "clarity": 0.25, "accuracy": 0.5, "helpfulness": 0} done'
    assert read_scores(said) == {
        "relevance": 1,
        "clarity": 0.25,
        "accuracy": 0.5,
        "helpfulness": 0,
    }


def test_only_a_persona_that_may_change_itself_is_offered_the_tools() -> None:
    desk = Desk()
    plain = desk.persona.model_copy(update={"emergent": None})
    everything = set(desk.registry.names())
    assert set(offered(plain, None, desk.registry)) == everything - SELF_IMPROVEMENT_TOOLS
    assert set(offered(desk.persona, None, desk.registry)) == everything
    named = offered(desk.persona, ["look_up"], desk.registry)
    assert set(named) == {"look_up", *SELF_IMPROVEMENT_TOOLS}
    assert offered(plain, ["look_up", "forge_tool"], desk.registry) == ["look_up"]


async def test_a_persona_that_may_not_change_itself_is_not_served() -> None:
    desk = Desk()
    desk.persona = Persona.model_validate(
        {**desk.persona.model_dump(by_alias=True), "emergent": None}
    )
    refused = await desk.call("adapt_personality", **adapt("openness", 0.01))
    assert "emergent.selfImprovement.enabled" in refused.message


def test_the_model_is_told_of_every_argument_and_of_nothing_else() -> None:
    for tool in Desk().registry.all():
        if tool.name in SELF_IMPROVEMENT_TOOLS:
            assert tool.route.reads_mind
            assert tool.route.effect in ("idempotent", "read")
            properties = tool.definition.parameters["properties"]
            assert "context" not in properties
            assert all(told.get("description") for told in properties.values())


async def test_a_tools_own_outcome_keeps_its_patch(bench: Bench) -> None:
    def change() -> ToolOutcome:
        return ToolOutcome(value={"n": 1}, patch={"params": {"a": 1}})

    outcome = await bench.call(Tool.from_function(change))
    assert (outcome.value, outcome.patch) == ({"n": 1}, {"params": {"a": 1}})
    assert ToolRegistry([Tool.from_function(change)]).get("change").route.reads_mind is False
