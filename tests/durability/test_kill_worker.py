"""kill -9 and SIGTERM at named points of a turn, with a second worker standing by."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from gmi.personas.messages import Usage
from gmi.worker import TurnStream
from gmi.workflows.turns import HostResult, TurnOutput

from ..conftest import MakeStage
from ..support.pairing import assert_paired
from ..support.scripted_model import Barrier, Call, Error, Fail, Text, Used


async def follow(stream: TurnStream) -> TurnOutput:
    """Read a turn to its end, and check what every reader relies on."""
    output = await stream.result()
    assert stream.text == (output.response_text or "")
    return output


async def test_a_worker_killed_in_a_streamed_step_loses_no_word(make_stage: MakeStage) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("go", Text("one "), Text("two "), Barrier("mid"), Text("lost"), times=1)
    stage.model.on("go", Text("one "), Text("two "), Text("three"))
    session = stage.session()
    stream = await session.stream("go")
    following = asyncio.create_task(follow(stream))
    await stage.model.reached("mid")
    while "two" not in stream.text:
        await asyncio.sleep(0.02)
    await stage.worker()
    stage.workers[0].kill()
    output = await asyncio.wait_for(following, 30)
    assert output.status == "done"
    assert output.response_text == "one two three"
    history = await session.get_conversation_history()
    assert [m.text for m in history] == ["go", "one two three"]


async def test_the_stream_says_that_a_step_was_started_again(make_stage: MakeStage) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("go", Text("wrong "), Barrier("mid"), times=1)
    stage.model.on("go", Text("right"))
    session = stage.session()
    stream = await session.stream("go")
    types: list[str] = []

    async def read() -> None:
        async for chunk in stream:
            types.append(chunk.type)

    reading = asyncio.create_task(read())
    await stage.model.reached("mid")
    while "wrong" not in stream.text:
        await asyncio.sleep(0.02)
    stage.workers[0].kill()
    await stage.worker()
    await asyncio.wait_for(reading, 30)
    assert types == [
        "text_delta",
        "step_restarted",
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    assert stream.text == "right"


async def test_a_tool_that_runs_only_once_is_not_run_again_after_a_kill(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("charge", Call("charge_slowly", {"amount": 7}))
    stage.model.on("charge", Text("I do not know whether it was charged."), calls=1)
    session = stage.session()
    stream = await session.stream("charge me")
    following = asyncio.create_task(follow(stream))
    await stage.model.reached("charging")
    stage.workers[0].kill()
    await stage.worker()
    output = await asyncio.wait_for(following, 60)
    assert output.status == "done"
    assert len(stage.model.effects) == 1
    answers = [m for m in stage.model.requests[-1]["messages"] if m["role"] == "tool"]
    assert len(answers) == 1
    assert "TOOL_OUTCOME_UNKNOWN" in answers[0]["content"]


async def test_a_tool_that_may_be_repeated_is_repeated_with_the_same_key(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("find", Call("look_up", {"word": "moss"}))
    stage.model.on("find", Text("found"), calls=1)
    session = stage.session()
    stream = await session.stream("find moss")
    following = asyncio.create_task(follow(stream))
    await stage.model.reached("looking")
    stage.workers[0].kill()
    stage.model.open("looking")
    await stage.worker()
    output = await asyncio.wait_for(following, 60)
    assert output.response_text == "found"
    first, second = (effect.split(":", 3) for effect in stage.model.effects)
    assert (first[2], second[2]) == ("1", "2")
    assert first[3] == second[3] != ""
    [told] = [
        entry
        for entry in await session.get_reasoning_trace()
        if entry.type == "TOOL_EXECUTION_RESULT"
    ]
    assert told.details["attempt"] == 2


@pytest.mark.parametrize("deed", ["kill", "terminate"])
async def test_a_worker_lost_between_two_steps_loses_nothing(
    make_stage: MakeStage, deed: str
) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("both", Call("echo", {"text": "a"}))
    stage.model.on("both", Barrier("second"), Text("never "), calls=1, times=1)
    stage.model.on("both", Text("done"), calls=1)
    session = stage.session()
    stream = await session.stream("do both")
    following = asyncio.create_task(follow(stream))
    await stage.model.reached("second")
    getattr(stage.workers[0], deed)()
    await stage.worker()
    output = await asyncio.wait_for(following, 30)
    assert output.response_text == "done"
    history = await session.get_conversation_history()
    assert [m.role for m in history] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("deed", ["kill", "terminate"])
async def test_a_pause_outlives_every_worker(make_stage: MakeStage, deed: str) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("ask", Call("ask_person", {"question": "which?"}))
    stage.model.on("ask", Text("the red one"), calls=1)
    session = stage.session()
    paused = await session.send("ask somebody")
    assert (paused.status, paused.is_final) == ("waiting", False)
    [call] = paused.tool_calls
    getattr(stage.workers[0], deed)()
    await stage.worker()
    output = await asyncio.wait_for(session.handle_tool_result(call.id, "red"), 30)
    assert output.response_text == "the red one"


@pytest.mark.parametrize("tool", ["none", "once"])
async def test_a_worker_that_is_told_to_end_hands_its_work_on(
    make_stage: MakeStage, tool: str
) -> None:
    stage = await make_stage(workers=1)
    if tool == "none":
        stage.model.on("go", Text("some "), Barrier("mid"), times=1)
        stage.model.on("go", Text("all of it"))
    else:
        stage.model.on("go", Call("charge_slowly", {"amount": 1}))
        stage.model.on("go", Text("all of it"), calls=1)
    session = stage.session()
    stream = await session.stream("go")
    following = asyncio.create_task(follow(stream))
    await stage.model.reached("mid" if tool == "none" else "charging")
    await stage.worker()
    stage.workers[0].terminate()
    if tool == "once":
        # Within its grace period the tool ends by itself: nothing is unknown.
        stage.model.open("charging")
    output = await asyncio.wait_for(following, 30)
    assert output.status == "done"
    assert output.response_text == "all of it"
    assert stage.workers[0].join() == 0
    if tool == "once":
        assert len(stage.model.effects) == 1
        assert "charged 1" in str(stage.model.requests[-1]["messages"])


async def test_a_wait_for_a_provider_outlives_its_worker(make_stage: MakeStage) -> None:
    stage = await make_stage(workers=0)
    worker = await stage.worker(
        TOGETHER_API_KEY="test", TOGETHER_BASE_URL=stage.model.base_url("together")
    )
    stage.model.on("wait-long", Fail(429, {"Retry-After": "3600"}), provider="together")
    stage.model.on("wait-short", Fail(429, {"Retry-After": "5"}), times=1)
    stage.model.on("wait-short", Text("now"))
    stage.model.on("next", Text("fine"))
    patient, brief = stage.session(model="together:one"), stage.session()
    long, short = await patient.stream("wait-long"), await brief.stream("wait-short")
    until = []
    for session in (patient, brief):
        async with asyncio.timeout(20):
            while (time := (await session.status()).waiting_until) is None:
                await asyncio.sleep(0.02)
        until.append(time)
    hour = until[0] - datetime.now(UTC)
    assert timedelta(minutes=59) < hour <= timedelta(hours=1)
    worker.kill()
    await worker.start()
    status = await patient.status()
    assert (status.state.status, status.waiting_until) == ("processing", until[0])
    output = await asyncio.wait_for(follow(short), 30)
    assert output.response_text == "now"
    assert datetime.now(UTC) >= until[1]
    assert [len(stage.model.asked(text)) for text in ("wait-long", "wait-short")] == [1, 2]
    await long.stop()
    assert (await long.result()).status == "stopped"
    assert (await patient.send("next")).response_text == "fine"


async def test_a_bill_is_counted_once_whatever_is_lost_after_it(make_stage: MakeStage) -> None:
    stage = await make_stage(workers=0)
    worker = await stage.worker(
        TOGETHER_API_KEY="test", TOGETHER_BASE_URL=stage.model.base_url("together")
    )
    stage.model.on("go", Used(600, 0), Error(), provider="openai")
    stage.model.on("go", Text("so "), Barrier("second"), provider="together", times=1)
    stage.model.on("go", Text("fine"), Used(400, 100), provider="together")
    session = stage.session(fallback=[{"model": "together:two"}])
    stream = await session.stream("go", request_id="r")
    following = asyncio.create_task(follow(stream))
    await stage.model.reached("second")
    while stream.text != "so ":
        await asyncio.sleep(0.01)
    worker.kill()
    await worker.start()
    output = await asyncio.wait_for(following, 30)
    assert output.usage == Usage(prompt_tokens=1000, completion_tokens=100)
    assert (await session.usage()).usage.total_tokens == 1100
    rows = [row async for row in session.read("usage")]
    billed = [(r["hop"], r["state"], r["usage"]["prompt_tokens"]) for r in rows]
    assert [row for row in billed if row[2]] == [(0, "failed", 600), (1, "done", 400)]
    # Who comes late is told the answer, and nothing that a lost attempt had said.
    late = (
        await (await stage.reconnect())
        .session(session.id, user_id="kim")
        .stream("go", request_id="r")
    )
    assert (await follow(late)).response_text == "fine"
    assert len(stage.model.asked("go", "openai")) == 1


async def test_approvals_outlive_their_workers_and_every_call_is_answered_once(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("buy", Call("pay", {"amount": 1}, id="p1"), Call("pay", {"amount": 2}, id="p2"))
    stage.model.on("buy", Call("pay", {"amount": 3}, id="p3"), calls=2)
    stage.model.on("buy", Text("bought"), calls=3)
    session = stage.session()
    assert (await session.send("buy")).status == "waiting"
    for given in ({"p1": True, "p2": False}, {"p3": True}):
        stage.workers[0].kill()
        await stage.workers[0].start()
        results = [HostResult(call_id=call, approved=allowed) for call, allowed in given.items()]
        output = await asyncio.wait_for(session.handle_tool_results(results), 30)
    assert (output.status, output.response_text) == ("done", "bought")
    assert stage.model.effects == ["pay:1", "pay:3"]
    assert len(stage.model.requests) == 3
    for body in stage.model.requests:
        assert_paired(body["messages"])
