"""The seam to the model providers: one request, a stream of events, typed failures.

An adapter turns a neutral :class:`ModelRequest` into its provider's wire format and the
provider's stream into :data:`ProviderEvent` values. It does not retry, fall back or keep
history; it knows HTTP and its provider, nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

from ...personas.messages import Message, ReplayBlock, ToolCall, ToolDefinition, Usage
from ...personas.options import CompletionOptions


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call, in the project's own terms.

    Attributes:
        model: The provider's model id, without the provider prefix.
        messages: The prompt; system messages first, every tool call answered.
        tools: The tools offered; empty for none.
        options: Completion options; unset keys are not sent.
        user: Opaque id of the end user, or ``None``.
    """

    model: str
    messages: list[Message]
    tools: list[ToolDefinition] = field(default_factory=list)
    options: CompletionOptions = field(default_factory=CompletionOptions)
    user: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A sign that a tool call has begun to arrive; the finished calls come with ``Finished``."""

    index: int


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A running total of the request's usage; the last one counts."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Finished:
    """The provider's terminal event. A stream that ends without it has failed.

    Attributes:
        finish_reason: ``stop``, ``length``, ``tool_calls``, ``content_filter`` or ``refusal``.
        calls: Finished tool calls in the order of their index.
        text: The whole text where the provider sent no deltas, else ``None``.
        replay: Blocks to send back to this provider in later requests.
        response_model: The model that the provider says answered.
        message_id: The provider's id of the answer.
        service_tier: The tier that served it, where reported.
    """

    finish_reason: str
    calls: list[ToolCall] = field(default_factory=list)
    text: str | None = None
    replay: list[ReplayBlock] = field(default_factory=list)
    response_model: str | None = None
    message_id: str | None = None
    service_tier: str | None = None


ProviderEvent = TextDelta | ToolCallDelta | UsageReport | Finished


class Provider(Protocol):
    """A model provider. Users plug in their own by implementing this."""

    kind: str
    """Wire family: ``openai``, ``anthropic``, ``gemini`` or ``offline``. Replay blocks carry it."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model; yields events, the last one is :class:`Finished`.

        Raises:
            ProviderFailure: The call failed; see :mod:`.failures`.
        """
        ...

    def request_body(self, request: ModelRequest) -> dict[str, object]:
        """The JSON body that :meth:`stream` would send; pure, no network."""
        ...
