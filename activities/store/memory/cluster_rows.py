"""The clusters that consolidations keep of memories."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import ColumnElement, Connection, delete, exists, select, update

from ...memory.traces import Scope
from .tables import consolidations, traces


def forget_clusters(conn: Connection, lost: Mapping[Scope, Collection[str]]) -> None:
    """Drop clusters of erased traces, by scope: their centres were made of them.

    What else belongs to such a cluster is grouped anew by the next consolidation.
    """
    for scope, ids in lost.items():
        here = _in(scope)
        for row in conn.execute(select(consolidations).where(here)).all():
            kept = [c for c in row.data.get("clusters", []) if c["id"] not in ids]
            conn.execute(
                update(consolidations)
                .where(here, consolidations.c.persona_id == row.persona_id)
                .values(data={**row.data, "clusters": kept})
            )


def drop_empty(conn: Connection, scopes: Collection[Scope]) -> None:
    """Drop what consolidations kept of scopes in which a persona has no trace left.

    A centre outlives the traces that were pruned and deleted long ago; not the last of them.
    """
    left = exists().where(
        traces.c.persona_id == consolidations.c.persona_id,
        traces.c.scope == consolidations.c.scope,
        traces.c.scope_id == consolidations.c.scope_id,
    )
    for scope in sorted(scopes):
        conn.execute(delete(consolidations).where(_in(scope), ~left))


def _in(scope: Scope) -> ColumnElement[bool]:
    return (consolidations.c.scope == scope.kind) & (consolidations.c.scope_id == scope.id)
