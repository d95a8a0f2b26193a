"""The chunks of a turn: their vocabulary, and the batch in which a worker sends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, model_validator

from ..personas.messages import Told, ToolCall, Usage
from .steps import HopFailure, PlannedCall

CHUNK_TOPIC = "chunks"
"""Topic of the session's stream that carries :class:`Chunk` values."""

CHUNK_SIGNAL = "chunks"
"""Signal by which a running step hands its chunks to the session."""

ChunkType = Literal[
    "text_delta",
    "tool_call_request",
    "tool_result",
    "usage_update",
    "step_finished",
    "step_restarted",
    "rag_sources_available",
    "error",
    "final_response_marker",
]


class Chunk(Told):
    """One event of a turn.

    Attributes:
        type: What happened.
        turn: The turn (the interaction id).
        step: Index of the model step within the turn, from 0.
        attempt: Attempt of the step, from 1; 0 for what the session itself says.
        seq: Position within the attempt, from 0.
        content: Depends on the type: the text of a ``text_delta``; the list of calls of a
            ``tool_call_request``; ``{"tool_call_id", "name", "result", "is_error"}`` of a
            ``tool_result``; usage of a ``usage_update``; the step's summary of a
            ``step_finished``; ``{"superseded_attempt", "reason"}`` of a ``step_restarted``;
            the message of an ``error``; the output of a ``final_response_marker``.
        is_final: The turn's last chunk says so; ``False`` on the marker of a pause.
        metadata: ``text_missing`` on a ``step_finished`` says that the step's text did not all
            arrive; the turn's text is then read from its record.
    """

    type: ChunkType
    turn: str
    step: int = 0
    attempt: int = 0
    seq: int = 0
    timestamp: datetime
    content: Any = None
    is_final: bool = False
    usage: Usage | None = None
    finish_reason: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    error_details: dict[str, Any] | None = None

    @property
    def chunk_id(self) -> str:
        """Stable id: the same chunk has it in every delivery."""
        return f"{self.turn}:{self.step}:{self.attempt}:{self.seq}:{self.type}"


class ChunkItem(Told):
    """A chunk as the worker sends it; the session adds turn, step, attempt, sequence and time."""

    type: Literal["text_delta", "tool_call_request", "usage_update"]
    content: Any = None
    usage: Usage | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_its_content(self) -> ChunkItem:
        # Anybody can send the signal that carries these.
        if self.type == "text_delta" and not isinstance(self.content, str):
            raise ValueError("a text_delta holds text")
        failed = self.metadata.get("failed_attempt")
        if failed is not None and not (
            isinstance(failed, int) and isinstance(self.metadata.get("hop"), int)
        ):
            raise ValueError("a failed attempt's bill names its attempt and its hop")
        return self


class ChunkBatch(Told):
    """Payload of the signal ``chunks``.

    Attributes:
        attempt: The activity attempt that sends; a lower one than the newest is dropped.
        first_seq: Sequence of the first item; a gap is dropped.
    """

    turn: str
    step: int
    attempt: int
    first_seq: int
    items: list[ChunkItem]


def usage_content(usage: Usage) -> dict[str, Any]:
    """Usage as the content of a ``usage_update``."""
    return {**usage.model_dump(), "total_tokens": usage.total_tokens}


def usage_item(usage: Usage) -> ChunkItem:
    """A step's running total, priced."""
    return ChunkItem(type="usage_update", content=usage_content(usage), usage=usage)


def calls_item(calls: Sequence[ToolCall | PlannedCall]) -> ChunkItem:
    """The calls that a step asks for, which the session answers or has answered."""
    return ChunkItem(
        type="tool_call_request",
        content=[{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls],
        metadata={"execution_mode": "internal", "requires_external_tool_result": False},
    )


def bill_item(failure: HopFailure) -> ChunkItem | None:
    """What a failed attempt was billed, or ``None`` when it cost nothing."""
    if failure.usage is None:
        return None
    return ChunkItem(
        type="usage_update",
        content=usage_content(failure.usage),
        usage=failure.usage,
        metadata={
            "attempt_failed": True,
            "failed_attempt": failure.attempt,
            "hop": failure.hop,
            "provider_id": failure.provider,
            "model_id": failure.model,
        },
    )
