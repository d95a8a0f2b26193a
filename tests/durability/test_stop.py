"""Stop: within a second, with what was said kept, and never taken back."""

from __future__ import annotations

import asyncio
import time

import pytest

from gmi.worker import Session
from gmi.workflows.turns import StopAck, StopTurn

from ..conftest import MakeStage, Stage
from ..support.scripted_model import Barrier, Call, Hang, Text

WITHIN = 1.5
"""Seconds; it takes some 50 ms on a machine that does nothing else."""


async def stop_and_time(session: Session, turn: str) -> float:
    """Send the stop, and return the seconds until the turn's status says so."""
    began = time.monotonic()
    await session._signal("stop_turn", StopTurn(turn=turn))
    while True:
        output = await session.get_turn(turn)
        if output is not None:
            took = time.monotonic() - began
            print(f"stopped after {took * 1000:.0f} ms")
            assert output.status == "stopped"
            return took


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_running_turn_is_stopped_within_a_second(stage: Stage, streamed: bool) -> None:
    stage.model.on("go", Text("some "), Text("words"), Barrier("mid"), Text(" never said"))
    stage.model.on("next", Text("answered"))
    session = stage.session()
    if streamed:
        stream = await session.stream("go")
        answer = asyncio.create_task(stream.result())
        while stream.text != "some words":
            await asyncio.sleep(0.01)
        turn = stream.turn
    else:
        answer = asyncio.create_task(session.send("go", request_id="r"))
        await stage.model.reached("mid")
        turn = (await session.state()).active_turn or ""
    assert await stop_and_time(session, turn) < WITHIN
    output = await answer
    assert output.status == "stopped"
    assert output.is_final
    assert output.response_text == ("some words" if streamed else None)
    assert (await session.send("next")).response_text == "answered"
    prompt = str(stage.model.requests[-1]["messages"])
    assert "some words" not in prompt
    messages = [m["message"] async for m in session.read("messages", turn=turn)]
    if streamed:
        assert messages[-1]["content"] == "some words"
        assert messages[-1]["partial"] is True
    assert [m["role"] for m in messages] == (["user", "assistant"] if streamed else ["user"])


async def test_finished_steps_are_kept_and_open_calls_answered(stage: Stage) -> None:
    stage.model.on("go", Text("first "), Call("echo", {"text": "a"}))
    stage.model.on("go", Call("slow"), Call("echo", {"text": "b"}), calls=1)
    stage.model.on("next", Text("answered"))
    session = stage.session()
    stream = await session.stream("go")
    results = 0
    async for chunk in stream:
        results += chunk.type == "tool_result"
        if results == 2:
            break
    assert await stop_and_time(session, stream.turn) < WITHIN
    assert (await session.send("next")).response_text == "answered"
    sent = stage.model.requests[-1]["messages"]
    asked = [call["id"] for m in sent for call in m.get("tool_calls") or []]
    answered = [m["tool_call_id"] for m in sent if m["role"] == "tool"]
    assert len(asked) == 3
    assert asked == answered
    # It had begun, so nobody can say that it did not run.
    assert "Error from slow" in str(sent)
    kept = session.read("messages", turn=stream.turn)
    roles = [m["message"]["role"] async for m in kept]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "tool"]


async def test_a_turn_is_stopped_before_its_first_token(stage: Stage) -> None:
    stage.model.on("go", Barrier("thinking"), Text("never"))
    stage.model.on("next", Text("answered"))
    session = stage.session()
    stream = await session.stream("go")
    await stage.model.reached("thinking")
    assert await stop_and_time(session, stream.turn) < WITHIN
    output = await stream.result()
    assert (output.status, output.response_text, stream.text) == ("stopped", None, "")
    assert (await session.send("next")).response_text == "answered"
    reopened = (await stage.reconnect()).session(session.id, user_id="kim")
    assert [t["status"] for t in await reopened.turns()] == ["stopped", "done"]


async def test_queued_paused_and_ended_turns_are_stopped_as_they_stand(stage: Stage) -> None:
    stage.model.on("done", Text("done"))
    stage.model.on("ask", Call("ask_person", {"question": "which?"}))
    stage.model.on("hang", Text("so "), Hang())
    stage.model.on("after", Text("after"))
    session = stage.session()
    ended = await session.send("be done")
    await session.stop(ended.turn)
    assert (await session.wait(ended.turn)).status == "done"
    paused = await session.send("ask")
    await session.stop(paused.turn)
    assert (await session.wait(paused.turn)).status == "abandoned"
    assert (await session.pending()).calls == []
    running = await session.stream("hang")
    queued = await session.stream("after")
    await session.stop(queued.turn)
    assert (await session.wait(queued.turn)).status == "stopped"
    assert await session.get_turn(running.turn) is None
    await session.stop()
    assert (await session.wait(running.turn)).status == "stopped"
    assert (await session.send("after")).response_text == "after"
    sent = stage.model.requests[-1]["messages"]
    asked = [call["id"] for m in sent for call in m.get("tool_calls") or []]
    assert asked == [m["tool_call_id"] for m in sent if m["role"] == "tool"]


async def test_a_stop_is_kept_while_no_worker_lives(make_stage: MakeStage) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("go", Text("some "), Barrier("mid"), Text("never"))
    session = stage.session()
    stream = await session.stream("go")
    following = asyncio.create_task(stream.result())
    while stream.text != "some ":
        await asyncio.sleep(0.01)
    stage.workers[0].kill()
    await session._signal("stop_turn", StopTurn(turn=stream.turn))
    stage.model.open("mid")
    await stage.workers[0].start()
    output = await asyncio.wait_for(following, 30)
    assert (output.status, output.response_text) == ("stopped", "some ")


async def test_an_accepted_stop_is_never_done(stage: Stage) -> None:
    """Stops that race with the end of the turn: what is stopped stays so, and the rest is done."""
    stage.model.on("go", Text("a"))
    session = stage.session()
    await session.initialize()
    for _ in range(15):
        stream = await session.stream("go")
        ack = await session._update("stop_turn", StopTurn(turn=stream.turn), StopAck)
        output = await session.wait(stream.turn)
        assert (output.status == "stopped") == (stream.turn in ack.stopped)
    statuses = {t["turn"]: t["status"] for t in await session.turns()}
    assert set(statuses.values()) <= {"stopped", "done"}
