"""OpenAI's Chat Completions, and the many servers that speak the same format.

An answer is complete when a chunk with a ``finish_reason`` has come. What happens to the
connection after that costs nothing but the usage report; a stream that ends before it is a failed
attempt, whether or not ``[DONE]`` was sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx

from ...personas.messages import Usage
from .answers import read_answer
from .calls import CallAssembler, dump_arguments
from .failures import ProviderFailure, classify, refusal
from .http import IDLE_TIMEOUT, Endpoint, ended_early
from .openai_body import OPENAI, Dialect, chat_body
from .provider import (
    Finished,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from .wire import count, section, string

_FINISH_REASONS = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}


class OpenAIProvider:
    """A server that speaks the Chat Completions format.

    Args:
        client: Sends the requests; the caller closes it.
        api_key: The key, or ``None`` for a server without one.
        base_url: URL up to and including ``/v1``.
        name: The provider's name, in errors and for its circuit.
        dialect: How the server differs from the plainest form of the format.
        idle_timeout: Seconds without a byte after which a call counts as stalled.
    """

    kind = "openai"

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        api_key: str | None = None,
        base_url: str = "https://api.openai.com/v1",
        name: str = "openai",
        dialect: Dialect = OPENAI,
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        self.name = name
        self._client = client
        self._dialect = dialect
        self._endpoint = Endpoint(
            provider=name,
            base_url=base_url.rstrip("/"),
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            secrets=(api_key,) if api_key else (),
            idle_timeout=idle_timeout,
        )

    def __repr__(self) -> str:
        return f"OpenAIProvider(name={self.name!r}, base_url={self._endpoint.base_url!r})"

    def request_body(self, request: ModelRequest) -> dict[str, object]:
        """The JSON body that :meth:`stream` sends."""
        return dict(chat_body(request, self._dialect, self.name))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model; see :class:`~.provider.Provider`.

        Raises:
            ProviderFailure: The call failed, or was refused before any output.
        """
        return read_answer(
            self._client,
            self._endpoint,
            "/chat/completions",
            self.request_body(request),
            request,
            _Answer(self._endpoint, len(request.messages)),
        )


class _Answer:
    """The answer as far as it has been read; the end of its stream says that it is over."""

    over = False

    def __init__(self, endpoint: Endpoint, turn_mark: int) -> None:
        self._endpoint = endpoint
        self._calls = CallAssembler(turn_mark)
        self._streamed = False
        self._whole_text: str | None = None
        self._refusal = ""
        self._model: str | None = None
        self._message_id: str | None = None
        self._tier: str | None = None
        self.finish_reason: str | None = None
        self.usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """The finishing chunk has come; a usage report may follow."""
        return self.finish_reason is not None

    def read(self, chunk: Mapping[str, Any]) -> list[ProviderEvent]:
        """The events of one chunk.

        Raises:
            ProviderFailure: The chunk is an error.
        """
        events: list[ProviderEvent] = []
        usage = section(chunk, "usage") or section(section(chunk, "x_groq"), "usage")
        if usage:
            self.usage = chat_usage(usage)
            events.append(UsageReport(self.usage))
        if chunk.get("error"):
            raise self._in_band(chunk)
        self._message_id = self._message_id or string(chunk.get("id")) or None
        self._model = self._model or string(chunk.get("model")) or None
        self._tier = string(chunk.get("service_tier")) or self._tier
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, Mapping) and not choice.get("index"):
                events.extend(self._read_choice(choice))
        return events

    def _read_choice(self, choice: Mapping[str, Any]) -> list[ProviderEvent]:
        events: list[ProviderEvent] = []
        delta = section(choice, "delta")
        text = string(delta.get("content"))
        if text:
            self._streamed = True
            events.append(TextDelta(text))
        whole = section(choice, "message")
        if whole and not delta:
            delta = whole
            self._whole_text = string(whole.get("content")) or None
        self._refusal += string(delta.get("refusal"))
        calls = delta.get("tool_calls")
        for piece in calls if isinstance(calls, list) else []:
            begun = self._add_call(piece)
            if begun is not None:
                events.append(ToolCallDelta(begun))
        if choice.get("error"):
            raise self._in_band(choice)
        reason = choice.get("finish_reason")
        if reason == "error":
            raise self._in_band({"error": {"message": "the answer ended with an error"}})
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        return events

    def _add_call(self, piece: object) -> int | None:
        if not isinstance(piece, Mapping):
            return None
        index = piece.get("index")
        function = section(piece, "function")
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = dump_arguments(arguments)
        return self._calls.add(
            index if isinstance(index, int) else None,
            string(piece.get("id")) or None,
            string(function.get("name")) or None,
            string(arguments),
        )

    def _in_band(self, chunk: Mapping[str, Any]) -> ProviderFailure:
        return classify(
            provider=self._endpoint.provider,
            body=chunk,
            in_band=True,
            secrets=self._endpoint.secrets,
            usage=self.usage,
        )

    def finished(self) -> Finished:
        """The terminal event.

        Raises:
            ProviderFailure: The answer is not complete, or was refused before any output.
        """
        if self.finish_reason is None:
            raise ended_early(self._endpoint).with_usage(self.usage)
        reason = _FINISH_REASONS.get(self.finish_reason, "stop")
        if self._refusal:
            reason = "refusal"
        has_output = self._streamed or bool(self._whole_text) or len(self._calls) > 0
        if reason in ("refusal", "content_filter") and not has_output:
            raise refusal(self._endpoint.provider, reason, usage=self.usage, text=self._refusal)
        calls = self._calls.finish()
        # Servers differ in the reason they give beside calls; the calls themselves do not lie.
        if calls and reason == "stop":
            reason = "tool_calls"
        elif reason == "tool_calls" and not calls:
            reason = "stop"
        return Finished(
            finish_reason=reason,
            calls=calls,
            text=None if self._streamed else self._whole_text,
            response_model=self._model,
            message_id=self._message_id,
            service_tier=self._tier,
        )


def chat_usage(usage: Mapping[str, Any]) -> Usage:
    """The neutral form of a Chat Completions usage report."""
    prompt = count(usage.get("prompt_tokens"))
    completion = count(usage.get("completion_tokens"))
    read = section(usage, "prompt_tokens_details")
    reasoning = count(section(usage, "completion_tokens_details").get("reasoning_tokens"))
    # xAI counts reasoning beside the completion, everybody else inside it.
    if reasoning and count(usage.get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning
    cost = usage.get("cost")
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cache_read_tokens=count(read.get("cached_tokens"))
        or count(usage.get("prompt_cache_hit_tokens")),
        cache_write_tokens=count(read.get("cache_write_tokens")),
        reasoning_tokens=reasoning,
        cost_usd=float(cost) if isinstance(cost, int | float) and cost >= 0 else None,
    )
