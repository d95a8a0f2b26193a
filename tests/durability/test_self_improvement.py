"""What an agent changes about itself, when its worker is killed or its session reset."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from gmi.activities.store import open_store
from gmi.activities.store.learning.sql import SQLLearningStore
from gmi.personas.learning import LearnerKey
from gmi.personas.personality import personality_section
from gmi.personas.self_changes import Holder, SelfChange

from ..conftest import MakeStage, Stage
from ..support.scripted_model import Barrier, Call, Text

PERSONA: dict[str, Any] = {
    "id": "changing-itself",
    "name": "Changing",
    "description": "For tests.",
    "version": "1.0.0",
    "baseSystemPrompt": "BASE",
    "personalityTraits": {"extraversion": 0.64},
    "toolIds": ["charge", "meet"],
    "learning": {"traits": True},
    "emergent": {"selfImprovement": {"enabled": True}},
}
ADA = LearnerKey(agent="changing-itself", user="ada")
SCORES = '{"relevance": 1, "clarity": 1, "accuracy": 1, "helpfulness": 1}'


async def started(make_stage: MakeStage, directory: Path) -> Stage:
    personas = directory / "personas"
    personas.mkdir()
    (personas / "changing.json").write_text(json.dumps(PERSONA))
    return await make_stage(GMI_PERSONAS=str(personas), DEFAULT_PERSONA_ID="changing-itself")


async def changes(stage: Stage) -> list[SelfChange]:
    async with open_store(stage.database_url) as store:
        return await SQLLearningStore(store.database).changes(Holder("", ADA))


def last_result(stage: Stage) -> Any:
    told = [m for m in stage.model.requests[-1]["messages"] if m["role"] == "tool"]
    return json.loads(told[-1]["content"])


async def test_a_workflow_whose_worker_is_killed_goes_on_after_what_it_did(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = await started(make_stage, tmp_path)
    steps = [
        {"tool": "charge", "args": {"amount": "$input"}},
        {"tool": "meet", "args": {"name": "shop"}},
    ]
    create = {"action": "create", "name": "buy", "steps": steps}
    stage.model.on("keep", Call("create_workflow", create, id="c1"))
    stage.model.on("keep", Text("kept"), calls=1)
    session = stage.session(user_id="ada")
    await session.send("keep it")
    workflow = last_result(stage)["workflowId"]

    run = {"action": "run", "workflowId": workflow, "input": 7}
    stage.model.on("buy", Call("create_workflow", run, id="c2"))
    stage.model.on("buy", Text("bought"), calls=1)
    stream = await session.stream("buy it")
    following = asyncio.create_task(stream.result())
    await stage.model.reached("shop")
    stage.workers[0].kill()
    await stage.worker()
    stage.model.open("shop")
    output = await asyncio.wait_for(following, 60)
    assert output.response_text == "bought"
    assert len([effect for effect in stage.model.effects if effect.startswith("charge:7")]) == 1
    ran = last_result(stage)
    assert (ran["finalOutput"], ran["runCount"]) == ("met shop", 1)
    assert [step["result"] for step in ran["stepResults"]] == ["charged 7", "met shop"]


async def test_an_evaluation_whose_worker_is_killed_counts_once(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = await started(make_stage, tmp_path)
    asked = {"action": "evaluate", "query": "the harbour", "response": "It is north."}
    stage.model.on("judge yourself", Call("self_evaluate", asked, id="c1"))
    stage.model.on("judge yourself", Text("judged"), calls=1)
    stage.model.on("the harbour", Barrier("judging"), Text(SCORES), times=1)
    stage.model.on("the harbour", Text(SCORES))
    session = stage.session(user_id="ada")
    stream = await session.stream("judge yourself")
    following = asyncio.create_task(stream.result())
    await stage.model.reached("judging")
    stage.workers[0].kill()
    await stage.worker()
    output = await asyncio.wait_for(following, 60)
    assert output.response_text == "judged"
    told = last_result(stage)
    assert (told["evalCount"], told["remainingEvaluations"]) == (1, 9)
    bills = [row async for row in session.read("usage") if row["purpose"].startswith("judge")]
    # The attempt that was killed had no answer yet.
    assert [(row["purpose"], row["attempt"], row["state"]) for row in bills] == [
        ("judge:c1", 2, "done")
    ]


async def test_a_change_is_made_once_also_by_a_session_that_is_reset_to_before_it(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = await started(make_stage, tmp_path)
    adapt = {"trait": "extraversion", "delta": 0.02, "reasoning": "it helps"}
    stage.model.on("livelier", Call("adapt_personality", adapt, id="c1"))
    stage.model.on("livelier", Text("done"), calls=1)
    stage.model.on("and now", Text("here I am"))
    session = stage.session(user_id="ada")
    await session.send("be livelier")
    [made] = await changes(stage)
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    history = await handle.fetch_history()
    [asked] = [
        event.activity_task_scheduled_event_attributes.workflow_task_completed_event_id
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        and event.activity_task_scheduled_event_attributes.activity_type.name == "adapt_personality"
    ]
    await stage.client.temporal.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace="default",
            workflow_execution=WorkflowExecution(workflow_id=session.workflow_id),
            reason="an operator's wish",
            request_id="reset-1",
            workflow_task_finish_event_id=asked,
            reset_reapply_exclude_types=[
                ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
                ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
            ],
        )
    )
    fresh = (await stage.reconnect()).session(session.id, user_id="ada")
    output = await asyncio.wait_for(fresh.send("and now"), 60)
    assert output.response_text == "here I am"
    assert await changes(stage) == [made]
    section = personality_section({"extraversion": 0.66})
    assert section is not None
    assert section in stage.model.requests[-1]["messages"][0]["content"]
    assert (await fresh.mind()).traits["extraversion"] == 0.66
    adapted = [
        body for body in stage.model.asked("be livelier") if body["messages"][-1]["role"] == "tool"
    ]
    assert len(adapted) == 2
