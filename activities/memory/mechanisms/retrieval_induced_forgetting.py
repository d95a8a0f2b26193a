"""Memories like the recalled ones that were not recalled themselves fade faster.

After Anderson, Bjork & Bjork (1994): retrieving one of several similar memories makes the others
harder to retrieve. The amounts are conventions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ....personas.memory import RetrievalInducedForgetting
from ..ranges import finite
from ..traces import Trace

TOO_STRONG = 0.9
TOO_WEAK = 0.1


def suppressed(
    candidates: Sequence[Trace],
    returned: Collection[str],
    similarities: Mapping[str, float],
    settings: RetrievalInducedForgetting,
) -> list[Trace]:
    """The competitors that lose stability, as they are afterwards.

    Memories encoded very strongly are safe, very weak ones are no competitors.

    Args:
        candidates: Memories that the recall looked at, the closest competitors first.
        returned: Ids of those that it brought.
        similarities: Of each candidate to the most similar returned one, by id; a candidate
            without one is not similar.
        settings: From which similarity on, by how much, and how many.

    Raises:
        ValidationError: A similarity is no finite number.
    """
    changed: list[Trace] = []
    if not settings.enabled:
        return changed
    for trace in candidates:
        if len(changed) >= settings.max_suppressions_per_query:
            break
        if trace.id in returned or not TOO_WEAK <= trace.strength < TOO_STRONG:
            continue
        similarity = similarities.get(trace.id)
        if similarity is None or finite("similarity", similarity) < settings.similarity_threshold:
            continue
        changed.append(
            replace(trace, stability=trace.stability * (1.0 - settings.suppression_factor))
        )
    return changed
