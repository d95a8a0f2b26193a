"""What a session remembers beyond the conversation, and what of it reaches the model."""

from __future__ import annotations

from gmi.worker import Session

from ..conftest import Stage
from ..support.scripted_model import ScriptedModel, Text

MEMORY = "What you remember"


def prompt_of(model: ScriptedModel, word: str) -> str:
    """The last user message of the request that asked about ``word``."""
    for request in reversed(model.requests):
        last = [m for m in request["messages"] if m["role"] == "user"][-1]["content"]
        if word in str(last):
            return str(last)
    raise AssertionError(f"nobody asked about {word!r}")


async def told(stage: Stage, session: Session, *lines: str) -> None:
    for line in lines:
        stage.model.on(line, Text("Noted."))
        await session.send(line)
    await session.settle()


async def test_what_a_user_said_in_one_session_is_recalled_in_the_next(stage: Stage) -> None:
    first = stage.session(persona="mindful", user_id="mia")
    await told(stage, first, "My sister Ottilie breeds alpacas in Grindelwald")
    second = stage.session(persona="mindful", user_id="mia")
    stage.model.on("alpacas again", Text("Ottilie."))
    await second.send("Who breeds alpacas again?")
    prompt = prompt_of(stage.model, "alpacas again")
    assert MEMORY in prompt
    assert "Ottilie breeds alpacas in Grindelwald" in prompt


async def test_two_users_with_the_same_sentence_recall_only_their_own(stage: Stage) -> None:
    for user in ("noa", "ori"):
        session = stage.session(persona="mindful", user_id=user)
        await told(stage, session, f"The code word of {user} is quagmire")
    third = stage.session(persona="mindful", user_id="noa")
    stage.model.on("quagmire you know", Text("Yes."))
    await third.send("What quagmire you know of?")
    prompt = prompt_of(stage.model, "quagmire you know")
    assert "code word of noa" in prompt
    assert "code word of ori" not in prompt


async def test_what_the_prompt_shows_anyway_is_not_recalled(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="pia")
    await told(stage, session, "The zeppelin leaves at noon")
    stage.model.on("zeppelin leave", Text("At noon."))
    await session.send("When does the zeppelin leave?")
    assert MEMORY not in prompt_of(stage.model, "zeppelin leave?")


async def test_what_fell_out_of_the_window_comes_back_as_a_memory(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="rut", max_messages=2)
    await told(stage, session, "My locker has the number 4711", "Nice weather today", "Ducks swim")
    stage.model.on("number of my locker", Text("4711."))
    await session.send("What is the number of my locker?")
    prompt = prompt_of(stage.model, "number of my locker")
    assert "My locker has the number 4711" in prompt
    entries = await session.get_reasoning_trace()
    recalled = [e for e in entries if e.message.startswith("Recalled")]
    assert recalled
    assert recalled[-1].details["recalled"]


async def test_a_persona_without_memory_remembers_nothing(stage: Stage) -> None:
    first = stage.session(user_id="sol")
    stage.model.on("I own a theremin", Text("Nice."))
    await first.send("I own a theremin")
    await first.settle()
    second = stage.session(persona="mindful", user_id="sol")
    stage.model.on("theremin do", Text("No."))
    await second.send("What theremin do I own?")
    assert MEMORY not in prompt_of(stage.model, "theremin do")
