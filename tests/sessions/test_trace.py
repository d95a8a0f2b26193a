"""The reasoning trace and the other reads: while a turn runs, afterwards, and after the close."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gmi.worker import Session
from gmi.workflows.pages import Read
from gmi.workflows.trace import TraceEntry

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Fail, Text, Used


async def entries(session: Session, turn: str | None = None) -> list[TraceEntry]:
    trace = await session.get_reasoning_trace()
    assert [entry.seq for entry in trace] == list(range(1, len(trace) + 1))
    return [entry for entry in trace if turn is None or entry.turn == turn]


def types(trace: list[TraceEntry]) -> list[str]:
    return [entry.type for entry in trace]


async def test_a_plain_turn_leaves_five_entries(stage: Stage) -> None:
    text = "trace-1 " + "é" * 200
    stage.model.on("trace-1", Text("x"), Used(7, 3))
    session = stage.session()
    output = await session.send(text)
    trace = await entries(session, output.turn)
    assert types(trace) == [
        "INTERACTION_START",
        "PROMPT_CONSTRUCTION_COMPLETE",
        "LLM_CALL_START",
        "LLM_CALL_COMPLETE",
        "INTERACTION_END",
    ]
    start, built, call, complete, end = trace
    assert start.details == {"input_type": "text", "preview": text[:100]}
    assert built.details["messages"] == 2
    assert (call.details["hop"], call.details["attempt"]) == (0, 1)
    assert complete.details["finish_reason"] == "stop"
    assert complete.details["usage"]["total_tokens"] == 10
    assert end.details == {"status": "done", "steps": 1}


async def test_a_tool_turn_names_its_calls_and_their_results(stage: Stage) -> None:
    stage.model.on("trace-2", Call("echo", {"text": "a"}, id="c1"), Call("broken", id="c2"))
    stage.model.on("trace-2", Text("x"), calls=2)
    session = stage.session()
    output = await session.send("trace-2")
    trace = await entries(session, output.turn)
    seen = types(trace)
    assert seen[:5] == [
        "INTERACTION_START",
        "PROMPT_CONSTRUCTION_COMPLETE",
        "LLM_CALL_START",
        "TOOL_CALL_REQUESTED",
        "LLM_CALL_COMPLETE",
    ]
    assert sorted(seen[5:9]) == ["TOOL_EXECUTION_RESULT"] * 2 + ["TOOL_EXECUTION_START"] * 2
    assert seen[9:] == [
        "PROMPT_CONSTRUCTION_COMPLETE",
        "LLM_CALL_START",
        "LLM_CALL_COMPLETE",
        "INTERACTION_END",
    ]
    [asked] = [e for e in trace if e.type == "TOOL_CALL_REQUESTED"]
    assert asked.details["calls"] == [
        {"id": "c1", "name": "echo"},
        {"id": "c2", "name": "broken"},
    ]
    results = {e.details["call_id"]: e.details for e in trace if e.type == "TOOL_EXECUTION_RESULT"}
    assert results["c1"]["is_error"] is False
    assert "it is broken" in results["c2"]["error"]["message"]


async def test_a_failed_turn_leaves_an_error_with_its_details(stage: Stage) -> None:
    stage.model.on("trace-3", Fail(400, body={"error": {"message": "bad", "code": "odd"}}))
    session = stage.session()
    output = await session.send("trace-3")
    trace = await entries(session, output.turn)
    assert types(trace) == ["INTERACTION_START", "WARNING", "ERROR", "INTERACTION_END"]
    error = trace[2]
    assert error.details["code"] == "LLM_PROVIDER_ERROR"
    assert error.details["details"]["status"] == 400
    assert error.details["details"]["code"] == "odd"


async def test_the_trace_is_read_while_a_turn_runs_and_after_the_close(stage: Stage) -> None:
    stage.model.on("trace-4", Text("x"))
    stage.model.on("trace-5", Barrier("tracing"), Text("y"))
    session = stage.session()
    await session.send("trace-4")
    stream = await session.stream("trace-5")
    await stage.model.reached("tracing")
    running = await entries(session)
    assert running[0].type == "LIFECYCLE"
    assert running[-1].type == "INTERACTION_START"
    assert running[-1].turn == stream.turn
    stage.model.open("tracing")
    await stream.result()
    await session.close()
    closed = await entries(session)
    assert types(closed)[: len(running)] == types(running)
    assert types(closed)[-1] == "LIFECYCLE"
    history = await session.get_conversation_history()
    assert [m.text for m in history] == ["trace-4", "x", "trace-5", "y"]
    assert len(await session.turns()) == 2
    elsewhere = (await stage.reconnect()).session(session.id, user_id="kim")
    assert await elsewhere.get_conversation_history() == history
    assert [e.model_dump() for e in await elsewhere.get_reasoning_trace()] == [
        e.model_dump() for e in closed
    ]
    assert await elsewhere.get_reasoning_trace(limit=1) == closed[-1:]
    assert await elsewhere.get_reasoning_trace(limit=0) == []
    found = await elsewhere.get_turn(stream.turn)
    assert found is not None
    assert found.response_text == "y"
    assert (await elsewhere.usage()).turns == 2


async def test_a_read_waits_for_what_its_reader_has_seen(stage: Stage) -> None:
    session = stage.session()
    for n in range(10):
        stage.model.on(f"seen-{n}.", Text(f"a{n}"))
        await session.send(f"seen-{n}.")
        assert (await session.get_conversation_history())[-1].text == f"a{n}"
    page = await stage.client.read(
        Read(what="turns", session_id=session.id, min_counter=10_000, wait=0.2)
    )
    assert page.behind
    assert len(page.items) == 10


async def test_long_lists_are_read_page_by_page(stage: Stage) -> None:
    session = stage.session()
    for n in range(7):
        stage.model.on(f"page-{n}.", Text(f"a{n}"))
        await session.send(f"page-{n}.")
    found = [item["turn"] async for item in session.read("turns", limit=3)]
    assert len(found) == len(set(found)) == 7
    texts = [item["message"]["content"] async for item in session.read("messages", limit=5)]
    assert texts == [t for n in range(7) for t in (f"page-{n}.", f"a{n}")]


async def test_the_state_says_what_the_session_is_doing(stage: Stage) -> None:
    stage.model.on("doing-1", Barrier("doing"), Text("x"))
    stage.model.on("doing-2", Text("y"))
    session = stage.session()
    state = await session.initialize()
    assert (state.status, state.turns, state.head, state.persona) == ("ready", 0, None, "plain")
    assert state.gmi_id == f"gmi-{session.key}"
    stream = await session.stream("doing-1")
    await stage.model.reached("doing")
    second = await session.stream("doing-2")
    state = await session.state()
    assert (state.status, state.active_turn, state.active_step) == ("processing", stream.turn, 0)
    assert state.queued == 1
    status = await session.status()
    assert [a.activity for a in status.activities] == ["gmi.model.run_step"]
    assert status.waiting_until is None
    assert await session.get_turn(stream.turn) is None
    again = await session.initialize()
    assert again.active_turn == stream.turn
    stage.model.open("doing")
    assert (await stream.result()).status == "done"
    last = await second.result()
    state = await session.state()
    assert (state.status, state.turns, state.head) == ("ready", 2, last.turn)
    assert (await session.get_persona()).id == "plain"


async def test_usage_is_summed_by_model(stage: Stage) -> None:
    stage.model.on("sum-1", Text("x"), Used(10, 5))
    stage.model.on("sum-2", Text("y"), Used(20, 7))
    session = stage.session()
    await session.send("sum-1")
    await session.send("sum-2", model="groq:other")
    view = await session.usage()
    assert view.turns == 2
    assert (view.usage.prompt_tokens, view.usage.completion_tokens) == (30, 12)
    assert {name: u.total_tokens for name, u in view.by_model.items()} == {
        "openai:scripted": 15,
        "groq:other": 27,
    }


async def test_every_report_of_usage_has_its_cost(stage: Stage) -> None:
    stage.model.on("cost-1", Text("a"), Call("echo", {"text": "x"}), Used(1000, 100))
    stage.model.on("cost-1", Text("b"), Used(2000, 10), calls=1)
    session = stage.session(model="openai:gpt-4.1")
    stream = await session.stream("cost-1")
    reports = [chunk.content async for chunk in stream if chunk.type == "usage_update"]
    output = await stream.result()
    costs = [report["cost_usd"] for report in reports]
    assert len(costs) == 2
    assert all(cost > 0 for cost in costs)
    assert output.usage.cost_usd == pytest.approx(sum(costs))
    assert (await session.usage()).usage.cost_usd == output.usage.cost_usd


async def many_calls(stage: Stage, count: int) -> tuple[int, int]:
    """History bytes and runs of a turn with so many calls of 5 KB each."""
    name = f"many-{count}."
    for done in range(count):
        stage.model.on(name, Call("big", {"kilobytes": 5}), calls=done)
    stage.model.on(name, Text("done"), calls=count)
    session = stage.session(max_tool_iterations=100, model="openai:gpt-4.1")
    output = await session.send(name)
    assert (output.status, output.steps, output.response_text) == ("done", count + 1, "done")
    total = runs = 0
    async for run in stage.client.temporal.list_workflows(f"WorkflowId = '{session.workflow_id}'"):
        handle = stage.client.temporal.get_workflow_handle(run.id, run_id=run.run_id)
        info = (await handle.describe()).raw_description.workflow_execution_info
        total += info.history_size_bytes
        runs += 1
    return total, runs


async def test_a_turn_of_many_calls_costs_the_history_the_same_for_each(stage: Stage) -> None:
    ten, _ = await many_calls(stage, 10)
    thirty, _ = await many_calls(stage, 30)
    fifty, _ = await many_calls(stage, 50)
    assert fifty - thirty == pytest.approx(thirty - ten, rel=0.15)
    assert fifty < 1_500_000


@pytest.mark.prove
async def test_a_hundred_calls_of_five_kilobytes_stay_far_below_the_limit(stage: Stage) -> None:
    size, runs = await many_calls(stage, 100)
    assert size < 5_000_000
    assert runs <= 2


async def test_watchers_see_turns_that_others_send(stage: Stage) -> None:
    session = stage.session()
    await session.initialize()
    other = (await stage.reconnect()).session(session.id, user_id="kim")
    seen: list[Any] = []

    async def watch() -> None:
        async for chunk in other.watch():
            seen.append(chunk)
            if chunk.is_final:
                return

    stage.model.on("watched-1", Barrier("watched"), Text("hello"))
    stream = await session.stream("watched-1")
    await stage.model.reached("watched")
    watching = asyncio.create_task(watch())
    await other.state()
    stage.model.open("watched")
    await stream.result()
    await asyncio.wait_for(watching, 20)
    assert [c.type for c in seen][-1] == "final_response_marker"
    assert all(c.turn == stream.turn for c in seen)
