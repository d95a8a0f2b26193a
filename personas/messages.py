"""What is said: the messages that a conversation is made of.

One neutral form serves the history, the prompt and every provider adapter. It stands in the
leftmost folder because the pure prompt code reads it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

Role = Literal["system", "user", "assistant", "tool", "summary", "error", "thought"]


class Wire(BaseModel):
    """Base of everything that is sent or stored: immutable, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Told(Wire):
    """Base of answers, and of what a session carries: unknown fields are passed over.

    During a deploy a newer release may have written it and an older one read it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class Tagged(Wire):
    """A piece of content that names its kind in every form that it is written in."""

    @model_serializer(mode="wrap")
    def _with_type(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Stored without its defaults a piece would lose the tag that it is read again by.
        return {"type": type(self).model_fields["type"].default, **write(self)}


class TextPart(Tagged):
    """A piece of text."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Tagged):
    """An image, by URL or by the digest of a stored blob; exactly one of the two.

    Attributes:
        url: An ``https:`` or ``data:`` URL.
        blob: Digest of a blob in the store.
        media_type: For example ``image/png``; needed with ``blob``.
        detail: How closely the model looks, where the provider has the choice.
    """

    type: Literal["image"] = "image"
    url: str | None = None
    blob: str | None = None
    media_type: str | None = None
    detail: Literal["auto", "low", "high"] = "auto"


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class ToolCall(Wire):
    """A call that the model asks for.

    Attributes:
        id: The provider's id, or a generated one where it gave none.
        name: The tool's name.
        arguments: The parsed arguments; empty when they were malformed.
        malformed: The raw text when it was not a JSON object; such a call is answered with an
            error result and never run.
    """

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    malformed: str | None = None


class ReplayBlock(Wire):
    """Something that only its own provider may be sent again, byte for byte.

    Anthropic's thinking blocks and Gemini's thought signatures are such blocks.

    Attributes:
        provider: The provider kind that made it (``anthropic``, ``gemini``).
        model: The model that made it.
        data: The block as the provider sent it.
    """

    provider: str
    model: str
    data: dict[str, Any]


class Message(Wire):
    """One message of a conversation.

    Attributes:
        role: Who speaks.
        content: A string, a list of parts, or ``None`` for an assistant message of calls alone.
        name: The speaker's or the tool's name.
        call_id: For role ``tool``: the call that this message answers.
        calls: For role ``assistant``: the calls it asks for.
        is_error: For role ``tool``: whether the result is an error.
        replay: Blocks that go back to their own provider only.
        partial: The message was cut by a stop or a failure; never sent to a provider as it is.
    """

    role: Role
    content: str | list[Part] | None = None
    name: str | None = None
    call_id: str | None = None
    calls: list[ToolCall] = Field(default_factory=list)
    is_error: bool = False
    replay: list[ReplayBlock] = Field(default_factory=list)
    partial: bool = False

    @property
    def text(self) -> str:
        """The message's text parts, joined."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))


class Usage(Told):
    """What a model call used; tokens, and USD where the price is known.

    Attributes:
        prompt_tokens: Input tokens, cached ones included.
        completion_tokens: Output tokens, reasoning included.
        total_tokens: Always ``prompt_tokens + completion_tokens``.
        cache_read_tokens: Input tokens read from the provider's cache.
        cache_write_tokens: Input tokens written to the provider's cache.
        reasoning_tokens: Output tokens spent on reasoning.
        cost_usd: USD, or ``None`` when the model's price is unknown.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [c for c in (self.cost_usd, other.cost_usd) if c is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost_usd=sum(costs) if costs else None,
        )


class ToolDefinition(Wire):
    """What a model is told of a tool.

    Attributes:
        name: Unique in a session; letters, digits, ``_`` and ``-``, at most 64.
        description: What it does and when to use it.
        parameters: JSON Schema (2020-12) of the arguments, an object.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
