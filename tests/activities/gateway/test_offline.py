from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gmi.activities.gateway import (
    Finished,
    ModelRequest,
    OfflineProvider,
    ProviderFailure,
    TextDelta,
    UsageReport,
)
from gmi.activities.gateway.offline import LABEL
from gmi.personas.messages import Message, ToolCall, ToolDefinition
from gmi.personas.options import CompletionOptions

TOOLS = [
    ToolDefinition(name="get_time"),
    ToolDefinition(
        name="add",
        parameters={
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "integer"}},
            "required": ["a"],
        },
    ),
]


def asked(*said: str, tools: list[ToolDefinition] | None = None, **options: Any) -> ModelRequest:
    return ModelRequest(
        model="offline",
        messages=[Message(role="user", content=text) for text in said],
        tools=tools or [],
        options=CompletionOptions(**options),
    )


async def answer(request: ModelRequest) -> tuple[str, Finished]:
    events = [event async for event in OfflineProvider().stream(request)]
    assert isinstance(events[-1], Finished)
    return "".join(e.text for e in events if isinstance(e, TextDelta)), events[-1]


async def test_every_answer_says_that_it_is_a_stand_in_and_quotes_the_message() -> None:
    text, finished = await answer(asked("Good morning", "How are you?"))
    assert text.startswith(LABEL)
    assert '"How are you?"' in text
    assert "2 turns" in text
    assert finished.finish_reason == "stop"


async def test_it_streams_word_by_word() -> None:
    events = [e async for e in OfflineProvider().stream(asked("say 40 words"))]
    assert len([e for e in events if isinstance(e, TextDelta)]) == 40


@pytest.mark.parametrize("number", [2, 10, 500])
async def test_it_says_as_many_words_as_asked(number: int) -> None:
    text, _ = await answer(asked(f"Please say {number} words."))
    assert len(text.split()) == number


async def test_it_repeats_exactly() -> None:
    text, _ = await answer(asked("say exactly: Hello, you!"))
    assert text == f"{LABEL} Hello, you!"


async def test_it_calls_an_offered_tool() -> None:
    _, finished = await answer(asked("call get_time", tools=TOOLS))
    assert finished.finish_reason == "tool_calls"
    assert [(c.name, c.arguments) for c in finished.calls] == [("get_time", {})]


async def test_several_calls_in_a_message_are_made_in_parallel() -> None:
    _, finished = await answer(
        asked('call get_time and use the tool add with {"a": 1, "b": {"c": 2}}', tools=TOOLS)
    )
    assert [(c.name, c.arguments) for c in finished.calls] == [
        ("get_time", {}),
        ("add", {"a": 1, "b": {"c": 2}}),
    ]
    assert len({c.id for c in finished.calls}) == 2


@pytest.mark.parametrize("said", ["call fly", "use the tool fly", 'call fly with {"x": 1}'])
async def test_it_says_when_no_such_tool_is_offered(said: str) -> None:
    text, finished = await answer(asked(said, tools=TOOLS))
    assert "No such tool is offered: fly" in text
    assert "get_time" in text
    assert finished.calls == []


async def test_talk_of_calling_is_not_a_call() -> None:
    text, finished = await answer(asked("call me tomorrow, will you", tools=TOOLS))
    assert "call me tomorrow" in text
    assert finished.calls == []


async def test_it_answers_with_the_results_and_calls_no_more() -> None:
    call = ToolCall(id="c1", name="get_time")
    request = ModelRequest(
        model="offline",
        messages=[
            Message(role="user", content="call get_time"),
            Message(role="assistant", calls=[call]),
            Message(role="tool", call_id="c1", content="12:30"),
        ],
        tools=TOOLS,
    )
    text, finished = await answer(request)
    assert text == f"{LABEL} get_time answered: 12:30"
    assert finished.finish_reason == "stop"


async def test_a_failed_result_is_told_as_one() -> None:
    request = ModelRequest(
        model="offline",
        messages=[
            Message(role="assistant", calls=[ToolCall(id="c1", name="add")]),
            Message(role="tool", call_id="c1", name="add", content="no", is_error=True),
        ],
    )
    text, _ = await answer(request)
    assert "add failed: no" in text


async def test_the_tool_choice_is_obeyed() -> None:
    _, forced = await answer(asked("Hello", tools=TOOLS, tool_choice="add"))
    assert [(c.name, c.arguments) for c in forced.calls] == [("add", {"a": 1})]
    _, required = await answer(asked("Hello", tools=TOOLS, tool_choice="required"))
    assert [c.name for c in required.calls] == ["get_time"]
    _, none = await answer(asked("call get_time", tools=TOOLS, tool_choice="none"))
    assert none.calls == []


async def test_the_same_request_gets_the_same_answer() -> None:
    request = asked("call get_time", tools=TOOLS)
    assert await answer(request) == await answer(request)


async def test_calls_of_different_steps_have_different_ids() -> None:
    _, first = await answer(asked("call get_time", tools=TOOLS))
    _, second = await answer(asked("before", "call get_time", tools=TOOLS))
    assert first.calls[0].id != second.calls[0].id


async def test_usage_is_reported_and_costs_nothing() -> None:
    events = [e async for e in OfflineProvider().stream(asked("Hello there"))]
    last = [e for e in events if isinstance(e, UsageReport)][-1].usage
    assert last.prompt_tokens == 3
    assert last.completion_tokens > 10
    assert last.cost_usd == 0.0


async def test_the_output_limit_cuts_the_answer() -> None:
    text, finished = await answer(asked("say 100 words", max_tokens=20))
    assert finished.finish_reason == "length"
    assert 0 < len(text) <= 80


async def test_it_fails_like_a_provider_when_asked_to() -> None:
    with pytest.raises(ProviderFailure) as caught:
        await answer(asked("fail with 503"))
    assert caught.value.status == 503
    assert caught.value.retryable


async def test_json_fits_the_schema_that_is_asked_for() -> None:
    schema = {
        "type": "object",
        "properties": {
            "mood": {"enum": ["calm", "glad"]},
            "score": {"type": "number", "minimum": 0.5},
            "notes": {"type": "array", "items": {"type": "string"}},
            "who": {"$ref": "#/$defs/who"},
            "left_out": {"type": "string"},
        },
        "required": ["mood", "score", "notes", "who"],
        "$defs": {
            "who": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            }
        },
    }
    text, _ = await answer(
        asked("x", response_format={"type": "json_schema", "name": "m", "schema": schema})
    )
    assert json.loads(text) == {"mood": "calm", "score": 0.5, "notes": [], "who": {"name": LABEL}}


async def test_json_without_a_schema_is_an_object_that_names_the_stand_in() -> None:
    text, _ = await answer(asked("x", response_format={"type": "json_object"}))
    assert LABEL in json.loads(text)["note"]


async def test_the_delay_lies_between_the_words() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    async for _ in OfflineProvider(delay=0.01).stream(asked("say 11 words")):
        pass
    assert loop.time() - start >= 0.095


def test_the_request_body_shows_what_it_looks_at() -> None:
    body = OfflineProvider().request_body(asked("Hello", tools=TOOLS, temperature=0.5))
    assert body["tools"] == ["get_time", "add"]
    assert body["options"] == {"temperature": 0.5}
