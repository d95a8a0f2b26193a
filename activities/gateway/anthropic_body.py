"""The request body of Anthropic's Messages API."""

from __future__ import annotations

import re
from typing import Any

from ...personas.messages import ImagePart, Message
from .calls import wire_id
from .prompt import (
    OPENING,
    data_url,
    image_url,
    replayable,
    split_system,
    tool_text,
    unknown_format,
    with_custom,
)
from .provider import ModelRequest

KIND = "anthropic"

DEFAULT_MAX_TOKENS = 4096
"""The API demands an output limit; this one is sent where the options set none."""

LAYOUT = "layout"
"""Type of the replay block that notes an unusual order of an answer's blocks."""

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EFFORTS = {"minimal": "low"}

Block = dict[str, Any]


def messages_body(request: ModelRequest, provider: str) -> dict[str, Any]:
    """The JSON body of a streamed message.

    The API has no penalties and no ``json_object``: these options are left out.

    Args:
        request: The call.
        provider: The provider's name, for errors.

    Raises:
        ProviderFailure: The request asks for something that the API has no words for.
    """
    options = request.options
    system, messages = split_system(request.messages)
    wire = _turns(messages, request.model, provider)
    thinking = _thinking(request, messages)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": _max_tokens(options.max_tokens, thinking),
        "messages": wire,
        "stream": True,
    }
    if system:
        body["system"] = [{"type": "text", "text": system}]
    if thinking is not None:
        body["thinking"] = thinking
    # With thinking on, the API accepts only its default temperature.
    temperature = options.temperature if thinking is None else None
    plain = {
        "temperature": temperature,
        "top_p": options.top_p,
        "stop_sequences": options.stop_sequences or None,
        "service_tier": options.service_tier,
        "metadata": {"user_id": request.user} if request.user else None,
        "output_config": _output_config(request, provider) or None,
    }
    body.update({name: value for name, value in plain.items() if value is not None})
    if request.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": t.parameters}
            for t in request.tools
        ]
        if options.tool_choice is not None:
            body["tool_choice"] = _tool_choice(options.tool_choice)
    if options.cache:
        _mark_cacheable(body, options.prompt_cache_retention)
    return with_custom(body, options.custom_model_params)


