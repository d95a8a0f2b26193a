"""What the adapters send: the same conversation and options in three formats."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from gmi.activities.gateway import (
    AnthropicProvider,
    GeminiProvider,
    ModelRequest,
    OpenAIProvider,
    Provider,
    ProviderFailure,
)
from gmi.activities.gateway.openai_body import MISTRAL, OPENROUTER, PLAIN
from gmi.personas.messages import (
    ImagePart,
    Message,
    ReplayBlock,
    TextPart,
    ToolCall,
    ToolDefinition,
)
from gmi.personas.options import CompletionOptions

CLIENT = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(500)))
OPENAI = OpenAIProvider(CLIENT)
ANTHROPIC = AnthropicProvider(CLIENT)
GEMINI = GeminiProvider(CLIENT)
ALL: list[Provider] = [OPENAI, ANTHROPIC, GEMINI]

PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
TOOL = ToolDefinition(name="add", description="Adds.", parameters=SCHEMA)

THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
SIGNED = {"call": "call_1", "thoughtSignature": "gem"}

HISTORY = [
    Message(role="system", content="You are Ada."),
    Message(role="summary", content="They met."),
    Message(role="user", content="Add twice.", name="Bob"),
    Message(
        role="assistant",
        content="I will.",
        calls=[
            ToolCall(id="call_1", name="add", arguments={"a": 1}),
            ToolCall(id="call_2", name="add", malformed="{oops"),
        ],
        replay=[
            ReplayBlock(provider="anthropic", model="claude-x", data=THINKING),
            ReplayBlock(provider="gemini", model="gemini-3-x", data=SIGNED),
        ],
    ),
    Message(role="tool", call_id="call_1", name="add", content="2"),
    Message(role="tool", call_id="call_2", name="add", content="bad arguments", is_error=True),
    Message(role="thought", content="secret"),
    Message(role="error", content="noise"),
    Message(role="assistant", content="cut", partial=True),
    Message(role="user", content="Well?"),
]


def body(provider: Provider, messages: list[Message], model: str = "m", **more: Any) -> Any:
    tools = more.pop("tools", [])
    user = more.pop("user", None)
    options = CompletionOptions(**more)
    return provider.request_body(
        ModelRequest(model=model, messages=messages, tools=tools, options=options, user=user)
    )


def user(*parts: TextPart | ImagePart) -> list[Message]:
    return [Message(role="user", content=list(parts))]


def test_openai_gets_the_rounds_in_its_own_form() -> None:
    assert body(OPENAI, HISTORY)["messages"] == [
        {"role": "system", "content": "You are Ada."},
        {"role": "system", "content": "They met."},
        {"role": "user", "content": "Add twice.", "name": "Bob"},
        {
            "role": "assistant",
            "content": "I will.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a":1}'},
                },
                {
                    "id": "call_2",
                    "type": "function",
                    "function": {"name": "add", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "2"},
        {"role": "tool", "tool_call_id": "call_2", "content": "bad arguments"},
        {"role": "user", "content": "Well?"},
    ]


def test_anthropic_gets_the_results_of_a_round_in_one_message_before_the_next_words() -> None:
    sent = body(ANTHROPIC, HISTORY)
    assert sent["system"] == [{"type": "text", "text": "You are Ada.\n\nThey met."}]
    assert sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Add twice."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I will."},
                {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}},
                {"type": "tool_use", "id": "call_2", "name": "add", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "2"},
                {
                    "type": "tool_result",
                    "tool_use_id": "call_2",
                    "content": "bad arguments",
                    "is_error": True,
                },
                {"type": "text", "text": "Well?"},
            ],
        },
    ]


def test_gemini_gets_the_rounds_in_its_own_form() -> None:
    sent = body(GEMINI, HISTORY, model="gemini-2.5-pro")
    assert sent["systemInstruction"] == {"parts": [{"text": "You are Ada.\n\nThey met."}]}
    assert [c["role"] for c in sent["contents"]] == ["user", "model", "user"]
    assert sent["contents"][1]["parts"] == [
        {"text": "I will."},
        {"functionCall": {"name": "add", "args": {"a": 1}}},
        {"functionCall": {"name": "add", "args": {}}},
    ]
    assert sent["contents"][2]["parts"] == [
        {"functionResponse": {"name": "add", "response": {"output": 2}}},
        {"functionResponse": {"name": "add", "response": {"error": "bad arguments"}}},
        {"text": "Well?"},
    ]


@pytest.mark.parametrize(
    ("provider", "model", "own"),
    [
        (OPENAI, "gpt-4o", ()),
        (ANTHROPIC, "claude-x", ("Hm.",)),
        (ANTHROPIC, "claude-y", ()),
        (GEMINI, "gemini-3-x", ("gem'",)),
        (GEMINI, "gemini-3-y", ()),
    ],
)
def test_a_request_holds_only_the_replay_blocks_of_its_own_model(
    provider: Provider, model: str, own: tuple[str, ...]
) -> None:
    sent = str(body(provider, HISTORY, model=model))
    for mark in ("Hm.", "gem'"):
        assert (mark in sent) is (mark in own)


def test_gemini_is_told_where_a_call_was_made_by_another_model() -> None:
    sent = body(GEMINI, HISTORY, model="gemini-3-y")
    calls = [p for p in sent["contents"][1]["parts"] if "functionCall" in p]
    assert calls[0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in calls[1]


@pytest.mark.parametrize("provider", ALL)
def test_nothing_unset_is_sent(provider: Provider) -> None:
    sent = body(provider, [Message(role="user", content="Hi")])
    allowed = {"model", "messages", "contents", "stream", "stream_options", "max_tokens"}
    assert set(sent) <= allowed
    assert sent.get("max_tokens") == (4096 if provider is ANTHROPIC else None)


@pytest.mark.parametrize("provider", ALL)
@pytest.mark.parametrize("role", ["thought", "error"])
def test_the_projects_own_notes_are_not_sent(provider: Provider, role: Any) -> None:
    assert "secret" not in str(body(provider, [*HISTORY, Message(role=role, content="secret")]))


OPTIONS: dict[str, Any] = {
    "temperature": 0.4,
    "max_tokens": 300,
    "top_p": 0.9,
    "frequency_penalty": 0.1,
    "presence_penalty": 0.2,
    "stop_sequences": ["END"],
    "effort": "low",
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "service_tier": "flex",
    "request_timeout": 9.0,
    "custom_model_params": {"seed": 7, "model": "other"},
    "response_format": {"type": "json_schema", "name": "out", "schema": SCHEMA, "strict": True},
    "tool_choice": "add",
}


def test_openai_gets_every_option() -> None:
    sent = body(OPENAI, HISTORY, tools=[TOOL], user="u1", **OPTIONS)
    del sent["messages"]
    assert sent == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.4,
        "max_completion_tokens": 300,
        "top_p": 0.9,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "stop": ["END"],
        "reasoning_effort": "low",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "service_tier": "flex",
        "user": "u1",
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "out", "schema": SCHEMA, "strict": True},
        },
        "tools": [
            {
                "type": "function",
                "function": {"name": "add", "description": "Adds.", "parameters": SCHEMA},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
    }


def test_anthropic_gets_every_option_that_it_has() -> None:
    sent = body(ANTHROPIC, HISTORY, tools=[TOOL], user="u1", **OPTIONS)
    del sent["messages"], sent["system"]
    closed = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "object", "properties": {}, "additionalProperties": False}},
    }
    assert sent == {
        "model": "m",
        "stream": True,
        "max_tokens": 300,
        "temperature": 0.4,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "service_tier": "flex",
        "metadata": {"user_id": "u1"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": closed}},
        "seed": 7,
        "tools": [{"name": "add", "description": "Adds.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "add"},
    }


def test_gemini_gets_every_option_that_it_has() -> None:
    custom = {"generationConfig": {"topK": 5, "temperature": 9}}
    sent = body(
        GEMINI, HISTORY, tools=[TOOL], **{**OPTIONS, "custom_model_params": custom}, user="u1"
    )
    assert sent["generationConfig"] == {
        "temperature": 0.4,
        "maxOutputTokens": 300,
        "topP": 0.9,
        "frequencyPenalty": 0.1,
        "presencePenalty": 0.2,
        "stopSequences": ["END"],
        "thinkingConfig": {"thinkingLevel": "low"},
        "responseJsonSchema": SCHEMA,
        "responseMimeType": "application/json",
        "topK": 5,
    }
    assert sent["tools"] == [
        {
            "functionDeclarations": [
                {"name": "add", "description": "Adds.", "parametersJsonSchema": SCHEMA}
            ]
        }
    ]
    assert sent["toolConfig"] == {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]}
    }


@pytest.mark.parametrize("provider", ALL)
def test_a_tool_choice_without_tools_is_not_sent(provider: Provider) -> None:
    sent = body(provider, HISTORY, tool_choice="required")
    assert "tool_choice" not in sent
    assert "toolConfig" not in sent


@pytest.mark.parametrize("provider", ALL)
def test_an_unknown_response_format_is_refused_by_name(provider: Provider) -> None:
    with pytest.raises(ProviderFailure, match="'xml' is not known") as caught:
        body(provider, HISTORY, response_format={"type": "xml"})
    assert caught.value.kind == "unsupported"


def test_images_go_out_by_url_and_inline() -> None:
    url = "https://example.org/cat.png?size=1"
    parts = user(TextPart(text="See:"), ImagePart(url=url, detail="low"), ImagePart(url=PNG))
    assert body(OPENAI, parts)["messages"][0]["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": PNG}},
    ]
    assert body(ANTHROPIC, parts)["messages"][0]["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image", "source": {"type": "url", "url": url}},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
        },
    ]
    assert body(GEMINI, parts)["contents"][0]["parts"] == [
        {"text": "See:"},
        {"fileData": {"fileUri": url, "mimeType": "image/png"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
    ]


@pytest.mark.parametrize("provider", ALL)
def test_an_image_that_nobody_loaded_is_refused_before_sending(provider: Provider) -> None:
    with pytest.raises(ProviderFailure, match="sha256:1") as caught:
        body(provider, user(ImagePart(blob="sha256:1", media_type="image/png")))
    assert caught.value.kind == "unsupported"
    assert caught.value.retryable


@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI])
@pytest.mark.parametrize("url", ["data:image/png,plain", "data:image/png;base64,@@@"])
def test_a_broken_data_url_is_refused_before_sending(provider: Provider, url: str) -> None:
    with pytest.raises(ProviderFailure, match="data: URL"):
        body(provider, user(ImagePart(url=url)))


@pytest.mark.parametrize("provider", ALL)
def test_an_image_in_a_tool_result_is_refused_before_sending(provider: Provider) -> None:
    shown = Message(role="tool", call_id="call_1", content=[ImagePart(url=PNG)])
    with pytest.raises(ProviderFailure, match="call_1"):
        body(provider, [*HISTORY[:4], shown])


def test_cacheable_prefixes_are_marked_at_both_ends() -> None:
    sent = body(ANTHROPIC, HISTORY, cache=True, prompt_cache_retention="1h")
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert sent["system"][-1]["cache_control"] == mark
    assert sent["messages"][-1]["content"][-1]["cache_control"] == mark
    assert str(sent).count("cache_control") == 2
    assert "cache_control" not in str(body(ANTHROPIC, HISTORY))


def test_marking_a_prefix_leaves_the_kept_blocks_untouched() -> None:
    message = Message(
        role="assistant",
        content="Hi",
        replay=[ReplayBlock(provider="anthropic", model="m", data=dict(THINKING))],
    )
    body(ANTHROPIC, [message], cache=True)
    assert message.replay[0].data == THINKING


def test_thinking_is_sent_with_room_for_its_budget_and_without_a_temperature() -> None:
    sent = body(
        ANTHROPIC, HISTORY[:3], thinking={"budget_tokens": 2000}, temperature=0.2, effort="minimal"
    )
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert sent["max_tokens"] == 6096
    assert "temperature" not in sent
    assert sent["output_config"] == {"effort": "low"}


def test_thinking_is_left_out_in_a_round_that_another_model_began() -> None:
    round_ = HISTORY[:6]
    wanted = {"budget_tokens": 2000}
    assert "thinking" not in body(ANTHROPIC, round_, model="claude-y", thinking=wanted)
    assert "thinking" in body(ANTHROPIC, round_, model="claude-x", thinking=wanted)
    assert "thinking" in body(ANTHROPIC, HISTORY, model="claude-y", thinking=wanted)


@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI])
def test_the_conversation_begins_and_ends_with_the_user(provider: Provider) -> None:
    sent = body(provider, [Message(role="assistant", content="Hello!")])
    turns = sent.get("messages") or sent["contents"]
    assert [t["role"] for t in turns] in (["user", "assistant", "user"], ["user", "model", "user"])


def test_neighbouring_messages_of_one_speaker_are_joined() -> None:
    messages = [Message(role="user", content="a"), Message(role="user", content="b")]
    assert len(body(ANTHROPIC, messages)["messages"]) == 1
    assert len(body(GEMINI, messages)["contents"]) == 1


def test_foreign_call_ids_are_made_to_fit_and_still_match() -> None:
    call = ToolCall(id="functions.add:0", name="add")
    messages = [
        Message(role="assistant", calls=[call]),
        Message(role="tool", call_id=call.id, content="1"),
    ]
    blocks = [b for t in body(ANTHROPIC, messages)["messages"] for b in t["content"]]
    asked = next(b["id"] for b in blocks if b["type"] == "tool_use")
    assert asked == next(b["tool_use_id"] for b in blocks if b["type"] == "tool_result")
    assert asked.isalnum()
    short = OpenAIProvider(CLIENT, name="mistral", dialect=MISTRAL)
    sent = body(short, messages)["messages"]
    assert sent[0]["tool_calls"][0]["id"] == sent[1]["tool_call_id"]
    assert len(sent[1]["tool_call_id"]) == 9


def test_compatible_servers_get_the_plain_words() -> None:
    sent = body(OpenAIProvider(CLIENT, dialect=PLAIN), HISTORY, max_tokens=5, user="u")
    assert sent["max_tokens"] == 5
    assert "max_completion_tokens" not in sent
    assert "name" not in sent["messages"][2]
    strict = body(OpenAIProvider(CLIENT, dialect=MISTRAL), HISTORY, user="u")
    assert not {"user", "stream_options"} & set(strict)


def test_openrouter_gets_reasoning_as_an_object() -> None:
    router = OpenAIProvider(CLIENT, dialect=OPENROUTER)
    assert body(router, HISTORY, effort="high")["reasoning"] == {"effort": "high"}
    budget = body(router, HISTORY, effort="high", thinking={"budget_tokens": 500})
    assert budget["reasoning"] == {"max_tokens": 500}


def test_older_geminis_get_a_budget_in_place_of_a_level() -> None:
    sent = body(GEMINI, HISTORY, model="gemini-2.5-flash", effort="low")
    assert sent["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 1024}}


@pytest.mark.parametrize("provider", ALL)
def test_making_a_body_twice_gives_the_same_bytes(provider: Provider) -> None:
    assert repr(body(provider, HISTORY, cache=True)) == repr(body(provider, HISTORY, cache=True))
