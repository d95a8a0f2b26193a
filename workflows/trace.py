"""The reasoning trace: what the session decided, entry by entry."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from ..personas.messages import Told

TraceType = Literal[
    "LIFECYCLE",
    "INTERACTION_START",
    "INTERACTION_END",
    "STATE_CHANGE",
    "PROMPT_CONSTRUCTION_START",
    "PROMPT_CONSTRUCTION_DETAIL",
    "PROMPT_CONSTRUCTION_COMPLETE",
    "LLM_CALL_START",
    "LLM_CALL_COMPLETE",
    "LLM_RESPONSE_CHUNK",
    "LLM_USAGE",
    "TOOL_CALL_REQUESTED",
    "TOOL_PERMISSION_CHECK_START",
    "TOOL_PERMISSION_CHECK_RESULT",
    "TOOL_ARGUMENT_VALIDATION",
    "TOOL_EXECUTION_START",
    "TOOL_EXECUTION_RESULT",
    "RAG_QUERY_START",
    "RAG_QUERY_DETAIL",
    "RAG_QUERY_RESULT",
    "RAG_INGESTION_START",
    "RAG_INGESTION_DETAIL",
    "RAG_INGESTION_COMPLETE",
    "SELF_REFLECTION_TRIGGERED",
    "SELF_REFLECTION_START",
    "SELF_REFLECTION_DETAIL",
    "SELF_REFLECTION_COMPLETE",
    "SELF_REFLECTION_SKIPPED",
    "MEMORY_LIFECYCLE_EVENT_RECEIVED",
    "MEMORY_LIFECYCLE_NEGOTIATION_START",
    "MEMORY_LIFECYCLE_RESPONSE_SENT",
    "HEALTH_CHECK_REQUESTED",
    "HEALTH_CHECK_RESULT",
    "WARNING",
    "ERROR",
    "DEBUG",
]


class TraceEntry(Told):
    """One entry.

    Attributes:
        seq: Position in the session's trace, from 1.
        turn: The turn, or ``None``.
    """

    seq: int
    at: datetime
    type: TraceType
    message: str
    turn: str | None = None
    details: dict[str, Any] = Field(default_factory=dict)


class TraceTail(Told):
    """Answer of the query ``trace_tail``: the newest entries, oldest first."""

    entries: list[TraceEntry] = Field(default_factory=list)
    first_seq: int = 0
    last_seq: int = 0
