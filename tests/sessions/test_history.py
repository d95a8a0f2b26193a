"""What the model is shown of the past, and what the host may change of it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from gmi.personas.errors import NotFoundError
from gmi.personas.messages import ImagePart, Message, TextPart, ToolCall
from gmi.personas.options import CompletionOptions
from gmi.worker import Session
from gmi.workflows import SessionConfig

from ..conftest import Stage
from ..support.scripted_model import Call, Fail, Text


def shown(stage: Stage, text: str) -> list[dict[str, Any]]:
    """The last prompt that holds ``text``."""
    messages: list[dict[str, Any]] = stage.model.asked(text)[-1]["messages"]
    return messages


def words(stage: Stage, text: str) -> list[str]:
    """Its texts, the system message left out."""
    return [str(m["content"]) for m in shown(stage, text) if m["role"] != "system"]


def said(role: Any, text: str) -> Message:
    return Message(role=role, content=text)


async def details(session: Session) -> dict[str, list[dict[str, Any]]]:
    """The trace's details by turn."""
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in await session.get_reasoning_trace():
        if entry.turn is not None:
            found.setdefault(entry.turn, []).append(entry.details)
    return found


async def test_a_message_is_sent_once_with_what_was_said_before(stage: Stage) -> None:
    stage.model.on("past-1", Text("one"))
    stage.model.on("past-2", Text("two"))
    session = stage.session()
    await session.send("past-1")
    await session.send("past-2")
    assert shown(stage, "past-2") == [
        {"role": "system", "content": "BASE"},
        {"role": "user", "content": "past-1"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "past-2"},
    ]


async def test_a_given_history_replaces_the_own_one(stage: Stage) -> None:
    stage.model.on("given-1", Text("x"))
    stage.model.on("given-2", Text("y"))
    session = stage.session()
    await session.send("given-1")
    output = await session.replace_history(
        [
            said("system", "a rule"),
            said("user", "made up"),
            Message(role="assistant", calls=[ToolCall(id="z1", name="echo")]),
            Message(role="tool", call_id="z1", name="echo", content="echoed"),
            said("assistant", "indeed"),
            said("error", "not for the model"),
            said("thought", "nor this"),
            said("summary", "long ago"),
        ]
    )
    assert output.status == "done"
    await session.send("given-2")
    prompt = shown(stage, "given-2")
    assert [m["role"] for m in prompt] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "system",
        "user",
    ]
    assert prompt[4] == {"role": "tool", "tool_call_id": "z1", "content": "echoed"}
    assert "long ago" in prompt[6]["content"]
    assert "given-1" not in str(prompt)
    assert not stage.model.asked("not for the model")
    history = await session.get_conversation_history()
    assert [m.role for m in history][-2:] == ["user", "assistant"]
    assert len(history) == 8


async def test_a_replaced_history_forgets_the_turns_that_it_no_longer_holds(
    stage: Stage,
) -> None:
    for name in ("forget-1", "forget-2"):
        stage.model.on(name, Text(f"{name} answered"))
    session = stage.session()
    first = await session.send("forget-1")
    second = await session.send("forget-2")
    await session.replace_history([said("user", "forget-2"), said("assistant", "so")])
    known = await details(session)
    assert all(not entry for entry in known[first.turn])
    assert any(known[second.turn])
    rows = {row["turn"]: row for row in await session.turns()}
    assert (rows[first.turn]["hidden"], rows[first.turn]["preview"]) == (True, "")
    assert (rows[second.turn]["hidden"], rows[second.turn]["preview"]) == (False, "forget-2")
    cards = {card.turn: card for card in (await session.list_turns()).turns}
    assert cards[first.turn].preview == ""


async def test_a_hydrated_history_forgets_nothing(stage: Stage) -> None:
    stage.model.on("hydrate-1", Text("x"))
    stage.model.on("hydrate-2", Text("y"))
    session = stage.session()
    first = await session.send("hydrate-1")
    await session.hydrate_conversation_history([said("user", "imported")])
    assert any((await details(session))[first.turn])
    await session.send("hydrate-2")
    assert words(stage, "hydrate-2") == ["imported", "hydrate-2"]


async def test_a_cleared_history_is_empty(stage: Stage) -> None:
    stage.model.on("clear-1", Text("x"))
    stage.model.on("clear-2", Text("y"))
    session = stage.session()
    await session.send("clear-1")
    await session.clear_history()
    assert await session.get_conversation_history() == []
    await session.send("clear-2")
    assert words(stage, "clear-2") == ["clear-2"]


