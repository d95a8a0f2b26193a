"""Two workers: one that freezes and comes back, and a store that is locked."""

from __future__ import annotations

import asyncio

from ..conftest import MakeStage
from ..support.databases import locked
from ..support.scripted_model import Barrier, Call, Text


async def test_a_frozen_worker_that_thaws_does_not_disturb_the_answer(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1)
    stage.model.on("go", Text("old "), Barrier("frozen"), Text("late "), Text("words"), times=1)
    stage.model.on("go", Text("new "), Barrier("second"), Text("answer"))
    stage.model.on("next", Text("fine"))
    session = stage.session()
    stream = await session.stream("go")
    following = asyncio.create_task(stream.result())
    while stream.text != "old ":
        await asyncio.sleep(0.01)
    frozen = stage.workers[0]
    await stage.worker()
    frozen.freeze()
    stage.model.open("frozen")
    await stage.model.reached("second", timeout=40)
    while stream.text != "new ":
        await asyncio.sleep(0.01)
    # The first worker wakes while the second one answers. It ends once it has said all it has to.
    frozen.thaw()
    frozen.terminate()
    assert await asyncio.to_thread(frozen.join) == 0
    stage.model.open("second")
    output = await asyncio.wait_for(following, 40)
    assert (output.status, output.response_text) == ("done", "new answer")
    assert stream.text == "new answer"
    assert [m.text for m in await session.get_conversation_history()] == ["go", "new answer"]
    assert (await session.send("next")).response_text == "fine"


async def test_a_store_that_is_locked_for_five_seconds_is_waited_for(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=2)
    stage.model.on("go", Text("a "), Call("echo", {"text": "x"}))
    stage.model.on("go", Barrier("mid"), Text("b"), calls=1)
    session = stage.session()
    stream = await session.stream("go")
    following = asyncio.create_task(stream.result())
    await stage.model.reached("mid")
    with locked(stage.database_url):
        stage.model.open("mid")
        # The time that the store is away is what this test is about.
        await asyncio.sleep(5)
        assert await session.get_turn(stream.turn) is None
    output = await asyncio.wait_for(following, 40)
    assert (output.status, output.response_text, stream.text) == ("done", "a b", "a b")
    history = await session.get_conversation_history()
    assert [m.role for m in history] == ["user", "assistant", "tool", "assistant"]
    assert len(stage.model.requests) == 2
