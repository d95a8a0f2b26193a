"""Many at once on one session: everybody is answered, and turns never mix."""

from __future__ import annotations

import asyncio

import pytest

from gmi.personas.errors import SessionBusyError

from ..conftest import Stage
from ..support.scripted_model import Barrier, Text


async def test_watchers_senders_and_a_stop_are_all_answered(stage: Stage) -> None:
    stage.model.on("message", Text("one "), Text("two "), Text("three"))
    stage.model.on("long", Text("so "), Barrier("long"), Text("long"))
    session = stage.session("flood")
    await session.initialize()
    orders: list[list[str]] = [[] for _ in range(12)]
    watching = asyncio.Barrier(13)

    async def watch(order: list[str]) -> None:
        watcher = (await stage.reconnect()).session("flood", user_id="kim")
        start = await watcher.feed.offset()
        await watching.wait()
        ends = 0
        async for item in watcher.feed.read(start):
            order.append(item.chunk.turn)
            ends += item.chunk.type == "final_response_marker"
            if ends == 21:
                return

    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for order in orders:
            group.create_task(watch(order))
        await watching.wait()
        long = await session.stream("long")
        await stage.model.reached("long")
        sends = [
            group.create_task(session.send(f"message {n}", request_id=f"m{n}")) for n in range(20)
        ]
        while (await session.state()).queued < 20:
            await asyncio.sleep(0.02)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await session.stop(long.turn)
        print(f"stopped under load after {(loop.time() - began) * 1000:.0f} ms")
    assert {task.result().response_text for task in sends} == {"one two three"}
    turns = await session.turns()
    assert [t["status"] for t in turns] == ["stopped"] + ["done"] * 20
    for order in orders:
        # The chunks of a turn stand together, and the turns in the order of their acceptance.
        changes = [turn for i, turn in enumerate(order) if i == 0 or order[i - 1] != turn]
        assert changes == [t["turn"] for t in turns]


async def test_twenty_sends_of_one_request_are_one_turn(stage: Stage) -> None:
    stage.model.on("hello", Text("hi"))
    session = stage.session()
    others = [(await stage.reconnect()).session(session.id, user_id="kim") for _ in range(4)]
    sends = [others[n % 4].send("hello", request_id="the-one") for n in range(20)]
    outputs = await asyncio.wait_for(asyncio.gather(*sends), 60)
    assert len({output.turn for output in outputs}) == 1
    assert {output.response_text for output in outputs} == {"hi"}
    assert len(stage.model.requests) == 1
    stream = await session.stream("hello", request_id="the-one")
    assert (await asyncio.wait_for(stream.result(), 20)).response_text == stream.text == "hi"


async def test_a_full_queue_refuses_and_says_so(stage: Stage) -> None:
    stage.model.on("long", Barrier("long"), Text("over"))
    stage.model.on("message", Text("ok"))
    session = stage.session()
    await session.stream("long")
    await stage.model.reached("long")
    sends = [
        asyncio.create_task(session.send(f"message {n}", request_id=f"m{n}")) for n in range(32)
    ]
    while (await session.state()).queued < 32:
        await asyncio.sleep(0.02)
    with pytest.raises(SessionBusyError) as refused:
        await session.send("message too many", request_id="m33")
    assert refused.value.details == {"queued": 32, "limit": 32}
    again = asyncio.create_task(session.send("message 5", request_id="m5"))
    stage.model.open("long")
    outputs = await asyncio.wait_for(asyncio.gather(*sends, again), 60)
    assert {output.response_text for output in outputs} == {"ok"}
    assert outputs[-1].turn == outputs[5].turn
    assert (await session.send("message too many", request_id="m33")).response_text == "ok"
