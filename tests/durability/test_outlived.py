"""What a session was told outlives its release, its end from outside, and another persona."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from gmi.activities.store import open_store
from gmi.activities.store.intentions import kept_intentions
from gmi.activities.store.learning.sql import SQLLearningStore
from gmi.personas.errors import RequestMismatchError
from gmi.personas.learning import LearnerKey
from gmi.personas.self_changes import Holder

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Text
from .minds import ANGRY, BAD_NEWS, FRUSTRATED, PATCH, ended, released, said_while_changed

LIVELIER = {"trait": "extraversion", "delta": 0.02, "reasoning": "livelier"}


async def learned(stage: Stage, agent: str) -> int:
    """How many changes a persona has kept for the user."""
    async with open_store(stage.database_url) as store:
        learning = SQLLearningStore(store.database)
        return len(await learning.changes(Holder("", LearnerKey(agent=agent, user="ada"))))


async def test_what_is_told_to_a_session_that_was_released_outlives_its_end(started: Any) -> None:
    stage = await started("feeler")
    session = stage.session(idle_timeout=2)
    await session.send("hello")
    await released(stage, session)
    await session.intend("mention the vet", event="rain", id="vet")
    await session.set_personality_trait("openness", 0.9)
    await session.settle()
    await ended(stage, session)
    await session.initialize()
    assert [item.id for item in await session.intentions()] == ["vet"]
    assert (await session.mind()).traits["openness"] == 0.9


async def test_a_persona_that_is_changed_after_a_release_outlives_the_end(started: Any) -> None:
    stage = await started("plain")
    session = stage.session(idle_timeout=2)
    await session.send("hello")
    await released(stage, session)
    await session.refresh_persona("keeper")
    await session.settle()
    await ended(stage, session)
    await session.initialize()
    assert (await session.state()).persona == "keeper"


async def test_after_a_repeat_nobody_waits_for_a_write_that_never_was(started: Any) -> None:
    stage = await started("feeler")
    session = stage.session()
    await session.perceive("The roof falls in", appraisal=BAD_NEWS, request_id="roof")
    await session.send("alpha", request_id="r")
    await session.settle()
    for repeat in (
        lambda: session.perceive("The roof falls in", appraisal=BAD_NEWS, request_id="roof"),
        lambda: session.send("alpha", request_id="r"),
    ):
        await ended(stage, session)
        await repeat()
        await session.settle()
        await session.state()
        async with asyncio.timeout(20):
            assert len(await session.turns()) == 2


async def test_a_trait_of_a_persona_that_changes_by_nothing_else_outlives_its_end(
    started: Any,
) -> None:
    stage = await started("plain")
    session = stage.session()
    await session.send("hello")
    await session.set_personality_trait("openness", 0.9)
    await session.settle()
    await ended(stage, session)
    await session.initialize()
    assert (await session.mind()).traits["openness"] == 0.9


async def test_what_another_persona_learned_does_not_come_back_after_its_end(
    started: Any,
) -> None:
    stage = await started("first")
    stage.model.on("livelier", Call("adapt_personality", LIVELIER), calls=0)
    stage.model.on("livelier", Text("Done."), calls=1)
    session = stage.session(user_id="ada")
    await session.send("livelier")
    await session.settle()
    await session.refresh_persona("feeler")
    await session.settle()
    traits = (await session.mind()).traits
    await ended(stage, session)
    await session.initialize()
    assert (await session.mind()).traits == traits


async def test_a_persona_learns_for_itself_after_a_turn_that_the_other_one_ended(
    started: Any,
) -> None:
    stage = await started("first")
    stage.model.on("begin", Barrier("thinking"), Text("Well."))
    stage.model.on("livelier", Call("adapt_personality", LIVELIER), calls=0)
    stage.model.on("livelier", Text("Done."), calls=1)
    session = stage.session(user_id="ada")
    await session.send("hello")
    await said_while_changed(stage, session, "begin", "second")
    await session.send("livelier")
    assert [await learned(stage, agent) for agent in ("first", "second")] == [0, 1]


async def test_what_the_other_personas_turn_changes_is_not_the_new_ones(started: Any) -> None:
    stage = await started("first")
    stage.model.on("begin", Barrier("thinking"), Call("adapt_personality", LIVELIER), calls=0)
    stage.model.on("begin", Text("Done."), calls=1)
    session = stage.session(user_id="ada")
    await session.send("hello")
    await said_while_changed(stage, session, "begin", "plain")
    await session.send("alpha")
    assert "extraversion" not in (await session.mind()).traits
    assert await learned(stage, "first") == 1


async def test_a_session_that_is_closed_leaves_no_intentions_behind(started: Any) -> None:
    stage = await started("plain")
    session = stage.session()
    await session.send("hello")
    await session.intend("buy a ring", event="rain")
    await session.settle()
    key = (await session.state()).session_key or ""
    await session.close()
    await released(stage, session)
    async with open_store(stage.database_url) as store:
        assert await store.database.read(lambda conn: kept_intentions(conn, key)) is None


async def test_what_a_round_has_changed_stands_when_another_call_fails_the_turn(
    started: Any,
) -> None:
    stage = await started("first")
    change = Call("adapt_personality", LIVELIER, id="c1")
    stage.model.on("colour", change, Call("overdue", id="c2"))
    session = stage.session(user_id="ada", tool_failure_mode="fail_closed")
    assert (await session.send("colour")).status == "failed"
    assert await learned(stage, "first") == 1
    assert (await session.mind()).traits["extraversion"] == 0.66


async def test_notes_of_later_turns_outlive_a_release_where_an_earlier_one_was_forgotten(
    started: Any,
) -> None:
    stage = await started("moodyfeeler")
    stage.model.on(FRUSTRATED, Text(json.dumps(PATCH)))
    stage.model.on("awful", Text("I am sorry."))
    session = stage.session(idle_timeout=3)
    first = await session.send("hello")
    await session.settle()
    await session.memory.forget(turn=first.turn)
    for number in range(2):
        await session.send(f"{number}: {ANGRY}")
    await session.settle()
    await session.perceive("The lighthouse shines", appraisal={"goalRelevance": 0.1})
    await session.settle()
    assert "walrus" in str(await session.mind())
    await released(stage, session)
    await session.initialize()
    assert "walrus" in str(await session.mind())


async def test_feedback_that_is_sent_several_times_at_once_is_taken_once(started: Any) -> None:
    stage = await started("keeper")
    session = stage.session()
    await session.send("hello")
    one, two, other = await asyncio.gather(
        session.record_user_feedback("negative", "too long", request_id="f"),
        session.record_user_feedback("negative", "too long", request_id="f"),
        session.record_user_feedback("positive", "lovely", request_id="f"),
        return_exceptions=True,
    )
    told = [entry for entry in await session.get_reasoning_trace() if "feedback" in entry.message]
    assert len(told) == 1
    refused = [ack for ack in (one, two, other) if isinstance(ack, RequestMismatchError)]
    assert len(refused) in (1, 2)
    taken = [ack for ack in (one, two, other) if ack not in refused]
    assert all(ack == taken[0] for ack in taken)
