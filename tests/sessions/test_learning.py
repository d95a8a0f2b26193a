"""What a session learns: learners, the personality section, and changes that tools make."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import pytest

from gmi.activities.store import open_store
from gmi.activities.store.learning.sql import SQLLearningStore
from gmi.personas.learning import LearnerKey
from gmi.personas.personality import personality_section
from gmi.personas.self_changes import Holder
from gmi.worker import Session

from ..conftest import Stage
from ..support.scripted_model import Call, Text

SELF_TOOLS = {
    "adapt_personality",
    "manage_skills",
    "create_workflow",
    "self_evaluate",
    "forge_tool",
    "use_forged_tool",
}

LIVELY = (personality_section({"extraversion": 0.66}) or "").splitlines()[1]
"""The line of the prompt that shows once extraversion was raised."""


def marked(text: str) -> tuple[str, str]:
    """A marker of the test's own, and the text with it."""
    marker = f"m{uuid.uuid4().hex[:10]}"
    return marker, f"{text} {marker}"


def system(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"])


async def turn(stage: Stage, session: Session, *calls: Call) -> tuple[Any, list[dict[str, Any]]]:
    """A turn in which the model makes these calls at once; its output and the model's requests."""
    marker, text = marked("please")
    if calls:
        stage.model.on(marker, *calls, times=1)
    stage.model.on(marker, Text("done"), calls=len(calls))
    output = await session.send(text)
    assert (output.status, output.response_text) == ("done", "done")
    return output, stage.model.asked(marker)


def results(body: dict[str, Any]) -> list[str]:
    return [str(m["content"]) for m in body["messages"] if m["role"] == "tool"]


def adapt(trait: str, delta: float, id_: str = "") -> Call:
    arguments = {"trait": trait, "delta": delta, "reasoning": "it helps"}
    return Call("adapt_personality", arguments, id=id_)


async def test_a_persona_that_learns_shows_its_personality_once_in_each_step(
    stage: Stage,
) -> None:
    session = stage.session(persona="learning", user_id="lena")
    _, bodies = await turn(stage, session, Call("echo", {"text": "hi"}))
    section = personality_section({"openness": 0.9, "extraversion": 0.5})
    assert section is not None
    assert [system(body).count(section) for body in bodies] == [1, 1]
    assert system(bodies[0]) == system(bodies[1])


async def test_only_a_persona_that_may_change_itself_is_offered_the_tools(stage: Stage) -> None:
    _, [body] = await turn(stage, stage.session(persona="learning", user_id="lea"))
    assert {tool["function"]["name"] for tool in body["tools"]} == {
        *SELF_TOOLS,
        "charge",
        "echo",
        "meet",
    }
    _, [body] = await turn(stage, stage.session(user_id="lea"))
    assert not SELF_TOOLS & {tool["function"]["name"] for tool in body["tools"]}


async def test_what_was_learned_comes_back_in_the_learners_next_session(stage: Stage) -> None:
    user = f"lou-{uuid.uuid4().hex[:6]}"
    first = stage.session(persona="learning", user_id=user)
    output, bodies = await turn(
        stage, first, adapt("extraversion", 0.02, "c1"), adapt("extraversion", 0.02, "c2")
    )
    told = [json.loads(text) for text in results(bodies[-1])]
    assert sorted(one["newValue"] for one in told) == [0.66, 0.68]
    entries = [e for e in await first.get_reasoning_trace() if e.turn == output.turn]
    assert [e.details["traits"] for e in entries if e.type == "STATE_CHANGE"] == [
        {"extraversion": 0.02},
        {"extraversion": 0.02},
    ]
    assert LIVELY not in system(bodies[-1])
    _, [again] = await turn(stage, stage.session(persona="learning", user_id=user))
    assert LIVELY in system(again)
    _, [other] = await turn(stage, stage.session(persona="learning", user_id=f"{user}-2"))
    assert LIVELY not in system(other)


@pytest.mark.parametrize(
    ("persona", "user", "reason"),
    [
        ("learning", "guest", "no_learner"),
        ("learning-frozen", "lena", "frozen"),
        ("learning-off", "lena", "off"),
    ],
)
async def test_a_turn_that_may_not_learn_is_told_so_by_a_failed_result(
    stage: Stage, persona: str, user: str, reason: str
) -> None:
    session = stage.session(persona=persona, user_id=user)
    output, bodies = await turn(stage, session, adapt("extraversion", 0.02))
    [refused] = results(bodies[-1])
    assert f"adapt_personality refused ({reason})" in refused
    assert f'"status": "rejected", "reason": "{reason}"' in refused
    [entry] = [
        e
        for e in await session.get_reasoning_trace()
        if e.turn == output.turn and e.type == "TOOL_EXECUTION_RESULT"
    ]
    assert entry.details["error"]["code"] == "SELF_CHANGE_REFUSED"
    assert entry.details["error"]["details"] == {"status": "rejected", "reason": reason}


async def test_frozen_shows_what_was_learned_and_off_puts_it_aside(stage: Stage) -> None:
    user = f"luz-{uuid.uuid4().hex[:6]}"
    await turn(stage, stage.session(persona="learning", user_id=user), adapt("extraversion", 0.02))
    for persona, shown in (("learning-frozen", True), ("learning-off", False)):
        _, [body] = await turn(stage, stage.session(persona=persona, user_id=user))
        assert (LIVELY in system(body)) is shown


async def test_a_change_that_is_undone_shows_no_more(stage: Stage) -> None:
    user = f"leo-{uuid.uuid4().hex[:6]}"
    session = stage.session(persona="learning", user_id=user)
    await turn(stage, session, adapt("extraversion", 0.02))
    _, [body] = await turn(stage, session)
    assert LIVELY in system(body)
    async with open_store(stage.database_url) as store:
        learning = SQLLearningStore(store.database)
        key = LearnerKey(agent="learning", user=user)
        [change] = await learning.changes(Holder("", key))
        assert await learning.undo(change.id, time.time(), key)
    _, [body] = await turn(stage, session)
    assert LIVELY not in system(body)


async def test_without_a_layer_a_budget_that_is_spent_refuses(stage: Stage) -> None:
    session = stage.session(persona="unlayered", user_id="lars")
    _, bodies = await turn(stage, session, adapt("agreeableness", 0.1))
    assert json.loads(results(bodies[-1])[-1])["newValue"] == 0.6
    _, bodies = await turn(stage, session, adapt("agreeableness", 0.1))
    second = json.loads(results(bodies[-1])[-1])
    assert (second["previousValue"], second["newValue"], second["clamped"]) == (0.6, 0.65, True)
    _, bodies = await turn(stage, session, adapt("agreeableness", -0.1))
    assert "(budget_spent)" in results(bodies[-1])[-1]
    assert (await session.mind()).traits["agreeableness"] == 0.65


async def test_a_session_is_told_why_it_may_change_no_more(stage: Stage) -> None:
    session = stage.session(persona="learning", user_id=f"lis-{uuid.uuid4().hex[:6]}")
    for _ in range(3):
        await turn(stage, session, adapt("agreeableness", -0.01))
    _, bodies = await turn(stage, session, adapt("agreeableness", -0.01))
    assert "(call_limit)" in results(bodies[-1])[-1]


async def test_what_the_agent_set_for_itself_holds_from_its_next_turn_on(stage: Stage) -> None:
    session = stage.session(persona="learning", user_id=f"liv-{uuid.uuid4().hex[:6]}")
    asked = {"action": "adjust", "reasoning": "calmer"}
    _, bodies = await turn(
        stage,
        session,
        Call("self_evaluate", {**asked, "param": "temperature", "value": 0.25}, id="c1"),
        Call("self_evaluate", {**asked, "param": "verbosity", "value": "brief"}, id="c2"),
        Call("manage_skills", {"action": "enable", "skillId": "go"}, id="c3"),
    )
    assert all("temperature" not in body for body in bodies)
    _, [body] = await turn(stage, session)
    assert body["temperature"] == 0.25
    assert "prefers short answers" in system(body)
    assert "PLAY AWAY FROM THICKNESS" in system(body)


async def test_a_forged_tool_and_a_workflow_are_used_in_the_session(stage: Stage) -> None:
    session = stage.session(persona="learning", user_id=f"lux-{uuid.uuid4().hex[:6]}")
    _, bodies = await turn(
        stage,
        session,
        Call(
            "forge_tool",
            {
                "name": "slugify",
                "description": "makes slugs",
                "inputSchema": {"type": "object", "properties": {"t": {"type": "string"}}},
                "implementation": {
                    "mode": "expression",
                    "expression": "join(split(lower(t)), '-')",
                },
                "testCases": [{"input": {"t": "A b"}, "expectedOutput": "a-b"}],
            },
            id="c1",
        ),
        Call(
            "create_workflow",
            {
                "action": "create",
                "name": "say",
                "steps": [{"tool": "echo", "args": {"text": "$input.word"}}],
            },
            id="c2",
        ),
    )
    kept = [json.loads(text) for text in results(bodies[-1])]
    _, bodies = await turn(
        stage,
        session,
        Call("use_forged_tool", {"name": "slugify", "input": {"t": "My Title"}}, id="c3"),
        Call(
            "create_workflow",
            {"action": "run", "workflowId": kept[1]["workflowId"], "input": {"word": "ape"}},
            id="c4",
        ),
    )
    assert "slugify: makes slugs" in system(bodies[0])
    slug, ran = results(bodies[-1])[-2:]
    assert slug == "my-title"
    assert json.loads(ran)["runCount"] == 1


async def test_what_was_judged_is_forgotten_with_its_turn(stage: Stage) -> None:
    session = stage.session(persona="learning", user_id=f"lot-{uuid.uuid4().hex[:6]}")
    scores = {"relevance": 1, "clarity": 1, "accuracy": 1, "helpfulness": 1}
    stage.model.on("about the walrus", Text(json.dumps(scores)))
    asked = {"action": "evaluate", "query": "about the walrus", "response": "It sleeps."}
    output, bodies = await turn(stage, session, Call("self_evaluate", asked, id="c1"))
    assert json.loads(results(bodies[-1])[-1])["evalCount"] == 1
    report = Call("self_evaluate", {"action": "report"}, id="c2")
    _, bodies = await turn(stage, session, report)
    assert "walrus" in results(bodies[-1])[-1]
    await session.memory.forget(turn=output.turn)
    _, bodies = await turn(stage, session, report)
    told = json.loads(results(bodies[-1])[-1])
    assert told["totalEvaluations"] == 1
    assert "walrus" not in str(told)
