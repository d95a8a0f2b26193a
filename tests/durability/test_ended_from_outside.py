"""A session whose workflow was terminated goes on with the mind and the memories of the store."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import update

from gmi.activities.memory.store import Find
from gmi.activities.memory.traces import Scope
from gmi.activities.store import open_store
from gmi.activities.store.intentions import kept_intentions
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.activities.store.tables import minds, turns
from gmi.personas.messages import Message
from gmi.worker import Session

from ..conftest import MakeStage, Stage
from ..support.scripted_model import Barrier, Fail, Text, Used

PERSONA = {
    "id": "steady",
    "name": "Steady",
    "description": "For tests.",
    "version": "1.0.0",
    "baseSystemPrompt": "BASE",
    "personalityTraits": {"openness": 0.5, "emotionality": 0.7},
    "emotionConfig": {"enabled": True},
    "memoryConfig": {"enabled": True, "cognitiveMechanisms": {}},
    "sentimentTracking": {"enabled": True},
}
ANGRY = "This is terrible and I hate it, nothing works, what an awful mess"
EMBEDDING = "openai:word-vectors"


@pytest.fixture
def personas(tmp_path: Path) -> Path:
    folder = tmp_path / "personas"
    folder.mkdir()
    (folder / "steady.json").write_text(json.dumps(PERSONA))
    return folder


async def steady(make_stage: MakeStage, folder: Path, **environ: str) -> Stage:
    stage = await make_stage(GMI_PERSONAS=str(folder), DEFAULT_PERSONA_ID="steady", **environ)
    for words in ("first", "second", "third", ANGRY):
        stage.model.on(words, Text("Well."))
    return stage


async def terminate(stage: Stage, session: Session) -> None:
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    await handle.terminate("by an operator")


async def said(stage: Stage) -> list[str]:
    """What the user is remembered to have said, in order of time."""
    async with open_store(stage.database_url) as store:
        memories = SQLMemoryStore(store.database)
        found = await memories.find(Find(scopes=[Scope("user", "kim")], faded=True))
    return [trace.content for trace in reversed(found)]


async def test_traits_feelings_and_counts_are_there_after_a_termination(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await steady(make_stage, personas)
    session = stage.session()
    await session.set_personality_trait("openness", 0.9)
    await session.perceive("The roof falls in", appraisal={"goal_congruence": -1.0})
    await session.send(ANGRY)
    await session.settle()
    before = await session.mind()
    await terminate(stage, session)
    await session.initialize()
    after = await session.mind()
    assert (after.traits, after.sentiment) == (before.traits, before.sentiment)
    assert after.traits["openness"] == 0.9
    assert after.sentiment["frustration"] == 1
    assert after.emotion is not None
    assert after.emotion["felt"]["valence"] < 0
    await session.send("second")
    assert (await session.mind()).traits["openness"] == 0.9


@pytest.mark.parametrize("how", ["cleared", "replaced", "hydrated"])
async def test_a_mind_outlives_a_termination_right_after_its_history_was_changed(
    make_stage: MakeStage, personas: Path, how: str
) -> None:
    stage = await steady(make_stage, personas)
    session = stage.session()
    await session.set_personality_trait("openness", 0.9)
    await session.perceive("The roof falls in", appraisal={"goal_congruence": -1.0})
    await session.send(ANGRY, user_context={"skillLevel": "expert"})
    await session.settle()
    given = [Message(role="user", content="first"), Message(role="assistant", content="Well.")]
    if how == "cleared":
        await session.clear_history()
    elif how == "replaced":
        await session.replace_history(given)
    else:
        await session.hydrate_conversation_history(given)
    before = await session.mind()
    await terminate(stage, session)
    await session.initialize()
    after = await session.mind()
    assert (after.traits, after.sentiment) == (before.traits, before.sentiment)
    assert (after.user, after.counters) == (before.user, before.counters)
    assert after.traits["openness"] == 0.9
    assert after.sentiment["frustration"] == 1
    assert after.user["skill_level"] == "expert"
    assert after.emotion is not None
    assert after.emotion["felt"]["valence"] < 0
    assert ("terrible" in after.model_dump_json()) == (how == "hydrated")
    await session.send("second")
    assert (await session.mind()).traits["openness"] == 0.9


async def test_a_mind_that_was_kept_while_its_history_was_cleared_has_no_words_of_it(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await steady(make_stage, personas)
    session = stage.session()
    turn = (await session.send(ANGRY)).turn
    await session.settle()
    [kept] = [item["mind"] async for item in session.read("mind")]
    assert "terrible" in str(kept)
    await session.clear_history()
    async with open_store(stage.database_url) as store:
        theirs = minds.c.turn == turn
        await store.database.write(
            lambda c: c.execute(update(minds).where(theirs).values(data=kept))
        )
    await terminate(stage, session)
    await session.initialize()
    after = await session.mind()
    assert after.sentiment["frustration"] == 1
    assert "terrible" not in after.model_dump_json()


@pytest.mark.parametrize("ended", [False, True])
async def test_turns_that_were_cleared_before_they_were_remembered_are_remembered(
    make_stage: MakeStage, personas: Path, ended: bool
) -> None:
    stage = await steady(make_stage, personas, GMI_EMBEDDING_MODEL=EMBEDDING)
    session = stage.session()
    stage.model.on_embedding("first", Barrier("embedding"))
    await session.send("first things")
    await stage.model.reached("embedding")
    await session.clear_history()
    if ended:
        await terminate(stage, session)
        stage.workers[0].kill()
    stage.model.open("embedding")
    if ended:
        await stage.worker()
    await session.send("second helpings")
    await session.settle()
    assert await said(stage) == ["first things", "second helpings"]


async def test_what_was_used_before_a_termination_is_still_counted(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await steady(make_stage, personas)
    stage.model.on("expensive", Text("Well."), Used(1000, 100))
    stage.model.on("cheap", Text("Well."), Used(10, 5))
    stage.model.on("broken", Fail(400))
    session = stage.session()
    await session.send("expensive")
    await session.send("cheap", model="openai:other")
    await session.send("broken", model="openai:unknown")
    await session.perceive("The roof falls in", appraisal={"goal_congruence": -1.0})
    await session.clear_history()
    await session.settle()
    before = await session.usage()
    assert before.turns == 4
    assert {name: used.total_tokens for name, used in before.by_model.items()} == {
        "openai:scripted": 1100,
        "openai:other": 15,
    }
    await terminate(stage, session)
    await session.initialize()
    assert await session.usage() == before
    await session.send("cheap")
    after = await session.usage()
    assert (after.turns, after.usage.total_tokens) == (5, before.usage.total_tokens + 15)


async def test_turns_that_were_not_remembered_yet_are_remembered_once(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await steady(make_stage, personas, GMI_EMBEDDING_MODEL=EMBEDDING)
    session = stage.session()
    await session.send("first things")
    await session.settle()
    stage.model.on_embedding("second", Barrier("embedding"))
    await session.send("second helpings")
    await stage.model.reached("embedding")
    await terminate(stage, session)
    stage.workers[0].kill()
    stage.model.open("embedding")
    await stage.worker()
    await session.send("third time")
    await session.settle()
    assert sorted(await said(stage)) == ["first things", "second helpings", "third time"]
    # Ended once more: nothing is left to do.
    await terminate(stage, session)
    await session.initialize()
    await session.settle()
    assert sorted(await said(stage)) == ["first things", "second helpings", "third time"]
    history = await stage.client.temporal.get_workflow_handle(session.workflow_id).fetch_history()
    done = [e.activity_task_scheduled_event_attributes.activity_type.name for e in history.events]
    assert "gmi.store.open_session" in done
    assert "gmi.memory.encode" not in done


async def test_what_it_meant_to_do_later_is_there_after_a_termination(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await steady(make_stage, personas)
    session = stage.session()
    await session.intend("mention the vet", event="rain", recurring=True, id="vet")
    await session.intend("close the window", event="rain", id="window")
    await session.intend("say nothing of it", event="rain", id="nothing")
    await session.cancel_intention("nothing")
    await session.notice("rain")
    await session.send("first")
    await session.intend("stretch", at=datetime(2200, 1, 1, tzinfo=UTC), then="turn", id="legs")
    before = await session.intentions()
    assert [item.id for item in before] == ["vet", "legs"]
    await session.settle()
    for _ in range(2):
        await terminate(stage, session)
        await session.initialize()
        assert await session.intentions() == before
    again = await session.intend("close the window", event="rain", id="window")
    assert not again.added
    await session.notice("rain")
    await session.send("second")
    assert "mention the vet" in str(stage.model.requests[-1])
    assert "close the window" not in str(stage.model.requests[-1])


async def test_a_turn_of_an_intention_that_was_lost_with_its_workflow_leaves_a_reminder(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await steady(make_stage, personas)
    session = stage.session()
    stage.model.on("walk", Text("Well."), times=1)
    stage.model.on("walk", Barrier("locking"), Text("I lock it."))
    await session.send("walk")
    await session.intend("lock the gate", event="night", then="turn")
    await session.notice("night")
    await stage.model.reached("locking")
    await begun(stage, session)
    await terminate(stage, session)
    stage.model.open("locking")
    await session.send("second")
    assert "lock the gate" in str(stage.model.requests[-1])
    await session.send("third")
    assert await session.intentions() == []


async def begun(stage: Stage, session: Session) -> None:
    """Wait until the store's copy knows that an intention has started its turn."""
    key = (await session.state()).session_key or ""
    async with open_store(stage.database_url) as store:
        while True:
            data = await store.database.read(lambda conn: kept_intentions(conn, key))
            if data is not None and any(item["turn"] for item in data["waiting"]):
                return
            await asyncio.sleep(0.05)


async def test_a_turn_that_cannot_be_read_any_more_does_not_keep_its_session_shut(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await steady(make_stage, personas, GMI_EMBEDDING_MODEL=EMBEDDING)
    session = stage.session()
    stage.model.on_embedding("second", Barrier("embedding"))
    lost = await session.send("second helpings")
    await stage.model.reached("embedding")
    await terminate(stage, session)
    stage.workers[0].kill()
    async with open_store(stage.database_url) as store:
        theirs = turns.c.turn == lost.turn
        await store.database.write(
            lambda c: c.execute(update(turns).where(theirs).values(output={}))
        )
    stage.model.open("embedding")
    await stage.worker()
    assert (await session.send("third time")).response_text == "Well."
    await session.settle()
    assert await said(stage) == ["third time"]
    warned = [entry.message for entry in await session.get_reasoning_trace()]
    assert any(lost.turn in message and "not remembered" in message for message in warned)
