"""Turns that are never made into memories again."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from .tables import applied

FORGOTTEN = 2**31 - 1
"""Epoch of such a turn's mark: no reset makes a later one."""


def has_forgotten(conn: Connection, session: str) -> bool:
    """Whether any turn of the session was forgotten as a whole."""
    query = select(applied.c.turn).where(
        applied.c.session == session, applied.c.what == "encode", applied.c.epoch == FORGOTTEN
    )
    return conn.execute(query.limit(1)).first() is not None


def forgotten_turns(conn: Connection, session: str, turns: Collection[str]) -> set[str]:
    """Which of these turns were forgotten as a whole."""
    query = select(applied.c.turn).where(
        applied.c.session == session,
        applied.c.turn.in_(sorted(turns)),
        applied.c.what == "encode",
        applied.c.epoch == FORGOTTEN,
    )
    return set(conn.execute(query).scalars())
