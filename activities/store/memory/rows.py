"""Traces as rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar
from unicodedata import normalize

from sqlalchemy import Connection, Row, func, select, update

from ...memory.traces import Affect, Scope, Trace
from ..rows import Upsert, Values, insert_into
from .tables import edges, scopes, traces, vectors

T = TypeVar("T")

_PART = 500

PLAIN = (
    "id",
    "session",
    "turn",
    "branch",
    "depth",
    "role",
    "persona_id",
    "type",
    "source",
    "source_id",
    "confidence",
    "verifications",
    "verified_at",
    "contradicted_by",
    "policy",
    "content",
    "intensity",
    "mood",
    "strength",
    "stability",
    "importance",
    "retrievals",
    "accesses",
    "last_access",
    "interval",
    "next_at",
    "mechanisms",
    "data",
    "consolidated_at",
    "active",
    "created_at",
    "updated_at",
    "version",
)

TRACE_COLUMNS = [column for column in traces.columns if column.name != "folded"]
"""What a trace is read from."""


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in parts that one statement may name; databases bound its parameters."""
    for start in range(0, len(values), _PART):
        yield values[start : start + _PART]


def folded(text: str) -> str:
    """A text without its case, and with each accented letter written in one way."""
    return normalize("NFC", normalize("NFD", text).casefold())


def trace_of(row: Row[Any]) -> Trace:
    """The trace in a row of ``traces``."""
    found = row._mapping
    return Trace(
        scope=Scope(row.scope, row.scope_id),
        tags=tuple(row.tags),
        entities=tuple(row.entities),
        affect=Affect(row.v, row.a, row.d),
        **{name: found[name] for name in PLAIN},
    )


def values_of(trace: Trace) -> Values:
    """The row of a trace."""
    return {
        **{name: getattr(trace, name) for name in PLAIN},
        "scope": trace.scope.kind,
        "scope_id": trace.scope.id,
        "folded": folded(trace.content),
        "tags": list(trace.tags),
        "entities": list(trace.entities),
        "v": trace.affect.valence,
        "a": trace.affect.arousal,
        "d": trace.affect.dominance,
    }


@cache
def upsert_trace(dialect: str) -> Upsert:
    """Insert traces, or replace those of the same id."""
    statement = insert_into(dialect, traces)
    changed = {c.name: statement.excluded[c.name] for c in traces.columns if c.name != "id"}
    return statement.on_conflict_do_update(index_elements=[traces.c.id], set_=changed)


@cache
def upsert_vector(dialect: str) -> Upsert:
    """Insert vectors, or replace those of the same trace and model."""
    statement = insert_into(dialect, vectors)
    return statement.on_conflict_do_update(
        index_elements=[vectors.c.trace, vectors.c.model],
        set_={"dim": statement.excluded.dim, "data": statement.excluded.data},
    )


@cache
def add_weight(dialect: str) -> Upsert:
    """Insert links; the weight of one that stands grows, up to 1."""
    statement = insert_into(dialect, edges)
    grown = edges.c.weight + statement.excluded.weight
    least = func.min if dialect == "sqlite" else func.least
    return statement.on_conflict_do_update(
        index_elements=[edges.c.a, edges.c.b, edges.c.kind],
        set_={"weight": least(grown, 1.0)},
    )


@cache
def raise_weight(dialect: str) -> Upsert:
    """Insert links; of one that stands the larger weight stays."""
    statement = insert_into(dialect, edges)
    most = func.max if dialect == "sqlite" else func.greatest
    return statement.on_conflict_do_update(
        index_elements=[edges.c.a, edges.c.b, edges.c.kind],
        set_={"weight": most(edges.c.weight, statement.excluded.weight)},
    )


def move_versions(conn: Connection, wanted: set[Scope], erased: bool = False) -> dict[Scope, int]:
    """Move the version of each scope; a scope is locked until the transaction ends.

    In one order for everybody, so that two writers never wait for each other.
    """
    moved: dict[Scope, int] = {}
    for scope in sorted(wanted):
        statement = insert_into(conn.dialect.name, scopes)
        again = statement.on_conflict_do_update(
            index_elements=[scopes.c.scope, scopes.c.scope_id],
            set_={"version": scopes.c.version + 1},
        ).returning(scopes.c.version)
        row = {"scope": scope.kind, "scope_id": scope.id, "version": 1, "erased_version": 0}
        moved[scope] = conn.execute(again, row).scalar_one()
        if erased:
            conn.execute(
                update(scopes)
                .where(scopes.c.scope == scope.kind, scopes.c.scope_id == scope.id)
                .values(erased_version=moved[scope])
            )
    return moved


def move_back(conn: Connection, wanted: set[Scope]) -> None:
    """Undo :func:`move_versions` for scopes in which no trace changed, in its transaction."""
    for scope in sorted(wanted):
        conn.execute(
            update(scopes)
            .where(scopes.c.scope == scope.kind, scopes.c.scope_id == scope.id)
            .values(version=scopes.c.version - 1)
        )


def load(conn: Connection, ids: list[str], *, lock: bool = False) -> dict[str, Trace]:
    """Traces by id; those that are gone are left out."""
    found: dict[str, Trace] = {}
    for part in parts(ids):
        query = select(*TRACE_COLUMNS).where(traces.c.id.in_(part)).order_by(traces.c.id)
        if lock and conn.dialect.name != "sqlite":
            query = query.with_for_update()
        found |= {row.id: trace_of(row) for row in conn.execute(query)}
    return found


def lock_traces(conn: Connection, ids: Collection[str], *, sharing: bool = False) -> set[str]:
    """Keep traces as they are until the transaction ends; returns those that stand.

    Args:
        conn: In a transaction; on SQLite it has the whole file already.
        ids: Of the traces.
        sharing: Only let nobody erase them; others may hold them in the same way.
    """
    found: set[str] = set()
    # In one order for everybody, so that two never wait for each other.
    for part in parts(sorted(ids)):
        query = select(traces.c.id).where(traces.c.id.in_(part)).order_by(traces.c.id)
        if conn.dialect.name != "sqlite":
            query = query.with_for_update(read=sharing, key_share=sharing)
        found |= set(conn.execute(query).scalars())
    return found


def scopes_holding(conn: Connection, ids: Sequence[str]) -> set[Scope]:
    """The scopes in which these traces are."""
    found: set[Scope] = set()
    for part in parts(ids):
        query = select(traces.c.scope, traces.c.scope_id).where(traces.c.id.in_(part)).distinct()
        found |= {Scope(row.scope, row.scope_id) for row in conn.execute(query)}
    return found


def add_traces(conn: Connection, rows: list[Trace]) -> None:
    """Write traces as they are."""
    if rows:
        conn.execute(upsert_trace(conn.dialect.name), [values_of(trace) for trace in rows])
