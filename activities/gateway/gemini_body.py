"""The request body of Gemini's ``generateContent``."""

from __future__ import annotations

import json
import mimetypes
import re
from typing import Any

from ...personas.messages import ImagePart, Message
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

KIND = "gemini"

# Since the third generation a call without its signature is refused, except with this value,
# which the API's documentation names for calls that another model made.
_UNSIGNED = "skip_thought_signature_validator"
_SIGNS_CALLS = re.compile(r"gemini-(?:[3-9]|\d\d)")
# The second generation takes a budget in tokens where later ones take a level.
_TAKES_BUDGET = re.compile(r"gemini-[12][.-]")
_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}

Part = dict[str, Any]


def content_body(request: ModelRequest, provider: str) -> dict[str, Any]:
    """The JSON body of ``streamGenerateContent``.

    Args:
        request: The call.
        provider: The provider's name, for errors.

    Raises:
        ProviderFailure: The request asks for something that the API has no words for.
    """
    system, messages = split_system(request.messages)
    body: dict[str, Any] = {"contents": _contents(messages, request.model, provider)}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    config = _generation_config(request, provider)
    if config:
        body["generationConfig"] = config
    if request.tools:
        body["tools"] = [
            {
                "functionDeclarations": [
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "parametersJsonSchema": tool.parameters,
                    }
                    for tool in request.tools
                ]
            }
        ]
        if request.options.tool_choice is not None:
            body["toolConfig"] = _tool_config(request.options.tool_choice)
    return with_custom(body, request.options.custom_model_params)


def _contents(messages: list[Message], model: str, provider: str) -> list[dict[str, Any]]:
    names = {call.id: call.name for message in messages for call in message.calls}
    wire_ids = _wire_ids(messages, model)
    contents: list[dict[str, Any]] = []
    for message in messages:
        role = "model" if message.role == "assistant" else "user"
        if message.role == "assistant":
            parts = _model_parts(message, model)
        elif message.role == "tool":
            parts = [_response(message, names, wire_ids, provider)]
        else:
            parts = _user_parts(message, provider)
        if not parts:
            continue
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"].extend(parts)
        else:
            contents.append({"role": role, "parts": parts})
    if not contents or contents[0]["role"] == "model":
        contents.insert(0, {"role": "user", "parts": [{"text": OPENING}]})
    if contents[-1]["role"] == "model":
        contents.append({"role": "user", "parts": [{"text": OPENING}]})
    return contents


def _wire_ids(messages: list[Message], model: str) -> dict[str, str]:
    """The provider's own ids of the calls that it gave one; by our id of the call."""
    return {
        block["call"]: block["id"]
        for message in messages
        for block in replayable(message, KIND, model)
        if "call" in block and block.get("id")
    }


def _model_parts(message: Message, model: str) -> list[Part]:
    own = replayable(message, KIND, model)
    by_call = {block["call"]: block for block in own if "call" in block}
    parts = _text_parts(message.text, [block for block in own if "call" not in block])
    for index, call in enumerate(message.calls):
        function: dict[str, Any] = {"name": call.name, "args": call.arguments}
        part: Part = {"functionCall": function}
        block = by_call.get(call.id, {})
        if block.get("id"):
            function["id"] = block["id"]
        if block.get("thoughtSignature"):
            part["thoughtSignature"] = block["thoughtSignature"]
        elif index == 0 and not by_call and _SIGNS_CALLS.match(model):
            part["thoughtSignature"] = _UNSIGNED
        parts.append(part)
    return parts


def _text_parts(text: str, signed: list[dict[str, Any]]) -> list[Part]:
    """The text cut where its signatures belong."""
    parts: list[Part] = []
    done = 0
    for block in signed:
        start, end = block.get("start", len(text)), block.get("end", len(text))
        if not done <= start <= end <= len(text):
            start = end = done
        if start > done:
            parts.append({"text": text[done:start]})
        parts.append({"text": text[start:end], "thoughtSignature": block.get("thoughtSignature")})
        done = end
    if done < len(text):
        parts.append({"text": text[done:]})
    return parts


def _response(
    message: Message, names: dict[str, str], wire_ids: dict[str, str], provider: str
) -> Part:
    call_id = message.call_id or ""
    text = tool_text(message, provider)
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    response: dict[str, Any] = {
        "name": names.get(call_id) or message.name or "tool",
        "response": {"error" if message.is_error else "output": value},
    }
    if call_id in wire_ids:
        response["id"] = wire_ids[call_id]
    return {"functionResponse": response}


def _user_parts(message: Message, provider: str) -> list[Part]:
    if not isinstance(message.content, list):
        return [{"text": message.text}] if message.text else []
    parts: list[Part] = []
    for part in message.content:
        if isinstance(part, ImagePart):
            url = image_url(part, provider)
            inline = data_url(url, provider)
            if inline is not None:
                parts.append({"inlineData": {"mimeType": inline[0], "data": inline[1]}})
                continue
            file = {"fileUri": url}
            media_type = part.media_type or mimetypes.guess_type(url.partition("?")[0])[0]
            if media_type:
                file["mimeType"] = media_type
            parts.append({"fileData": file})
        elif part.text:
            parts.append({"text": part.text})
    return parts


def _generation_config(request: ModelRequest, provider: str) -> dict[str, Any]:
    options = request.options
    plain: dict[str, Any] = {
        "temperature": options.temperature,
        "maxOutputTokens": options.max_tokens,
        "topP": options.top_p,
        "frequencyPenalty": options.frequency_penalty,
        "presencePenalty": options.presence_penalty,
        "stopSequences": options.stop_sequences or None,
        "thinkingConfig": _thinking(request) or None,
    }
    config = {name: value for name, value in plain.items() if value is not None}
    wanted = options.response_format
    if wanted is None or wanted.get("type") == "text":
        return config
    if wanted.get("type") == "json_schema" and isinstance(wanted.get("schema"), dict):
        config["responseJsonSchema"] = wanted["schema"]
    elif wanted.get("type") != "json_object":
        raise unknown_format(wanted, provider)
    config["responseMimeType"] = "application/json"
    return config


def _thinking(request: ModelRequest) -> dict[str, Any]:
    given = dict(request.options.thinking or {})
    given.pop("type", None)
    effort = request.options.effort or given.pop("effort", None)
    thinking = {
        "thinkingBudget" if name == "budget_tokens" else name: value
        for name, value in given.items()
    }
    if effort is None or "thinkingBudget" in thinking or "thinkingLevel" in thinking:
        return thinking
    if _TAKES_BUDGET.match(request.model):
        thinking["thinkingBudget"] = _BUDGETS.get(effort, _BUDGETS["medium"])
    else:
        thinking["thinkingLevel"] = effort
    return thinking


def _tool_config(choice: str) -> dict[str, Any]:
    modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    if choice in modes:
        return {"functionCallingConfig": {"mode": modes[choice]}}
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [choice]}}
