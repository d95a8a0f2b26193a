"""Continue-as-new at every boundary: nothing that was accepted is lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gmi.personas.errors import GMIError
from gmi.worker import Session, Transcript
from gmi.workflows.turns import CloseSession, HostResult, StopTurn, TurnOutput

from ..conftest import MakeStage, Stage
from ..support.databases import locked
from ..support.scripted_model import Barrier, Call, Text


async def test_two_hundred_messages_of_five_clients_arrive_once_and_in_order(
    stage: Stage,
) -> None:
    stage.model.on("message", Text("noted"))
    name = "rolling"
    sender = stage.session(name, roll_events=1)
    await sender.initialize()
    accepted: dict[str, str] = {}

    async def client(number: int) -> None:
        session = (await stage.reconnect()).session(name, user_id="kim")
        for index in range(40):
            request_id = f"{number}-{index}"
            output = await session.send(f"message {request_id}", request_id=request_id)
            assert output.status == "done"
            accepted[request_id] = output.turn

    async with asyncio.timeout(100), asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(client(number))
    state = await sender.state()
    assert state.run > 100
    turns = [turn for turn in await sender.turns() if turn["status"] == "done"]
    assert len(turns) == 200
    assert {turn["request_id"]: turn["turn"] for turn in turns} == accepted
    assert [turn["seq"] for turn in turns] == sorted({turn["seq"] for turn in turns})
    for number in range(5):
        mine = [t["request_id"] for t in turns if t["request_id"].startswith(f"{number}-")]
        assert mine == [f"{number}-{index}" for index in range(40)]
    history = await sender.get_conversation_history()
    said = [message.text for message in history if message.role == "user"]
    assert sorted(said) == sorted(f"message {request_id}" for request_id in accepted)
    assert [m.role for m in history] == ["user", "assistant"] * 200


async def test_a_turn_of_twelve_rounds_is_carried_on_between_its_steps(stage: Stage) -> None:
    for done in range(12):
        stage.model.on(
            "rounds", Text(f"part {done} "), Call("echo", {"text": str(done)}), calls=done
        )
    stage.model.on("rounds", Text("over"), calls=12)
    session = stage.session(roll_events=1, max_tool_iterations=12)
    await session.initialize()
    before = (await session.state()).run
    stream = await session.stream("twelve rounds")
    transcript = Transcript()
    results = []
    async for chunk in stream:
        transcript.take(chunk)
        if chunk.type == "tool_result":
            results.append(chunk.content["result"])
    output = await stream.result()
    expected = "".join(f"part {done} " for done in range(12)) + "over"
    assert output.response_text == expected
    assert transcript.text == stream.text == expected
    assert results == [str(done) for done in range(12)]
    assert (await session.state()).run >= before + 12
    assert len(stage.model.requests) == 13
    assert len(output.tool_calls) == 12
    history = await session.get_conversation_history()
    assert [m.role for m in history] == ["user", *["assistant", "tool"] * 12, "assistant"]


async def test_readers_follow_turns_across_continuations(stage: Stage) -> None:
    stage.model.on("turn", Text("a "), Text("b "), Text("c"))
    session = stage.session(roll_events=1)
    await session.initialize()
    start = place = await session.feed.offset()
    turns: list[str] = []
    seen: dict[str, Transcript] = {}
    ids: list[str] = []

    async def watch() -> None:
        nonlocal place
        async for item in session.feed.read(start):
            assert item.gap == (item.offset != place)
            place = item.offset + 1
            ids.append(item.chunk.chunk_id)
            seen.setdefault(item.chunk.turn, Transcript()).take(item.chunk)
            if item.chunk.type == "final_response_marker" and len(turns) == 20:
                return

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(watch())
        for number in range(20):
            stream = await session.stream(f"turn {number}")
            turns.append(stream.turn)
            transcript = Transcript()
            async for chunk in stream:
                transcript.take(chunk)
            output = await stream.result()
            assert transcript.text == stream.text == output.response_text == "a b c"
    assert [seen[turn].text for turn in turns] == ["a b c"] * 20
    assert len(ids) == len(set(ids))
    assert (await session.state()).run >= 20


async def test_a_pause_and_a_queue_behind_it_are_carried_on(stage: Stage) -> None:
    stage.model.on("ask", Barrier("asking"), Call("ask_person", {"question": "which?"}))
    stage.model.on("ask", Text("the red one"), calls=1)
    stage.model.on("later", Text("now"))
    session = stage.session(roll_events=1)
    asking = asyncio.create_task(session.send("ask somebody"))
    await stage.model.reached("asking")
    later = [asyncio.create_task(session.send(f"later {n}", request_id=f"l{n}")) for n in range(3)]
    while (await session.state()).queued < 3:
        await asyncio.sleep(0.02)
    stage.model.open("asking")
    paused = await asking
    run = (await session.state()).run
    [call] = paused.tool_calls
    # The answer of one call more than waits is refused, and rolls the run all the same.
    with pytest.raises(GMIError, match="nobody"):
        await session.answer([HostResult(call_id="nobody", content=1)])
    state = await session.state()
    while (state := await session.state()).run == run:
        await session.initialize()
    assert [pending.call.id for pending in state.pending] == [call.id]
    assert state.queued == 3
    output = await session.handle_tool_result(call.id, "red")
    assert output.response_text == "the red one"
    assert [o.response_text for o in await asyncio.gather(*later)] == ["now"] * 3
    turns = await session.turns()
    assert sorted(t["request_id"] for t in turns[1:]) == ["l0", "l1", "l2"]
    assert [t["seq"] for t in turns] == [1, 2, 3, 4]


@pytest.mark.parametrize("deed", ["kill", "terminate"])
async def test_workers_lost_whenever_the_run_changes_lose_nothing(
    make_stage: MakeStage, deed: str
) -> None:
    # The last of them stays: starting others in between would be most of the test's time.
    stage = await make_stage(workers=3)
    stage.model.on("turn", Call("echo", {"text": "x"}))
    stage.model.on("turn", Text("fine"), calls=1)
    session = stage.session(f"{deed}-rolling", roll_events=1)
    await session.initialize()
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)

    async def lose_workers() -> None:
        seen = (await handle.describe()).run_id
        for victim in stage.workers[:2]:
            while (run := (await handle.describe()).run_id) == seen:
                await asyncio.sleep(0.005)
            getattr(victim, deed)()
            # Beside the loop: the model that a running step waits for answers from this one.
            assert await asyncio.to_thread(victim.join) == (0 if deed == "terminate" else -9)
            seen = run

    losing = asyncio.create_task(lose_workers())
    outputs: list[TurnOutput] = []
    while not losing.done() or len(outputs) < 8:
        outputs.append(await asyncio.wait_for(session.send(f"turn {len(outputs)}"), 60))
    await losing
    assert [o.response_text for o in outputs] == ["fine"] * len(outputs)
    history = await session.get_conversation_history()
    assert [m.role for m in history] == ["user", "assistant", "tool", "assistant"] * len(outputs)


async def test_a_worker_that_is_told_to_end_between_two_turns_ends_at_once(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=0)
    grace = 20.0
    worker = await stage.worker(GMI_SHUTDOWN_TIMEOUT=str(grace))
    stage.model.on("turn", Call("echo", {"text": "x"}))
    stage.model.on("turn", Text("fine"), calls=1)
    session = stage.session(roll_events=1)
    assert (await session.send("turn")).response_text == "fine"
    clock = asyncio.get_running_loop()
    begun = clock.time()
    worker.terminate()
    assert await asyncio.to_thread(worker.join) == 0
    assert clock.time() - begun < grace / 2
    await stage.worker()
    assert (await asyncio.wait_for(session.send("turn"), 30)).response_text == "fine"


@asynccontextmanager
async def rolling(stage: Stage) -> AsyncIterator[tuple[Session, str]]:
    """A session that is about to continue as new: it waits for the store, which is locked.

    Yields:
        The session, and its active turn; the store is free again at the end.
    """
    stage.model.on("first", Text("a"), Barrier("first"))
    stage.model.on("second", Text("b"))
    session = stage.session(roll_events=1)
    await session.initialize()
    first = await session.stream("first")
    await stage.model.reached("first")
    with locked(stage.database_url):
        second = await session.stream("second", request_id="second")
        await session._signal("stop_turn", StopTurn(turn=first.turn))
        async with asyncio.timeout(20):
            while (await session.state()).active_turn != second.turn:
                await asyncio.sleep(0.01)
        yield session, second.turn


async def test_a_stop_that_comes_while_the_run_rolls_is_kept(stage: Stage) -> None:
    async with rolling(stage) as (session, turn):
        await session._signal("stop_turn", StopTurn(turn=turn))
    output = await asyncio.wait_for(session.wait(turn), 30)
    assert output.status == "stopped"
    assert len(stage.model.requests) == 1
    assert [t["status"] for t in await session.turns()] == ["stopped", "stopped"]


async def test_a_close_that_comes_while_the_run_rolls_is_kept(stage: Stage) -> None:
    async with rolling(stage) as (session, _):
        handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
        await handle.signal("close", CloseSession())
    await asyncio.wait_for(handle.result(), 30)
    assert [t["status"] for t in await session.turns()] == ["stopped", "stopped"]
    assert (await session.state()).status == "shutdown"


async def test_a_send_that_comes_while_the_run_rolls_is_answered_at_once(stage: Stage) -> None:
    stage.model.on("third", Text("c"))
    async with rolling(stage) as (session, turn):
        sending = await asyncio.wait_for(session.stream("third"), 5)
        again = await asyncio.wait_for(session.stream("second", request_id="second"), 5)
        assert again.turn == turn
    assert (await asyncio.wait_for(sending.result(), 30)).response_text == "c"
    assert (await session.wait(turn)).response_text == "b"
    assert [t["status"] for t in await session.turns()] == ["stopped", "done", "done"]
