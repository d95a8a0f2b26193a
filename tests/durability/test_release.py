"""Sessions that are released, ended from outside, reset or never opened."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from gmi.personas.errors import (
    GMIError,
    SessionClosedError,
    SessionNotFoundError,
    SessionUserMismatchError,
)
from gmi.worker import Session
from gmi.workflows.turns import SubmitTurn, TurnTicket

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Text


async def ended(stage: Stage, session: Session, timeout: float = 30) -> WorkflowExecutionStatus:
    """Wait until the session's workflow no longer runs; returns how it ended."""
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    async with asyncio.timeout(timeout):
        while True:
            status = (await handle.describe()).status
            assert status is not None
            if status != WorkflowExecutionStatus.RUNNING:
                return status
            await asyncio.sleep(0.05)


async def test_a_released_session_goes_on_where_it_was(stage: Stage) -> None:
    stage.model.on("one", Text("first"))
    stage.model.on("two", Text("second"))
    session = stage.session(idle_timeout=0.5)
    first = await session.send("one", request_id="r1")
    key = session.key
    assert await ended(stage, session) == WorkflowExecutionStatus.COMPLETED
    stream = await session.stream("two")
    assert (await asyncio.wait_for(stream.result(), 30)).response_text == stream.text == "second"
    assert session.key == key
    again = await session.send("one", request_id="r1")
    assert again.turn == first.turn
    assert len(stage.model.requests) == 2
    assert [m["content"] for m in stage.model.requests[1]["messages"][1:]] == [
        "one",
        "first",
        "two",
    ]
    assert await ended(stage, session) == WorkflowExecutionStatus.COMPLETED
    await session.stop()
    await session.close()
    fresh = stage.session(session.id)
    stage.model.on("new", Text("empty"))
    await fresh.send("new")
    assert fresh.key != key
    assert len(stage.model.requests[-1]["messages"]) == 2


async def test_a_session_with_a_pending_call_is_not_released(stage: Stage) -> None:
    stage.model.on("ask", Call("ask_person", {"question": "which?"}))
    stage.model.on("ask", Text("red"), calls=1)
    stage.model.on("hello", Text("hi"))
    session = stage.session(idle_timeout=0.3)
    other = stage.session(idle_timeout=0.3)
    paused = await session.send("ask")
    # Another session of the same age is released meanwhile.
    await other.send("hello")
    await ended(stage, other)
    assert (await session.state()).status == "awaiting_tool_result"
    output = await session.handle_tool_result(paused.tool_calls[0].id, "red")
    assert output.response_text == "red"
    assert await ended(stage, session) == WorkflowExecutionStatus.COMPLETED


async def test_messages_that_meet_the_release_are_answered(stage: Stage) -> None:
    stage.model.on("message", Text("ok"))
    session = stage.session(idle_timeout=0.05)
    for number in range(25):
        stream = await session.stream(f"message {number}", request_id=f"r{number}")
        output = await asyncio.wait_for(stream.result(), 30)
        assert (output.response_text, stream.text) == ("ok", "ok")
        await asyncio.sleep(0.002 * (number % 25) + 0.04)
    turns = await session.turns()
    assert [t["request_id"] for t in turns] == [f"r{n}" for n in range(25)]
    assert len(stage.model.requests) == 25


async def test_a_terminated_session_goes_on_from_the_store(stage: Stage) -> None:
    stage.model.on("one", Text("first"))
    stage.model.on("long", Text("old "), Barrier("mid"), Text("words"), times=1)
    stage.model.on("long", Text("new words"))
    session = stage.session()
    await session.send("one", request_id="r1")
    stream = await session.stream("long", request_id="r2")
    while stream.text != "old ":
        async for _ in stream:
            break
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    await handle.terminate("by an operator")
    with pytest.raises(SessionClosedError, match="same request id"):
        await asyncio.wait_for(stream.result(), 30)
    again = await session.stream("long", request_id="r2")
    stage.model.open("mid")
    output = await asyncio.wait_for(again.result(), 30)
    assert (output.status, output.response_text, again.text) == ("done", "new words", "new words")
    assert again.turn == stream.turn
    assert (await session.send("one", request_id="r1")).response_text == "first"
    assert len(stage.model.requests) == 3
    history = [m.text for m in await session.get_conversation_history()]
    assert history == ["one", "first", "long", "new words"]


async def test_a_session_that_was_reset_to_an_earlier_point_works_on(stage: Stage) -> None:
    stage.model.on("one", Text("first"))
    stage.model.on("two", Text("second"))
    stage.model.on("three", Text("third"))
    session = stage.session()
    await session.send("one")
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    history = await handle.fetch_history()
    done = [
        e.event_id
        for e in history.events
        if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    ][-1]
    await session.send("two")
    await stage.client.temporal.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace="default",
            workflow_execution=WorkflowExecution(workflow_id=session.workflow_id),
            reason="an operator's wish",
            request_id="reset-1",
            workflow_task_finish_event_id=done,
            reset_reapply_exclude_types=[
                ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
                ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
            ],
        )
    )
    fresh = (await stage.reconnect()).session(session.id, user_id="kim")
    stream = await fresh.stream("three")
    output = await asyncio.wait_for(stream.result(), 30)
    assert (output.response_text, stream.text) == ("third", "third")
    assert "second" not in str(stage.model.requests[-1]["messages"])
    texts = [m.text for m in await fresh.get_conversation_history()]
    assert texts == ["one", "first", "three", "third"]
    # Who had read the stream to its end before the reset is not left waiting.
    old = await session.stream("three")
    assert (await asyncio.wait_for(old.result(), 40)).response_text == old.text == "third"


async def test_a_refused_first_call_leaves_nothing_behind(stage: Stage) -> None:
    session = stage.session(user_id="kim")
    payload = SubmitTurn(content="hello", user_id="somebody else")
    with pytest.raises(SessionUserMismatchError):
        await session._update("submit_turn", payload, TurnTicket)
    assert await ended(stage, session) == WorkflowExecutionStatus.COMPLETED
    with pytest.raises(SessionNotFoundError):
        await session.turns()
    with pytest.raises(GMIError) as wrong:
        await stage.session(session.id, model="nobody:nothing").send("hello")
    assert wrong.value.code != "GMI_PROCESSING_ERROR"
    await ended(stage, session)
    with pytest.raises(SessionNotFoundError):
        await session.turns()
    stage.model.on("hello", Text("hi"))
    assert (await session.send("hello")).response_text == "hi"


async def test_a_cancelled_session_closes(stage: Stage) -> None:
    stage.model.on("go", Text("some "), Barrier("mid"), Text("more"))
    session = stage.session()
    sending = asyncio.create_task(session.send("go", stream=True, request_id="r"))
    await stage.model.reached("mid")
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    await handle.cancel()
    assert await ended(stage, session) in (
        WorkflowExecutionStatus.CANCELED,
        WorkflowExecutionStatus.COMPLETED,
    )
    output = await asyncio.wait_for(sending, 30)
    assert output.status == "stopped"
    assert [t["status"] for t in await session.turns()] == ["stopped"]
    with pytest.raises(RPCError) as gone:
        await handle.signal("close", {})
    assert gone.value.status == RPCStatusCode.NOT_FOUND
