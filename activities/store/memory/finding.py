"""Finding memories: what changed in a scope, lists and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Select,
    and_,
    false,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from ....workflows.memory import user_scope_id
from ...memory.store import Find, Link, ScopeChanges, Vector
from ...memory.traces import Scope, Trace
from ..tables import FreeText, sessions
from .rows import TRACE_COLUMNS, folded, parts, trace_of
from .tables import consolidations, edges, scopes, traces, vectors

S = TypeVar("S", bound=Select[*tuple[Any, ...]])


def versions(conn: Connection, wanted: Sequence[Scope]) -> dict[Scope, int]:
    """The version of each scope."""
    if not wanted:
        return {}
    pairs = [(scope.kind, scope.id) for scope in wanted]
    rows = conn.execute(
        select(scopes.c.scope, scopes.c.scope_id, scopes.c.version).where(
            tuple_(scopes.c.scope, scopes.c.scope_id).in_(pairs)
        )
    )
    found = {Scope(row.scope, row.scope_id): row.version for row in rows}
    return {scope: found.get(scope, 0) for scope in wanted}


def changes(conn: Connection, scope: Scope, since: int, model: str | None) -> ScopeChanges:
    """What changed in a scope after a version.

    The version is read first: what a writer adds meanwhile is seen again next time.
    """
    mine = and_(traces.c.scope == scope.kind, traces.c.scope_id == scope.id)
    row = conn.execute(
        select(scopes.c.version, scopes.c.erased_version).where(
            scopes.c.scope == scope.kind, scopes.c.scope_id == scope.id
        )
    ).first()
    if row is None:
        return ScopeChanges(0, since > 0, [], {})
    whole = since < row.erased_version
    new = mine if whole else and_(mine, traces.c.version > since)
    found = [
        trace_of(r) for r in conn.execute(select(*TRACE_COLUMNS).where(new).order_by(traces.c.id))
    ]
    held: dict[str, Vector] = {}
    if model is not None:
        query = (
            select(vectors)
            .join(traces, traces.c.id == vectors.c.trace)
            .where(new, vectors.c.model == model)
        )
        held = {v.trace: Vector(v.model, v.dim, v.data) for v in conn.execute(query)}
    return ScopeChanges(row.version, whole, found, held)


def links(conn: Connection, ids: Sequence[str]) -> list[Link]:
    """The links that touch any of these traces."""
    found: dict[tuple[str, str, str], Link] = {}
    for part in parts(ids):
        query = select(edges).where(or_(edges.c.a.in_(part), edges.c.b.in_(part)))
        for row in conn.execute(query):
            found[row.a, row.b, row.kind] = Link(row.a, row.b, row.kind, row.weight)
    return list(found.values())


def sessions_of(user_id: str, org: str) -> Select[tuple[str]]:
    """The keys of a user's sessions."""
    mine = and_(sessions.c.user_id == user_id, sessions.c.org == org)
    return select(sessions.c.session).where(mine)


def matching(query: S, wanted: Find) -> S:
    """The query, with the conditions of a search."""
    if wanted.scopes is not None:
        pairs = [(scope.kind, scope.id) for scope in wanted.scopes]
        inside = tuple_(traces.c.scope, traces.c.scope_id).in_(pairs) if pairs else false()
        query = query.where(inside)
    if wanted.user_id is not None:
        scope_id = user_scope_id(wanted.user_id, wanted.org)
        own = and_(traces.c.scope == "user", traces.c.scope_id == scope_id)
        theirs = sessions_of(wanted.user_id, wanted.org)
        query = query.where(or_(own, traces.c.session.in_(theirs)))
    if wanted.persona_id is not None:
        query = query.where(traces.c.persona_id == wanted.persona_id)
    if wanted.session is not None:
        query = query.where(traces.c.session == wanted.session)
    if wanted.turn is not None:
        about = and_(traces.c.turn == "", traces.c.source_id == wanted.turn)
        query = query.where(or_(traces.c.turn == wanted.turn, about))
    if wanted.ids is not None:
        query = query.where(traces.c.id.in_(list(wanted.ids)))
    if wanted.types is not None:
        query = query.where(traces.c.type.in_(list(wanted.types)))
    if wanted.roles is not None:
        query = query.where(traces.c.role.in_(list(wanted.roles)))
    if wanted.text is not None:
        # Without a pattern, since SQLite refuses long ones.
        words = literal(folded(wanted.text), FreeText)
        query = query.where(func.replace(traces.c.folded, words, "") != traces.c.folded)
    if not wanted.faded:
        query = query.where(traces.c.active)
    return query


