"""Erasing memories: the traces, what was made from them, and every text that shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, delete, func, literal, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ...memory.store import Erased, Find
from ...memory.traces import Scope
from ..fences import lock_session
from ..tables import sessions, turns
from .cluster_rows import forget_clusters
from .finding import matching, sessions_of
from .rows import load, move_versions
from .tables import applied, contexts, edges, traces, vectors

ERASED_TEXT = ""

FORGOTTEN = 2**31 - 1
"""Epoch of a turn that is never encoded again: no reset makes a later one."""


def erase(conn: Connection, wanted: Find, now: float) -> Erased:
    """Erase the traces that match, and keep their turns from being encoded."""
    # First, so that an encoding under way is waited for and its traces are found.
    _keep_from_encoding(conn, wanted, now)
    return erase_ids(conn, list(conn.execute(matching(select(traces.c.id), wanted)).scalars()))


def erase_ids(conn: Connection, ids: Sequence[str]) -> Erased:
    """Erase traces, what was derived from them, their vectors, links and shown texts."""
    derived = _derived(conn, ids)
    every = [*ids, *derived]
    gone = load(conn, every)
    move_versions(conn, {trace.scope for trace in gone.values()}, erased=True)
    forget_clusters(conn, gone.values())
    gone_vectors = gone_links = gone_traces = gone_contexts = 0
    for start in range(0, len(every), 200):
        part = every[start : start + 200]
        gone_contexts += _redact(conn, part)
        gone_vectors += conn.execute(delete(vectors).where(vectors.c.trace.in_(part))).rowcount
        gone_links += conn.execute(
            delete(edges).where(or_(edges.c.a.in_(part), edges.c.b.in_(part)))
        ).rowcount
    for start in range(0, len(every), 200):
        part = every[start : start + 200]
        gone_traces += conn.execute(delete(traces).where(traces.c.id.in_(part))).rowcount
    return Erased(
        traces=gone_traces - len(derived),
        derived=len(derived),
        vectors=gone_vectors,
        links=gone_links,
        contexts=gone_contexts,
    )


def _keep_from_encoding(conn: Connection, wanted: Find, now: float) -> None:
    """Mark the turns that the search names as encoded, for good.

    A search by what a trace is or says names no turns.
    """
    if any(
        part is not None
        for part in (wanted.ids, wanted.types, wanted.roles, wanted.text, wanted.persona_id)
    ):
        return
    named: list[ColumnElement[bool]] = []
    if wanted.session is not None:
        named.append(turns.c.session == wanted.session)
    if wanted.turn is not None:
        named.append(turns.c.turn == wanted.turn)
    if wanted.user_id is not None:
        named.append(turns.c.session.in_(sessions_of(wanted.user_id)))
    if wanted.scopes is not None:
        # Without a user id a session's key stands for the user.
        keys = [scope.id for scope in wanted.scopes if scope.kind in ("user", "thread")]
        users = [scope.id for scope in wanted.scopes if scope.kind == "user"]
        theirs = select(sessions.c.session).where(sessions.c.user_id.in_(users))
        named.append(or_(turns.c.session.in_(keys), turns.c.session.in_(theirs)))
    if not named:
        return
    # Encoding locks its session before it looks for the mark.
    touched = conn.execute(select(turns.c.session).where(*named).distinct()).scalars()
    for key in sorted(touched):
        lock_session(conn, key)
    marks = select(
        turns.c.session, turns.c.turn, literal("encode"), literal(FORGOTTEN), literal(now)
    ).where(*named)
    dialect = sqlite if conn.dialect.name == "sqlite" else postgresql
    columns = ["session", "turn", "what", "epoch", "at"]
    conn.execute(
        dialect.insert(applied)
        .from_select(columns, marks)
        .on_conflict_do_update(
            index_elements=[applied.c.session, applied.c.turn, applied.c.what],
            set_={"epoch": FORGOTTEN},
        )
    )


def _derived(conn: Connection, ids: Sequence[str]) -> list[str]:
    """Traces that a consolidation made from any of these."""
    wanted = set(ids)
    if not wanted:
        return []
    places = {Scope(trace.scope.kind, trace.scope.id) for trace in load(conn, list(ids)).values()}
    found: list[str] = []
    for scope in sorted(places):
        rows = conn.execute(
            select(traces.c.id, traces.c.mechanisms).where(
                traces.c.scope == scope.kind,
                traces.c.scope_id == scope.id,
                traces.c.role.in_(("schema", "gist")),
            )
        )
        for row in rows:
            if wanted & set(row.mechanisms.get("derived_from", [])) and row.id not in wanted:
                found.append(row.id)
    return found


def _redact(conn: Connection, ids: Sequence[str]) -> int:
    """Empty the text of every context that shows one of these traces."""
    count = 0
    shown = conn.execute(
        select(contexts.c.session, contexts.c.turn, contexts.c.data).where(
            or_(*(func.instr(contexts.c.data, id_) > 0 for id_ in ids))
            if conn.dialect.name == "sqlite"
            else or_(*(func.strpos(contexts.c.data, id_) > 0 for id_ in ids))
        )
    ).all()
    for row in shown:
        data = {**row.data, "text": ERASED_TEXT}
        kept = [item for item in row.data.get("recalled", []) if item.get("id") not in ids]
        data["recalled"] = kept
        data["erased"] = True
        conn.execute(
            update(contexts)
            .where(contexts.c.session == row.session, contexts.c.turn == row.turn)
            .values(data=json.loads(json.dumps(data)))
        )
        count += 1
    return count
