"""The Gemini stream: calls, signatures, blocked prompts, and what is sent back."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.gateway import (
    Finished,
    GeminiProvider,
    ModelRequest,
    ProviderFailure,
    TextDelta,
    UsageReport,
)
from gmi.personas.messages import Message, Usage

MODEL = "gemini-3-pro-preview"
REQUEST = ModelRequest(model=MODEL, messages=[Message(role="user", content="Hi")])
METADATA = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 150,
}


def chunk(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": MODEL, "responseId": "r1", **more}


async def read(recorded: Any, collect: Any, *events: Any, **more: Any) -> list[Any]:
    found: list[Any] = await collect(GeminiProvider(recorded(*events, **more).client), REQUEST)
    return found


async def test_text_usage_and_the_answers_particulars(recorded: Any, collect: Any) -> None:
    events = await read(
        recorded,
        collect,
        chunk({"text": "hidden", "thought": True}),
        chunk({"text": "Hel"}),
        chunk({"text": "lo"}, finish="STOP", usageMetadata=METADATA),
    )
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hel", "lo"]
    assert [e.usage for e in events if isinstance(e, UsageReport)] == [
        Usage(prompt_tokens=100, completion_tokens=50, cache_read_tokens=60, reasoning_tokens=30)
    ]
    assert events[-1] == Finished(finish_reason="stop", response_model=MODEL, message_id="r1")


async def test_calls_and_signatures_go_back_as_they_came(recorded: Any, collect: Any) -> None:
    parts = [
        {"text": "I look. ", "thoughtSignature": "sigA=="},
        {"functionCall": {"name": "get_time", "args": {"zone": "UTC"}}, "thoughtSignature": "sB="},
        {"functionCall": {"name": "get_time", "args": {}, "id": "own-2"}},
    ]
    events = await read(recorded, collect, chunk(*parts[:1]), chunk(*parts[1:], finish="STOP"))
    finished = events[-1]
    assert finished.finish_reason == "tool_calls"
    assert len({c.id for c in finished.calls}) == 2
    assert finished.calls[1].id == "own-2"
    messages = [
        *REQUEST.messages,
        Message(role="assistant", content="I look. ", calls=finished.calls, replay=finished.replay),
        Message(role="tool", call_id=finished.calls[0].id, content='{"hour": 12}'),
        Message(role="tool", call_id="own-2", content="broken clock", is_error=True),
    ]
    body: Any = GeminiProvider(recorded().client).request_body(
        ModelRequest(model=MODEL, messages=messages)
    )
    assert body["contents"][1] == {"role": "model", "parts": parts}
    assert body["contents"][2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "get_time", "response": {"output": {"hour": 12}}}},
            {
                "functionResponse": {
                    "name": "get_time",
                    "response": {"error": "broken clock"},
                    "id": "own-2",
                }
            },
        ],
    }


async def test_a_signature_on_an_empty_last_part_goes_back_there(
    recorded: Any, collect: Any
) -> None:
    events = await read(
        recorded,
        collect,
        chunk({"text": "Hello"}),
        chunk({"text": "", "thoughtSignature": "tail"}, finish="STOP"),
    )
    body: Any = GeminiProvider(recorded().client).request_body(
        ModelRequest(
            model=MODEL,
            messages=[
                *REQUEST.messages,
                Message(role="assistant", content="Hello", replay=events[-1].replay),
                Message(role="user", content="And?"),
            ],
        )
    )
    assert body["contents"][1]["parts"] == [
        {"text": "Hello"},
        {"text": "", "thoughtSignature": "tail"},
    ]


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "RECITATION", "SPII"])
async def test_a_blocked_answer_without_output_is_a_billed_refusal(
    recorded: Any, collect: Any, reason: str
) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, chunk(finish=reason, usageMetadata=METADATA))
    assert caught.value.kind == "refusal"
    assert caught.value.code == reason
    assert caught.value.usage is not None
    assert caught.value.usage.total_tokens == 150


async def test_a_block_in_the_middle_is_a_finish_reason(recorded: Any, collect: Any) -> None:
    events = await read(recorded, collect, chunk({"text": "Once"}), chunk(finish="SAFETY"))
    assert events[-1].finish_reason == "content_filter"


async def test_a_blocked_prompt_is_a_refusal(recorded: Any, collect: Any) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(
            recorded,
            collect,
            {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": METADATA},
        )
    assert caught.value.kind == "refusal"
    assert caught.value.usage is not None


async def test_the_output_limit_is_a_finish_reason(recorded: Any, collect: Any) -> None:
    events = await read(recorded, collect, chunk({"text": "x"}, finish="MAX_TOKENS"))
    assert events[-1].finish_reason == "length"


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "OTHER"])
async def test_an_end_that_is_no_answer_is_a_failed_attempt(
    recorded: Any, collect: Any, reason: str
) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, chunk(finish=reason))
    assert (caught.value.kind, caught.value.code) == ("stream", reason)


async def test_without_a_finish_reason_the_attempt_has_failed(recorded: Any, collect: Any) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(recorded, collect, chunk({"text": "Hello"}, usageMetadata=METADATA))
    assert caught.value.kind == "stream"
    assert caught.value.usage is not None


async def test_an_error_inside_the_stream_is_typed(recorded: Any, collect: Any) -> None:
    with pytest.raises(ProviderFailure) as caught:
        await read(
            recorded,
            collect,
            chunk({"text": "Hello"}),
            {"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}},
        )
    assert caught.value.status == 503


async def test_key_and_model_travel_where_they_belong(recorded: Any, collect: Any) -> None:
    answer = recorded(chunk({"text": "x"}, finish="STOP"))
    odd = ModelRequest(model="models/a/../b?key=1", messages=REQUEST.messages)
    await collect(GeminiProvider(answer.client, api_key="the-key"), odd)
    request = answer.requests[0]
    assert request.headers["x-goog-api-key"] == "the-key"
    assert request.url.raw_path == (
        b"/v1beta/models/a%2F..%2Fb%3Fkey%3D1:streamGenerateContent?alt=sse"
    )
