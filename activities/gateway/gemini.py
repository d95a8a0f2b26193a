"""Google's Gemini API. An answer is complete when a chunk with a ``finishReason`` has come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from ...personas.messages import ReplayBlock, ToolCall, Usage
from .answers import read_answer
from .calls import dump_arguments, generated_id
from .failures import ProviderFailure, classify, refusal
from .gemini_body import KIND, content_body
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

_BLOCKED = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
_FINISHED = {"STOP": "stop", "MAX_TOKENS": "length"}


class GeminiProvider:
    """Gemini, by an API key.

    Args:
        client: Sends the requests; the caller closes it.
        api_key: The key.
        base_url: URL up to and including the API's version.
        name: The provider's name, in errors and for its circuit.
        idle_timeout: Seconds without a byte after which a call counts as stalled.
    """

    kind = KIND

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        api_key: str | None = None,
        base_url: str = "https://generativelanguage.googleapis.com/v1beta",
        name: str = "gemini",
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        self.name = name
        self._client = client
        self._endpoint = Endpoint(
            provider=name,
            base_url=base_url.rstrip("/"),
            headers={"x-goog-api-key": api_key} if api_key else {},
            secrets=(api_key,) if api_key else (),
            idle_timeout=idle_timeout,
        )

    def __repr__(self) -> str:
        return f"GeminiProvider(name={self.name!r}, base_url={self._endpoint.base_url!r})"

    def request_body(self, request: ModelRequest) -> dict[str, object]:
        """The JSON body that :meth:`stream` sends; the model's name stands in the URL."""
        return dict(content_body(request, self.name))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model; see :class:`~.provider.Provider`.

        Raises:
            ProviderFailure: The call failed, or was refused before any output.
        """
        model = quote(request.model.removeprefix("models/"), safe="")
        return read_answer(
            self._client,
            self._endpoint,
            f"/models/{model}:streamGenerateContent?alt=sse",
            self.request_body(request),
            request,
            _Answer(self._endpoint, request),
        )


class _Answer:
    """The answer as far as it has been read; the end of its stream says that it is over."""

    over = False

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        self._endpoint = endpoint
        self._request = request
        self._calls: list[ToolCall] = []
        self._replay: list[ReplayBlock] = []
        self._length = 0
        self._model: str | None = None
        self._message_id: str | None = None
        self.finish_reason: str | None = None
        self.usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """The finishing chunk has come; a usage report may follow."""
        return self.finish_reason is not None

    def read(self, chunk: Mapping[str, Any]) -> list[ProviderEvent]:
        """The events of one chunk.

        Raises:
            ProviderFailure: The chunk is an error, or says that the prompt was blocked.
        """
        events: list[ProviderEvent] = []
        usage = section(chunk, "usageMetadata")
        if usage:
            self.usage = gemini_usage(usage)
            events.append(UsageReport(self.usage))
        if chunk.get("error"):
            raise classify(
                provider=self._endpoint.provider,
                body=chunk,
                in_band=True,
                secrets=self._endpoint.secrets,
                usage=self.usage,
            )
        blocked = section(chunk, "promptFeedback").get("blockReason")
        if blocked:
            raise refusal(self._endpoint.provider, str(blocked), usage=self.usage)
        self._model = string(chunk.get("modelVersion")) or self._model
        self._message_id = string(chunk.get("responseId")) or self._message_id
        candidates = chunk.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else {}
        parts = section(candidate, "content").get("parts")
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, Mapping) and not part.get("thought"):
                events.extend(self._read_part(part))
        reason = candidate.get("finishReason") if isinstance(candidate, Mapping) else None
        self.finish_reason = string(reason) or self.finish_reason
        return events

    def _read_part(self, part: Mapping[str, Any]) -> list[ProviderEvent]:
        signature = part.get("thoughtSignature")
        function = section(part, "functionCall")
        if function:
            return [ToolCallDelta(self._add_call(function, signature))]
        text = string(part.get("text"))
        start = self._length
        self._length += len(text)
        if signature:
            self._keep({"thoughtSignature": signature, "start": start, "end": self._length})
        return [TextDelta(text)] if text else []

    def _add_call(self, function: Mapping[str, Any], signature: object) -> int:
        index = len(self._calls)
        name = string(function.get("name"))
        given = function.get("args")
        arguments = dict(given) if isinstance(given, Mapping) else {}
        own_id = string(function.get("id"))
        call_id = own_id
        if not own_id or any(call.id == own_id for call in self._calls):
            call_id = generated_id(
                len(self._request.messages), index, name, dump_arguments(arguments)
            )
        malformed = None if given is None or isinstance(given, Mapping) else str(given)
        self._calls.append(
            ToolCall(id=call_id, name=name, arguments=arguments, malformed=malformed)
        )
        bound = {"call": call_id, "id": own_id, "thoughtSignature": signature}
        if own_id or signature:
            self._keep({key: value for key, value in bound.items() if value})
        return index

    def _keep(self, data: dict[str, Any]) -> None:
        self._replay.append(ReplayBlock(provider=KIND, model=self._request.model, data=data))

    def finished(self) -> Finished:
        """The terminal event.

        Raises:
            ProviderFailure: The answer is not complete, was refused before any output, or ended
                for a reason that is no answer.
        """
        given = self.finish_reason
        if given is None:
            raise ended_early(self._endpoint).with_usage(self.usage)
        has_output = self._length > 0 or bool(self._calls)
        if given in _BLOCKED:
            if not has_output:
                raise refusal(self._endpoint.provider, given, usage=self.usage)
            reason = "content_filter"
        elif given in _FINISHED:
            reason = "tool_calls" if self._calls and given == "STOP" else _FINISHED[given]
        else:
            raise ProviderFailure(
                f"{self._endpoint.provider}: the answer ended with {given}",
                kind="stream",
                provider=self._endpoint.provider,
                code=given,
                usage=self.usage,
            )
        return Finished(
            finish_reason=reason,
            calls=self._calls,
            replay=self._replay,
            response_model=self._model,
            message_id=self._message_id,
        )


def gemini_usage(usage: Mapping[str, Any]) -> Usage:
    """The neutral form of a ``usageMetadata`` object; thoughts count as output."""
    thoughts = count(usage.get("thoughtsTokenCount"))
    return Usage(
        prompt_tokens=count(usage.get("promptTokenCount"))
        + count(usage.get("toolUsePromptTokenCount")),
        completion_tokens=count(usage.get("candidatesTokenCount")) + thoughts,
        cache_read_tokens=count(usage.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
    )
