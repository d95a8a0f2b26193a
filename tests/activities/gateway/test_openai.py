"""Shapes of the Chat Completions stream that a well-behaved server does not send."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.gateway import (
    Finished,
    ModelRequest,
    OpenAIProvider,
    ProviderFailure,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from gmi.activities.gateway.openai import chat_usage
from gmi.personas.messages import Message

REQUEST = ModelRequest(model="gpt-4o", messages=[Message(role="user", content="Hi")])
USAGE = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> Any:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "model": "gpt-4o-2024", "choices": [choice], **more}


def calls(*pieces: dict[str, Any]) -> Any:
    return chunk({"tool_calls": list(pieces)})


def piece(index: int | None, arguments: str = "", call_id: str = "", name: str = "") -> Any:
    found: dict[str, Any] = {"function": {"arguments": arguments}}
    if index is not None:
        found["index"] = index
    if call_id:
        found["id"] = call_id
    if name:
        found["function"]["name"] = name
    return found


async def read(recorded: Any, collect: Any, *events: Any, **more: Any) -> list[Any]:
    found: list[Any] = await collect(OpenAIProvider(recorded(*events, **more).client), REQUEST)
    return found


@pytest.mark.parametrize("split", [1, 7, None])
async def test_the_stream_may_be_cut_anywhere(recorded: Any, collect: Any, split: int) -> None:
    events = await read(
        recorded,
        collect,
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Grüße "}),
        chunk({"content": "🌍"}),
        chunk(finish="stop", service_tier="flex"),
        {"choices": [], "usage": USAGE},
        "[DONE]",
        split=split,
    )
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Grüße 🌍"
    assert events[-2] == UsageReport(chat_usage(USAGE))
    assert events[-1] == Finished(
        finish_reason="stop",
        response_model="gpt-4o-2024",
        message_id="chatcmpl-1",
        service_tier="flex",
    )


async def test_calls_in_pieces_and_interleaved_are_put_together(
    recorded: Any, collect: Any
) -> None:
    events = await read(
        recorded,
        collect,
        calls(piece(0, "", "a", "add"), piece(1, "", "b", "mul")),
        calls(piece(0, '{"x":')),
        calls(piece(1, '{"y": 2')),
        calls(piece(0, " 1}"), piece(1, "}")),
        chunk(finish="tool_calls"),
        "[DONE]",
    )
    assert [(c.id, c.name, c.arguments) for c in events[-1].calls] == [
        ("a", "add", {"x": 1}),
        ("b", "mul", {"y": 2}),
    ]
    assert [e.index for e in events if isinstance(e, ToolCallDelta)] == [0, 1]


@pytest.mark.parametrize("index", [0, None])
async def test_calls_without_an_index_of_their_own_are_told_apart_by_their_ids(
    recorded: Any, collect: Any, index: int | None
) -> None:
    events = await read(
        recorded,
        collect,
        calls(piece(index, '{"x": 1}', "a", "add")),
        calls(piece(index, '{"y"', "b", "mul")),
        calls(piece(index, ": 2}")),
        chunk(finish="stop"),
    )
    assert events[-1].finish_reason == "tool_calls"
    assert [(c.id, c.arguments) for c in events[-1].calls] == [("a", {"x": 1}), ("b", {"y": 2})]


async def test_a_missing_call_id_is_made_up_the_same_way_each_time(
    recorded: Any, collect: Any
) -> None:
    events = [
        calls(piece(0, "{}", "", "add"), piece(1, "{}", "", "add")),
        chunk(finish="tool_calls"),
    ]
    first = (await read(recorded, collect, *events))[-1].calls
    second = (await read(recorded, collect, *events))[-1].calls
    assert first == second
    assert len({c.id for c in first}) == 2
    assert all(c.id for c in first)


@pytest.mark.parametrize("raw", ['{"x": ', "[1]", "not json", '"text"'])
async def test_arguments_that_are_no_object_are_kept_as_malformed(
    recorded: Any, collect: Any, raw: str
) -> None:
    events = await read(
        recorded, collect, calls(piece(0, raw, "a", "add")), chunk(finish="tool_calls")
    )
    call = events[-1].calls[0]
    assert (call.malformed, call.arguments) == (raw, {})


async def test_a_call_without_arguments_is_a_call_with_none(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded, collect, calls(piece(0, "", "a", "now")), chunk(finish="tool_calls")
    )
    assert (events[-1].calls[0].malformed, events[-1].calls[0].arguments) == (None, {})


async def test_a_finish_reason_and_a_clean_end_are_enough(recorded: Any, collect: Any) -> None:
    events = await read(recorded, collect, chunk({"content": "Hi"}), chunk(finish="length"))
    assert events[-1].finish_reason == "length"


@pytest.mark.parametrize("tail", [(), ("[DONE]",)])
async def test_without_a_finish_reason_the_attempt_has_failed(
    recorded: Any, collect: Any, tail: tuple[str, ...]
) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, chunk({"content": "Hi"}), *tail)
    assert caught.value.kind == "stream"


async def test_a_fault_after_the_finish_reason_takes_nothing_away(
    recorded: Any, collect: Any
) -> None:
    events = await read(recorded, collect, chunk({"content": "Hi"}, "stop"), "{broken")
    assert events[-1].finish_reason == "stop"


async def test_an_error_inside_the_stream_is_typed_and_carries_the_bill(
    recorded: Any, collect: Any
) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(
            recorded,
            collect,
            chunk({"content": "Hi"}, usage=USAGE),
            {"error": {"code": 502, "message": "upstream died"}, "choices": []},
        )
    assert caught.value.status == 502
    assert caught.value.usage == chat_usage(USAGE)


async def test_a_finish_reason_error_is_a_failure(recorded: Any, collect: Any) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, chunk({"content": "Hi"}), chunk(finish="error"))
    assert caught.value.retryable


async def test_an_error_answered_with_200_is_still_an_error(recorded: Any, collect: Any) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, json_body={"error": {"code": 429, "message": "slow down"}})
    assert caught.value.status == 429


async def test_a_page_where_a_stream_belongs_points_at_the_base_url(
    recorded: Any, collect: Any
) -> None:
    with pytest.raises(ProviderFailure, match="check the base URL"):
        await read(recorded, collect, json_body={"hello": "world"})


@pytest.mark.parametrize(
    "events",
    [
        (chunk({"refusal": "I can't "}), chunk({"refusal": "do that."}), chunk(finish="stop")),
        (chunk({"content": ""}), chunk(finish="content_filter")),
    ],
)
async def test_a_refusal_before_any_output_is_a_billed_failure(
    recorded: Any, collect: Any, events: tuple[Any, ...]
) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, *events, {"choices": [], "usage": USAGE}, "[DONE]")
    assert caught.value.kind == "refusal"
    assert caught.value.retryable
    assert caught.value.usage == chat_usage(USAGE)


async def test_a_filter_that_cuts_a_running_answer_is_a_finish_reason(
    recorded: Any, collect: Any
) -> None:
    events = await read(
        recorded, collect, chunk({"content": "Once upon"}), chunk(finish="content_filter")
    )
    assert events[-1].finish_reason == "content_filter"


async def test_a_whole_message_in_place_of_deltas_is_not_lost(recorded: Any, collect: Any) -> None:
    whole = {"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}
    events = await read(recorded, collect, {"id": "1", "choices": [whole]}, "[DONE]")
    assert events[-1].text == "Hello"


async def test_comments_and_empty_events_are_passed_over(recorded: Any, collect: Any) -> None:
    events = await read(recorded, collect, "", chunk({"content": "Hi"}, "stop"), "[DONE]")
    assert [type(e) for e in events] == [TextDelta, Finished]


def test_usage_counts_cached_and_reasoning_tokens() -> None:
    usage = chat_usage(
        {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "total_tokens": 150,
            "prompt_tokens_details": {"cached_tokens": 80},
            "completion_tokens_details": {"reasoning_tokens": 30},
        }
    )
    assert (usage.prompt_tokens, usage.completion_tokens) == (100, 50)
    assert (usage.cache_read_tokens, usage.reasoning_tokens) == (80, 30)


def test_reasoning_that_is_counted_beside_the_completion_is_added_to_it() -> None:
    usage = chat_usage(
        {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "total_tokens": 180,
            "completion_tokens_details": {"reasoning_tokens": 30},
        }
    )
    assert usage.completion_tokens == 80


def test_a_strange_usage_report_counts_as_nothing() -> None:
    assert chat_usage({"prompt_tokens": None, "completion_tokens": "7"}).total_tokens == 0


async def test_the_key_travels_in_a_header_alone(recorded: Any, collect: Any) -> None:
    answer = recorded(chunk({"content": "Hi"}, "stop"))
    await collect(OpenAIProvider(answer.client, api_key="the-key"), REQUEST)
    request = answer.requests[0]
    assert request.headers["authorization"] == "Bearer the-key"
    assert "the-key" not in str(request.url)
    assert b"the-key" not in request.content
    assert answer.body == OpenAIProvider(answer.client).request_body(REQUEST)