def find(conn: Connection, wanted: Find) -> list[Trace]:
    """Traces, the newest first."""
    query = matching(select(*TRACE_COLUMNS), wanted)
    if wanted.before is not None:
        query = query.where(tuple_(traces.c.created_at, traces.c.id) < tuple_(*wanted.before))
    query = query.order_by(traces.c.created_at.desc(), traces.c.id.desc()).limit(wanted.limit)
    return [trace_of(row) for row in conn.execute(query)]


def count(conn: Connection, wanted: Find) -> dict[str, int]:
    """How many traces, vectors and links there are."""
    every = matching(
        select(traces.c.type, traces.c.scope, traces.c.active, func.count().label("n")), wanted
    )
    counted: dict[str, int] = {"traces": 0, "active": 0, "vectors": 0, "links": 0}
    for row in conn.execute(every.group_by(traces.c.type, traces.c.scope, traces.c.active)):
        counted["traces"] += row.n
        counted["active"] += row.n if row.active else 0
        for key in (f"type:{row.type}", f"scope:{row.scope}"):
            counted[key] = counted.get(key, 0) + row.n
    ids = matching(select(traces.c.id), wanted).subquery()
    inside = select(ids.c.id)
    counted["vectors"] = _number(conn, select(func.count()).where(vectors.c.trace.in_(inside)))
    counted["links"] = _number(conn, select(func.count()).where(edges.c.a.in_(inside)))
    return counted


def strengths(conn: Connection, wanted: Find) -> list[tuple[float, float, float]]:
    """Strength, stability and last access of each trace."""
    query = select(traces.c.strength, traces.c.stability, traces.c.last_access)
    rows = conn.execute(matching(query, wanted))
    return [(row.strength, row.stability, row.last_access) for row in rows]


def vectors_by_model(conn: Connection, wanted: Find) -> dict[str, int]:
    """How many vectors of each model the traces have."""
    ids = matching(select(traces.c.id), wanted).subquery()
    rows = conn.execute(
        select(vectors.c.model, func.count().label("n"))
        .where(vectors.c.trace.in_(select(ids.c.id)))
        .group_by(vectors.c.model)
        .order_by(vectors.c.model)
    )
    return {row.model: row.n for row in rows}


def scopes_of(conn: Connection, persona_id: str) -> list[Scope]:
    """The scopes in which a persona has traces, in order."""
    rows = conn.execute(
        select(traces.c.scope, traces.c.scope_id)
        .where(traces.c.persona_id == persona_id)
        .distinct()
        .order_by(traces.c.scope, traces.c.scope_id)
    )
    return [Scope(row.scope, row.scope_id) for row in rows]


def without_vector(
    conn: Connection, model: str, scope: Scope, limit: int, dimension: int | None = None
) -> list[Trace]:
    """Active traces that have no vector of this model, or none of its size."""
    has = select(vectors.c.trace).where(vectors.c.trace == traces.c.id, vectors.c.model == model)
    if dimension is not None:
        has = has.where(vectors.c.dim == dimension)
    query = (
        select(*TRACE_COLUMNS)
        .where(
            traces.c.scope == scope.kind,
            traces.c.scope_id == scope.id,
            traces.c.active,
            ~has.exists(),
        )
        .order_by(traces.c.created_at.desc(), traces.c.id.desc())
        .limit(limit)
    )
    return [trace_of(row) for row in conn.execute(query)]


def vectors_of(conn: Connection, ids: Sequence[str], model: str) -> dict[str, Vector]:
    """The vectors of one model that these traces have."""
    found: dict[str, Vector] = {}
    for part in parts(ids):
        query = select(vectors).where(vectors.c.trace.in_(part), vectors.c.model == model)
        found |= {v.trace: Vector(v.model, v.dim, v.data) for v in conn.execute(query)}
    return found


def consolidated(conn: Connection, persona_id: str, scope: Scope) -> dict[str, Any] | None:
    """What the last consolidation of a scope left."""
    row = conn.execute(
        select(consolidations.c.at, consolidations.c.data).where(
            consolidations.c.persona_id == persona_id,
            consolidations.c.scope == scope.kind,
            consolidations.c.scope_id == scope.id,
        )
    ).first()
    return None if row is None else {**row.data, "at": row.at}


def _number(conn: Connection, query: Select[Any]) -> int:
    return int(conn.execute(query).scalar_one())
