"""The three adapters against a model server that misbehaves as it is told to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmi.activities.gateway import (
    AnthropicProvider,
    Finished,
    GeminiProvider,
    ModelRequest,
    OpenAIProvider,
    Provider,
    ProviderFailure,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from gmi.personas.messages import Message, ToolDefinition
from gmi.personas.options import CompletionOptions

KEY = "key-of-the-tests-0123456789"
IDLE = 0.4

Build = Callable[[Any], Provider]

BUILDERS: dict[str, Build] = {
    "openai": lambda server: OpenAIProvider(
        server.client, api_key=KEY, base_url=f"{server.url}/v1", idle_timeout=IDLE
    ),
    "anthropic": lambda server: AnthropicProvider(
        server.client, api_key=KEY, base_url=f"{server.url}/anthropic", idle_timeout=IDLE
    ),
    "gemini": lambda server: GeminiProvider(
        server.client, api_key=KEY, base_url=f"{server.url}/gemini/v1beta", idle_timeout=IDLE
    ),
}

MODELS = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-6", "gemini": "gemini-2.5-pro"}


@pytest.fixture(params=list(BUILDERS))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def provider(family: str, model_server: Any) -> Provider:
    return BUILDERS[family](model_server)


@pytest.fixture
def request_(family: str) -> ModelRequest:
    return ModelRequest(
        model=MODELS[family], messages=[Message(role="user", content="What is the weather?")]
    )


def with_tools(request: ModelRequest) -> ModelRequest:
    return ModelRequest(
        model=request.model,
        messages=request.messages,
        tools=[ToolDefinition(name="get_weather"), ToolDefinition(name="get_time")],
    )


async def test_text_arrives_in_pieces_with_usage(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any
) -> None:
    await model_server.script({"type": "reply", "text": "It is sunny in Lisbon today."})
    events = await collect(provider, request_)
    pieces = [e.text for e in events if isinstance(e, TextDelta)]
    assert "".join(pieces) == "It is sunny in Lisbon today."
    assert len(pieces) > 1
    usage = [e.usage for e in events if isinstance(e, UsageReport)][-1]
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.finish_reason == "stop"
    assert finished.calls == []
    assert finished.response_model == request_.model


async def test_two_parallel_calls_arrive_whole_and_in_order(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any
) -> None:
    calls = [
        {"name": "get_weather", "arguments": {"city": "Lisbon", "unit": "celsius", "days": 3}},
        {"name": "get_time", "arguments": {"zone": "Europe/Lisbon"}},
    ]
    await model_server.script({"type": "reply", "tool_calls": calls})
    events = await collect(provider, with_tools(request_))
    finished = events[-1]
    assert finished.finish_reason == "tool_calls"
    assert [(c.name, c.arguments) for c in finished.calls] == [
        (c["name"], c["arguments"]) for c in calls
    ]
    assert len({c.id for c in finished.calls}) == 2
    assert [e.index for e in events if isinstance(e, ToolCallDelta)] == [0, 1]


async def test_a_rate_limit_carries_its_wait(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any
) -> None:
    await model_server.script({"type": "fail", "status": 429, "retry_after": 5})
    with pytest.raises(ProviderFailure) as caught:
        await collect(provider, request_)
    assert (caught.value.kind, caught.value.status) == ("http", 429)
    assert caught.value.retry_after == 5.0
    assert caught.value.same_hop_retryable


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_a_failing_server_is_a_retryable_failure(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any, status: int
) -> None:
    await model_server.script({"type": "fail", "status": status})
    with pytest.raises(ProviderFailure) as caught:
        await collect(provider, request_)
    assert caught.value.status == status
    assert caught.value.retryable


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (401, True), (404, False)])
async def test_a_refused_request_is_not_repeated_on_the_same_hop(
    provider: Provider,
    request_: ModelRequest,
    model_server: Any,
    collect: Any,
    status: int,
    retryable: bool,
) -> None:
    await model_server.script({"type": "fail", "status": status})
    with pytest.raises(ProviderFailure) as caught:
        await collect(provider, request_)
    assert caught.value.status == status
    assert caught.value.retryable is retryable
    assert not caught.value.same_hop_retryable


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("disconnect", "network"),
        ("truncate", "stream"),
        ("malformed", "stream"),
        ("stall", "stream"),
    ],
)
@pytest.mark.parametrize("after_chunks", [1, 3])
async def test_a_broken_stream_is_a_failed_attempt_and_never_a_short_answer(
    provider: Provider,
    request_: ModelRequest,
    model_server: Any,
    collect: Any,
    fault: str,
    kind: str,
    after_chunks: int,
) -> None:
    await model_server.script(
        {"type": "reply", "text": "one two three four five six seven"},
        {
            "type": "stream_fault",
            "kind": fault,
            "after_chunks": after_chunks,
            "stall_seconds": 5 * IDLE,
        },
    )
    with pytest.raises(ProviderFailure) as caught:
        await collect(provider, request_)
    assert caught.value.kind == kind
    assert caught.value.retryable
    assert caught.value.same_hop_retryable


async def test_a_slow_answer_ends_at_the_request_timeout(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any
) -> None:
    await model_server.script({"type": "delay", "seconds": 2})
    slow = ModelRequest(
        model=request_.model,
        messages=request_.messages,
        options=CompletionOptions(request_timeout=0.1),
    )
    with pytest.raises(ProviderFailure) as caught:
        await collect(provider, slow)
    assert caught.value.kind == "timeout"
    assert "0.1 s" in str(caught.value)


async def test_no_answer_at_all_is_a_timeout(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any
) -> None:
    await model_server.script({"type": "delay", "seconds": 4 * IDLE})
    with pytest.raises(ProviderFailure) as caught:
        await collect(provider, request_)
    assert caught.value.kind == "timeout"


async def test_a_history_with_a_round_of_calls_is_accepted(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any
) -> None:
    await model_server.script(
        {
            "type": "reply",
            "tool_calls": [
                {"name": "get_weather", "arguments": {}},
                {"name": "get_time", "arguments": {}},
            ],
        },
        {"type": "reply", "text": "Sunny at noon."},
    )
    first = (await collect(provider, with_tools(request_)))[-1]
    answered = ModelRequest(
        model=request_.model,
        messages=[
            Message(role="system", content="Be brief."),
            *request_.messages,
            Message(role="assistant", calls=first.calls, replay=first.replay),
            *(Message(role="tool", call_id=c.id, name=c.name, content="ok") for c in first.calls),
        ],
        tools=with_tools(request_).tools,
    )
    events = await collect(provider, answered)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Sunny at noon."


async def test_the_key_is_in_no_error_and_in_no_repr(
    provider: Provider, request_: ModelRequest, model_server: Any, collect: Any
) -> None:
    await model_server.script({"type": "fail", "status": 401, "message": f"bad key {KEY}"})
    with pytest.raises(ProviderFailure) as caught:
        await collect(provider, request_)
    failure = caught.value
    assert KEY not in f"{failure}{failure!r}{failure.as_details()}{provider!r}"
    assert failure.__cause__ is None
    assert failure.__context__ is None
    assert KEY not in str(provider.request_body(request_))
