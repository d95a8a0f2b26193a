"""The clusters that consolidations keep of memories."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select, update

from ...memory.clusters import NAME
from ...memory.traces import Scope, Trace
from .tables import consolidations


def forget_clusters(conn: Connection, gone: Iterable[Trace]) -> None:
    """Drop the clusters that erased traces belonged to: their centres were made of them.

    What else belongs to such a cluster is grouped anew by the next consolidation.
    """
    lost: dict[Scope, set[str]] = {}
    for trace in gone:
        cluster = (trace.mechanisms.get(NAME) or {}).get("cluster")
        if cluster is not None:
            lost.setdefault(trace.scope, set()).add(cluster)
    for scope, ids in lost.items():
        here = (consolidations.c.scope == scope.kind) & (consolidations.c.scope_id == scope.id)
        for row in conn.execute(select(consolidations).where(here)).all():
            kept = [c for c in row.data.get("clusters", []) if c["id"] not in ids]
            conn.execute(
                update(consolidations)
                .where(here, consolidations.c.persona_id == row.persona_id)
                .values(data={**row.data, "clusters": kept})
            )
