"""The model that needs no network: it understands nothing, and says so in every answer.

It exists so that everything around a model can be tried without a key: streaming, tools, pauses,
memory. The same request always gets the same answer.

What it does with the last user message:

- ``call get_time``, ``use the tool add with {"a": 1, "b": 2}``: calls the tool, where one of that
  name is offered; several in one message are called in parallel. After the results it answers
  with them.
- ``say 50 words``: answers with fifty words.
- ``say exactly: Hello``: answers with the label and what follows the colon.
- ``fail with 503``: fails as a provider does that answers with this HTTP status.
- anything else: quotes the message, and counts the turns and memories that it was shown.

Where the options ask for JSON, it answers with the smallest object that fits the schema.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from typing import Any

from ...personas.messages import Message, ToolCall, ToolDefinition, Usage
from ...personas.prompt import split_background
from .calls import dump_arguments, generated_id
from .failures import classify
from .prompt import sendable
from .provider import (
    Finished,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)

LABEL = "[offline stand-in]"
"""How every answer begins."""

_QUOTE_LIMIT = 300
_WORDS_LIMIT = 100_000
_CALL = re.compile(
    r"\b(?:call|use|run)\s+(?P<the>the\s+)?(?P<tool>tool\s+)?[`\"']?(?P<name>[A-Za-z_][\w.-]*\w|\w)"
    r"[`\"']?(?:\s+tool\b)?\s*(?:\bwith\b|\bon\b|:)?\s*(?P<json>\{)?",
    re.IGNORECASE,
)
_SAY_WORDS = re.compile(r"\bsay\s+(\d+)\s+words?\b", re.IGNORECASE)
_SAY_EXACTLY = re.compile(r"\bsay\s+exactly:\s*(.+)", re.IGNORECASE | re.DOTALL)
_FAIL = re.compile(r"\bfail\s+with\s+([45]\d\d)\b", re.IGNORECASE)


class OfflineProvider:
    """The stand-in for a model.

    Args:
        delay: Seconds between two words of an answer.
    """

    kind = "offline"
    name = "offline"

    def __init__(self, *, delay: float = 0.0) -> None:
        self._delay = delay

    def request_body(self, request: ModelRequest) -> dict[str, object]:
        """What the stand-in looks at; nothing is sent anywhere."""
        return {
            "model": request.model,
            "messages": [m.model_dump(mode="json") for m in sendable(request.messages)],
            "tools": [tool.name for tool in request.tools],
            "options": request.options.model_dump(mode="json", exclude_none=True),
        }

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Answer; see :class:`~.provider.Provider`.

        Raises:
            ProviderFailure: The message asked for it.
        """
        prompt_tokens = sum(_tokens(_seen(m)) for m in sendable(request.messages))
        yield UsageReport(_usage(prompt_tokens, 0))
        text, calls = _answer(request)
        limit = request.options.max_tokens
        said = ""
        cut = False
        for word in re.findall(r"\s*\S+\s*", text):
            if limit is not None and _tokens(said + word) > limit:
                cut = True
                break
            if said and self._delay > 0:
                await asyncio.sleep(self._delay)
            said += word
            yield TextDelta(word)
        if cut:
            calls = []
        for index in range(len(calls)):
            yield ToolCallDelta(index)
        asked = "".join(call.name + dump_arguments(call.arguments) for call in calls)
        yield UsageReport(_usage(prompt_tokens, _tokens(said + asked)))
        yield Finished(
            finish_reason="length" if cut else ("tool_calls" if calls else "stop"),
            calls=calls,
            response_model=request.model,
        )


def _answer(request: ModelRequest) -> tuple[str, list[ToolCall]]:
    """The text of the answer, and the calls it makes."""
    messages = sendable(request.messages)
    choice = request.options.tool_choice
    results = _latest_results(messages)
    if results:
        return _tell(results, request), []
    last = next((m.text for m in reversed(messages) if m.role == "user"), "")
    background, said = split_background(last)
    failing = _FAIL.search(said)
    if failing:
        raise classify(
            provider="offline", status=int(failing[1]), body="failed because it was asked to"
        )
    offered = {} if choice == "none" else {tool.name: tool for tool in request.tools}
    wanted, missing = _wanted_calls(said, offered)
    if not wanted and offered and choice not in (None, "auto"):
        tool = offered.get(str(choice)) or next(iter(offered.values()))
        wanted = [(tool.name, _sample_object(tool))]
    if wanted:
        calls = [
            ToolCall(
                id=generated_id(len(messages), index, name, dump_arguments(arguments)),
                name=name,
                arguments=arguments,
            )
            for index, (name, arguments) in enumerate(wanted)
        ]
        return "", calls
    if _wants_json(request):
        return _sample_json(request), []
    if missing:
        known = ", ".join(sorted(offered)) or "none"
        return f"{LABEL} No such tool is offered: {', '.join(missing)}. Offered: {known}.", []
    return f"{LABEL} {_say(said, background, messages)}", []


