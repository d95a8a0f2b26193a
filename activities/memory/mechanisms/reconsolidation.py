"""A recalled memory takes on a little of the present mood.

Recalling makes a memory open to change before it settles again (Nader, Schafe & LeDoux 2000). How
much it moves is a convention. What it has moved in all is kept with it, and ends at a limit.
"""

from __future__ import annotations

from dataclasses import replace

from ....personas.memory import Reconsolidation
from ..ranges import affect_within, intensity
from ..traces import Affect, Trace

NAME = "reconsolidation"


def reconsolidated(
    trace: Trace, mood: Affect, settings: Reconsolidation, *, perspective: bool = False
) -> Trace | None:
    """The recalled memory with its feeling moved towards the mood.

    Valence, arousal and dominance move by the same share of their distance. Their movements are
    added up over the memory's life under ``mechanisms["reconsolidation"]``; where the sum would
    pass the limit the last movement is shortened to end on it.

    Args:
        trace: The memory.
        mood: At the recall.
        settings: The drift's rate and limit.
        perspective: Whether it was encoded from another's point of view, which halves the rate.

    Returns:
        The changed memory, or ``None`` where nothing moves.

    Raises:
        ValidationError: A number is not finite.
    """
    if not settings.enabled:
        return None
    immune = settings.immune_above_importance
    if immune is not None and trace.importance >= immune:
        return None
    kept = dict(trace.mechanisms.get(NAME) or {})
    drifted = float(kept.get("drift", 0.0))
    left = settings.max_drift_per_trace - drifted
    if left <= 0:
        return None
    mood = affect_within(mood)
    before = affect_within(trace.affect)
    rate = settings.drift_rate * (0.5 if perspective else 1.0)
    moves = [
        rate * (mood.valence - before.valence),
        rate * (mood.arousal - before.arousal),
        rate * (mood.dominance - before.dominance),
    ]
    total = sum(abs(move) for move in moves)
    if total == 0:
        return None
    if total > left:
        moves = [move * left / total for move in moves]
    after = Affect(
        before.valence + moves[0], before.arousal + moves[1], before.dominance + moves[2]
    )
    kept["drift"] = min(settings.max_drift_per_trace, drifted + total)
    kept["events"] = int(kept.get("events", 0)) + 1
    return replace(
        trace,
        affect=after,
        intensity=intensity(after),
        mechanisms={**trace.mechanisms, NAME: kept},
    )
