"""kill -9 of the Temporal server, started again on its database file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ..conftest import MakeStage
from ..support.scripted_model import Barrier, Call, Text
from ..support.temporal_server import TemporalServer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[TemporalServer]:
    """A server of the test's own, to be killed."""
    own = TemporalServer(tmp_path)
    await own.start()
    yield own
    own.kill()


async def test_an_idle_session_goes_on_after_the_server_was_killed(
    server: TemporalServer, make_stage: MakeStage
) -> None:
    stage = await make_stage(address=server.address)
    stage.model.on("one", Text("first"))
    stage.model.on("two", Text("second"))
    session = stage.session()
    await session.send("one", request_id="r1")
    server.kill()
    await server.start()
    assert (await session.send("two")).response_text == "second"
    assert (await session.send("one", request_id="r1")).response_text == "first"
    assert [m.text for m in await session.get_conversation_history()] == [
        "one",
        "first",
        "two",
        "second",
    ]
    assert len(stage.model.requests) == 2


async def test_a_streamed_step_outlives_the_server(
    server: TemporalServer, make_stage: MakeStage
) -> None:
    stage = await make_stage(address=server.address)
    stage.model.on("go", Text("one "), Barrier("mid"), Text("two "), Barrier("down"), Text("three"))
    session = stage.session()
    stream = await session.stream("go")
    following = asyncio.create_task(stream.result())
    while stream.text != "one ":
        await asyncio.sleep(0.01)
    server.kill()
    stage.model.open("mid")
    await stage.model.reached("down")
    stage.model.open("down")
    await server.start()
    output = await asyncio.wait_for(following, 60)
    assert (output.status, output.response_text) == ("done", "one two three")
    assert stream.text == "one two three"
    assert [m.text for m in await session.get_conversation_history()] == ["go", "one two three"]


async def test_a_pause_outlives_the_server(server: TemporalServer, make_stage: MakeStage) -> None:
    stage = await make_stage(address=server.address)
    stage.model.on("ask", Call("ask_person", {"question": "which?"}))
    stage.model.on("ask", Text("the red one"), calls=1)
    session = stage.session()
    paused = await session.send("ask")
    server.kill()
    await server.start()
    [pending] = (await session.pending()).calls
    assert pending.call.id == paused.tool_calls[0].id
    output = await asyncio.wait_for(session.handle_tool_result(pending.call.id, "red"), 60)
    assert output.response_text == "the red one"
    assert len(stage.model.requests) == 2
