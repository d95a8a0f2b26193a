"""What a user says of an answer."""

from __future__ import annotations

import uuid

import pytest

from gmi.personas.errors import TurnNotFoundError

from ..conftest import Stage
from ..support.scripted_model import Text
from .marking import marked


async def test_feedback_becomes_memories_once(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="mind-eve")
    marker, text = marked("How deep is the lake?")
    stage.model.on(marker, Text("Nine metres."))
    output = await session.send(text)
    await session.settle()
    request = str(uuid.uuid4())
    acks = [
        await session.record_user_feedback(
            "negative", "That was sloppy", "The lake is ten metres deep", request_id=request
        )
        for _ in range(2)
    ]
    assert acks[0].turn == output.turn
    assert len(acks[0].memories) == 2
    assert acks[0].memories == acks[1].memories
    kept = {item["content"]: item["type"] async for item in session.memory.list()}
    assert kept["That was sloppy"] == "episodic"
    assert kept["The lake is ten metres deep"] == "semantic"
    assert len(kept) == 4
    said = [e.message for e in await session.get_reasoning_trace() if e.turn == output.turn]
    assert any("feedback is negative" in message for message in said)


async def test_feedback_is_forgotten_with_its_turn_and_notes_with_their_session(
    stage: Stage,
) -> None:
    session = stage.session(persona="mindful", user_id="mind-eva")
    marker, text = marked("How deep is the lake?")
    stage.model.on(marker, Text("Nine metres."))
    first, second = [(await session.send(text)).turn for _ in range(2)]
    await session.settle()
    await session.record_user_feedback("negative", "Sloppy", "It is ten deep", turn=first)
    await session.record_user_feedback("positive", "Nice", turn=second)
    note = await session.memory.remember("The lake is far away")
    assert note["session"] is not None
    told = [item async for item in session.memory.list() if item["turn"] == first]
    assert {"Sloppy", "It is ten deep"} < {item["content"] for item in told}
    assert (await session.memory.forget(turn=first))["traces"] == 4
    assert {item["content"] async for item in session.memory.list()} >= {"Nice", note["content"]}
    await session.memory.forget()
    assert [item async for item in session.memory.list()] == []


async def test_feedback_on_a_turn_that_never_was_is_refused(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="mind-evi")
    await session.initialize()
    with pytest.raises(TurnNotFoundError):
        await session.record_user_feedback("positive", "Nice", turn="nosuch")
    assert [item async for item in session.memory.list()] == []
    assert not any("feedback" in e.message for e in await session.get_reasoning_trace())


async def test_a_persona_without_memory_keeps_feedback_in_the_trace_alone(stage: Stage) -> None:
    session = stage.session(persona="brief", user_id="mind-eli")
    ack = await session.record_user_feedback("positive", "Nice")
    assert (ack.turn, ack.memories) == (None, [])
    [entry] = [e for e in await session.get_reasoning_trace() if "feedback" in e.message]
    assert entry.details["text"] == "Nice"
