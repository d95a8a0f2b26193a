"""What comes from a doubtful source fades faster.

After the source-monitoring framework (Johnson, Hashtroudi & Lindsay 1993): what one inferred is
held less firmly than what one was told. The factors are conventions.
"""

from __future__ import annotations

from dataclasses import replace

from ....personas.memory import SourceConfidenceDecay
from ..ranges import finite
from ..traces import HOUR, Trace

NAME = "source_confidence_decay"
STRONG = 0.8
STRONG_FLOOR = 0.9


def faded(trace: Trace, now: float, settings: SourceConfidenceDecay) -> Trace | None:
    """The memory with the stability that its source leaves it, or ``None`` where it keeps all.

    It happens to a memory once an hour at most, whatever the number of consolidations; with the
    rule ``access`` only where it was made or recalled since the last time. A strong memory loses
    less. When it happened last is kept under ``mechanisms["source_confidence_decay"]``.

    Args:
        trace: The memory.
        now: Seconds since the epoch.
        settings: The rule, and the factors by source; a source without one loses nothing.

    Raises:
        ValidationError: The time is not finite.
    """
    if not settings.enabled or not trace.active:
        return None
    last = (trace.mechanisms.get(NAME) or {}).get("at")
    if last is not None:
        if finite("now", now) - float(last) < HOUR:
            return None
        if settings.rule == "access" and trace.last_access <= float(last):
            return None
    factor = settings.decay_multipliers.get(trace.source, 1.0)
    if trace.strength >= STRONG:
        factor = max(STRONG_FLOOR, factor)
    if factor >= 1.0:
        return None
    return replace(
        trace,
        stability=trace.stability * factor,
        mechanisms={**trace.mechanisms, NAME: {"at": now}},
    )
