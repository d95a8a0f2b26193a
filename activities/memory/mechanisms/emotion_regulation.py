"""Memories that agitate too much are calmed.

After Gross (1998): reappraising softens a feeling, suppressing hides it. The rates are
conventions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....personas.memory import EmotionRegulation
from ..ranges import affect_within, arousal_share, intensity
from ..traces import Affect, Trace

TOO_STRONG = 0.9
STRENGTH_KEPT = 0.9
VALENCE_RULE_AROUSAL = 0.6


def regulated(traces: Iterable[Trace], settings: EmotionRegulation) -> list[Trace]:
    """The memories that are calmed, as they are afterwards; the most aroused come first.

    Reappraisal takes a share of valence and arousal away. What is over the limits all the same
    is suppressed: it loses a tenth of its strength. Burnt-in memories are left alone.

    With the rule ``arousal`` no more than ``max_regulation_per_cycle`` memories are touched. With
    ``valence`` that many are reappraised and every other one over the limits is suppressed.

    Args:
        traces: Candidates.
        settings: The rule, the rate, the limit and the number.

    Raises:
        ValidationError: A feeling is no finite number.
    """
    if not settings.enabled:
        return []

    def over(affect: Affect) -> bool:
        awake = arousal_share(affect.arousal)
        if settings.rule == "arousal":
            return awake > settings.suppression_threshold
        far = abs(affect.valence) > settings.suppression_threshold
        return far and awake > VALENCE_RULE_AROUSAL

    agitating = [
        trace
        for trace in traces
        if trace.active and trace.strength < TOO_STRONG and over(affect_within(trace.affect))
    ]
    agitating.sort(key=lambda trace: -trace.affect.arousal)
    changed: list[Trace] = []
    for place, trace in enumerate(agitating):
        affect = affect_within(trace.affect)
        if place < settings.max_regulation_per_cycle:
            kept = 1.0 - settings.reappraisal_rate
            calmed = arousal_share(affect.arousal) * kept
            affect = Affect(affect.valence * kept, 2.0 * calmed - 1.0, affect.dominance)
        elif settings.rule == "arousal":
            break
        changed.append(
            replace(
                trace,
                affect=affect,
                intensity=intensity(affect),
                strength=trace.strength * (STRENGTH_KEPT if over(affect) else 1.0),
            )
        )
    return changed
