"""Links that memories get because they belong together: the same names, the same moment."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from .store import Link
from .traces import DAY, Trace

RECENT = DAY
"""Seconds since they were made in which memories are linked."""

ENTITY_WEIGHT = 0.5
SEQUENCE_WEIGHT = 0.3
SEQUENCE_SECONDS = 300.0

NEAREST = 5
"""A memory is linked with so many earlier ones of each name at most: a name that is in everything
would link everything with everything."""


def new_links(traces: Iterable[Trace], now: float, standing: Iterable[Link]) -> list[Link]:
    """The links that recent memories are to have and do not have yet.

    Args:
        traces: Memories of one scope.
        now: Seconds since the epoch.
        standing: The links that they have.
    """
    recent = sorted(
        (t for t in traces if t.active and t.role != "schema" and 0 <= now - t.created_at < RECENT),
        key=lambda trace: (trace.created_at, trace.depth, trace.id),
    )
    known = {(link.a, link.b, link.kind) for link in standing if link.weight >= _least(link.kind)}
    return [
        link
        for link in (*_entity_links(recent), *_sequence_links(recent))
        if (link.a, link.b, link.kind) not in known
    ]


def between(one: str, other: str, kind: str, weight: float) -> Link:
    """A link, its ends in the order in which the store keeps them."""
    return Link(min(one, other), max(one, other), kind, weight)


def _least(kind: str) -> float:
    return {"entity": ENTITY_WEIGHT, "sequence": SEQUENCE_WEIGHT}.get(kind, 0.0)


def _entity_links(recent: Sequence[Trace]) -> list[Link]:
    """Memories that name the same person, place or thing."""
    latest: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=NEAREST))
    found: dict[tuple[str, str], Link] = {}
    for trace in recent:
        for entity in dict.fromkeys(name.casefold() for name in trace.entities):
            for earlier in latest[entity]:
                link = between(earlier, trace.id, "entity", ENTITY_WEIGHT)
                found[link.a, link.b] = link
            latest[entity].append(trace.id)
    return list(found.values())


def _sequence_links(recent: Sequence[Trace]) -> list[Link]:
    """Memories that follow each other on one branch of a session within five minutes."""
    before: dict[tuple[str, str], Trace] = {}
    found: list[Link] = []
    for trace in recent:
        earlier = before.get((trace.session, trace.branch))
        if earlier is not None and trace.created_at - earlier.created_at < SEQUENCE_SECONDS:
            found.append(between(earlier.id, trace.id, "sequence", SEQUENCE_WEIGHT))
        before[trace.session, trace.branch] = trace
    return found
