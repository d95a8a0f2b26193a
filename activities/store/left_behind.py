"""What a session's workflow that was ended from outside leaves in the store."""

from __future__ import annotations

from sqlalchemy import Connection, and_, select

from .fences import epoch_of
from .intentions import kept_intentions
from .memory.tables import applied
from .protocol import LeftBehind, LeftTurn, SessionRow
from .tables import minds, turns

MAX_TURNS = 64
"""Turns that may not be remembered yet; of older ones a live session keeps no record either."""


def left_behind(conn: Connection, row: SessionRow) -> LeftBehind:
    """The newest mind on the path to the head, turns that were never encoded, and intentions."""
    meant = kept_intentions(conn, row.session)
    if row.head is None:
        return LeftBehind(intentions=meant)
    its_mind = and_(minds.c.session == turns.c.session, minds.c.turn == turns.c.turn)
    done = and_(turns.c.session == row.session, turns.c.status == "done", turns.c.hidden == 0)
    newest = (
        select(minds.c.data)
        .select_from(turns.join(minds, its_mind))
        .where(done, turns.c.branch == row.head_branch, turns.c.depth <= row.head_depth)
        .order_by(turns.c.depth.desc(), turns.c.seq.desc())
        .limit(1)
    )
    encoded = and_(
        applied.c.session == turns.c.session,
        applied.c.turn == turns.c.turn,
        applied.c.what == "encode",
    )
    last = (
        select(
            turns.c.turn,
            turns.c.persona_digest,
            turns.c.fence,
            turns.c.output,
            minds.c.data.label("mind"),
            applied.c.epoch.label("encoded"),
        )
        .select_from(turns.outerjoin(minds, its_mind).outerjoin(applied, encoded))
        .where(done, turns.c.kind != "import")
        .order_by(turns.c.seq.desc())
        .limit(MAX_TURNS)
    )
    left = [
        LeftTurn(found.turn, found.persona_digest, found.output or {}, found.mind)
        for found in conn.execute(last)
        # A turn that a reset made anew is encoded anew.
        if found.encoded is None or found.encoded < epoch_of(found.fence)
    ]
    begun = [item["turn"] for item in (meant or {}).get("waiting", []) if item.get("turn")]
    ended = select(turns.c.turn).where(done, turns.c.turn.in_(begun))
    return LeftBehind(
        conn.execute(newest).scalar(),
        left[::-1],
        meant,
        set(conn.execute(ended).scalars()) if begun else (),
    )
