"""Texts that every database and every encoding can hold."""

from __future__ import annotations


def is_storable(text: str) -> bool:
    """Whether a text can be kept as it is: it has no NUL and no half of a surrogate pair."""
    return not any(sign == "\x00" or "\ud800" <= sign <= "\udfff" for sign in text)
