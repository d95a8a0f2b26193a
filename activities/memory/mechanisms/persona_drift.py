"""What was lived through suggests small changes of the traits.

Traits do change with experience, slowly (Roberts & Mroczek 2008). What suggests which change here
is a convention, and nothing applies a suggestion: a host decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....personas.memory import PersonaDrift
from ..ranges import affect_within, arousal_share
from ..traces import Trace

MIN_SHARE = 0.3
HIGH_AROUSAL = 0.6
MAX_PROPOSALS = 2


@dataclass(frozen=True, slots=True)
class Proposal:
    """A suggested change of a trait.

    Attributes:
        trait: Which HEXACO trait.
        delta: What would be added to it.
        confidence: In [0, 1]; grows with the number of memories.
        traces: Memories that it rests on.
    """

    trait: str
    delta: float
    confidence: float
    traces: int


def proposals(traces: Sequence[Trace], settings: PersonaDrift) -> list[Proposal]:
    """The changes that these memories suggest, at most two, the strongest first.

    Many conflicts make less agreeable, many pleasant excitements more extraverted, a life of high
    arousal more emotional, a calm one more conscientious: where the share of such memories is above
    0.3, or the mean arousal, from 0 to 1, above 0.6.

    Args:
        traces: What was lived through.
        settings: How many memories it takes and how much may change.

    Raises:
        ValidationError: A feeling is no finite number.
    """
    count = len(traces)
    if not settings.enabled or count < settings.min_traces:
        return []
    lived = [affect_within(trace.affect) for trace in traces]
    felt = [(affect.valence, arousal_share(affect.arousal)) for affect in lived]
    conflict = sum(valence < -0.3 and awake > 0.4 for valence, awake in felt) / count
    pleasant = sum(valence > 0.3 and awake > 0.3 for valence, awake in felt) / count
    calm = sum(abs(valence) < 0.3 and awake < 0.3 for valence, awake in felt) / count
    arousal = sum(awake for _, awake in felt) / count
    suggested = [
        ("agreeableness", -conflict if conflict > MIN_SHARE else 0.0),
        ("extraversion", pleasant if pleasant > MIN_SHARE else 0.0),
        ("emotionality", arousal - 0.5 if arousal > HIGH_AROUSAL else 0.0),
        ("conscientiousness", 0.5 * calm if calm > MIN_SHARE else 0.0),
    ]
    confidence = min(1.0, 0.3 + 0.7 * count / 50)
    found = sorted((row for row in suggested if row[1]), key=lambda row: -abs(row[1]))
    return [
        Proposal(trait, round(score * settings.max_delta * confidence, 3), confidence, count)
        for trait, score in found[:MAX_PROPOSALS]
    ]
