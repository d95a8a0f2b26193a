"""The request body of the Chat Completions format, and the dialects that differ in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...personas.messages import ImagePart, Message, TextPart
from .calls import dump_arguments, wire_id
from .prompt import image_url, sendable, tool_text, unknown_format, with_custom
from .provider import ModelRequest

_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server's Chat Completions format differs from the plainest one.

    Attributes:
        max_tokens_key: Name of the output limit.
        stream_options: Whether usage has to be asked for.
        user: Whether the end user's id may be sent.
        names: Whether the speaker's name of a message may be sent.
        reasoning: Where effort and thinking go: ``effort`` for ``reasoning_effort``,
            ``object`` for OpenRouter's ``reasoning``.
        call_id: The form of a tool call's id.
        call_id_length: Length of an id made up in its place.
    """

    max_tokens_key: str = "max_tokens"
    stream_options: bool = True
    user: bool = True
    names: bool = False
    reasoning: str = "effort"
    call_id: re.Pattern[str] = re.compile(r".{1,40}")
    call_id_length: int = 24


PLAIN = Dialect()
OPENAI = Dialect(max_tokens_key="max_completion_tokens", names=True)
OPENROUTER = Dialect(reasoning="object")
# Mistral refuses unknown keys and ids of another length.
MISTRAL = Dialect(
    stream_options=False, user=False, call_id=re.compile(r"[a-zA-Z0-9]{9}"), call_id_length=9
)


def chat_body(request: ModelRequest, dialect: Dialect, provider: str) -> dict[str, Any]:
    """The JSON body of a streamed chat completion.

    Args:
        request: The call.
        dialect: The server's dialect.
        provider: The provider's name, for errors.

    Raises:
        ProviderFailure: The request asks for something that the format has no words for.
    """
    options = request.options
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(m, dialect, provider) for m in _spoken(request.messages)],
        "stream": True,
    }
    if dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    plain = {
        "temperature": options.temperature,
        dialect.max_tokens_key: options.max_tokens,
        "top_p": options.top_p,
        "frequency_penalty": options.frequency_penalty,
        "presence_penalty": options.presence_penalty,
        "stop": options.stop_sequences or None,
        "prompt_cache_key": options.prompt_cache_key,
        "prompt_cache_retention": options.prompt_cache_retention,
        "service_tier": options.service_tier,
        "user": request.user if dialect.user else None,
    }
    body.update({name: value for name, value in plain.items() if value is not None})
    body.update(_reasoning(request, dialect))
    if options.response_format is not None:
        body["response_format"] = _response_format(options.response_format, provider)
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
        if options.tool_choice is not None:
            body["tool_choice"] = _tool_choice(options.tool_choice)
    return with_custom(body, options.custom_model_params)


def _spoken(messages: list[Message]) -> list[Message]:
    """What is sent; an assistant message that says and asks nothing is left out."""
    return [
        m for m in sendable(messages) if m.role != "assistant" or m.calls or m.content is not None
    ]


def _message(message: Message, dialect: Dialect, provider: str) -> dict[str, Any]:
    if message.role in ("system", "summary"):
        return {"role": "system", "content": message.text}
    if message.role == "tool":
        call_id = wire_id(message.call_id or "", dialect.call_id, dialect.call_id_length)
        return {
            "role": "tool",
            "tool_call_id": call_id,
            "content": tool_text(message, provider),
        }
    if message.role == "assistant":
        wire: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if message.calls:
            wire["tool_calls"] = [
                {
                    "id": wire_id(call.id, dialect.call_id, dialect.call_id_length),
                    "type": "function",
                    "function": {"name": call.name, "arguments": dump_arguments(call.arguments)},
                }
                for call in message.calls
            ]
        elif wire["content"] is None:
            wire["content"] = ""
        return wire
    wire = {"role": "user", "content": _user_content(message, provider)}
    if dialect.names and message.name and _SPEAKER.fullmatch(message.name):
        wire["name"] = message.name
    return wire


def _user_content(message: Message, provider: str) -> str | list[dict[str, Any]]:
    if not isinstance(message.content, list):
        return message.text
    if all(isinstance(part, TextPart) for part in message.content):
        return message.text
    parts: list[dict[str, Any]] = []
    for part in message.content:
        if isinstance(part, ImagePart):
            image: dict[str, Any] = {"url": image_url(part, provider)}
            if part.detail != "auto":
                image["detail"] = part.detail
            parts.append({"type": "image_url", "image_url": image})
        else:
            parts.append({"type": "text", "text": part.text})
    return parts


def _reasoning(request: ModelRequest, dialect: Dialect) -> dict[str, Any]:
    options = request.options
    thinking = options.thinking or {}
    if dialect.reasoning == "object":
        reasoning: dict[str, Any] = {
            "max_tokens" if name == "budget_tokens" else name: value
            for name, value in thinking.items()
            if name != "type"
        }
        # OpenRouter refuses an effort beside a budget.
        if options.effort is not None and "max_tokens" not in reasoning:
            reasoning["effort"] = options.effort
        return {"reasoning": reasoning} if reasoning else {}
    effort = options.effort or thinking.get("effort")
    return {"reasoning_effort": effort} if effort is not None else {}


def _response_format(wanted: dict[str, Any], provider: str) -> dict[str, Any]:
    kind = wanted.get("type")
    if kind in ("json_object", "text"):
        return {"type": kind}
    if kind == "json_schema" and isinstance(wanted.get("schema"), dict):
        schema: dict[str, Any] = {"name": wanted.get("name") or "reply", "schema": wanted["schema"]}
        if "strict" in wanted:
            schema["strict"] = wanted["strict"]
        return {"type": "json_schema", "json_schema": schema}
    raise unknown_format(wanted, provider)


def _tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
