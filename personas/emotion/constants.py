"""Every number of the emotion model.

Two tables are from the literature: the sums that make a temperament of traits (Mehrabian 1996)
and the points of the emotions (Gebhard 2005). All the rest, gains, weights, half-lives and set
points, are conventions: chosen so that the signs are those which the cited theories predict and
so that no single event carries a feeling to its end. They are not measured constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..affect import Point

MODEL = "emotion-1"
"""Name of the model; a model with other numbers or formulas gets another name."""

# Temperament: Mehrabian (1996), Current Psychology 14, doi 10.1007/BF02686918. Its weights are for
# emotional stability; here they stand for neuroticism, with the sign turned.
PLEASURE_OF: Mapping[str, float] = MappingProxyType(
    {"extraversion": 0.21, "agreeableness": 0.59, "emotionality": -0.19}
)
AROUSAL_OF: Mapping[str, float] = MappingProxyType(
    {"openness": 0.15, "agreeableness": 0.30, "emotionality": 0.57}
)
DOMINANCE_OF: Mapping[str, float] = MappingProxyType(
    {"openness": 0.25, "conscientiousness": 0.17, "extraversion": 0.60, "agreeableness": -0.32}
)
BASELINE_SCALE = 0.4
"""Share of the temperament that the resting feeling takes on."""

# Gebhard (2005), ALMA, AAMAS '05, doi 10.1145/1082473.1082478. Its pity and remorse are left out:
# they lie exactly where distress and shame do, and a label could not tell them apart.
EMOTIONS: Mapping[str, Point] = MappingProxyType(
    {
        "admiration": (0.5, 0.3, -0.2),
        "anger": (-0.51, 0.59, 0.25),
        "disappointment": (-0.3, 0.1, -0.4),
        "disliking": (-0.4, 0.2, 0.1),
        "distress": (-0.4, -0.2, -0.5),
        "fear": (-0.64, 0.60, -0.43),
        "fears_confirmed": (-0.5, -0.3, -0.7),
        "gloating": (0.3, -0.3, -0.1),
        "gratification": (0.6, 0.5, 0.4),
        "gratitude": (0.4, 0.2, -0.3),
        "happy_for": (0.4, 0.2, 0.2),
        "hate": (-0.6, 0.6, 0.3),
        "hope": (0.2, 0.2, -0.1),
        "joy": (0.4, 0.2, 0.1),
        "liking": (0.4, 0.16, -0.24),
        "love": (0.3, 0.1, 0.2),
        "pride": (0.4, 0.3, 0.3),
        "relief": (0.2, -0.3, 0.4),
        "reproach": (-0.3, -0.1, 0.4),
        "resentment": (-0.2, -0.3, -0.2),
        "satisfaction": (0.3, -0.2, 0.4),
        "shame": (-0.3, 0.1, -0.6),
    }
)

# Relationship.
FAMILIARITY_ON_RELEVANCE = 0.3
TRUST_ON_JUDGEMENT = 0.2

# Gains of the activated emotions.
EXTRAVERSION_ON_PLEASANT = 0.3
CONSCIENTIOUSNESS_ON_PRIDE = 0.2
EMOTIONALITY_ON_UNPLEASANT = 0.5
EXHAUSTION_ON_UNPLEASANT = 0.5
AGREEABLENESS_ON_BLAME = 0.4
HONESTY_ON_SHAME = 0.3

# What an event does beside the emotions that it activates.
AROUSAL_BY_NOVELTY = 0.25
OPENNESS_ON_NOVELTY = 0.3
AROUSAL_BY_URGENCY = 0.20
DOMINANCE_BY_CONTROL = 0.25
DOMINANCE_BY_ADJUSTMENT = 0.10

# Inertia: the share of an impact that does not get through.
INERTIA = 0.3
EMOTIONALITY_ON_INERTIA = 0.1

MOOD_SHARE = 0.1
"""Share of a change that the mood takes part in."""

# Body budget: what a change of the feeling costs and gives.
BODY_SET_POINT = 0.8
BODY_BY_AROUSAL = 0.10
BODY_BY_UNPLEASANT = 0.06
BODY_BY_PLEASANT = 0.04

# Needs.
NEED_SET_POINT = 0.5
AUTONOMY_BY_CONTROL = 0.08
COMPETENCE_BY_EVENT = 0.10
COMPETENCE_BY_STANDARDS = 0.6
COMPETENCE_BY_SUCCESS = 0.4
RELATEDNESS_BY_EVENT = 0.10

# Half-lives in seconds.
HALF_LIFE_VALENCE = 1800.0
HALF_LIFE_AROUSAL = 600.0
HALF_LIFE_DOMINANCE = 1800.0
EMOTIONALITY_ON_HALF_LIFE = 0.3
HALF_LIFE_MOOD = 6 * 3600.0
HALF_LIFE_BODY = 4 * 3600.0
HALF_LIFE_NEEDS = 12 * 3600.0

# How body and needs colour what is felt.
FELT_VALENCE_BY_BODY = 0.3
FELT_VALENCE_BY_NEEDS = 0.3
FELT_AROUSAL_BY_BODY = 0.2
FELT_DOMINANCE_BY_NEEDS = 0.3

LABEL_FROM = 0.10
"""Length from which a feeling has a name other than neutral."""

# An episode's importance.
IMPORTANCE_BY_RELEVANCE = 0.5
IMPORTANCE_BY_CHANGE = 0.35
IMPORTANCE_BY_SURPRISE = 0.15
MEMORABLE_ABOVE = 0.4
"""Importance above which an event is worth a memory; one that means nothing has 0.325."""
