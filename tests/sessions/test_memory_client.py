"""Memory as a client sees it: of everybody, and of one session."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from gmi.personas.errors import NotFoundError, ValidationError
from gmi.personas.memory_lifecycle import MemoryLifecycleEvent
from gmi.worker import Session

from ..conftest import Stage
from ..support.scripted_model import Text


async def told(stage: Stage, session: Session, *lines: str) -> list[str]:
    turns = []
    for line in lines:
        stage.model.on(line, Text("Noted."))
        turns.append((await session.send(line)).turn)
    await session.settle()
    return turns


async def contents(session: Session) -> set[str]:
    return {item["content"] async for item in session.memory.list()}


async def test_a_session_shows_what_it_remembers_and_what_it_would_recall(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="una")
    await told(stage, session, "My sister Ottilie breeds alpacas", "Ducks swim in the pond")
    assert "My sister Ottilie breeds alpacas" in await contents(session)
    found = await session.memory.recall("who breeds alpacas?")
    assert found[0]["content"] == "My sister Ottilie breeds alpacas"
    shown = await session.memory.show(found[0]["id"])
    assert (shown["scope"], shown["links"]) == ("user:una", [])
    stats = await session.memory.stats()
    assert stats.counts["traces"] == 4


async def test_memories_are_put_in_corrected_and_recalled_by_a_turn(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="vera")
    await session.initialize()
    request = str(uuid.uuid4())
    made = await session.memory.remember("Vera's zeppelin is blue", request_id=request)
    again = await session.memory.remember("Vera's zeppelin is blue", request_id=request)
    assert made["id"] == again["id"]
    corrected = await session.memory.correct(made["id"], "Vera's zeppelin is crimson")
    assert corrected["corrected"] is True
    stage.model.on("colour has my zeppelin", Text("Crimson."))
    await session.send("What colour has my zeppelin?")
    prompt = str(stage.model.requests[-1]["messages"])
    assert "crimson" in prompt
    assert "blue" not in prompt


async def test_a_forgotten_turn_is_gone_from_memory_and_later_prompts(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="wim")
    [turn] = await told(stage, session, "The code word is quagmire")
    erased = await session.memory.forget(turn=turn)
    assert erased["traces"] == 2
    assert await contents(session) == set()
    other = stage.session(persona="mindful", user_id="wim")
    stage.model.on("word was quagmire", Text("No idea."))
    await other.send("Which word was quagmire?")
    assert "The code word is" not in str(stage.model.requests[-1]["messages"])


async def test_a_session_cannot_touch_what_it_cannot_read(stage: Stage) -> None:
    mine = stage.session(persona="mindful", user_id="xia")
    await told(stage, mine, "I like theremins")
    [item] = await mine.memory.recall("theremins", limit=1)
    other = stage.session(persona="mindful", user_id="yan")
    await other.initialize()
    with pytest.raises(NotFoundError):
        await other.memory.show(item["id"])
    with pytest.raises(NotFoundError):
        await other.memory.forget(ids=[item["id"]])
    with pytest.raises(NotFoundError):
        await other.memory.correct(item["id"], "I hate theremins")
    assert "I like theremins" in await contents(mine)


async def test_everything_of_a_user_is_forgotten_whatever_session_it_was_made_in(
    stage: Stage,
) -> None:
    for line in ("I play the theremin", "I breed alpacas"):
        await told(stage, stage.session(persona="mindful", user_id="zoe"), line)
    memory = stage.client.memory
    assert len([item async for item in memory.list(user_id="zoe")]) == 4
    assert (await memory.forget(user_id="zoe"))["traces"] == 4
    assert [item async for item in memory.list(user_id="zoe", faded=True)] == []


async def test_what_is_asked_wrongly_is_refused_with_a_typed_error(stage: Stage) -> None:
    memory = stage.client.memory
    with pytest.raises(ValidationError):
        await memory.forget()
    with pytest.raises(ValidationError):
        await memory.search("x", user_id="x", limit=1000)
    with pytest.raises(ValidationError):
        await memory.remember("x", scope="mars")


async def test_working_memory_shows_words_not_ids(stage: Stage) -> None:
    first = stage.session(persona="mindful", user_id="amy")
    await told(stage, first, "My sister Ottilie breeds alpacas")
    session = stage.session(persona="mindful", user_id="amy")
    stage.model.on("alpacas does she breed", Text("Ten."))
    await session.send("How many alpacas does she breed?")
    held = await session.get_working_memory_snapshot()
    assert "My sister Ottilie breeds alpacas" in [slot.content for slot in held.slots]
    assert all(0 < slot.activation <= 1 for slot in held.slots)
    await stage.client.memory.forget(user_id="amy")
    erased = await session.get_working_memory_snapshot()
    assert {slot.content for slot in erased.slots} == {None}


async def test_health_is_reported_and_kept_in_the_trace(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="bea")
    await told(stage, session, "I breed alpacas")
    report = await session.analyze_and_report_memory_health()
    assert report.overall_status == "OPERATIONAL"
    assert report.rag_system_stats.details["traces"] >= 2
    assert "item_count" in report.working_memory_stats
    entries = [entry.type for entry in await session.get_reasoning_trace()]
    assert entries.index("HEALTH_CHECK_REQUESTED") < entries.index("HEALTH_CHECK_RESULT")
    everybody = await stage.client.memory.health("mindful")
    assert everybody.overall_status == "OPERATIONAL"


@pytest.mark.parametrize(
    ("persona", "action"), [("mindful", "DELETE"), ("defending", "PREVENT_ACTION")]
)
async def test_a_persona_that_wants_a_say_defends_what_it_was_asked_to_remember(
    stage: Stage, persona: str, action: str
) -> None:
    session = stage.session(persona=persona)
    facts: dict[str, Any] = {"category": "user_explicit_memory", "negotiable": True}
    event = MemoryLifecycleEvent(
        event_id="e1", type="DELETION_PROPOSED", item_id="m1", proposed_action="DELETE", **facts
    )
    answer = await session.on_memory_lifecycle_event(event)
    assert answer.action_taken == action
    entries = [entry.type for entry in await session.get_reasoning_trace()]
    assert "MEMORY_LIFECYCLE_EVENT_RECEIVED" in entries
    assert "MEMORY_LIFECYCLE_RESPONSE_SENT" in entries
    assert ("MEMORY_LIFECYCLE_NEGOTIATION_START" in entries) is (persona == "defending")