def _say(said: str, background: str, messages: list[Message]) -> str:
    words = _SAY_WORDS.search(said)
    if words:
        # The label counts as two of them, so that the answer has as many words as were asked for.
        number = min(int(words[1]), _WORDS_LIMIT)
        return " ".join(f"word{i}" for i in range(3, number + 1))
    exactly = _SAY_EXACTLY.search(said)
    if exactly:
        return exactly[1]
    turns = sum(1 for m in messages if m.role == "user")
    shown = "1 turn" if turns == 1 else f"{turns} turns"
    quote = said if len(said) <= _QUOTE_LIMIT else said[: _QUOTE_LIMIT - 1] + "…"
    return (
        f'No model is configured, so nothing was understood. You said: "{quote}". '
        f"I was shown {shown} of this conversation.{_remembered(background)}"
    )


def _remembered(background: str) -> str:
    """How much was remembered for the message, and the first of it."""
    lines = [line[2:] for line in background.splitlines() if line.startswith("- ")]
    if not lines:
        return ""
    first = lines[0] if len(lines[0]) <= _QUOTE_LIMIT else lines[0][: _QUOTE_LIMIT - 1] + "…"
    count = "1 memory" if len(lines) == 1 else f"{len(lines)} memories"
    return f" {count} came with it: {first}"


def _latest_results(messages: list[Message]) -> list[Message]:
    """The tool results at the prompt's end, in their order."""
    results: list[Message] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        results.insert(0, message)
    return results


def _tell(results: list[Message], request: ModelRequest) -> str:
    if _wants_json(request):
        return _sample_json(request)
    names = {call.id: call.name for m in request.messages for call in m.calls}
    told = [
        f"{m.name or names.get(m.call_id or '', 'the tool')} "
        f"{'failed' if m.is_error else 'answered'}: {m.text}"
        for m in results
    ]
    return f"{LABEL} " + "; ".join(told)


def _wanted_calls(
    said: str, offered: dict[str, ToolDefinition]
) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """The calls that a message asks for, and the names of tools that nobody offers.

    A name that is not offered counts only where the message clearly speaks of a tool; people say
    "call me tomorrow" too.
    """
    wanted: list[tuple[str, dict[str, Any]]] = []
    missing: list[str] = []
    for match in _CALL.finditer(said):
        name = match["name"]
        arguments = _json_at(said, match.start("json")) if match["json"] else {}
        if name in offered:
            wanted.append((name, arguments or {}))
        elif match["tool"] or match["json"] or match[0].strip() == said.strip(" .!?\n"):
            missing.append(name)
    return wanted, missing


def _json_at(text: str, start: int) -> dict[str, Any] | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _wants_json(request: ModelRequest) -> bool:
    wanted = request.options.response_format
    return wanted is not None and wanted.get("type") in ("json_object", "json_schema")


def _sample_json(request: ModelRequest) -> str:
    schema = (request.options.response_format or {}).get("schema")
    if not isinstance(schema, dict):
        return json.dumps({"note": f"{LABEL} no model is configured"})
    return json.dumps(_sample(schema, schema), ensure_ascii=False)


def _sample_object(tool: ToolDefinition) -> dict[str, Any]:
    value = _sample(tool.parameters, tool.parameters)
    return value if isinstance(value, dict) else {}


def _sample(schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Any:
    """The smallest value that fits a JSON Schema, as far as plain schemas go."""
    if depth > 20:
        return None
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for name in reference[2:].split("/"):
            target = target.get(name, {}) if isinstance(target, dict) else {}
        return _sample(target, root, depth + 1)
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    if schema.get("enum"):
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return _sample(schema[choice][0], root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        fields = schema.get("properties", {})
        required = schema.get("required", [])
        return {name: _sample(fields.get(name, {}), root, depth + 1) for name in required}
    if kind == "array":
        items = schema.get("items", {})
        return [_sample(items, root, depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind in ("number", "integer"):
        return schema.get("minimum", 0)
    return {"boolean": False, "null": None}.get(str(kind), LABEL)


def _seen(message: Message) -> str:
    return message.text + "".join(c.name + dump_arguments(c.arguments) for c in message.calls)


def _tokens(text: str) -> int:
    """An estimate: four characters make a token."""
    return -(-len(text) // 4)


def _usage(prompt: int, completion: int) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cost_usd=0.0)
