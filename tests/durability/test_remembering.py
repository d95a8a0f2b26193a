"""A turn is remembered once, whatever happens to the workers, the store and the models."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from gmi.activities.memory.store import Find
from gmi.activities.memory.traces import Scope, Trace
from gmi.activities.store import open_store
from gmi.activities.store.memory.sql import SQLMemoryStore

from ..conftest import MakeStage, Stage
from ..support.databases import locked
from ..support.scripted_model import Barrier, Fail, ScriptedModel, Text
from ..support.temporal_server import TemporalServer

EMBEDDING = "openai:word-vectors"


async def traces(stage: Stage, user: str = "kim") -> list[Trace]:
    """What the user is remembered to have said."""
    async with open_store(stage.database_url) as store:
        memories = SQLMemoryStore(store.database)
        return await memories.find(Find(scopes=[Scope("user", user)]))


async def until_remembered(stage: Stage, count: int) -> list[Trace]:
    async with asyncio.timeout(40):
        while len(found := await traces(stage)) < count:
            await asyncio.sleep(0.02)
    return found


async def test_a_worker_killed_while_it_embeds_remembers_the_turn_once(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1, GMI_EMBEDDING_MODEL=EMBEDDING)
    stage.model.on("go", Text("went"))
    stage.model.on_embedding("the goat goes", Barrier("embedding"))
    session = stage.session()
    assert (await session.send("go, the goat goes")).response_text == "went"
    await stage.model.reached("embedding")
    stage.workers[0].kill()
    stage.model.open("embedding")
    await stage.worker()
    await session.settle()
    [trace] = await traces(stage)
    assert trace.content == "go, the goat goes"
    assert trace.retrievals == 0


async def test_a_worker_killed_after_the_commit_and_before_its_completion_remembers_once(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    server = TemporalServer(tmp_path)
    await server.start()
    try:
        stage = await make_stage(workers=1, address=server.address, GMI_EMBEDDING_MODEL=EMBEDDING)
        stage.model.on("mark", Text("marked"))
        stage.model.on("wake", Text("woken"))
        stage.model.on_embedding("mark my words", Barrier("embedding"))
        session = stage.session()
        await session.send("mark my words")
        await stage.model.reached("embedding")
        # The server hears of nothing any more: the completion cannot reach it.
        server.freeze()
        stage.model.open("embedding")
        await until_remembered(stage, 1)
        stage.workers[0].kill()
        server.thaw()
        await stage.worker()
        await session.settle()
        [trace] = await traces(stage)
        assert trace.content == "mark my words"
        assert (await session.send("wake")).response_text == "woken"
        await session.settle()
        assert len(await traces(stage)) == 2
    finally:
        server.thaw()
        server.kill()


async def test_an_embedding_model_that_is_down_leaves_the_words_and_is_waited_for(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1, GMI_EMBEDDING_MODEL=EMBEDDING)
    model = stage.model
    model.on_embedding("", Fail(503, body={"error": {"message": "overloaded"}}))
    model.on("my llama again", Text("Bo"))
    model.on("called Bo", Text("a llama"))
    first, second = stage.session(), stage.session()
    assert (await first.send("my llama is called Bo")).status == "done"
    await until_remembered(stage, 1)
    assert (await second.send("who is my llama again")).response_text == "Bo"
    asked = json.dumps(model.asked("my llama again")[-1], ensure_ascii=False)
    assert "my llama is called Bo" in asked
    warnings = [e.message for e in await second.get_reasoning_trace() if e.type == "WARNING"]
    assert any(message.startswith("RECALL_WITHOUT_VECTORS") for message in warnings), warnings
    model.embed_again()
    await first.settle()
    await second.settle()
    assert len(await traces(stage)) == 2
    async with open_store(stage.database_url) as store:
        memories = SQLMemoryStore(store.database)
        changes = await memories.changes(Scope("user", "kim"), 0, EMBEDDING)
    assert len(changes.vectors) == 2
    llama = next(t for t in changes.traces if t.content.startswith("my llama is"))
    assert llama.retrievals == 1


async def test_turns_wait_to_be_remembered_through_every_continuation(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=2, GMI_EMBEDDING_MODEL=EMBEDDING)
    model = stage.model
    model.on_embedding("", Fail(503, body={"error": {"message": "overloaded"}}))
    session = stage.session(roll_events=1)
    for number in range(6):
        model.on(f"line {number}.", Text(f"heard {number}"))
        assert (await session.send(f"line {number}.")).response_text == f"heard {number}"
    state = await session.state()
    assert state.run > 3
    stage.workers[0].kill()
    model.embed_again()
    await session.settle()
    found = await traces(stage)
    assert sorted(t.content for t in found) == [f"line {number}." for number in range(6)]


async def test_a_session_that_closes_does_not_wait_for_an_embedding_model(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1, GMI_EMBEDDING_MODEL=EMBEDDING)
    stage.model.on_embedding("", Fail(503, body={"error": {"message": "overloaded"}}))
    stage.model.on("last", Text("bye"))
    session = stage.session()
    await session.send("my last words")
    await session.close()
    [trace] = await until_remembered(stage, 1)
    assert trace.content == "my last words"


async def test_a_locked_store_with_two_workers_delays_remembering_and_loses_nothing(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=2, GMI_EMBEDDING_MODEL=EMBEDDING)
    stage.model.on("vault", Text("closed"))
    stage.model.on_embedding("the vault is open", Barrier("embedding"))
    session = stage.session()
    await session.send("the vault is open")
    await stage.model.reached("embedding")
    with locked(stage.database_url):
        stage.model.open("embedding")
        # The time that the store is away is what this test is about.
        await asyncio.sleep(5)
    await session.settle()
    [trace] = await traces(stage)
    assert trace.content == "the vault is open"


async def test_the_effects_of_a_recall_are_applied_once(make_stage: MakeStage) -> None:
    stage = await make_stage(workers=1, GMI_EMBEDDING_MODEL=EMBEDDING)
    model: ScriptedModel = stage.model
    model.on("my boat", Text("Nice."))
    model.on("of my boat", Text("Red."))
    first = stage.session()
    await first.send("The colour of my boat is red")
    await first.settle()
    model.on_embedding("What is the colour", Barrier("embedding"))
    second = stage.session()
    sending = asyncio.create_task(second.send("What is the colour of my boat"))
    # The query itself is embedded first; the second time the turn is remembered.
    await model.reached("embedding")
    model.open("embedding")
    await sending
    await second.settle()
    stage.workers[0].kill()
    await stage.worker()
    await second.settle()
    boat = next(t for t in await traces(stage) if t.content.startswith("The colour"))
    assert boat.retrievals == 1


async def test_a_model_that_hangs_costs_one_turn_its_time_and_no_other(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1, GMI_EMBEDDING_MODEL=EMBEDDING)
    model = stage.model
    for text in ("my heron one", "my heron two", "my heron three"):
        model.on(text, Text("heard"))
    session = stage.session()
    await session.send("my heron one")
    await session.settle()
    model.on_embedding("my heron", Barrier("heron"))
    took = []
    for text in ("my heron two", "my heron three"):
        began = time.monotonic()
        assert (await session.send(text)).response_text == "heard"
        took.append(time.monotonic() - began)
    assert took[1] < 4 < took[0], took
    warnings = [e.message for e in await session.get_reasoning_trace() if e.type == "WARNING"]
    without = [message for message in warnings if message.startswith("RECALL_WITHOUT_VECTORS")]
    assert len(without) == 2, warnings
    assert "left alone" in without[1]
    began = time.monotonic()
    await session.close()
    assert time.monotonic() - began < 10
    found = await until_remembered(stage, 3)
    assert {trace.content for trace in found} == {f"my heron {n}" for n in ("one", "two", "three")}


async def test_what_was_said_just_before_the_session_closes_gets_its_vector(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=1, GMI_EMBEDDING_MODEL=EMBEDDING)
    stage.model.on("last", Text("bye"))
    session = stage.session()
    await session.send("my last words")
    await session.close()
    [trace] = await until_remembered(stage, 1)
    async with open_store(stage.database_url) as store:
        memories = SQLMemoryStore(store.database)
        assert await memories.vectors([trace.id], EMBEDDING)
