"""What a session is to remember later, and how it comes up."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gmi.personas.errors import (
    GMIError,
    MessageTooLargeError,
    RequestMismatchError,
    SessionBusyError,
    ValidationError,
)
from gmi.worker import Session
from gmi.workflows.turns import TurnCard, TurnOutput

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Fail, Text

KEEP = "To keep in mind now:"


def prompt(stage: Stage, word: str) -> list[str]:
    """The messages of the newest request that holds ``word``."""
    return [str(message["content"]) for message in stage.model.asked(word)[-1]["messages"]]


def told(stage: Stage, word: str) -> list[str]:
    """What the prompt that asked about ``word`` was to be kept in mind."""
    last = next(text for text in reversed(prompt(stage, word)) if word in text)
    if KEEP not in last:
        return []
    lines = last.split(KEEP)[1].splitlines()[1:]
    return [line[2:] for line in lines if line.startswith("- ")]


async def say(stage: Stage, session: Session, words: str, **given: Any) -> TurnOutput:
    stage.model.on(words, Text("Well."))
    return await session.send(words, **given)


async def by_itself(session: Session, count: int = 1) -> list[TurnCard]:
    """The turns that the session started, once so many have ended."""
    async with asyncio.timeout(30):
        while True:
            turns = (await session.list_turns()).turns
            own = [t for t in turns if t.kind == "system" and t.ended_at is not None]
            if len(own) >= count:
                return own
            await asyncio.sleep(0.05)


async def names(session: Session) -> list[str]:
    return [item.id for item in await session.intentions()]


async def test_an_event_reminds_the_next_turn_once(stage: Stage) -> None:
    session = stage.session()
    await session.intend("ask how the interview went", event="back home", id="ask")
    await session.intend("offer tea", event="back home", importance=0.9, id="tea")
    await say(stage, session, "intend-01")
    assert told(stage, "intend-01") == []
    assert await session.notice("something else") == []
    assert await session.notice("back home") == ["tea", "ask"]
    await say(stage, session, "intend-02")
    assert told(stage, "intend-02") == ["offer tea", "ask how the interview went"]
    await say(stage, session, "intend-03")
    assert told(stage, "intend-03") == []
    assert await names(session) == []


async def test_a_persona_with_a_memory_is_reminded_too(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="quentin")
    await session.intend("return the ladder", at=datetime.now(UTC) - timedelta(hours=1))
    await say(stage, session, "intend-04")
    assert told(stage, "intend-04") == ["return the ladder"]
    await say(stage, session, "intend-05")
    assert told(stage, "intend-05") == []


async def test_a_cue_is_met_by_its_words(stage: Stage) -> None:
    session = stage.session()
    await session.intend("the vet opens at nine", cue="the cat is ill", recurring=True)
    await session.intend("mention the concert", cue="music")
    await say(stage, session, "intend-06 how are you?")
    assert told(stage, "intend-06") == []
    await say(stage, session, "intend-07 my cats are ill again")
    assert told(stage, "intend-07") == ["the vet opens at nine"]
    await say(stage, session, "intend-08 the cat fell ill to music")
    assert told(stage, "intend-08") == ["the vet opens at nine", "mention the concert"]
    assert [(i.content, i.fired) for i in await session.intentions()] == [
        ("the vet opens at nine", 2)
    ]


async def test_a_time_is_told_from_then_on_until_a_turn_is_done(stage: Stage) -> None:
    session = stage.session()
    soon = datetime.now(UTC) + timedelta(seconds=3)
    await session.intend("call Ann", at=soon)
    await session.intend("next year", at=soon + timedelta(days=365), id="far")
    await say(stage, session, "intend-09")
    assert told(stage, "intend-09") == []
    await asyncio.sleep((soon - datetime.now(UTC)).total_seconds())
    stage.model.on("intend-10", Fail(400))
    assert (await session.send("intend-10")).status == "failed"
    assert told(stage, "intend-10") == ["call Ann"]
    stage.model.on("intend-11", Text("So "), Barrier("intend-11"))
    stream = await session.stream("intend-11")
    await stage.model.reached("intend-11")
    await session.stop(stream.turn)
    assert told(stage, "intend-11") == ["call Ann"]
    await say(stage, session, "intend-12")
    assert told(stage, "intend-12") == ["call Ann"]
    await say(stage, session, "intend-13")
    assert told(stage, "intend-13") == []
    assert await names(session) == ["far"]


async def test_every_step_of_a_turn_is_told_the_same(stage: Stage) -> None:
    session = stage.session(tools=["echo"])
    await session.intend("be brief", event="start")
    await session.notice("start")
    stage.model.on("intend-14", Call("echo", {"text": "a"}))
    stage.model.on("intend-14", Text("done"), calls=1)
    assert (await session.send("intend-14")).status == "done"
    first, second = stage.model.asked("intend-14")
    assert first["messages"] == second["messages"][: len(first["messages"])]
    assert told(stage, "intend-14") == ["be brief"]


async def test_the_session_starts_a_turn_when_the_time_has_come(stage: Stage) -> None:
    session = stage.session()
    stage.model.on("intend-15", Text("Gladly."), times=1)
    stage.model.on("intend-15", Text("The tea is ready!"))
    await session.send("intend-15")
    at = datetime.now(UTC) + timedelta(seconds=1)
    ack = await session.intend("take the tea out", at=at, then="turn")
    assert ack.added
    [card] = await by_itself(session)
    assert card.created_at >= at
    output = await session.get_turn(card.turn)
    assert output is not None
    assert output.response_text == "The tea is ready!"
    [said] = [text for text in prompt(stage, "intend-15") if "take the tea out" in text]
    assert at.isoformat(timespec="seconds") in said
    assert await session.intentions() == []
    trace = await session.get_reasoning_trace()
    [due] = [entry for entry in trace if entry.message == "An intention is due."]
    assert (due.turn, due.details["intention"]) == (card.turn, ack.id)


async def test_an_event_starts_a_turn_and_a_watcher_sees_it(stage: Stage) -> None:
    session = stage.session()
    stage.model.on("intend-16", Text("Yes."), times=1)
    stage.model.on("intend-16", Text("The door!"))
    await session.send("intend-16")
    await session.intend("open the door", event="bell", then="turn", recurring=True, id="door")

    async def watched() -> str:
        text = ""
        async for chunk in session.watch():
            text += str(chunk.content) if chunk.type == "text_delta" else ""
            if chunk.type == "final_response_marker" and text:
                break
        return text

    watcher = asyncio.create_task(watched())
    rung = 0
    # It may begin to watch after a turn or in the middle of one.
    while not watcher.done():
        rung += 1
        assert await session.notice("bell") == ["door"]
        await by_itself(session, rung)
    assert await watcher == "The door!"
    assert [(i.id, i.fired) for i in await session.intentions()] == [("door", rung)]


async def test_a_turn_of_its_own_that_fails_leaves_a_reminder(stage: Stage) -> None:
    session = stage.session()
    stage.model.on("intend-17", Text("Yes."), times=1)
    stage.model.on("intend-17", Fail(400))
    await session.send("intend-17")
    await session.intend("lock the gate", event="night", then="turn")
    await session.notice("night")
    [card] = await by_itself(session)
    assert card.status == "failed"
    await say(stage, session, "intend-18")
    assert told(stage, "intend-18") == ["lock the gate"]
    assert await session.intentions() == []
    assert len(await by_itself(session)) == 1


async def test_a_repeat_adds_nothing(stage: Stage) -> None:
    session = stage.session()
    first = await session.intend("feed the fish", event="noon", request_id="fish")
    again = await session.intend("feed the fish", event="noon", request_id="fish")
    assert (first.added, again.added) == (True, False)
    assert first.id == again.id
    with pytest.raises(RequestMismatchError):
        await session.intend("feed the dog", event="noon", request_id="fish")
    await session.intend("feed the fish", event="noon")
    assert len(await session.intentions()) == 2


async def test_a_cancelled_intention_never_comes(stage: Stage) -> None:
    session = stage.session()
    await session.intend("hush", event="noon", id="hush")
    soon = datetime.now(UTC) + timedelta(seconds=2)
    await session.intend("hush too", at=soon, then="turn", id="hush too")
    assert await session.cancel_intention("hush")
    assert await session.cancel_intention("hush too")
    assert not await session.cancel_intention("hush too")
    assert await session.notice("noon") == []
    await asyncio.sleep((soon - datetime.now(UTC)).total_seconds())
    await say(stage, session, "intend-19")
    assert told(stage, "intend-19") == []
    assert [turn.kind for turn in (await session.list_turns()).turns] == ["text"]


async def test_limits_are_kept_with_typed_errors(stage: Stage) -> None:
    session = stage.session()
    for number in range(32):
        await session.intend("x", event="noon", id=f"i{number}")
    with pytest.raises(SessionBusyError):
        await session.intend("x", event="noon")
    assert not (await session.intend("x", event="noon", id="i3")).added
    await session.cancel_intention("i0")
    with pytest.raises(MessageTooLargeError):
        await session.intend("ä" * 500, event="ä" * 100)
    with pytest.raises(ValidationError, match="exactly one"):
        await session.intend("x")
    for number in (5, 5.0, "5"):
        with pytest.raises(ValidationError, match="a number is no time"):
            await session.intend("x", at=number)  # type: ignore[arg-type]
    for wrong, word in ((-1, "-1 seconds"), (True, "True"), ("5", "'5'"), (1e99, "1e\\+99")):
        with pytest.raises(ValidationError, match=word):
            await session.intend("x", after=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="keep one"):
        await session.intend("x", at=datetime.now(UTC), after=5)
    with pytest.raises(ValidationError, match="timezone"):
        await session.intend("x", at=datetime(2030, 1, 1))
    assert len(await session.intentions()) == 31


async def test_a_turn_with_a_ceiling_is_not_told_what_is_above_it(stage: Stage) -> None:
    session = stage.session()
    await session.intend("the surprise", event="noon", tier=2)
    await session.notice("noon")
    await say(stage, session, "intend-20", ceiling=1)
    assert told(stage, "intend-20") == []
    await say(stage, session, "intend-21")
    assert told(stage, "intend-21") == ["the surprise"]


async def test_a_closed_session_drops_its_intentions(stage: Stage) -> None:
    session = stage.session()
    await session.intend("never", at=datetime.now(UTC) + timedelta(days=1), then="turn")
    await session.close()
    entries = [entry["message"] async for entry in session.read("trace")]
    assert "1 intentions were dropped." in entries
    with pytest.raises(GMIError):
        await session.send("intend-22")
    again = stage.session(session.id)
    await again.initialize()
    assert await again.intentions() == []


async def test_an_intention_may_come_some_time_from_now(stage: Stage) -> None:
    session = stage.session()
    before = datetime.now(UTC)
    for after in (600, timedelta(minutes=10)):
        ack = await session.intend("look at the oven", after=after)
        assert ack.intention is not None
        assert ack.intention.at is not None
        late = ack.intention.at - before - timedelta(minutes=10)
        assert timedelta(0) <= late < timedelta(minutes=1)
    await session.intend("say hello", after=0, id="now")
    await say(stage, session, "intend-after")
    assert told(stage, "intend-after") == ["say hello"]
