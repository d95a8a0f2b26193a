"""Sessions: opening, releasing and closing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, delete, func, select, update

from ...workflows.steps import At
from ...workflows.trace import TraceEntry
from .fences import (
    advance,
    counter_of,
    epoch_of,
    fence,
    lock_session,
    raise_counter,
    resolve_epoch,
)
from .minds import wordless
from .protocol import SessionRow
from .rows import add, write_trace
from .tables import branches, intentions, runs, sessions, trace, turns

_columns = select(
    sessions,
    select(func.max(turns.c.seq))
    .where(turns.c.session == sessions.c.session)
    .scalar_subquery()
    .label("seq"),
    select(func.max(turns.c.fence))
    .where(turns.c.session == sessions.c.session)
    .scalar_subquery()
    .label("newest_fence"),
    select(func.max(trace.c.seq))
    .where(trace.c.session == sessions.c.session)
    .scalar_subquery()
    .label("trace_seq"),
)


def find_session(conn: Connection, session_id: str) -> SessionRow | None:
    """The newest session of this id."""
    newest = (
        _columns.where(sessions.c.session_id == session_id)
        .order_by(sessions.c.created_at.desc(), sessions.c.session.desc())
        .limit(1)
    )
    return _row(conn, newest)


def get_session(conn: Connection, session: str) -> SessionRow | None:
    """The session of this key."""
    return _row(conn, _columns.where(sessions.c.session == session))


def _row(conn: Connection, query: Select[Any]) -> SessionRow | None:
    row = conn.execute(query).first()
    if row is None:
        return None
    head, head_branch, head_depth = _head(conn, row)
    newest = row.newest_fence or 0
    begun = counter_of(newest) if epoch_of(newest) == row.epoch else 0
    return SessionRow(
        session=row.session,
        session_id=row.session_id,
        user_id=row.user_id,
        org=row.org,
        persona_digest=row.persona_digest,
        toolset_digest=row.toolset_digest,
        config=row.config,
        state=row.state,
        counter=max(row.counter, begun),
        created_at=row.created_at,
        closed_at=row.closed_at,
        seq=row.seq or 0,
        trace_seq=row.trace_seq or 0,
        head=head,
        head_branch=head_branch,
        head_depth=head_depth,
    )


def _head(conn: Connection, session: Row[Any]) -> tuple[str | None, str, int]:
    """The turn to continue from; the newest done one when a reset abandoned the recorded one."""
    if session.head is None:
        return (None, "main", 0)
    standing = select(turns.c.turn, turns.c.branch, turns.c.depth).where(
        turns.c.session == session.session, turns.c.status == "done"
    )
    head = conn.execute(standing.where(turns.c.turn == session.head)).first()
    if head is not None:
        return head.turn, head.branch, head.depth
    newest = standing.where(turns.c.hidden == 0).order_by(turns.c.seq.desc()).limit(1)
    head = conn.execute(newest).first()
    return (head.turn, head.branch, head.depth) if head is not None else (None, "main", 0)


def open_session(conn: Connection, row: SessionRow, run: str) -> SessionRow:
    """Insert the session unless it exists, and register the run."""
    lock_session(conn, row.session)
    found = get_session(conn, row.session)
    dialect = conn.dialect.name
    if found is None:
        # Two first openings at once both come here; the key lets one of them in.
        conn.execute(add(dialect, sessions), _new_session(row))
        branch = {"session": row.session, "branch": "main", "fork_depth": 0}
        conn.execute(add(dialect, branches), branch)
    mine = and_(runs.c.session == sessions.c.session, runs.c.run == run)
    standing = select(sessions.c.epoch, runs.c.epoch.label("known")).select_from(
        sessions.outerjoin(runs, mine)
    )
    at = conn.execute(standing.where(sessions.c.session == row.session)).one()
    if at.known is None:
        values = {"session": row.session, "run": run, "epoch": at.epoch, "reset": False}
        conn.execute(add(dialect, runs), values)
    return found or _opened(conn, row.session)


def _opened(conn: Connection, session: str) -> SessionRow:
    row = get_session(conn, session)
    assert row is not None, session
    return row


def _new_session(row: SessionRow) -> dict[str, Any]:
    return {
        "session": row.session,
        "session_id": row.session_id,
        "user_id": row.user_id,
        "org": row.org,
        "persona_digest": row.persona_digest,
        "toolset_digest": row.toolset_digest,
        "persona_fence": 0,
        "config": row.config,
        "epoch": 0,
        "counter": row.counter,
        "head_fence": 0,
        "state": row.state,
        "state_fence": 0,
        "created_at": row.created_at,
        "closed_at": row.closed_at,
    }


def set_persona(conn: Connection, at: At, persona_digest: str, toolset_digest: str) -> None:
    """Record the persona and tools of later turns."""
    stamp = fence(resolve_epoch(conn, at), at.counter)
    conn.execute(
        update(sessions)
        .where(sessions.c.session == at.session, sessions.c.persona_fence <= stamp)
        .values(persona_digest=persona_digest, toolset_digest=toolset_digest, persona_fence=stamp)
    )
    advance(conn, at, stamp)


def save_session(
    conn: Connection,
    at: At,
    *,
    closed: bool,
    state: dict[str, Any] | None,
    entries: Sequence[TraceEntry],
) -> None:
    """Record a release or a close."""
    # Forgetting takes the session's lock too: it finds this state, or this finds what it forgot.
    lock_session(conn, at.session)
    stamp = fence(resolve_epoch(conn, at), at.counter)
    if state is not None and state.get("mind"):
        state = {**state, "mind": wordless(conn, at.session, state["mind"])}
    values: dict[str, Any] = {"state": state, "state_fence": stamp}
    if closed:
        values["closed_at"] = func.coalesce(sessions.c.closed_at, at.now)
        conn.execute(delete(intentions).where(intentions.c.session == at.session))
    conn.execute(
        update(sessions)
        .where(sessions.c.session == at.session, sessions.c.state_fence <= stamp)
        .values(**values)
    )
    write_trace(conn, at.session, entries, stamp)
    raise_counter(conn, at)
