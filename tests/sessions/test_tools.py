"""Tool rounds: every call is answered once, in order, whatever becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.worker import Worker

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Text


@activity.defn(name="far_away")
async def far_away(request: dict[str, Any]) -> Any:
    """As a worker in another language would serve it: a plain dictionary in, JSON out."""
    arguments = request["arguments"]
    if arguments["a"] < 0:
        return RawValue(Payload(metadata={"encoding": b"binary/odd"}, data=b"\xff\xfe"))
    return {"sum": arguments["a"] + arguments["b"], "key": request["key"]}


@pytest.fixture(scope="module")
async def other_worker(shared: Stage) -> AsyncIterator[None]:
    """A worker of the remote queue that knows nothing of this project."""
    queue = shared.environ["TEST_REMOTE_QUEUE"]
    async with Worker(shared.client.temporal, task_queue=queue, activities=[far_away]):
        yield


async def ask(stage: Stage, text: str, *calls: Call, **config: Any) -> list[dict[str, Any]]:
    """The tool messages that the model is shown after it asked for these calls."""
    stage.model.on(text, *calls)
    stage.model.on(text, Text("done"), calls=len(calls))
    output = await stage.session(**config).send(text)
    assert output.response_text == "done", output.error
    return results(stage, text)


def results(stage: Stage, text: str) -> list[dict[str, Any]]:
    return [m for m in stage.model.asked(text)[-1]["messages"] if m["role"] == "tool"]


def facts(message: dict[str, Any]) -> dict[str, Any]:
    """The facts of an error result."""
    head, _, data = message["content"].partition(": ")
    assert head.startswith("Error from ")
    found: dict[str, Any] = json.loads(data)
    return found


def codes(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [facts(message)["code"] for message in messages]


async def test_calls_of_a_round_run_at_once_and_answer_in_call_order(stage: Stage) -> None:
    stage.model.on("order-1", Call("meet", {"name": "late"}), Call("meet", {"name": "early"}))
    stage.model.on("order-1", Text("done"), calls=2)
    stream = await stage.session().stream("order-1")
    await stage.model.reached("late")
    await stage.model.reached("early")
    stage.model.open("early")
    published = []
    async for chunk in stream:
        if chunk.type == "tool_result":
            published.append(chunk.content["result"])
            stage.model.open("late")
    assert published == ["met early", "met late"]
    assert [m["content"] for m in results(stage, "order-1")] == ["met late", "met early"]


async def test_an_unknown_tool_is_an_answer_that_names_the_known_ones(stage: Stage) -> None:
    [answer] = await ask(stage, "unknown-1", Call("no_such_tool", {"a": 1}))
    found = facts(answer)
    assert found["code"] == "TOOL_UNKNOWN"
    assert "echo" in found["known"]


async def test_a_tool_that_raises_is_an_error_result(stage: Stage) -> None:
    answers = await ask(stage, "raise-1", Call("broken"), Call("echo", {"text": "b"}))
    assert "it is broken" in answers[0]["content"]
    assert answers[1]["content"] == "b"


async def test_wrong_arguments_are_an_error_result(stage: Stage) -> None:
    answers = await ask(stage, "wrong-1", Call("echo", {}), Call("echo", {"text": ["no"]}))
    assert codes(answers) == ["TOOL_ARGUMENTS_INVALID"] * 2
    assert "text" in answers[0]["content"]


async def test_a_tool_that_only_reads_is_tried_again(stage: Stage) -> None:
    before = len(stage.model.effects)
    [answer] = await ask(stage, "flaky-1", Call("flaky"))
    assert answer["content"] == "now"
    assert stage.model.effects[before:] == ["flaky:1", "flaky:2"]


async def test_the_trace_tells_the_attempt_that_a_call_ended_on(
    stage: Stage, other_worker: None
) -> None:
    text = "attempts-1"
    stage.model.on(
        text,
        Call("flaky", id="c1"),
        Call("echo", {"text": "b"}, id="c2"),
        Call("overdue", id="c3"),
        Call("broken", id="c4"),
        Call("far_away", {"a": 2, "b": 3}, id="c5"),
    )
    stage.model.on(text, Text("done"), calls=5)
    session = stage.session()
    await session.send(text)
    told = {
        entry.details["call_id"]: entry
        for entry in await session.get_reasoning_trace()
        if entry.type == "TOOL_EXECUTION_RESULT"
    }
    assert told["c1"].details["attempt"] == 2
    assert told["c1"].message == "flaky answered on attempt 2."
    assert told["c2"].details["attempt"] == 1
    assert told["c2"].message == "echo answered."
    assert told["c3"].details["attempt"] == 1
    assert told["c4"].details["attempt"] == 1
    # What another worker returns does not say it.
    assert "attempt" not in told["c5"].details


async def test_a_tool_that_takes_too_long_is_an_error_result(stage: Stage) -> None:
    before = len(stage.model.effects)
    answers = await ask(stage, "late-1", Call("overdue"), Call("overdue_once"))
    assert len(answers) == 2
    assert "TOOL_OUTCOME_UNKNOWN" in answers[1]["content"]
    assert stage.model.effects[before:] == ["overdue_once:1"]


async def test_large_results_reach_the_model_whole_and_keep_the_history_small(
    stage: Stage,
) -> None:
    answers = await ask(
        stage,
        "large-1",
        Call("big", {"kilobytes": 7}),
        Call("big", {"kilobytes": 9}),
        Call("big", {"kilobytes": 1900}),
        Call("records", {"count": 300}),
        model="openai:gpt-4.1",
    )
    assert [len(m["content"]) for m in answers[:3]] == [7 * 1024, 9 * 1024, 1900 * 1024]
    assert len(json.loads(answers[3]["content"])) == 300
    session = stage.session()
    stage.model.on("large-2", Call("big", {"kilobytes": 1900}))
    stage.model.on("large-2", Text("done"), calls=1)
    await session.send("large-2")
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    described = await handle.describe()
    assert described.raw_description.workflow_execution_info.history_size_bytes < 60_000


async def test_a_result_over_two_megabytes_or_not_json_is_a_typed_error(stage: Stage) -> None:
    answers = await ask(stage, "huge-1", Call("big", {"kilobytes": 2500}), Call("not_a_number"))
    assert codes(answers)[0] == "TOOL_RESULT_TOO_LARGE"
    assert facts(answers[0])["bytes"] == 2500 * 1024
    assert facts(answers[0])["limit"] == 2_000_000


async def test_large_arguments_reach_the_tool(stage: Stage) -> None:
    text = "ä" * 20_000
    [answer] = await ask(stage, "args-1", Call("echo", {"text": text}), model="openai:gpt-4.1")
    assert answer["content"] == text


async def test_a_tool_with_a_queue_is_served_by_any_worker(
    stage: Stage, other_worker: None
) -> None:
    [answer] = await ask(stage, "remote-1", Call("far_away", {"a": 2, "b": 3}, id="c9"))
    found = json.loads(answer["content"])
    assert found["sum"] == 5
    assert found["key"].endswith(":0:c9")


async def test_a_tool_that_nobody_serves_is_a_typed_answer(
    stage: Stage, other_worker: None
) -> None:
    answers = await ask(
        stage, "nobody-1", Call("never_served"), Call("unregistered"), Call("echo", {"text": "x"})
    )
    assert codes(answers[:2]) == ["TOOL_NOT_RUN", "TOOL_NOT_RUN"]
    assert "no worker took it within" in facts(answers[0])["message"]
    assert "unregistered" in facts(answers[1])["message"]
    assert answers[2]["content"] == "x"


async def test_a_remote_result_that_no_converter_reads_is_a_typed_answer(
    stage: Stage, other_worker: None
) -> None:
    answers = await ask(
        stage, "garbled-1", Call("far_away", {"a": -1, "b": 0}), Call("echo", {"text": "x"})
    )
    assert codes(answers[:1]) == ["TOOL_RESULT_NOT_JSON"]
    assert answers[1]["content"] == "x"


async def test_internal_and_external_calls_of_a_round_are_answered_together(stage: Stage) -> None:
    stage.model.on(
        "mixed-1",
        Call("ask_person", {"question": "which?"}, id="host"),
        Call("echo", {"text": "mine"}, id="own"),
        Call("nonsense", id="bad"),
    )
    stage.model.on("mixed-1", Text("done"), calls=3)
    session = stage.session()
    paused = await session.send("mixed-1")
    assert (paused.status, [c.id for c in paused.tool_calls]) == ("waiting", ["host"])
    output = await session.handle_tool_result("host", "red")
    assert output.response_text == "done"
    answers = results(stage, "mixed-1")
    assert [m["tool_call_id"] for m in answers] == ["host", "own", "bad"]
    assert [m["content"] for m in answers[:2]] == ["red", "mine"]


async def test_only_the_tools_that_a_session_names_are_offered(stage: Stage) -> None:
    stage.model.on("offer-1", Text("done"))
    await stage.session(tools=["echo", "ask_person"]).send("offer-1")
    [body] = stage.model.asked("offer-1")
    assert [t["function"]["name"] for t in body["tools"]] == ["echo", "ask_person"]
    stage.model.on("offer-2", Text("done"))
    await stage.session(tools=[]).send("offer-2")
    assert "tools" not in stage.model.asked("offer-2")[0]


async def test_a_stop_in_a_round_leaves_every_call_answered(stage: Stage) -> None:
    stage.model.on(
        "stop-1", Call("echo", {"text": "a"}), Call("meet", {"name": "stopping"}), Call("slow")
    )
    stage.model.on("afterwards-1", Text("ok"))
    session = stage.session()
    stream = await session.stream("stop-1")
    await stage.model.reached("stopping")
    await asyncio.wait_for(stream.stop(), 5)
    stage.model.open("stopping")
    output = await stream.result()
    assert output.status == "stopped"
    await session.send("afterwards-1")
    shown = [m for m in stage.model.asked("afterwards-1")[-1]["messages"] if m["role"] == "tool"]
    assert [m["content"] == "a" for m in shown] == [True, False, False]
    assert codes(shown[1:]) == ["TOOL_INTERRUPTED", "TOOL_INTERRUPTED"]


async def test_fail_closed_starts_nothing_beside_a_call_that_cannot_run(stage: Stage) -> None:
    before = len(stage.model.effects)
    stage.model.on("closed-1", Call("charge", {"amount": 1}), Call("nonsense"))
    output = await stage.session(tool_failure_mode="fail_closed").send("closed-1")
    assert output.error is not None
    assert output.error.code == "TOOL_ERROR"
    assert stage.model.effects[before:] == []


async def test_a_stream_that_is_held_up_in_a_model_step_can_be_stopped(stage: Stage) -> None:
    stage.model.on("stop-2", Text("so far"), Barrier("held"))
    session = stage.session()
    stream = await session.stream("stop-2")
    await stage.model.reached("held")
    async for _ in stream.text_deltas():
        break
    await asyncio.wait_for(stream.stop(), 5)
    output = await stream.result()
    stage.model.open("held")
    assert (output.status, output.response_text) == ("stopped", "so far")
