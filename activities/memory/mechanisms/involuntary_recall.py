"""Now and then an old memory comes up by itself.

After Berntsen (1996): involuntary memories are common, and the emotional ones come more often.
The probabilities are conventions. Chance is an argument, so that a recall can be repeated.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterable
from typing import Protocol

from ....personas.memory import InvoluntaryRecall
from ..ranges import affect_within, intensity
from ..traces import DAY, Trace

MIN_WEIGHT = 0.01


class Chance(Protocol):
    """Draws numbers from [0, 1), as :class:`random.Random` does."""

    def random(self) -> float:
        """The next number."""
        ...


def seeded(*parts: str) -> random.Random:
    """A source of chance that draws the same numbers for the same parts on every machine."""
    text = "\0".join(parts).encode("utf-8")
    return random.Random(int.from_bytes(hashlib.sha256(text).digest()))


def involuntary(
    traces: Iterable[Trace],
    retrieved: Collection[str],
    now: float,
    chance: Chance,
    settings: InvoluntaryRecall,
) -> Trace | None:
    """The memory that comes up by itself, if one does.

    One draw decides whether, a second one which; the more intense its feeling, the likelier it
    is. Without a fitting memory there is no second draw.

    Args:
        traces: Memories that could come up.
        retrieved: Ids of those that were recalled anyway.
        now: Seconds since the epoch.
        chance: Where the draws come from.
        settings: How likely, how old, how strong.

    Raises:
        ValidationError: A feeling is no finite number.
    """
    if not settings.enabled or chance.random() >= settings.probability:
        return None
    pool = [
        trace
        for trace in traces
        if trace.active
        and trace.id not in retrieved
        and now - trace.created_at > settings.min_age_days * DAY
        and trace.strength >= settings.min_strength
    ]
    if not pool:
        return None
    weights = [max(MIN_WEIGHT, intensity(affect_within(trace.affect))) for trace in pool]
    mark = chance.random() * sum(weights)
    for trace, weight in zip(pool, weights, strict=True):
        mark -= weight
        if mark < 0:
            return trace
    return pool[-1]
