"""Erasing memories: the traces, what was made from them, and every text that shows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, or_, select

from ...memory.store import Erased, Find
from ...memory.traces import DERIVED_ROLES, Scope
from .cluster_rows import drop_empty, forget_clusters
from .contexts import empty, showing
from .finding import matching
from .forgetting import bury, keep_from_encoding
from .rows import lock_traces, move_versions, parts, scopes_holding
from .tables import edges, traces, vectors

BATCH = 2000
"""Memories that one transaction erases; others write between two of them."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An erasure that has begun.

    Attributes:
        erased: What is erased already.
        ids: Of the traces that are left to erase, in order.
        minds: The turns that are forgotten as a whole, by session.
    """

    erased: Erased
    ids: list[str] = field(default_factory=list)
    minds: dict[str, list[str]] = field(default_factory=dict)


def begin(conn: Connection, wanted: Find, now: float) -> Begun:
    """Keep the turns that are meant from being encoded, and erase the traces if they are few."""
    # First, so that an encoding under way is waited for and its traces are found.
    minds = keep_from_encoding(conn, wanted, now)
    ids = sorted(conn.execute(matching(select(traces.c.id), wanted)).scalars())
    if len(ids) > BATCH:
        return Begun(Erased(0, 0, 0, 0, 0), ids, minds)
    return Begun(erase_ids(conn, ids, now), [], minds)


def erase_ids(
    conn: Connection, ids: Sequence[str], now: float | None, spared: Collection[str] = ()
) -> Erased:
    """Erase traces, what was derived from them, their vectors, links and shown texts.

    Args:
        conn: In a transaction.
        ids: Of the traces.
        now: Seconds since the epoch: whatever makes the traces anew, they do not come back.
            ``None`` lets them.
        spared: Traces that are derived, but whose turn comes later.
    """
    places = scopes_holding(conn, ids)
    # Nobody writes to them from here on: no schema is made, no cluster joined.
    move_versions(conn, places, erased=True)
    derived = _derived(conn, places, set(ids), spared)
    every = sorted({*ids, *derived})
    # Before the contexts are looked for: a turn that shows one now is waited for.
    lock_traces(conn, every)
    _forget(conn, every, now)
    gone_contexts = empty(conn, showing(conn, every), set(every))
    gone_vectors = gone_links = gone_traces = 0
    for part in parts(every):
        gone_vectors += conn.execute(delete(vectors).where(vectors.c.trace.in_(part))).rowcount
        gone_links += conn.execute(
            delete(edges).where(or_(edges.c.a.in_(part), edges.c.b.in_(part)))
        ).rowcount
    for part in parts(every):
        gone_traces += conn.execute(delete(traces).where(traces.c.id.in_(part))).rowcount
    drop_empty(conn, places)
    return Erased(
        traces=gone_traces - len(derived),
        derived=len(derived),
        vectors=gone_vectors,
        links=gone_links,
        contexts=gone_contexts,
    )


def _derived(
    conn: Connection, places: Collection[Scope], wanted: set[str], spared: Collection[str]
) -> list[str]:
    """Traces that a consolidation made from any of these."""
    found: list[str] = []
    for scope in sorted(places):
        rows = conn.execute(
            select(traces.c.id, traces.c.mechanisms).where(
                traces.c.scope == scope.kind,
                traces.c.scope_id == scope.id,
                traces.c.role.in_(DERIVED_ROLES),
            )
        )
        found += [
            row.id
            for row in rows
            if row.id not in wanted
            and row.id not in spared
            and not wanted.isdisjoint(row.mechanisms.get("derived_from", []))
        ]
    return found


def _forget(conn: Connection, ids: Sequence[str], now: float | None) -> None:
    """Drop the clusters of traces that go, and remember that they went."""
    lost: dict[Scope, set[str]] = {}
    given: list[str] = []
    for part in parts(ids):
        query = select(
            traces.c.id, traces.c.scope, traces.c.scope_id, traces.c.role, traces.c.mechanisms
        ).where(traces.c.id.in_(part))
        for row in conn.execute(query):
            cluster = (row.mechanisms.get("schema") or {}).get("cluster")
            if cluster is not None:
                lost.setdefault(Scope(row.scope, row.scope_id), set()).add(cluster)
            if row.role not in DERIVED_ROLES:
                given.append(row.id)
    forget_clusters(conn, lost)
    if now is not None:
        bury(conn, given, now)
