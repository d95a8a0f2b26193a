"""How much of its reasoning a session keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .schema import Persona

DEFAULT_MAX_ENTRIES = 500
DEFAULT_MAX_MESSAGE_LENGTH = 1_000
CEILING_ENTRIES = 10_000
CEILING_MESSAGE_LENGTH = 100_000


@dataclass(frozen=True, slots=True)
class TraceLimits:
    """Limits of a reasoning trace.

    Attributes:
        max_entries: Entries that are kept; the oldest go first.
        max_message_length: Characters of an entry's message.
        warning: What was wrong with the persona's limits, or ``None``.
    """

    max_entries: int
    max_message_length: int
    warning: str | None = None


def trace_limits(
    persona: Persona,
    *,
    default_max_entries: int = DEFAULT_MAX_ENTRIES,
    default_max_message_length: int = DEFAULT_MAX_MESSAGE_LENGTH,
) -> TraceLimits:
    """The persona's trace limits, with the defaults where it sets none.

    A value that is not a positive whole number is ignored and one above the ceiling (10,000
    entries, 100,000 characters) is lowered to it; one warning reports both.
    """
    config = persona.reasoning_trace_config or {}
    problems: list[str] = []

    def limit(camel: str, snake: str, default: int, ceiling: int) -> int:
        value: Any = config.get(camel, config.get(snake))
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            problems.append(f"{camel} {value!r} is not a positive whole number, {default} is used")
            return default
        if value > ceiling:
            problems.append(f"{camel} {value} is above {ceiling}, which is used")
            return ceiling
        return value

    entries = limit("maxEntries", "max_entries", default_max_entries, CEILING_ENTRIES)
    length = limit(
        "maxMessageLength",
        "max_message_length",
        default_max_message_length,
        CEILING_MESSAGE_LENGTH,
    )
    warning = "reasoningTraceConfig: " + "; ".join(problems) if problems else None
    return TraceLimits(entries, length, warning)
