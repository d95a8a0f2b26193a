"""Long proofs: a session of a thousand turns, and workers killed at random for minutes."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter

import pytest

from gmi.worker import Transcript
from gmi.workflows.turns import TurnOutput

from ..conftest import MakeStage
from ..support.pairing import assert_paired
from ..support.scripted_model import Call, Text

pytestmark = [pytest.mark.prove, pytest.mark.timeout(1500)]

TURNS = 1000
KILL_TURNS = 40
SEED = int(os.environ.get("TEST_SEED", "7"))


async def test_the_thousandth_turn_costs_what_the_second_hundred_did(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage()
    session = stage.session(model="offline:offline")
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    turns: list[str] = []
    loop = asyncio.get_running_loop()
    began = loop.time()
    largest_state = 0
    for number in range(TURNS):
        output = await session.send(f"This is message {number:04d}.", request_id=f"r{number}")
        assert output.status == "done"
        turns.append(output.turn)
        if number % 20 == 0:
            largest_state = max(largest_state, (await session.state()).state_bytes)
    print(f"{TURNS} turns in {loop.time() - began:.1f} s")
    written: list[tuple[int, str]] = []
    runs = 0
    query = f"WorkflowId = '{session.workflow_id}'"
    async for run in stage.client.temporal.list_workflows(query):
        runs += 1
        one = stage.client.temporal.get_workflow_handle(run.id, run_id=run.run_id)
        total = 0
        turn = ""
        async for event in one.fetch_history_events():
            total += event.ByteSize()
            if event.HasField("activity_task_scheduled_event_attributes"):
                scheduled = event.activity_task_scheduled_event_attributes
                if scheduled.activity_type.name == "gmi.model.run_step":
                    found = [t for t in turns if t.encode() in scheduled.input.payloads[0].data]
                    turn = max(found, key=turns.index) if found else turn
            written.append((event.ByteSize(), turn))
        assert total < 1_000_000, run.run_id
    by_turn: Counter[str] = Counter()
    for size, turn in written:
        by_turn[turn] += size
    second = sum(by_turn[turn] for turn in turns[100:200]) / 100
    last = sum(by_turn[turn] for turn in turns[-100:]) / 100
    print(f"history per turn: {second:.0f} B, then {last:.0f} B; {runs} runs")
    print(f"largest state {largest_state} B")
    assert abs(last - second) < 0.1 * second
    assert largest_state < 256 * 1024
    assert (await handle.describe()).status is not None
    stored = await session.turns()
    assert [t["turn"] for t in stored] == turns
    assert [t["request_id"] for t in stored] == [f"r{n}" for n in range(TURNS)]
    first = await session.send("This is message 0000.", request_id="r0")
    assert first.turn == turns[0]
    assert len(await session.turns()) == TURNS


async def test_workers_killed_at_random_lose_and_repeat_nothing(make_stage: MakeStage) -> None:
    dice = random.Random(SEED)
    print(f"TEST_SEED={SEED}")
    stage = await make_stage(workers=3)
    words = [Text(f"w{n} ") for n in range(6)]
    for number in range(KILL_TURNS):
        name = f"turn-{number:02d}!"
        stage.model.on(
            name, *words, Call("charge", {"amount": number}), Call("echo", {"text": name})
        )
        stage.model.on(name, *words, Call("echo", {"text": "again"}), calls=2)
        stage.model.on(name, *words, Text(f"end of {name}"), calls=3)
    session = stage.session("random-kills", roll_events=60)
    kills = 0
    over = asyncio.Event()

    async def killer() -> None:
        nonlocal kills
        while not over.is_set():
            # The points of time are what is random here.
            await asyncio.sleep(dice.uniform(0.2, 4.0))
            victim = dice.choice(stage.workers)
            if not victim.running:
                continue
            victim.kill()
            kills += 1
            await victim.start()

    killing = asyncio.create_task(killer())
    outputs: list[TurnOutput] = []
    for number in range(KILL_TURNS):
        stream = await session.stream(f"turn-{number:02d}!", request_id=f"r{number}")
        transcript = Transcript()
        async with asyncio.timeout(120):
            async for chunk in stream:
                transcript.take(chunk)
            output = await stream.result()
        assert output.status == "done", output.error
        assert transcript.text == stream.text == output.response_text
        outputs.append(output)
    over.set()
    await killing
    print(f"{kills} kills in {KILL_TURNS} turns")
    said = "".join(word.text for word in words)
    for number, output in enumerate(outputs):
        assert output.response_text == said * 3 + f"end of turn-{number:02d}!"
    stored = await session.turns()
    assert [(t["request_id"], t["status"]) for t in stored] == [
        (f"r{number}", "done") for number in range(KILL_TURNS)
    ]
    charges = Counter(effect.split(":")[1] for effect in stage.model.effects)
    assert max(charges.values()) == 1
    for body in stage.model.requests:
        assert_paired(body["messages"])
    history = await session.get_conversation_history()
    texts = [m.text for m in history if m.role == "assistant" and not m.calls]
    assert texts == [said + f"end of turn-{number:02d}!" for number in range(KILL_TURNS)]
