"""What the user wants answers to look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Verbosity = Literal["concise", "balanced", "detailed"]

_VERBOSITY: dict[str, Verbosity] = {
    "low": "concise",
    "brief": "concise",
    "concise": "concise",
    "short": "concise",
    "minimal": "concise",
    "medium": "balanced",
    "balanced": "balanced",
    "normal": "balanced",
    "default": "balanced",
    "moderate": "balanced",
    "high": "detailed",
    "verbose": "detailed",
    "detailed": "detailed",
    "comprehensive": "detailed",
    "thorough": "detailed",
}

_VERBOSITY_TEXT: dict[Verbosity, str] = {
    "concise": "The user prefers short answers: give the result and leave out what was not asked.",
    "balanced": "The user prefers answers of medium length: the result with the reasons it needs.",
    "detailed": "The user prefers thorough answers: explain the reasons, the limits and examples.",
}


def normalize_verbosity(value: Any) -> Verbosity | None:
    """The one of three lengths that the user's word means, or ``None`` for an unknown word."""
    return _VERBOSITY.get(value.strip().lower()) if isinstance(value, str) else None


def preferred_format(preferences: Mapping[str, Any]) -> str | None:
    """The answer format that the user prefers, or ``None``.

    ``preferredFormat``, ``responseFormat`` and ``format`` are looked at in this order and the first
    that is set decides, even if it is blank; without one, the words of ``preferredFormats`` are
    joined by ``or``.
    """
    for name in ("preferredFormat", "preferred_format", "responseFormat", "response_format"):
        if preferences.get(name) is not None:
            single = preferences[name]
            break
    else:
        single = preferences.get("format")
    if isinstance(single, str) and single.strip():
        return single.strip()
    listed = preferences.get("preferredFormats", preferences.get("preferred_formats"))
    if not isinstance(listed, list):
        return None
    words = [word.strip() for word in listed if isinstance(word, str) and word.strip()]
    return " or ".join(words) or None


def verbosity_text(preferences: Mapping[str, Any]) -> str | None:
    """The sentence of the prompt about the answer's length, or ``None``."""
    verbosity = normalize_verbosity(preferences.get("verbosity"))
    return None if verbosity is None else _VERBOSITY_TEXT[verbosity]


def format_text(preferences: Mapping[str, Any]) -> str | None:
    """The sentence of the prompt about the answer's format, or ``None``."""
    wanted = preferred_format(preferences)
    return None if wanted is None else f"The user prefers answers in this format: {wanted}."