async def test_a_message_over_a_page_is_read_whole(stage: Stage) -> None:
    text = "whole-1 " + "ä" * 300_000
    stage.model.on("whole-1", Text("read"))
    session = stage.session(model="openai:gpt-4.1")
    output = await session.send(text)
    first, _ = await session.messages()
    assert first["truncated"]
    assert len(first["message"]["content"]) < 50_000
    assert (await session.message(output.turn, first["step"], first["index"])).text == text
    for history in (
        await session.get_conversation_history(),
        await session.get_last_turn_history(),
    ):
        assert [m.text for m in history] == [text, "read"]
    with pytest.raises(NotFoundError):
        await session.message(output.turn, 0, 9)


async def test_a_large_history_can_be_given(stage: Stage) -> None:
    stage.model.on("bulk-1", Text("x"))
    session = stage.session(max_messages=500, model="openai:gpt-4.1")
    given = [said("user" if n % 2 == 0 else "assistant", f"{n} " + "z" * 2000) for n in range(400)]
    await session.replace_history(given)
    await session.send("bulk-1")
    assert len(words(stage, "bulk-1")) == 401
    history = await session.get_conversation_history()
    assert history[:400] == given


async def test_the_window_shows_the_newest_messages_and_whole_tool_rounds(stage: Stage) -> None:
    stage.model.on("window-9", Text("x"))
    session = stage.session(max_messages=9)
    rounds: list[Message] = []
    for n in range(4):
        calls = [ToolCall(id=f"w{n}-{i}", name="echo") for i in range(2)]
        rounds += [
            said("user", f"question {n}"),
            Message(role="assistant", calls=calls),
            *(Message(role="tool", call_id=c.id, name="echo", content=c.id) for c in calls),
            said("assistant", f"answer {n}"),
        ]
    await session.replace_history(rounds)
    output = await session.send("window-9")
    prompt = shown(stage, "window-9")[1:]
    # The newest nine would begin with a result whose call is gone: it goes too.
    assert [m["role"] for m in prompt] == [
        "assistant",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    trace = await session.get_reasoning_trace()
    [built] = [
        e for e in trace if e.type == "PROMPT_CONSTRUCTION_COMPLETE" and e.turn == output.turn
    ]
    assert built.details["left_out"] == {"messages": 14, "tokens": 0, "reason": "window"}


async def test_twenty_messages_are_shown_by_default(stage: Stage) -> None:
    stage.model.on("twenty-1", Text("x"))
    session = stage.session()
    await session.replace_history(
        [said("user" if n % 2 == 0 else "assistant", f"m{n}") for n in range(40)]
    )
    await session.send("twenty-1")
    assert words(stage, "twenty-1") == [*(f"m{n}" for n in range(21, 40)), "twenty-1"]


@pytest.mark.parametrize("show", [True, False])
async def test_the_finished_steps_of_a_failed_turn_are_shown_to_the_next(
    stage: Stage, show: bool
) -> None:
    name = f"partial-{show}"
    stage.model.on(name, Text("looking. "), Call("echo", {"text": "found it"}))
    stage.model.on(name, Fail(400), calls=1)
    stage.model.on(f"next-{show}", Text("ok"))
    session = stage.session(show_partial=show)
    failed = await session.send(name)
    assert failed.status == "failed"
    await session.send(f"next-{show}")
    roles = [m["role"] for m in shown(stage, f"next-{show}")[1:]]
    assert roles == (["user", "assistant", "tool", "user"] if show else ["user"])
    history = await session.get_conversation_history()
    assert [m.text for m in history] == [f"next-{show}", "ok"]


async def test_a_prompt_can_be_built_from_a_history_of_the_caller(stage: Stage) -> None:
    stage.model.on("elsewhere-1", Text("x"))
    stage.model.on("elsewhere-2", Call("echo", {"text": "z"}))
    stage.model.on("elsewhere-2", Text("y"), calls=1)
    session = stage.session()
    await session.send("elsewhere-1")
    other = [said("user", "told elsewhere"), said("assistant", "yes")]
    await session.send("elsewhere-2", history=other)
    assert words(stage, "elsewhere-2")[:3] == ["told elsewhere", "yes", "elsewhere-2"]
    assert [m["role"] for m in shown(stage, "elsewhere-2")][-2:] == ["assistant", "tool"]
    history = await session.get_conversation_history()
    assert [m.text for m in history if m.role == "user"] == ["elsewhere-1", "elsewhere-2"]


async def test_a_suffix_ends_the_system_message_of_its_turn(stage: Stage) -> None:
    stage.model.on("suffix-1", Text("x"))
    session = stage.session()
    await session.send("suffix-1", suffix="Answer in French.")
    assert shown(stage, "suffix-1")[0]["content"] == "BASE\n\nAnswer in French."


async def test_a_note_of_the_host_is_a_system_message(stage: Stage) -> None:
    stage.model.on("note-1", Text("x"))
    session = stage.session()
    await session.send("note-1")
    stage.model.on("note-1", Text("understood"))
    output = await session.send("The user has left.", kind="system")
    assert output.response_text == "x"
    assert shown(stage, "The user has left.")[-1] == {
        "role": "system",
        "content": "The user has left.",
    }
    assert (await session.turns())[-1]["kind"] == "system"


async def test_nothing_is_defaulted_and_the_turn_wins_over_the_persona(stage: Stage) -> None:
    config = SessionConfig(model="openai:scripted", fallback=[], tools=["echo"])
    for name in ("option-1", "option-2", "option-3"):
        stage.model.on(name, Text("x"))
    await stage.client.session("options-a", user_id="kim", config=config).send("option-1")
    [body] = stage.model.asked("option-1")
    assert set(body) == {"model", "messages", "stream", "stream_options", "user", "tools"}
    assert body["user"] == "kim"
    tuned = stage.client.session("options-b", user_id="kim", persona="tuned", config=config)
    await tuned.send("option-2", options=CompletionOptions(temperature=1.0, tool_choice="required"))
    [body] = stage.model.asked("option-2")
    assert (body["temperature"], body["max_tokens"], body["top_p"]) == (1.0, 300, 0.9)
    assert body["tool_choice"] == "required"
    bare = stage.session(tools=[], options={"temperature": 0.0})
    await bare.send("option-3", options=CompletionOptions(tool_choice="required"))
    [body] = stage.model.asked("option-3")
    assert "tool_choice" not in body
    assert body["temperature"] == 0.0


async def test_images_reach_the_model_by_address_and_by_value(stage: Stage) -> None:
    stage.model.on("image-1", Text("a cat"))
    stage.model.on("image-2", Text("the same cat"))
    session = stage.session(model="openai:gpt-4.1")
    pixels = base64.b64encode(bytes(range(256)) * 400).decode()
    inline = f"data:image/png;base64,{pixels}"
    await session.send(
        [
            TextPart(text="image-1"),
            ImagePart(url="https://example.org/cat.png", detail="low"),
            ImagePart(url=inline),
        ]
    )
    assert shown(stage, "image-1")[-1]["content"] == [
        {"type": "text", "text": "image-1"},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": inline}},
    ]
    assert (await session.state()).state_bytes < 30_000
    await session.send("image-2")
    assert shown(stage, "image-2")[1] == stage.model.asked("image-1")[0]["messages"][-1]


async def test_an_image_that_the_model_cannot_take_is_a_typed_error(stage: Stage) -> None:
    session = stage.session(model="openai:gpt-3.5-turbo")
    output = await session.send([TextPart(text="image-3"), ImagePart(url="https://x.org/a.png")])
    assert output.error is not None
    assert output.error.code == "LLM_PROVIDER_ERROR"
    assert output.error.details["code"] == "IMAGE_UNSUPPORTED"
    assert not stage.model.asked("image-3")
    stage.model.on("image-4", Text("words are fine"))
    assert (await session.send("image-4")).response_text == "words are fine"


async def test_an_image_moves_on_to_a_model_that_can_take_it(stage: Stage) -> None:
    stage.model.on("image-5", Text("seen"))
    session = stage.session(
        model="openai:gpt-3.5-turbo", fallback=[{"model": "openai:gpt-4.1-mini"}]
    )
    output = await session.send([TextPart(text="image-5"), ImagePart(url="https://x.org/a.png")])
    assert (output.response_text, output.hop) == ("seen", 1)


async def test_only_done_turns_are_the_conversation(stage: Stage) -> None:
    stage.model.on("keep-1", Text("kept"))
    stage.model.on("lose-1", Fail(400))
    session = stage.session()
    await session.send("keep-1")
    await session.send("lose-1")
    assert [m.text for m in await session.get_conversation_history()] == ["keep-1", "kept"]
    assert [m.text for m in await session.get_last_turn_history()] == ["lose-1"]
    assert [row["status"] for row in await session.turns()] == ["done", "failed"]
