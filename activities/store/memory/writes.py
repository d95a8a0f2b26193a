"""Writing memories: new traces, changes to those that stand, and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from ....personas.errors import StaleWriteError
from ....workflows.steps import At
from ...memory.store import Link, Marker, Tidied, Vector, Writing
from ...memory.traces import Scope, Trace
from ..fences import resolve_epoch
from .erasing import erase_ids
from .finding import consolidated
from .forgetting import buried
from .rows import (
    add_traces,
    add_weight,
    load,
    move_back,
    move_versions,
    parts,
    raise_weight,
    scopes_holding,
    upsert_vector,
)
from .tables import applied, consolidations, edges, traces, vectors


def write(conn: Connection, writing: Writing) -> bool:
    """Write in the transaction of ``conn``; ``False`` when the marker stands already.

    What was erased does not come back, and what a person corrected stays corrected: a reset makes
    turns into memories again.
    """
    if writing.marker is not None and not _mark(conn, writing.marker, writing.now):
        return False
    if writing.marker is not None and writing.replaces is not None:
        _replace(conn, writing.marker.at, *writing.replaces)
    standing = sorted({*writing.touched, *writing.vectors, *(t.id for t in writing.new)})
    wanted = {trace.scope for trace in writing.new} | scopes_holding(conn, standing)
    if writing.tidied is not None:
        wanted.add(writing.tidied.scope)
    # Locks the scopes: from here on nobody else writes to them.
    versions = move_versions(conn, wanted)
    if writing.tidied is not None and _is_tidied(conn, writing.tidied):
        move_back(conn, wanted)
        return False
    seen = load(conn, standing, lock=True)
    erased = buried(conn, [trace.id for trace in writing.new])
    new = {t.id: t for t in writing.new if t.id not in erased and not _is_corrected(seen, t.id)}
    if erased and not new and writing.marker is None and writing.change is None:
        move_back(conn, wanted)
        return False
    before = {id_: trace.content for id_, trace in seen.items()}
    made = {id_: seen[id_].content for id_ in seen if id_ not in new}
    made |= {id_: trace.content for id_, trace in new.items()}
    given = {
        id_: vector
        for id_, vector in writing.vectors.items()
        if id_ in made and writing.words.get(id_, made[id_]) == made[id_]
    }
    changed = {id_: trace for id_, trace in seen.items() if id_ in given and id_ not in new}
    if writing.change is not None:
        touched = {id_: seen[id_] for id_ in writing.touched if id_ in seen}
        changed |= {trace.id: trace for trace in writing.change(touched)}
    for trace in (*new.values(), *changed.values()):
        trace.version = versions[trace.scope]
        trace.updated_at = writing.now
    written = [*new.values(), *changed.values()]
    add_traces(conn, written)
    move_back(conn, wanted - {trace.scope for trace in written})
    reworded = [id_ for id_, trace in changed.items() if trace.content != before.get(id_)]
    _drop_vectors(conn, [*new, *reworded])
    _add_vectors(conn, given)
    add_links(conn, writing.links)
    add_links(conn, writing.at_least, grow=False)
    _remove(conn, writing.removed)
    if writing.tidied is not None:
        _keep_tidied(conn, writing.tidied, writing.now)
    return True


def add_links(conn: Connection, links: Sequence[Link], *, grow: bool = True) -> None:
    """Write links; each is kept once, whichever end is named first.

    Args:
        conn: In a transaction.
        links: Whose traces are gone are passed over.
        grow: Add to the weight that stands; otherwise the larger one stays.
    """
    ends = {id_ for link in links for id_ in (link.a, link.b)}
    alive = load_ids(conn, sorted(ends))
    rows = [
        {
            "a": min(link.a, link.b),
            "b": max(link.a, link.b),
            "kind": link.kind,
            "weight": min(1.0, link.weight),
        }
        for link in links
        if link.a != link.b and link.a in alive and link.b in alive
    ]
    rows.sort(key=lambda row: (row["a"], row["b"], row["kind"]))
    if rows:
        statement = add_weight if grow else raise_weight
        conn.execute(statement(conn.dialect.name), rows)


def load_ids(conn: Connection, ids: Sequence[str]) -> set[str]:
    """Which of these traces exist."""
    found: set[str] = set()
    for part in parts(ids):
        found |= set(conn.execute(select(traces.c.id).where(traces.c.id.in_(part))).scalars())
    return found


def keep_consolidated(
    conn: Connection, persona_id: str, scope: Scope, now: float, data: dict[str, Any]
) -> None:
    """Record that a scope was consolidated."""
    row = {"persona_id": persona_id, "scope": scope.kind, "scope_id": scope.id}
    mine = [getattr(consolidations.c, name) == value for name, value in row.items()]
    conn.execute(delete(consolidations).where(*mine))
    conn.execute(insert(consolidations), row | {"at": now, "data": data})


def _is_corrected(standing: Mapping[str, Trace], id_: str) -> bool:
    return id_ in standing and "corrected" in standing[id_].mechanisms


def _is_tidied(conn: Connection, tidied: Tidied) -> bool:
    known = consolidated(conn, tidied.persona_id, tidied.scope)
    return known is not None and known.get("run") == tidied.run


def _keep_tidied(conn: Connection, tidied: Tidied, now: float) -> None:
    standing = consolidated(conn, tidied.persona_id, tidied.scope)
    data = {**tidied.data(standing), "run": tidied.run}
    keep_consolidated(conn, tidied.persona_id, tidied.scope, now, data)


def _remove(conn: Connection, ids: Sequence[str]) -> None:
    """Delete traces that are no longer active, with their vectors and links."""
    for part in parts(ids):
        query = select(traces.c.id).where(traces.c.id.in_(part), ~traces.c.active)
        faded = list(conn.execute(query).scalars())
        conn.execute(delete(vectors).where(vectors.c.trace.in_(faded)))
        conn.execute(delete(edges).where(or_(edges.c.a.in_(faded), edges.c.b.in_(faded))))
        conn.execute(delete(traces).where(traces.c.id.in_(faded)))


def _mark(conn: Connection, marker: Marker, now: float) -> bool:
    at = marker.at
    try:
        epoch = resolve_epoch(conn, at)
    except StaleWriteError:
        return False
    mine = (
        (applied.c.session == at.session)
        & (applied.c.turn == at.turn)
        & (applied.c.what == marker.what)
    )
    known = conn.execute(select(applied.c.epoch).where(mine)).scalar()
    if known is None:
        row = {"session": at.session, "turn": at.turn, "what": marker.what}
        conn.execute(insert(applied), row | {"epoch": epoch, "at": now})
    elif known >= epoch:
        return False
    else:
        conn.execute(update(applied).where(mine).values(epoch=epoch, at=now))
    return True


def _replace(conn: Connection, at: At, branch: str, depth: int) -> None:
    """Erase what abandoned turns left at this place of the session or deeper."""
    gone = conn.execute(
        select(traces.c.id).where(
            traces.c.session == at.session,
            traces.c.branch == branch,
            traces.c.depth >= depth,
            traces.c.turn != at.turn,
        )
    ).scalars()
    ids = list(gone)
    if ids:
        erase_ids(conn, ids, None)


def _drop_vectors(conn: Connection, ids: Sequence[str]) -> None:
    for part in parts(ids):
        conn.execute(delete(vectors).where(vectors.c.trace.in_(part)))


def _add_vectors(conn: Connection, given: dict[str, Vector]) -> None:
    rows = [
        {"trace": id_, "model": v.model, "dim": v.dimension, "data": v.data}
        for id_, v in sorted(given.items())
    ]
    if rows:
        conn.execute(upsert_vector(conn.dialect.name), rows)
