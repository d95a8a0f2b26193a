"""Who speaks, and conversations whose history the caller keeps."""

from __future__ import annotations

import uuid
from typing import Any

from gmi.personas.messages import Message

from ..conftest import Stage
from ..support.scripted_model import Call, Fail, Text
from .marking import marked, prompts


async def test_who_speaks_is_told_alike_by_send_stream_and_chat(stage: Stage) -> None:
    session = stage.session(persona="plain", user_id="mind-bob")
    kim = {
        "name": "Kim",
        "description": "A weary traveler.",
        "extensions": {"inventory": "a sword", "quest": "find the lantern"},
    }
    marker, text = marked("Good morning")
    stage.model.on(marker, Text("Welcome."))
    await session.send(text, interlocutor=kim)
    await (await session.stream(text, interlocutor=kim)).result()
    await session.chat(text, from_=kim)
    sections = [prompt[prompt.index("## About Kim") :] for prompt in prompts(stage, marker)]
    assert len(set(sections)) == 1
    assert "A weary traveler." in sections[0]
    assert sections[0].index("### inventory\na sword") < sections[0].index("### quest")


async def test_a_plain_name_is_one_sentence_and_user_is_none(stage: Stage) -> None:
    session = stage.session(persona="plain", user_id="mind-bao")
    marker, text = marked("Good evening")
    stage.model.on(marker, Text("Welcome."))
    await session.send(text, interlocutor="Kim")
    await session.send(text, interlocutor="user")
    await session.send(text)
    named, as_user, unnamed = prompts(stage, marker)
    assert "You are speaking with Kim." in named
    assert as_user == unnamed
    assert "You are speaking with" not in unnamed


async def test_a_chat_gives_its_history_back_one_exchange_longer(stage: Stage) -> None:
    session = stage.session(persona="plain", user_id="mind-cal")
    marker, text = marked("And what then?")
    stage.model.on(marker, Text("Then it rained."))
    history = [Message(role="user", content="Begin"), Message(role="assistant", content="So be it")]
    given = list(history)
    result = await session.chat(text, history=history, consumer_suffix="Keep it short.")
    assert history == given
    assert result.text == result.response.response_text == "Then it rained."
    assert [(m.role, m.content) for m in result.updated_history] == [
        ("user", "Begin"),
        ("assistant", "So be it"),
        ("user", text),
        ("assistant", "Then it rained."),
    ]
    [asked] = stage.model.asked(marker)
    assert [m["content"] for m in asked["messages"][1:]] == ["Begin", "So be it", text]
    assert asked["messages"][0]["content"].endswith("Keep it short.")
    again = await session.chat(text, history=[m.model_dump() for m in result.updated_history])
    assert len(again.updated_history) == 6


async def test_a_chat_tells_the_mind_of_user_and_task(stage: Stage) -> None:
    session = stage.session(persona="situated", user_id="mind-cas")
    marker, text = marked("Go on")
    stage.model.on(marker, Text("Well."))
    user, task = {"skillLevel": "expert"}, {"complexity": "complex", "domain": "law"}
    await session.chat(text, user_context=user, task_context=task)
    assert "SKIP THE BASICS" in prompts(stage, marker)[0]
    assert (await session.mind()).task["domain"] == "law"


async def test_a_chat_that_fails_gives_the_history_back_as_it_was(stage: Stage) -> None:
    session = stage.session(persona="plain", user_id="mind-cam")
    marker, text = marked("Break")
    stage.model.on(marker, Fail(400))
    before = [Message(role="user", content="Begin")]
    result = await session.chat(text, history=before)
    assert result.response.status == "failed"
    assert (result.text, result.updated_history) == ("", before)


async def test_each_tool_call_is_told_once_and_what_the_host_raises_changes_nothing(
    stage: Stage,
) -> None:
    session = stage.session(persona="feeling", user_id="mind-cat")
    marker, text = marked("Say two things")
    stage.model.on(marker, Call("echo", {"text": "one"}), Call("echo", {"text": "two"}), calls=0)
    stage.model.on(marker, Text("Said."), calls=2)
    told: list[dict[str, Any]] = []

    async def tell(call: dict[str, Any]) -> None:
        told.append(call)
        raise RuntimeError("the host's own fault")

    request = str(uuid.uuid4())
    result = await session.chat(text, on_tool_call=tell, request_id=request)
    assert result.text == "Said."
    told.sort(key=lambda call: call["result"])
    assert told == [
        {"name": "echo", "args": {"text": "one"}, "result": "one"},
        {"name": "echo", "args": {"text": "two"}, "result": "two"},
    ]
    told.clear()
    await session.chat(text, on_tool_call=tell, request_id=request)
    assert sorted(call["result"] for call in told) == ["one", "two"]