def _turns(messages: list[Message], model: str, provider: str) -> list[dict[str, Any]]:
    """Alternating user and assistant messages; the results of a round stand in one message."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if message.role == "assistant":
            blocks = _assistant_blocks(message, model)
        elif message.role == "tool":
            blocks = [_tool_result(message, provider)]
        else:
            blocks = _user_blocks(message, provider)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    opening = {"type": "text", "text": OPENING}
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [dict(opening)]})
    if turns[-1]["role"] == "assistant":
        turns.append({"role": "user", "content": [dict(opening)]})
    return turns


def _assistant_blocks(message: Message, model: str) -> list[Block]:
    own = replayable(message, KIND, model)
    thoughts = [dict(block) for block in own if block.get("type") != LAYOUT]
    texts = [{"type": "text", "text": message.text}] if message.text.strip() else []
    calls: list[Block] = [
        {
            "type": "tool_use",
            "id": wire_id(call.id, _CALL_ID, 24),
            "name": call.name,
            "input": call.arguments,
        }
        for call in message.calls
    ]
    layout = next((block for block in own if block.get("type") == LAYOUT), None)
    if layout is not None:
        arranged = _arranged(layout.get("blocks"), thoughts, message.text, calls)
        if arranged is not None:
            return arranged
    return [*thoughts, *texts, *calls]


def _arranged(
    order: object, thoughts: list[Block], text: str, calls: list[Block]
) -> list[Block] | None:
    """The blocks in the order in which they came, or ``None`` where they no longer fit it."""
    if not isinstance(order, list):
        return None
    blocks: list[Block] = []
    thought, call, start = 0, 0, 0
    for entry in order:
        if entry == "thinking" and thought < len(thoughts):
            blocks.append(thoughts[thought])
            thought += 1
        elif entry == "tool_use" and call < len(calls):
            blocks.append(calls[call])
            call += 1
        elif isinstance(entry, int) and start + entry <= len(text):
            if text[start : start + entry].strip():
                blocks.append({"type": "text", "text": text[start : start + entry]})
            start += entry
        else:
            return None
    complete = thought == len(thoughts) and call == len(calls) and start == len(text)
    return blocks if complete else None


def _tool_result(message: Message, provider: str) -> Block:
    block: Block = {
        "type": "tool_result",
        "tool_use_id": wire_id(message.call_id or "", _CALL_ID, 24),
        "content": tool_text(message, provider),
    }
    if message.is_error:
        block["is_error"] = True
    return block


def _user_blocks(message: Message, provider: str) -> list[Block]:
    if not isinstance(message.content, list):
        return [{"type": "text", "text": message.text}] if message.text.strip() else []
    blocks: list[Block] = []
    for part in message.content:
        if isinstance(part, ImagePart):
            url = image_url(part, provider)
            inline = data_url(url, provider)
            source = (
                {"type": "url", "url": url}
                if inline is None
                else {"type": "base64", "media_type": inline[0], "data": inline[1]}
            )
            blocks.append({"type": "image", "source": source})
        elif part.text.strip():
            blocks.append({"type": "text", "text": part.text})
    return blocks


def _thinking(request: ModelRequest, messages: list[Message]) -> dict[str, Any] | None:
    if not request.options.thinking:
        return None
    thinking = {k: v for k, v in request.options.thinking.items() if k != "effort"}
    if not thinking:
        return None
    thinking.setdefault("type", "enabled" if "budget_tokens" in thinking else "adaptive")
    if thinking["type"] == "disabled":
        return None
    # A round of calls that another model began has no thinking block of this one, and the API
    # refuses to go on thinking in the middle of it.
    if thinking["type"] == "enabled" and _in_foreign_round(messages, request.model):
        return None
    return thinking


def _in_foreign_round(messages: list[Message], model: str) -> bool:
    for message in reversed(messages):
        if message.role == "assistant":
            return bool(message.calls) and not replayable(message, KIND, model)
        if message.role != "tool":
            return False
    return False


def _max_tokens(limit: int | None, thinking: dict[str, Any] | None) -> int:
    if limit is not None:
        return limit
    budget = thinking.get("budget_tokens") if thinking else None
    return DEFAULT_MAX_TOKENS + (budget if isinstance(budget, int) else 0)


def _output_config(request: ModelRequest, provider: str) -> dict[str, Any]:
    options = request.options
    config: dict[str, Any] = {}
    effort = options.effort or (options.thinking or {}).get("effort")
    if effort is not None:
        config["effort"] = _EFFORTS.get(effort, effort)
    wanted = options.response_format
    if wanted is None or wanted.get("type") in ("json_object", "text"):
        return config
    if wanted.get("type") != "json_schema" or not isinstance(wanted.get("schema"), dict):
        raise unknown_format(wanted, provider)
    config["format"] = {"type": "json_schema", "schema": _closed(wanted["schema"])}
    return config


def _closed(schema: Any) -> Any:
    """The schema with every object closed, which the API demands."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def _tool_choice(choice: str) -> dict[str, Any]:
    known = {"auto": "auto", "none": "none", "required": "any"}
    return {"type": known[choice]} if choice in known else {"type": "tool", "name": choice}


def _mark_cacheable(body: dict[str, Any], retention: str | None) -> None:
    """Mark the two ends of the prefix: what is fixed, and the conversation so far."""
    mark: dict[str, Any] = {"type": "ephemeral"}
    if retention in ("1h", "24h"):
        mark["ttl"] = "1h"
    fixed = body.get("system") or body.get("tools")
    if fixed:
        fixed[-1]["cache_control"] = dict(mark)
    body["messages"][-1]["content"][-1]["cache_control"] = dict(mark)
