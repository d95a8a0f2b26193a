"""Workflows that an agent composes of its tools."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.learning.store import Call
from gmi.activities.tools.self_improvement.composing import resolve
from gmi.personas.errors import ToolError
from gmi.personas.learning import TurnLearning
from gmi.personas.self_changes import Holder

from .improving import BOUND, Desk, Refused

STEPS = [
    {"tool": "look_up", "args": {"word": "$input.word"}},
    {"tool": "send", "args": {"text": "$prev.word"}},
    {"tool": "look_up", "args": {"word": "$steps[0].parts[1]"}},
]


async def kept(desk: Desk, steps: list[dict[str, Any]], **facts: Any) -> str:
    made = await desk.call("create_workflow", action="create", name="w", steps=steps, **facts)
    return str(made["workflowId"])


async def run(desk: Desk, workflow: str, given: Any = None, **facts: Any) -> Any:
    return await desk.call(
        "create_workflow", action="run", workflowId=workflow, input=given, **facts
    )


async def test_a_workflow_is_kept_run_and_listed() -> None:
    desk = Desk()
    made = await desk.call(
        "create_workflow", action="create", name=" tell ", description="tells", steps=STEPS
    )
    assert (made["name"], made["stepCount"]) == ("tell", 3)
    ran = await run(desk, made["workflowId"], {"word": "ape"}, key="k1")
    assert [step["tool"] for step in ran["stepResults"]] == ["look_up", "send", "look_up"]
    assert ran["finalOutput"] == {"word": "p", "letters": 1, "parts": ["p"]}
    assert ran["runCount"] == 1
    assert desk.sent == [("ape", "k1:1")]
    assert (await run(desk, made["workflowId"], {"word": "ape"}))["runCount"] == 2
    [listed] = (await desk.call("create_workflow", action="list"))["workflows"]
    assert listed == {
        "workflowId": made["workflowId"],
        "name": "tell",
        "description": "tells",
        "stepCount": 3,
        "runCount": 2,
    }


async def test_a_run_that_is_tried_again_does_nothing_twice() -> None:
    desk = Desk()
    workflow = await kept(desk, STEPS)
    first = await run(desk, workflow, {"word": "ape"}, key="k1")
    assert await run(desk, workflow, {"word": "ape"}, key="k1") == first
    assert len(desk.sent) == 1


async def test_a_run_that_was_lost_goes_on_after_what_was_done() -> None:
    desk = Desk()
    steps = [
        {"tool": "send", "args": {"text": "one"}},
        {"tool": "look_up", "args": {"word": "nothing"}},
    ]
    workflow = await kept(desk, steps)
    failed = await run(desk, workflow, key="k1")
    assert failed.details == {"step": 1, "tool": "look_up"}
    assert "no such word" in failed.message
    await run(desk, workflow, key="k1")
    assert desk.sent == [("one", "k1:0")]


async def test_what_may_have_been_done_is_not_done_again() -> None:
    desk = Desk()
    workflow = await kept(desk, [{"tool": "send", "args": {"text": "one"}}])
    desk.lost = True
    lost = await run(desk, workflow, key="k1")
    assert lost.code == "ConnectionError"
    desk.lost = False
    unknown = await run(desk, workflow, key="k1")
    assert unknown.code == "TOOL_OUTCOME_UNKNOWN"
    assert len(desk.sent) == 1
    assert (await run(desk, workflow, key="k2"))["finalOutput"] == "sent one"


async def test_what_may_be_done_twice_is_done_again_until_it_answers() -> None:
    desk = Desk()
    workflow = await kept(desk, [{"tool": "put", "args": {"text": "one"}}])
    lost = Call("k1", Holder("s1", BOUND.key), "turn", 0, 0.0)
    await desk.store.begin_step(lost, 0)
    assert (await run(desk, workflow, key="k1"))["finalOutput"] == 1
    assert desk.put == ["one"]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "too_many_steps"),
        ([{"tool": "look_up", "args": {"word": "a"}}] * 4, "too_many_steps"),
        ([{"tool": "fly"}], "not_composable"),
        ([{"tool": "ask"}], "not_composable"),
        ([{"tool": "order", "args": {"item": "a"}}], "not_composable"),
        ([{"tool": "create_workflow", "args": {"action": "list"}}], "not_composable"),
        ([{"tool": "use_forged_tool"}], "not_composable"),
        ([{"tool": "look_up", "args": {"word": "$steps[0]"}}], "not_composable"),
        ([{"tool": "look_up", "args": {"word": "x" * 20_000}}], "too_large"),
    ],
)
async def test_steps_that_could_not_be_run_are_refused(steps: Any, reason: str) -> None:
    desk = Desk(workflows={"maxSteps": 3})
    refused = await desk.call("create_workflow", action="create", name="w", steps=steps)
    assert isinstance(refused, Refused)
    assert refused.details == {"status": "rejected", "reason": reason}
    assert desk.store.kept == {}


async def test_a_step_that_does_not_fit_its_tool_fails_the_run() -> None:
    desk = Desk()
    workflow = await kept(desk, [{"tool": "look_up", "args": {"words": "a"}}])
    failed = await run(desk, workflow)
    assert failed.details == {"step": 0, "tool": "look_up"}
    assert "'words'" in failed.message


async def test_a_workflow_comes_back_in_the_learners_next_session_and_nowhere_else() -> None:
    desk = Desk()
    workflow = await kept(desk, STEPS[:1])
    assert (await run(desk, workflow, {"word": "ape"}, session="s2"))["runCount"] == 1
    eve = TurnLearning(
        mode="on",
        learner="bound",
        key=BOUND.key.model_copy(update={"user": "eve"}) if BOUND.key else None,
    )
    refused = await run(desk, workflow, {"word": "ape"}, learning=eve)
    assert "there is no workflow" in refused.message
    frozen = TurnLearning(mode="frozen", learner="bound", key=BOUND.key)
    assert (await run(desk, workflow, {"word": "ape"}, learning=frozen))["runCount"] == 2


def test_references_stand_for_values_and_other_texts_stand_for_themselves() -> None:
    given, results = {"a": [1, {"b": 2}]}, ["first", {"x": [7]}]
    args = {
        "whole": "$input",
        "deep": "$input.a[1].b",
        "last": "$prev.x[0]",
        "certain": ["$steps[0]"],
        "price": "$5",
        "text": "costs $input",
    }
    assert resolve(args, given, results) == {
        "whole": given,
        "deep": 2,
        "last": 7,
        "certain": ["first"],
        "price": "$5",
        "text": "costs $input",
    }
    assert resolve("$prev", given, []) == given
    for lost in ("$input.z", "$input.a[9]", "$steps[5]", "$input.a.b"):
        with pytest.raises(ToolError, match="leads to nothing"):
            resolve(lost, given, results)
