"""What foreign clients, odd models and races may send: nothing wedges a session."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WithStartWorkflowOperation, WorkflowFailureError
from temporalio.client import WorkflowUpdateFailedError as UpdateFailed
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError

from gmi.personas.errors import NotPendingError
from gmi.personas.messages import Message
from gmi.workflows.turns import HostResult, StopTurn

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Text


async def test_a_stop_that_races_with_the_answer_is_the_same_in_the_store(stage: Stage) -> None:
    stage.model.on("collide", Text("plain"))
    session = stage.session()
    dice = random.Random(7)
    seen: dict[str, str] = {}
    for _ in range(40):
        stream = await session.stream("collide")
        await asyncio.sleep(dice.uniform(0, 0.04))
        await session._signal("stop_turn", StopTurn(turn=stream.turn))
        seen[stream.turn] = (await session.wait(stream.turn)).status
    rows = {row["turn"]: row["status"] for row in await session.turns()}
    assert rows == seen
    assert set(Counter(seen.values())) >= {"stopped"}


@pytest.mark.parametrize(
    "items",
    [
        [{"type": "text_delta", "content": 5}],
        [{"type": "text_delta"}],
        [{"type": "usage_update", "metadata": {"failed_attempt": 1}}],
        [{"type": "usage_update", "metadata": {"failed_attempt": [], "hop": 1}}],
    ],
)
async def test_chunks_of_somebody_elses_making_are_passed_over(
    stage: Stage, items: list[dict[str, Any]]
) -> None:
    name = f"odd-{abs(hash(str(items)))}"
    stage.model.on(name, Text("some "), Barrier(name), Text("more"))
    session = stage.session()
    stream = await session.stream(name)
    await stage.model.reached(name)
    while stream.text != "some ":
        async for _ in stream:
            break
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    batch = {"turn": stream.turn, "step": 0, "attempt": 1, "first_seq": 1, "items": items}
    await handle.signal("chunks", batch)
    await handle.signal("__temporal_workflow_stream_publish", {"items": [{"topic": "chunks"}]})
    stage.model.open(name)
    assert (await asyncio.wait_for(stream.result(), 20)).response_text == "some more"


@pytest.mark.parametrize(
    "start",
    [
        {"session_id": "x"},
        None,
        {"session_id": "x", "user_id": "kim", "config": {"max_tool_iterations": 1000}},
        {"session_id": "x", "user_id": "kim", "state": {"a": 1}},
        {"session_id": "another", "user_id": "kim"},
    ],
)
async def test_a_start_that_cannot_be_read_is_refused_and_the_id_is_free(
    stage: Stage, start: Any
) -> None:
    session = stage.session()
    operation = WithStartWorkflowOperation(
        "GMISession",
        start,
        id=session.workflow_id,
        task_queue=stage.client.task_queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    with pytest.raises(UpdateFailed) as caught:
        await asyncio.wait_for(
            stage.client.temporal.execute_update_with_start_workflow(
                "submit_turn",
                {"content": "hi", "user_id": "kim"},
                start_workflow_operation=operation,
            ),
            20,
        )
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "SYS_VALIDATION_ERROR"
    stage.model.on("fine now", Text("yes"))
    answer = await asyncio.wait_for(session.send("fine now"), 30)
    assert answer.response_text == "yes"


@pytest.mark.parametrize(
    "request_",
    [
        None,
        {"what": "nope", "session_id": "x"},
        {"what": "turns", "session_id": "x", "limit": 5000},
        {"what": "turns", "session_id": "{id}", "after": '[99999999999999999999,"x"]'},
        {"what": "usage", "session_id": "{id}", "after": '["no","a","a",1,1,1,"p",1]'},
        {"what": "turns", "session_id": "{id}", "after": "[" * 100_000},
        {"what": "text", "session_id": "{id}", "turn": "t", "after": "[-2]"},
    ],
)
async def test_a_read_that_cannot_be_answered_says_so(stage: Stage, request_: Any) -> None:
    session = stage.session()
    stage.model.on("readable", Text("x"))
    await session.send("readable")
    if request_ is not None and request_["session_id"] == "{id}":
        request_ = {**request_, "session_id": session.id}
    with pytest.raises(WorkflowFailureError) as caught:
        await stage.client.temporal.execute_workflow(
            "GMIRead",
            request_,
            id=f"read-{session.id}-{random.random()}",
            task_queue=stage.client.task_queue,
            execution_timeout=timedelta(seconds=20),
        )
    cause: BaseException | None = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type in ("SYS_VALIDATION_ERROR", "TURN_UNKNOWN")


@pytest.mark.parametrize("depth", [300, 5000])
async def test_arguments_nested_too_deeply_are_malformed(stage: Stage, depth: int) -> None:
    name = f"deep-{depth}."
    stage.model.on(name, Call("echo", raw='{"a":' * depth + "1" + "}" * depth))
    stage.model.on(name, Text("so it was"), calls=1)
    output = await asyncio.wait_for(stage.session().send(name), 20)
    assert output.response_text == "so it was"
    assert "TOOL_ARGUMENTS_MALFORMED" in str(stage.model.requests[-1]["messages"])


async def test_an_approval_that_was_given_stays_given(stage: Stage) -> None:
    stage.model.on("flip", Call("pay", {"amount": 11}), Call("ask_person", {"question": "?"}))
    stage.model.on("flip", Text("paid"), calls=2)
    session = stage.session()
    paused = await session.send("flip")
    pay, ask = (call.id for call in paused.tool_calls)
    first = await session.answer([HostResult(call_id=pay, approved=True)], rest="wait")
    again = await session.answer([HostResult(call_id=pay, approved=True)], rest="wait")
    assert (first.accepted, again.accepted, again.duplicates) == ([pay], [], [pay])
    for other in (HostResult(call_id=pay, approved=False), HostResult(call_id=pay, content="x")):
        with pytest.raises(NotPendingError):
            await session.answer([other], rest="wait")
    output = await session.handle_tool_result(ask, "yes")
    assert output.response_text == "paid"
    assert "pay:11" in stage.model.effects


async def test_a_history_of_very_many_short_messages_is_taken(stage: Stage) -> None:
    stage.model.on("after many", Text("here"))
    session = stage.session()
    messages = [
        Message(role="user" if n % 2 == 0 else "assistant", content=f"message {n}")
        for n in range(7_000)
    ]
    await asyncio.wait_for(session.replace_history(messages), 60)
    assert (await session.send("after many")).response_text == "here"
