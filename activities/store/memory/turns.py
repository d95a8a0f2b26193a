"""A turn that ended, as memory needs it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from ....personas.messages import Message
from ....workflows.turns import FINAL_STATUSES
from ...memory.store import FinishedTurn
from ..tables import messages, turns
from .contexts import get_context


def finished_turn(conn: Connection, session: str, turn: str) -> FinishedTurn | None:
    """A turn that ended; ``None`` for one that is unknown or runs."""
    row = conn.execute(
        select(turns).where(turns.c.session == session, turns.c.turn == turn)
    ).first()
    if row is None or row.status not in FINAL_STATUSES:
        return None
    said, answered = words_of(conn, session, turn)
    before = ""
    if row.parent is not None:
        _, before = words_of(conn, session, row.parent)
    ended = row.ended_at or row.created_at
    output = row.output or {}
    perception = output.get("perception") or {}
    return FinishedTurn(
        event=output.get("event"),
        importance=float(perception.get("importance", 0.0)),
        session=session,
        turn=turn,
        status=row.status,
        branch=row.branch,
        depth=row.depth,
        said=said,
        answered=answered,
        ended_at=ended.timestamp(),
        context=get_context(conn, session, turn),
        before=before,
    )


def words_of(conn: Connection, session: str, turn: str) -> tuple[str, str]:
    """What the user and the assistant have said in a turn."""
    bodies: Sequence[str] = (
        conn.execute(
            select(messages.c.body)
            .where(
                messages.c.session == session,
                messages.c.turn == turn,
                messages.c.role.in_(("user", "assistant")),
            )
            .order_by(messages.c.step, messages.c.idx)
        )
        .scalars()
        .all()
    )
    found = [Message.model_validate_json(body) for body in bodies]
    said = "\n".join(m.text for m in found if m.role == "user" and m.text.strip())
    answered = "\n".join(m.text for m in found if m.role == "assistant" and m.text.strip())
    return said, answered
