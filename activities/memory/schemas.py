"""Memories of what other memories have in common."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .clusters import MIN_MEMBERS, NAME, Cluster
from .links import between
from .store import Link
from .traces import HOUR, Affect, Scope, Trace

ROLE = "schema"
STRENGTH = 0.7
STABILITY = 2 * HOUR
GROWN = 2
"""A group is put into words again when it has grown to so many times its size."""

MEMBER_WEIGHT = 0.5
MAX_ENTITIES = 8


def wanting_words(clusters: Iterable[Cluster]) -> list[Cluster]:
    """The clusters that no model has put into words at their present size, the largest first."""
    found = [c for c in clusters if c.members >= max(MIN_MEMBERS, GROWN * c.worded)]
    return sorted(found, key=lambda cluster: (-cluster.members, cluster.id))


def members_of(
    cluster: str, traces: Iterable[Trace], joined: Mapping[str, str], most: int
) -> list[Trace]:
    """The newest members of a cluster that a schema may be made of; none when there are too few.

    What a single session said on several of its branches is left alone: a turn on one of them
    must not learn what was said on another. A schema of several sessions generalises over them.
    """
    inside = [
        trace
        for trace in traces
        if trace.active and trace.role != ROLE and cluster_of(trace, joined) == cluster
    ]
    if len(inside) < MIN_MEMBERS or (
        len({trace.session for trace in inside}) == 1
        and len({trace.branch for trace in inside}) > 1
    ):
        return []
    return sorted(inside, key=lambda trace: (-trace.created_at, trace.id))[:most]


def cluster_of(trace: Trace, joined: Mapping[str, str]) -> str | None:
    """The cluster that a trace joins, or belongs to already."""
    own = (trace.mechanisms.get(NAME) or {}).get("cluster")
    found: str | None = joined.get(trace.id, own)
    return found


def schema_trace(
    cluster: str,
    members: Sequence[Trace],
    text: str,
    *,
    persona_id: str,
    scope: Scope,
    now: float,
    standing: Trace | None = None,
) -> Trace:
    """The memory of what the members have in common; it fades like any other.

    Args:
        cluster: Id of their cluster.
        members: The memories.
        text: What they have in common.
        persona_id: Whose memories they are.
        scope: Where they are.
        now: Seconds since the epoch.
        standing: The schema that the cluster has; it gets the new text.
    """
    noted = {"derived_from": [trace.id for trace in members], NAME: {"cluster": cluster}}
    names = Counter(name for trace in members for name in trace.entities)
    entities = tuple(name for name, count in names.most_common(MAX_ENTITIES) if count > 1)
    if standing is not None:
        known = {**standing.mechanisms, **noted}
        return replace(standing, content=text, entities=entities, mechanisms=known, active=True)
    count = len(members)
    sessions = {trace.session for trace in members}
    alone = members[0] if len(sessions) == 1 else None
    affect = Affect(
        sum(trace.affect.valence for trace in members) / count,
        sum(trace.affect.arousal for trace in members) / count,
        sum(trace.affect.dominance for trace in members) / count,
    )
    return Trace(
        id=schema_id(persona_id, scope, cluster),
        scope=scope,
        content=text,
        type="semantic",
        source="memory_summary",
        # On the branch that it was made of, so that a turn on another one does not recall it.
        session=alone.session if alone is not None else "",
        branch=alone.branch if alone is not None else "",
        depth=max(trace.depth for trace in members) if alone is not None else 0,
        role=ROLE,
        persona_id=persona_id,
        confidence=sum(trace.confidence for trace in members) / count,
        tags=(ROLE,),
        entities=entities,
        affect=affect,
        strength=STRENGTH,
        stability=STABILITY,
        importance=max(trace.importance for trace in members),
        last_access=now,
        mechanisms=noted,
        created_at=now,
    )


def schema_id(persona_id: str, scope: Scope, cluster: str) -> str:
    """The id of a cluster's schema."""
    name = f"schema/{persona_id}/{scope.kind}/{scope.id}/{cluster}"
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def member_links(schema: Trace) -> list[Link]:
    """The links of a schema with what it was made of."""
    return [
        between(schema.id, id_, ROLE, MEMBER_WEIGHT) for id_ in schema.mechanisms["derived_from"]
    ]
