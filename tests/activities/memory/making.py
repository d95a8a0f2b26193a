"""Memories made for a test."""

from __future__ import annotations

from typing import Any

from gmi.activities.memory.traces import Affect, Scope, Trace

NOW = 1_700_000_000.0
USER = Scope("user", "ada")


def trace(trace_id: str = "a", **fields: Any) -> Trace:
    """A memory of Ada's, made and last used now unless the fields say otherwise."""
    fields.setdefault("content", "the cat sat")
    fields.setdefault("created_at", NOW)
    fields.setdefault("last_access", NOW)
    return Trace(trace_id, USER, **fields)


def affect(values: list[float]) -> Affect:
    """Valence, arousal and dominance."""
    return Affect(*values)


def everybody(level: float | None) -> dict[str, float] | None:
    """A character with all six traits at one level, or none."""
    if level is None:
        return None
    names = (
        "honesty",
        "emotionality",
        "extraversion",
        "agreeableness",
        "conscientiousness",
        "openness",
    )
    return dict.fromkeys(names, level)
