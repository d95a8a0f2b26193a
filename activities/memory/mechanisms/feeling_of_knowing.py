"""A memory that almost came up leaves the feeling that it is there.

After Hart (1965) and Koriat (1993): one judges what one knows by what comes to mind on the way to
it. The shares are conventions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from ....personas.memory import FeelingOfKnowing
from ..ranges import finite
from ..traces import Trace

SURE = 0.6


@dataclass(frozen=True, slots=True)
class Near:
    """A memory that a recall looked at and did not bring.

    Attributes:
        trace: The memory.
        score: Its whole score, computed as for those that were brought.
        similarity: To the question.
    """

    trace: Trace
    score: float
    similarity: float


@dataclass(frozen=True, slots=True)
class Feeling:
    """The feeling that there is something.

    Attributes:
        trace_id: The memory behind it.
        kind: How sure it is.
        value: In [0, 1].
        entities: Of the memory.
        mood: When it was made.
        age: Of the memory in seconds.
    """

    trace_id: str
    kind: Literal["tip_of_tongue", "high_confidence"]
    value: float
    entities: tuple[str, ...]
    mood: str
    age: float


def feelings(
    candidates: Iterable[Near],
    query_entities: Collection[str],
    cutoff: float,
    now: float,
    settings: FeelingOfKnowing,
) -> list[Feeling]:
    """The feelings that a recall leaves, in the order of the candidates.

    Args:
        candidates: What the recall looked at; those at or above the cutoff are passed over.
        query_entities: Entities of the question; compared whatever their case.
        cutoff: The score of the last memory that was brought.
        now: Seconds since the epoch.
        settings: From which score on, and whether weak feelings count.

    Raises:
        ValidationError: A number is not finite.
    """
    found: list[Feeling] = []
    if not settings.enabled:
        return found
    threshold = settings.partial_activation_threshold
    cutoff = finite("cutoff", cutoff)
    asked = {entity.casefold() for entity in query_entities}
    for near in candidates:
        if not threshold <= finite("score", near.score) < cutoff:
            continue
        gap = (near.score - threshold) / (cutoff - threshold)
        known = {entity.casefold() for entity in near.trace.entities}
        larger = max(len(asked), len(known))
        overlap = len(asked & known) / larger if larger else 0.0
        value = 0.4 * gap + 0.3 * finite("similarity", near.similarity) + 0.3 * overlap
        value = min(1.0, max(0.0, value))
        if value <= SURE and not settings.surface_tip_of_tongue:
            continue
        found.append(
            Feeling(
                trace_id=near.trace.id,
                kind="high_confidence" if value > SURE else "tip_of_tongue",
                value=value,
                entities=near.trace.entities,
                mood=near.trace.mood,
                age=max(0.0, now - near.trace.created_at),
            )
        )
    return found
