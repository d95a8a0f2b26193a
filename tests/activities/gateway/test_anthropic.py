"""The Messages stream: thinking, refusals, errors in the stream, and what is sent back."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.gateway import (
    AnthropicProvider,
    Finished,
    ModelRequest,
    ProviderFailure,
    TextDelta,
    UsageReport,
)
from gmi.personas.messages import Message, ReplayBlock, ToolCall, Usage

MODEL = "claude-sonnet-4-5"
REQUEST = ModelRequest(model=MODEL, messages=[Message(role="user", content="Hi")])

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "model": "claude-sonnet-4-5-20250929",
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 70,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    },
}
STOP = {"type": "message_stop"}


def begin(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def end(reason: str, tokens: int = 40) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason},
        "usage": {"output_tokens": tokens},
    }


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    return [
        begin(index, {"type": "text", "text": ""}),
        *(delta(index, type="text_delta", text=p) for p in pieces),
        {"type": "content_block_stop", "index": index},
    ]


THINKING = {"type": "thinking", "thinking": "Let me see…\n", "signature": "EqQBCgIYAhIM+/=="}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlx=="}


def thinking(index: int) -> list[dict[str, Any]]:
    return [
        begin(index, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(index, type="thinking_delta", thinking="Let me "),
        delta(index, type="thinking_delta", thinking="see…\n"),
        delta(index, type="signature_delta", signature="EqQBCgIYAhIM+/=="),
        {"type": "content_block_stop", "index": index},
    ]


def tool_use(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    return [
        begin(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}),
        *(delta(index, type="input_json_delta", partial_json=p) for p in pieces),
        {"type": "content_block_stop", "index": index},
    ]


async def read(recorded: Any, collect: Any, *events: Any, **more: Any) -> list[Any]:
    found: list[Any] = await collect(AnthropicProvider(recorded(*events, **more).client), REQUEST)
    return found


async def test_text_usage_and_the_answers_particulars(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded, collect, START, {"type": "ping"}, *text(0, "Hel", "lo"), end("end_turn"), STOP
    )
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hel", "lo"]
    assert [e.usage for e in events if isinstance(e, UsageReport)][-1] == Usage(
        prompt_tokens=100, completion_tokens=40, cache_read_tokens=70, cache_write_tokens=20
    )
    assert events[-1] == Finished(
        finish_reason="stop",
        response_model="claude-sonnet-4-5-20250929",
        message_id="msg_1",
        service_tier="standard",
    )


async def test_thinking_is_kept_byte_for_byte_and_not_shown(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded,
        collect,
        START,
        *thinking(0),
        begin(1, REDACTED),
        *text(2, "Hello"),
        end("end_turn"),
        STOP,
    )
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello"
    assert [b.data for b in events[-1].replay] == [THINKING, REDACTED]
    assert {(b.provider, b.model) for b in events[-1].replay} == {("anthropic", MODEL)}


async def test_thinking_without_text_keeps_its_signature(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded,
        collect,
        START,
        begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, type="signature_delta", signature="abc="),
        *text(1, "Hello"),
        end("end_turn"),
        STOP,
    )
    assert events[-1].replay[0].data == {"type": "thinking", "thinking": "", "signature": "abc="}


async def test_an_answer_goes_back_block_for_block_as_it_came(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded,
        collect,
        START,
        *thinking(0),
        *text(1, "First. "),
        begin(2, REDACTED),
        *text(3, "Then."),
        *tool_use(4, "toolu_1", "get_time", '{"zone": "U', 'TC"}'),
        *tool_use(5, "toolu_2", "now"),
        end("tool_use"),
        STOP,
    )
    finished = events[-1]
    assert finished.finish_reason == "tool_calls"
    spoken = "".join(e.text for e in events if isinstance(e, TextDelta))
    body = AnthropicProvider(recorded().client).request_body(
        ModelRequest(
            model=MODEL,
            messages=[
                *REQUEST.messages,
                Message(
                    role="assistant", content=spoken, calls=finished.calls, replay=finished.replay
                ),
                Message(role="tool", call_id="toolu_1", content="12:00"),
                Message(role="tool", call_id="toolu_2", content="", is_error=True),
            ],
        )
    )
    messages: Any = body["messages"]
    assert messages[1]["content"] == [
        THINKING,
        {"type": "text", "text": "First. "},
        REDACTED,
        {"type": "text", "text": "Then."},
        {"type": "tool_use", "id": "toolu_1", "name": "get_time", "input": {"zone": "UTC"}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
    ]


def test_an_edited_text_falls_back_to_the_plain_order(recorded: Any) -> None:
    layout = {"type": "layout", "blocks": [5, "thinking", "tool_use"]}
    message = Message(
        role="assistant",
        content="edited text",
        calls=[ToolCall(id="t1", name="now")],
        replay=[
            ReplayBlock(provider="anthropic", model=MODEL, data=data) for data in (THINKING, layout)
        ],
    )
    body = AnthropicProvider(recorded().client).request_body(
        ModelRequest(model=MODEL, messages=[*REQUEST.messages, message])
    )
    messages: Any = body["messages"]
    assert [b["type"] for b in messages[1]["content"]] == ["thinking", "text", "tool_use"]


async def test_malformed_arguments_are_kept_as_they_came(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded, collect, START, *tool_use(0, "t", "add", '{"a": '), end("max_tokens"), STOP
    )
    assert events[-1].calls[0].malformed == '{"a": '
    assert events[-1].finish_reason == "length"


async def test_a_refusal_before_any_output_is_a_billed_failure(recorded: Any, collect: Any) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, START, end("refusal", 3), STOP)
    assert caught.value.kind == "refusal"
    assert caught.value.usage is not None
    assert caught.value.usage.total_tokens == 103


async def test_a_refusal_in_the_middle_is_a_finish_reason(recorded: Any, collect: Any) -> None:
    events = await read(recorded, collect, START, *text(0, "Well, "), end("refusal"), STOP)
    assert events[-1].finish_reason == "refusal"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
    ],
)
async def test_stop_reasons_are_mapped(
    recorded: Any, collect: Any, given: str, reason: str
) -> None:
    events = await read(recorded, collect, START, *text(0, "x"), end(given), STOP)
    assert events[-1].finish_reason == reason


@pytest.mark.parametrize(
    ("kind", "status"), [("overloaded_error", 529), ("api_error", 500), ("rate_limit_error", 429)]
)
async def test_an_error_event_is_typed_and_carries_the_bill(
    recorded: Any, collect: Any, kind: str, status: int
) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(
            recorded,
            collect,
            START,
            *text(0, "x"),
            {"type": "error", "error": {"type": kind, "message": "no"}},
        )
    assert (caught.value.kind, caught.value.status) == ("http", status)
    assert caught.value.same_hop_retryable
    assert caught.value.usage is not None
    assert caught.value.usage.prompt_tokens == 100


async def test_without_message_stop_the_attempt_has_failed(recorded: Any, collect: Any) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, START, *text(0, "x"), end("end_turn"))
    assert caught.value.kind == "stream"


async def test_unknown_events_and_blocks_are_passed_over(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded,
        collect,
        START,
        {"type": "something_new"},
        begin(0, {"type": "novelty", "data": 1}),
        delta(0, type="novelty_delta", data=2),
        *text(1, "x"),
        end("end_turn"),
        STOP,
    )
    assert events[-1].finish_reason == "stop"
    assert events[-1].replay == []


async def test_key_and_version_travel_in_headers(recorded: Any, collect: Any) -> None:
    answer = recorded(START, *text(0, "x"), end("end_turn"), STOP)
    await collect(AnthropicProvider(answer.client, api_key="the-key"), REQUEST)
    request = answer.requests[0]
    assert request.headers["x-api-key"] == "the-key"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert b"the-key" not in request.content
