"""What is larger than a page, in pieces that follow each other."""

from __future__ import annotations

import base64
from typing import Any

from sqlalchemy import Connection, Row, select

from ...personas.errors import NotFoundError, ValidationError
from ...personas.messages import Message
from ...workflows.pages import Page, Read
from .blobs import blob_piece
from .pages import PIECE_BYTES, Item, cursor, read_cursor
from .tables import messages

# Four bytes a character at most, twice as many when escaped.
_PIECE_CHARACTERS = PIECE_BYTES // 4


def text_page(conn: Connection, request: Read, turn: Row[Any]) -> Page:
    """A piece of what the assistant said in a turn."""
    said = (
        select(messages.c.body)
        .where(
            messages.c.session == turn.session,
            messages.c.turn == turn.turn,
            messages.c.role == "assistant",
        )
        .order_by(messages.c.step, messages.c.idx)
    )
    bodies = conn.execute(said).scalars()
    text = "".join(Message.model_validate_json(body).text for body in bodies)
    return _piece(request, {"turn": turn.turn}, text, "text")


def message_page(conn: Connection, request: Read, turn: Row[Any]) -> Page:
    """A piece of a message's JSON.

    Raises:
        ValidationError: The request names no place in the turn.
        NotFoundError: The turn has no message there.
    """
    if request.step is None or request.index is None:
        raise ValidationError("a message is read by its place; set `turn`, `step` and `index`")
    query = select(messages.c.body, messages.c.bytes).where(
        messages.c.session == turn.session,
        messages.c.turn == turn.turn,
        messages.c.step == request.step,
        messages.c.idx == request.index,
    )
    row = conn.execute(query).first()
    if row is None:
        raise NotFoundError(
            f"turn {turn.turn} has no message at step {request.step}, index {request.index}; "
            "the read `messages` lists those that it has",
            details={"turn": turn.turn, "step": request.step, "index": request.index},
        )
    place = {
        "turn": turn.turn,
        "step": request.step,
        "index": request.index,
        "bytes": row.bytes,
    }
    return _piece(request, place, row.body, "json")


def blob_page(conn: Connection, request: Read) -> Page:
    """A piece of a kept value, in base64.

    Raises:
        ValidationError: The request names no digest.
    """
    if not request.digest:
        raise ValidationError("a blob is read by its digest; set `digest`")
    place = read_cursor(request.after, int)
    offset = place[0] if place else 0
    kind, size, piece = blob_piece(conn, request.digest, offset, PIECE_BYTES)
    end = offset + len(piece)
    item = {
        "digest": request.digest,
        "kind": kind,
        "bytes": size,
        "offset": offset,
        "data": base64.b64encode(piece).decode(),
    }
    return Page(items=[item], next=cursor(end) if end < size else None)


def _piece(request: Read, item: Item, text: str, name: str) -> Page:
    """The next piece of a text, as ``item[name]``."""
    place = read_cursor(request.after, int)
    offset = place[0] if place else 0
    piece = text[offset : offset + _PIECE_CHARACTERS]
    end = offset + len(piece)
    item = {**item, "offset": offset, "characters": len(text), name: piece}
    return Page(items=[item], next=cursor(end) if end < len(text) else None)
