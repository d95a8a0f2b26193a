"""What happens while something else is under way is neither lost nor done twice."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gmi.activities.store import open_store
from gmi.activities.store.learning.sql import SQLLearningStore
from gmi.personas.errors import RequestMismatchError
from gmi.personas.learning import LearnerKey
from gmi.personas.self_changes import Holder
from gmi.worker import Session

from ..support.databases import locked
from ..support.scripted_model import Barrier, Call, Text
from .minds import ANGRY, BAD_NEWS, FRUSTRATED, PATCH, ended, released, said_while_changed


async def contents(session: Session) -> list[str]:
    return [item["content"] async for item in session.memory.list()]


# Another persona meanwhile


async def test_an_event_whose_persona_changes_while_it_is_appraised_fails_and_wedges_nothing(
    started: Any,
) -> None:
    stage = await started("judge")
    stage.model.on("lighthouse", Barrier("judging"), Text(json.dumps({"goal_relevance": 1.0})))
    session = stage.session()
    felt = asyncio.create_task(session.perceive("The lighthouse burned down"))
    await stage.model.reached("judging")
    await session.refresh_persona("plain")
    stage.model.open("judging")
    assert (await felt).status == "failed"
    assert (await session.send("hello")).status == "done"


async def test_a_turn_is_remembered_by_the_persona_that_it_began_with(started: Any) -> None:
    stage = await started("keeper")
    stage.model.on("zebra", Barrier("thinking"), Text("Noted."))
    session = stage.session()
    await session.initialize()
    await said_while_changed(stage, session, "My zebra is called Fritz", "plain")
    await session.send("hello")
    await session.settle()
    assert "My zebra is called Fritz" in await contents(session)
    assert "hello" not in await contents(session)


async def test_a_persona_learns_for_itself_in_a_session_that_another_one_began(
    started: Any,
) -> None:
    stage = await started("first")
    change = {"trait": "extraversion", "delta": 0.02, "reasoning": "livelier"}
    stage.model.on("livelier", Call("adapt_personality", change), calls=0)
    stage.model.on("livelier", Text("Done."), calls=1)
    session = stage.session(user_id="ada")
    await session.send("hello")
    await session.refresh_persona("second")
    await session.send("livelier")
    async with open_store(stage.database_url) as store:
        learning = SQLLearningStore(store.database)
        made = {
            agent: len(await learning.changes(Holder("", LearnerKey(agent=agent, user="ada"))))
            for agent in ("first", "second")
        }
    assert made == {"first": 0, "second": 1}


async def test_what_a_round_has_changed_stands_when_its_pause_is_stopped(started: Any) -> None:
    stage = await started("first")
    change = {"trait": "extraversion", "delta": 0.02, "reasoning": "livelier"}
    asks = Call("ask_person", {"question": "Which?"}, id="c2")
    stage.model.on("colour", Call("adapt_personality", change, id="c1"), asks)
    session = stage.session(user_id="ada")
    assert (await session.send("colour")).status == "waiting"
    assert (await session.mind()).traits["extraversion"] == 0.66
    await session.stop()
    assert (await session.mind()).traits["extraversion"] == 0.66
    changes = [e for e in await session.get_reasoning_trace() if "The mind changed" in e.message]
    assert len(changes) == 1


async def test_a_persona_that_changes_while_the_idle_session_is_released_is_kept(
    started: Any,
) -> None:
    stage = await started("plain")
    session = stage.session(idle_timeout=2)
    await session.send("hello")
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    with locked(stage.database_url):
        change = asyncio.create_task(session.refresh_persona("keeper"))
        async with asyncio.timeout(20):
            while True:
                pending = (await handle.describe()).raw_description.pending_activities
                names = {activity.activity_type.name for activity in pending}
                if {"gmi.store.refresh_persona", "gmi.store.save_session"} <= names:
                    break
                await asyncio.sleep(0.05)
    assert (await change).persona == "keeper"
    await released(stage, session)
    again = stage.session(session.id)
    await again.send("hello")
    assert (await again.state()).persona == "keeper"


# Reminders meanwhile


async def test_what_is_noticed_again_while_it_is_told_is_told_again(started: Any) -> None:
    stage = await started("plain")
    stage.model.on("begin", Barrier("telling"), Text("Well."))
    session = stage.session()
    await session.intend("offer tea", event="home", recurring=True)
    await session.notice("home")
    turn = asyncio.create_task(session.send("begin"))
    await stage.model.reached("telling")
    assert len(await session.notice("home")) == 1
    stage.model.open("telling")
    await turn
    await session.send("alpha")
    assert "offer tea" in str(stage.model.requests[-1])
    await session.send("bravo")
    assert "offer tea" not in str(stage.model.requests[-1])


async def test_an_id_that_is_used_anew_while_the_old_one_is_told_waits_for_its_own_time(
    started: Any,
) -> None:
    stage = await started("plain")
    stage.model.on("begin", Barrier("telling"), Text("Well."))
    session = stage.session()
    await session.intend("the old thing", at=datetime.now(UTC) - timedelta(days=1), id="x")
    turn = asyncio.create_task(session.send("begin"))
    await stage.model.reached("telling")
    assert await session.cancel_intention("x")
    await session.intend("the new thing", event="later", id="x")
    stage.model.open("telling")
    await turn
    assert [item.content for item in await session.intentions()] == ["the new thing"]


# Repeats


async def test_an_event_with_a_known_request_happens_once_also_after_a_termination(
    started: Any,
) -> None:
    stage = await started("feeler")
    session = stage.session()
    first = await session.perceive("The roof falls in", appraisal=BAD_NEWS, request_id="roof")
    await session.send("hello")
    await session.settle()
    await ended(stage, session)
    await session.initialize()
    before = (await session.mind()).affect
    again = await session.perceive("The roof falls in", appraisal=BAD_NEWS, request_id="roof")
    assert (again.turn, again.perception) == (first.turn, first.perception)
    after = (await session.mind()).affect
    assert abs(after.valence - before.valence) < 0.05
    await ended(stage, session)
    with pytest.raises(RequestMismatchError):
        await session.perceive("The roof is new", appraisal=BAD_NEWS, request_id="roof")
    kinds = [row["kind"] for row in await session.turns()]
    assert kinds == ["event", "text"]
    assert abs((await session.mind()).affect.valence - before.valence) < 0.05


async def test_a_repeated_or_refused_message_tells_the_mind_nothing(started: Any) -> None:
    stage = await started("keeper")
    session = stage.session()
    await session.send("alpha", user_context={"skillLevel": "beginner"}, request_id="r")
    await session.send("bravo", user_context={"skillLevel": "expert"})
    await session.settle()
    await ended(stage, session)
    await session.send("alpha", user_context={"skillLevel": "beginner"}, request_id="r")
    assert (await session.mind()).user["skill_level"] == "expert"
    await ended(stage, session)
    with pytest.raises(RequestMismatchError):
        await session.send("another", user_context={"skillLevel": "beginner"}, request_id="r")
    assert (await session.mind()).user["skill_level"] == "expert"


async def test_feedback_with_one_request_is_taken_once(started: Any) -> None:
    stage = await started("keeper")
    session = stage.session()
    await session.send("hello")
    acks = [
        await session.record_user_feedback("negative", "too long", request_id="f") for _ in range(2)
    ]
    assert acks[0] == acks[1]
    told = [entry for entry in await session.get_reasoning_trace() if "feedback" in entry.message]
    assert len(told) == 1
    with pytest.raises(RequestMismatchError):
        await session.record_user_feedback("positive", "lovely", request_id="f")


# Forgetting meanwhile


@pytest.mark.parametrize("whose", ["turn", "user"])
async def test_an_event_that_was_forgotten_is_not_told_to_the_next_prompt(
    started: Any, whose: str
) -> None:
    stage = await started("feeler")
    session = stage.session(user_id="kim")
    await session.send("alpha")
    event = await session.perceive("The walrus died", appraisal=BAD_NEWS)
    await session.settle()
    if whose == "turn":
        await session.memory.forget(turn=event.turn)
    else:
        await stage.client.memory.forget(user_id="kim")
    await session.send("bravo")
    assert "walrus" not in str(stage.model.requests[-1])


async def test_a_mind_at_hand_forgets_a_turn_and_what_was_noted_of_it(started: Any) -> None:
    stage = await started("moody")
    stage.model.on(FRUSTRATED, Text(json.dumps(PATCH)))
    stage.model.on("awful", Text("I am sorry."))
    session = stage.session()
    turns = [(await session.send(f"{number}: {ANGRY}")).turn for number in range(2)]
    await session.settle()
    assert "walrus" in str(await session.mind())
    for turn in turns:
        await session.memory.forget(turn=turn)
    shown = await session.mind()
    assert "walrus" not in str(shown)
    assert "terrible" not in str(shown)


async def test_a_metaprompt_that_runs_while_the_history_is_emptied_changes_nothing(
    started: Any,
) -> None:
    stage = await started("moody")
    stage.model.on(FRUSTRATED, Barrier("reflecting"), Text(json.dumps(PATCH)))
    stage.model.on("awful", Text("I am sorry."))
    session = stage.session()
    for number in range(2):
        await session.send(f"{number}: {ANGRY}")
    await stage.model.reached("reflecting")
    await session.clear_history()
    stage.model.open("reflecting")
    await session.send("hello")
    await session.settle()
    assert "walrus" not in str(await session.mind())
    assert not [row async for row in session.read("mind") if "walrus" in str(row)]
    assert not [e for e in await session.get_reasoning_trace() if "walrus" in str(e.details)]
