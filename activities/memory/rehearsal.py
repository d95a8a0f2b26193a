"""Going over what was recalled once, at growing intervals.

Spaced repetition (Ebbinghaus 1885, Leitner 1972) without anybody asking: what matters is gone
over when its interval is due. A rehearsal is no recall. It makes a memory hold longer, and leaves
its strength, its last access and the number of its recalls alone; so what nobody ever asks for
still fades. The factor and the least importance are conventions.
"""

from __future__ import annotations

from dataclasses import replace

from .decay import LONGEST, strength_at
from .traces import Trace

GAIN = 1.2
"""Factor of the stability."""

LEAST_IMPORTANCE = 0.5


def rehearsed(trace: Trace, now: float, faint: float) -> Trace | None:
    """The memory after a rehearsal that is due, or ``None`` where none is.

    Args:
        trace: The memory.
        now: Seconds since the epoch.
        faint: Strength below which it is too late for a rehearsal.
    """
    if not trace.active or trace.next_at is None or trace.next_at > now:
        return None
    if trace.importance < LEAST_IMPORTANCE or strength_at(trace, now) < faint:
        return None
    interval = min(LONGEST, 2.0 * trace.interval)
    stability = max(trace.stability, min(LONGEST, trace.stability * GAIN))
    return replace(trace, stability=stability, interval=interval, next_at=now + interval)
