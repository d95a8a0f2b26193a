"""Anthropic's Messages API. An answer is complete when ``message_stop`` has come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx

from ...personas.messages import ReplayBlock, ToolCall, Usage
from .answers import read_answer
from .anthropic_body import KIND, LAYOUT, messages_body
from .calls import dump_arguments, finished_call, generated_id
from .failures import classify, refusal
from .http import IDLE_TIMEOUT, Endpoint, ended_early
from .provider import (
    Finished,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from .wire import count, section, string

API_VERSION = "2023-06-01"

_STOP_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}


class AnthropicProvider:
    """Anthropic, or a server that speaks its Messages API.

    Args:
        client: Sends the requests; the caller closes it.
        api_key: The key, or ``None`` for a server without one.
        base_url: URL without ``/v1``.
        name: The provider's name, in errors and for its circuit.
        idle_timeout: Seconds without a byte after which a call counts as stalled.
    """

    kind = KIND

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        api_key: str | None = None,
        base_url: str = "https://api.anthropic.com",
        name: str = "anthropic",
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        self.name = name
        self._client = client
        headers = {"anthropic-version": API_VERSION}
        if api_key:
            headers["x-api-key"] = api_key
        self._endpoint = Endpoint(
            provider=name,
            base_url=base_url.rstrip("/"),
            headers=headers,
            secrets=(api_key,) if api_key else (),
            idle_timeout=idle_timeout,
        )

    def __repr__(self) -> str:
        return f"AnthropicProvider(name={self.name!r}, base_url={self._endpoint.base_url!r})"

    def request_body(self, request: ModelRequest) -> dict[str, object]:
        """The JSON body that :meth:`stream` sends."""
        return dict(messages_body(request, self.name))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model; see :class:`~.provider.Provider`.

        Raises:
            ProviderFailure: The call failed, or was refused before any output.
        """
        return read_answer(
            self._client,
            self._endpoint,
            "/v1/messages",
            self.request_body(request),
            request,
            _Answer(self._endpoint, request),
        )


class _Answer:
    """The answer as far as it has been read."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        self._endpoint = endpoint
        self._request = request
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._streamed = False
        self._stop_reason: str | None = None
        self._model: str | None = None
        self._message_id: str | None = None
        self._tier: str | None = None
        self.over = False
        self.usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """The message has stopped."""
        return self.over

    def read(self, event: Mapping[str, Any]) -> list[ProviderEvent]:
        """The events of one wire event.

        Raises:
            ProviderFailure: The event is an error.
        """
        match event.get("type"):
            case "message_start":
                message = section(event, "message")
                self._message_id = string(message.get("id")) or None
                self._model = string(message.get("model")) or None
                return self._count(section(message, "usage"))
            case "content_block_start":
                return self._begin(count(event.get("index")), section(event, "content_block"))
            case "content_block_delta":
                return self._extend(count(event.get("index")), section(event, "delta"))
            case "message_delta":
                reason = section(event, "delta").get("stop_reason")
                self._stop_reason = string(reason) or self._stop_reason
                return self._count(section(event, "usage"))
            case "message_stop":
                self.over = True
            case "error":
                raise classify(
                    provider=self._endpoint.provider,
                    body=event,
                    in_band=True,
                    secrets=self._endpoint.secrets,
                    usage=self.usage,
                )
        return []

    def _begin(self, index: int, block: Mapping[str, Any]) -> list[ProviderEvent]:
        self._blocks[index] = dict(block)
        self._pieces[index] = ""
        if block.get("type") == "tool_use":
            return [ToolCallDelta(self._tool_uses().index(index))]
        return self._say(string(block.get("text"))) if block.get("type") == "text" else []

    def _extend(self, index: int, delta: Mapping[str, Any]) -> list[ProviderEvent]:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta.get("type"):
            case "text_delta":
                text = string(delta.get("text"))
                block["text"] = string(block.get("text")) + text
                return self._say(text)
            case "input_json_delta":
                piece = string(delta.get("partial_json"))
                self._pieces[index] = self._pieces.get(index, "") + piece
            case "thinking_delta":
                block["thinking"] = string(block.get("thinking")) + string(delta.get("thinking"))
            case "signature_delta":
                block["signature"] = string(block.get("signature")) + string(delta.get("signature"))
        return []

    def _say(self, text: str) -> list[ProviderEvent]:
        if not text:
            return []
        self._streamed = True
        return [TextDelta(text)]

    def _count(self, usage: Mapping[str, Any]) -> list[ProviderEvent]:
        self._tier = string(usage.get("service_tier")) or self._tier
        details = section(usage, "output_tokens_details")
        fresh = {**usage, "thinking_tokens": details.get("thinking_tokens")}
        numbers = {name: count(value) for name, value in fresh.items() if isinstance(value, int)}
        if not numbers:
            return []
        # Later reports are running totals and name only what has changed.
        self._counts.update(numbers)
        read = self._counts.get("cache_read_input_tokens", 0)
        written = self._counts.get("cache_creation_input_tokens", 0)
        self.usage = Usage(
            prompt_tokens=self._counts.get("input_tokens", 0) + read + written,
            completion_tokens=self._counts.get("output_tokens", 0),
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=self._counts.get("thinking_tokens", 0),
        )
        return [UsageReport(self.usage)]

    def _tool_uses(self) -> list[int]:
        return [i for i, block in self._blocks.items() if block.get("type") == "tool_use"]

    def _calls(self) -> list[ToolCall]:
        calls: list[ToolCall] = []
        for position, index in enumerate(self._tool_uses()):
            block = self._blocks[index]
            raw = self._pieces.get(index, "")
            given = block.get("input")
            if not raw and isinstance(given, dict) and given:
                raw = dump_arguments(given)
            name = string(block.get("name"))
            call_id = string(block.get("id")) or generated_id(
                len(self._request.messages), position, name, raw
            )
            calls.append(finished_call(call_id, name, raw))
        return calls

    def _replay(self) -> list[ReplayBlock]:
        order: list[str | int] = []
        blocks: list[dict[str, Any]] = []
        for block in self._blocks.values():
            match block.get("type"):
                case "thinking" | "redacted_thinking":
                    order.append("thinking")
                    blocks.append(block)
                case "tool_use":
                    order.append("tool_use")
                case "text":
                    order.append(len(string(block.get("text"))))
        ranks = [0 if e == "thinking" else 2 if e == "tool_use" else 1 for e in order]
        if blocks and (ranks != sorted(ranks) or ranks.count(1) > 1):
            blocks.append({"type": LAYOUT, "blocks": order})
        return [
            ReplayBlock(provider=KIND, model=self._request.model, data=block) for block in blocks
        ]

    def finished(self) -> Finished:
        """The terminal event.

        Raises:
            ProviderFailure: The answer is not complete, or was refused before any output.
        """
        if not self.over:
            raise ended_early(self._endpoint).with_usage(self.usage)
        reason = _STOP_REASONS.get(self._stop_reason or "", "stop")
        calls = self._calls()
        if reason == "refusal" and not self._streamed and not calls:
            raise refusal(self._endpoint.provider, reason, usage=self.usage)
        if calls and reason == "stop":
            reason = "tool_calls"
        return Finished(
            finish_reason=reason,
            calls=calls,
            replay=self._replay(),
            response_model=self._model,
            message_id=self._message_id,
            service_tier=self._tier,
        )
