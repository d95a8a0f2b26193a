"""What a session's workflow that was ended from outside leaves in the store."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, func, select

from ...personas.messages import Usage
from ...workflows.turns import FINAL_STATUSES
from .fences import epoch_of
from .intentions import kept_intentions
from .ledger import billed
from .memory.tables import applied
from .protocol import LeftBehind, LeftTurn, SessionRow
from .tables import minds, turns

MAX_TURNS = 64
"""Turns that may not be remembered yet; of older ones a live session keeps no record either."""

_its_mind = and_(minds.c.session == turns.c.session, minds.c.turn == turns.c.turn)


def left_behind(conn: Connection, row: SessionRow) -> LeftBehind:
    """The newest mind, turns that were never encoded, intentions, and what was billed."""
    meant = kept_intentions(conn, row.session)
    mind, hidden = _newest_mind(conn, row)
    by_model = billed(conn, row.session)
    return LeftBehind(
        mind=mind,
        turns=_unencoded(conn, row.session),
        intentions=meant,
        done=_done_of(conn, row.session, meant),
        hidden=hidden,
        usage=sum(by_model.values(), Usage()),
        usage_by_model=by_model,
        ended=_ended(conn, row.session),
    )


def _newest_mind(conn: Connection, row: SessionRow) -> tuple[dict[str, Any] | None, set[str]]:
    """The session's mind, and the forgotten turns whose words it may have."""
    if row.head is None:
        return None, set()
    done = and_(turns.c.session == row.session, turns.c.status == "done")
    left = select(minds.c.data, turns.c.hidden).select_from(turns.join(minds, _its_mind))
    here = and_(done, turns.c.branch == row.head_branch)
    on_path = left.where(here, turns.c.depth <= row.head_depth).order_by(
        turns.c.depth.desc(), turns.c.seq.desc()
    )
    found = conn.execute(on_path.limit(1)).first()
    if found is not None:
        return found.data, set()
    # A given history begins a path of its own, and the mind goes on as it was.
    began = select(func.min(turns.c.seq)).where(here).scalar_subquery()
    before = left.where(done, turns.c.seq < began).order_by(
        turns.c.seq.desc(), minds.c.fence.desc()
    )
    found = conn.execute(before.limit(1)).first()
    if found is None:
        return None, set()
    if not found.hidden:
        return found.data, set()
    # What was kept while the history was being replaced may have come after its words were taken.
    gone = select(turns.c.turn).where(turns.c.session == row.session, turns.c.hidden != 0)
    return found.data, set(conn.execute(gone).scalars())


def _unencoded(conn: Connection, session: str) -> list[LeftTurn]:
    """Done turns that were never encoded, the oldest first.

    Hidden ones too: a history that is replaced does not keep its turns from being remembered.
    """
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
        .select_from(turns.outerjoin(minds, _its_mind).outerjoin(applied, encoded))
        .where(turns.c.session == session, turns.c.status == "done", turns.c.kind != "import")
        .order_by(turns.c.seq.desc())
        .limit(MAX_TURNS)
    )
    left = [
        LeftTurn(found.turn, found.persona_digest, found.output or {}, found.mind)
        for found in conn.execute(last)
        # A turn that a reset made anew is encoded anew.
        if found.encoded is None or found.encoded < epoch_of(found.fence)
    ]
    return left[::-1]


def _done_of(conn: Connection, session: str, meant: dict[str, Any] | None) -> set[str]:
    """Which of the turns that intentions have started are done."""
    begun = [item["turn"] for item in (meant or {}).get("waiting", []) if item.get("turn")]
    if not begun:
        return set()
    done = select(turns.c.turn).where(
        turns.c.session == session, turns.c.status == "done", turns.c.turn.in_(begun)
    )
    return set(conn.execute(done).scalars())


def _ended(conn: Connection, session: str) -> int:
    """How many turns have ended; an import is none that a session counts."""
    ended = (
        select(func.count())
        .select_from(turns)
        .where(
            turns.c.session == session,
            turns.c.status.in_(sorted(FINAL_STATUSES)),
            turns.c.kind != "import",
        )
    )
    return conn.execute(ended).scalar_one()
