"""What each session means to do later, for one whose workflow is ended from outside."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select, update

from ...workflows.steps import At
from .fences import advance, fence, lock_session, resolve_epoch
from .tables import intentions


def keep_intentions(conn: Connection, at: At, data: dict[str, Any]) -> None:
    """Keep a session's intentions; older ones never replace newer ones."""
    lock_session(conn, at.session)
    stamp = fence(resolve_epoch(conn, at), at.counter)
    mine = intentions.c.session == at.session
    standing = conn.execute(select(intentions.c.fence).where(mine)).scalar()
    if standing is None:
        conn.execute(insert(intentions), {"session": at.session, "data": data, "fence": stamp})
    elif standing <= stamp:
        conn.execute(update(intentions).where(mine).values(data=data, fence=stamp))
    advance(conn, at, stamp)


def kept_intentions(conn: Connection, session: str) -> dict[str, Any] | None:
    """The intentions that were kept last; ``None`` where none ever were."""
    mine = intentions.c.session == session
    data: dict[str, Any] | None = conn.execute(select(intentions.c.data).where(mine)).scalar()
    return data
