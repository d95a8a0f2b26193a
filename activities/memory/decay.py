"""How memories fade, and what recalling, not using and confusing them does.

Forgetting is exponential in time (after Ebbinghaus 1885); recalling what was nearly forgotten
strengthens it most (desirable difficulty, Bjork 1994), and similar memories get into each other's
way (interference, McGeoch 1932). The gains are conventions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .ranges import finite
from .traces import DAY, Trace

INTERFERENCE_THRESHOLD = 0.7
PRUNING_THRESHOLD = 0.05
PRUNING_INTENSITY = 0.3
MIN_STABILITY = 60.0
LONGEST = 100 * 365.25 * DAY


@dataclass(frozen=True, slots=True)
class Interference:
    """What a new memory and those like it do to each other.

    Attributes:
        old: Strength that each similar memory loses, by its id.
        new: Strength that the new one loses.
    """

    old: dict[str, float]
    new: float


def current_strength(strength: float, stability: float, elapsed: float) -> float:
    """Strength after ``elapsed`` seconds; a time before the last access counts as none.

    A memory without stability is forgotten at once.

    Raises:
        ValidationError: A number is not finite.
    """
    elapsed = max(0.0, finite("elapsed", elapsed))
    strength = finite("strength", strength)
    stability = finite("stability", stability)
    if elapsed == 0:
        return strength
    return strength * math.exp(-elapsed / stability) if stability > 0 else 0.0


def strength_at(trace: Trace, now: float) -> float:
    """A memory's strength at a time in seconds since the epoch."""
    return current_strength(trace.strength, trace.stability, now - trace.last_access)


def strengths(
    strength: NDArray[np.float64],
    stability: NDArray[np.float64],
    last_access: NDArray[np.float64],
    now: float,
) -> NDArray[np.float64]:
    """The same for many memories at once.

    Raises:
        ValidationError: ``now`` is not finite.
    """
    elapsed = np.maximum(0.0, finite("now", now) - last_access)
    safe = np.where(stability > 0, stability, 1.0)
    faded = strength * np.exp(-elapsed / safe)
    return np.where((stability > 0) | (elapsed == 0), faded, 0.0)


def after_retrieval(trace: Trace, now: float) -> Trace:
    """The memory as a recall leaves it: a little stronger, and holding longer.

    The longer the pause before, the more stability is gained; each further recall gains less. A
    recall never shortens how long a memory holds, and nothing holds longer than a hundred years.
    A recall that is told of late, after a later one, does not move the last access back.

    Raises:
        ValidationError: A number is not finite.
    """
    difficulty = max(0.1, 1.0 - strength_at(trace, now))
    growth = (1.5 + 2.0 * difficulty) / (1.0 + 0.1 * trace.retrievals)
    growth *= 1.0 + 0.3 * finite("intensity", trace.intensity)
    interval = min(LONGEST, trace.interval * 2.0)
    accessed = max(now, trace.last_access)
    return replace(
        trace,
        strength=min(1.0, trace.strength + 0.1),
        stability=min(max(LONGEST, trace.stability), trace.stability * max(1.0, growth)),
        retrievals=trace.retrievals + 1,
        accesses=trace.accesses + 1,
        last_access=accessed,
        interval=interval,
        next_at=accessed + interval,
    )


def penalised(trace: Trace, now: float) -> Trace:
    """The memory after it was offered and turned out to be of no use."""
    return replace(
        trace,
        strength=0.9 * strength_at(trace, now),
        stability=max(0.5 * trace.stability, MIN_STABILITY),
        last_access=max(now, trace.last_access),
    )


def interference(
    similar: Iterable[tuple[str, float, float]], threshold: float = INTERFERENCE_THRESHOLD
) -> Interference:
    """What a new memory and those like it do to each other.

    Args:
        similar: Id, similarity to the new one, and present strength of each.
        threshold: Only those more similar than this count; below 1.

    Raises:
        ValidationError: A number is not finite.
    """
    old: dict[str, float] = {}
    new = 0.0
    for trace_id, similarity, strength in similar:
        similarity = min(1.0, finite("similarity", similarity))
        if similarity <= threshold:
            continue
        overlap = (similarity - threshold) / (1.0 - threshold)
        old[trace_id] = 0.15 * overlap
        new += 0.1 * overlap * finite("strength", strength)
    return Interference(old, min(0.3, new))


def is_prunable(
    trace: Trace, now: float, threshold: float = PRUNING_THRESHOLD, keep: float = 0.0
) -> bool:
    """Whether the memory is so faint that it can be given up; strong feelings are kept.

    Args:
        trace: The memory; one that was given up before is not prunable again.
        now: Seconds since the epoch.
        threshold: Weaker ones are given up.
        keep: Seconds since the last access in which nothing is given up.
    """
    return (
        trace.active
        and max(0.0, now - trace.last_access) >= keep
        and strength_at(trace, now) < threshold
        and trace.intensity < PRUNING_INTENSITY
    )
