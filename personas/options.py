"""Completion options: what a persona or a turn asks of a model call."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class CompletionOptions(BaseModel):
    """Options of a model call; a key that nobody sets is not sent, so the provider's default holds.

    Unknown keys are refused. Names are accepted in ``camelCase`` too.

    Attributes:
        temperature: Sampling temperature.
        max_tokens: Output limit in tokens.
        thinking: Provider-specific reasoning settings, for example ``{"budget_tokens": 2000}``.
        effort: Reasoning effort.
        cache: Whether to mark the prompt's prefix as cacheable where that is explicit.
        request_timeout: Seconds that one model call may take.
        custom_model_params: Sent as they are, beside everything else.
        response_format: The provider-neutral form ``{"type": "json_object"}`` or
            ``{"type": "json_schema", "name": …, "schema": …}``.
        tool_choice: ``auto``, ``none``, ``required`` or a tool's name; only sent with tools.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=lambda name: "".join(
            part if i == 0 else part.capitalize() for i, part in enumerate(name.split("_"))
        ),
    )

    temperature: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop_sequences: list[str] | None = None
    thinking: dict[str, Any] | None = None
    effort: Literal["minimal", "low", "medium", "high"] | None = None
    cache: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    service_tier: str | None = None
    request_timeout: float | None = Field(default=None, gt=0)
    custom_model_params: dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    tool_choice: str | None = None

    def merged(self, over: CompletionOptions | None) -> CompletionOptions:
        """These options with ``over``'s set keys in their place, key by key."""
        if over is None:
            return self
        return self.model_copy(update={name: value for name, value in over if value is not None})
