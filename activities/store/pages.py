"""Pages of a list: cursors, and the bound on their size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ...personas.errors import ValidationError
from ...personas.texts import is_storable

PAGE_BYTES = 256 * 1024
"""Bound on a page's items as JSON in UTF-8."""

PIECE_BYTES = 128 * 1024
"""Bytes of a blob, and characters of a text, in one page."""

_ENVELOPE = 1024
_KEPT = ("content", "preview", "message", "response_text")

Item = dict[str, Any]


def cursor(*parts: str | int) -> str:
    """The cursor that names the place after an item."""
    return json.dumps(parts, separators=(",", ":"))


def read_cursor(value: str | None, *kinds: type) -> list[Any] | None:
    """The parts of a cursor, or ``None`` for the first page.

    Raises:
        ValidationError: Not a cursor of this list.
    """
    if value is None:
        return None
    try:
        parts = json.loads(value)
    except (ValueError, RecursionError):
        parts = None
    if (
        not isinstance(parts, list)
        or [type(part) for part in parts] != list(kinds)
        or any(isinstance(part, int) and not 0 <= part < 1 << 62 for part in parts)
        or any(isinstance(part, str) and not is_storable(part) for part in parts)
    ):
        raise ValidationError(
            f"{value[:100]!r} is not a cursor of this list; pass the `next` of the page before, "
            "as it is"
        )
    return parts


def read_time(value: str) -> datetime:
    """The time in a cursor.

    Raises:
        ValidationError: Not a time.
    """
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise ValidationError(
            f"{value[:100]!r} is no time of a cursor; pass the `next` of the page before, as it is"
        ) from error


def fill(found: Iterable[tuple[str, Item]], limit: int) -> tuple[list[Item], str | None]:
    """The items of one page.

    Args:
        found: Cursor and item of each row, in order; one more than the limit tells that another
            page follows.
        limit: Items of a page.

    Returns:
        The items, and the next page's cursor or ``None``. An item that alone is over the bound
        is cut and has ``"truncated": true``.
    """
    items: list[Item] = []
    size = _ENVELOPE
    last: str | None = None
    for place, item in found:
        bytes_ = json_bytes(item)
        if bytes_ > PAGE_BYTES - _ENVELOPE:
            item = cut(item)
            bytes_ = json_bytes(item)
        if len(items) == limit or size + bytes_ > PAGE_BYTES:
            return items, last
        items.append(item)
        size += bytes_ + 1
        last = place
    return items, None


def json_bytes(value: Any) -> int:
    """Length of a value as JSON in UTF-8."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def cut(item: Mapping[str, Any]) -> Item:
    """An item that is over a page's bound, without what makes it large."""
    return {**_shorten(item), "truncated": True}


def _shorten(value: Mapping[str, Any]) -> Item:
    kept: Item = {}
    for key, part in value.items():
        if isinstance(part, str) and key in _KEPT:
            kept[key] = part[: PIECE_BYTES // 4]
        elif key in ("message", "output") and isinstance(part, Mapping):
            kept[key] = _shorten(part)
        elif json_bytes(part) <= 2048:
            kept[key] = part
    return kept
