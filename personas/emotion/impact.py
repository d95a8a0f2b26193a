"""What an event does to a feeling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..affect import Point, limited
from . import constants as k
from .activations import PLEASANT, activations, relevance
from .appraisal import AppraisalVector, Relationship
from .traits import Traits


@dataclass(frozen=True, slots=True)
class Impact:
    """What an event would do to somebody without inertia.

    Attributes:
        change: Of valence, arousal and dominance, each in [-1, 1].
        relevance: How much the event concerns the persona, in [0, 1].
        activations: How strongly it calls up each emotion, in [0, 1].
    """

    change: Point
    relevance: float
    activations: Mapping[str, float]


def impact(
    appraisal: AppraisalVector, relationship: Relationship, traits: Traits, body: float
) -> Impact:
    """What an event does, given what it means and who perceives it.

    The activated emotions' points are added up, each with its gain. Novelty and urgency excite,
    control and the power to adjust give dominance, their lack takes it (Scherer 2001; Fontaine et
    al. 2007). All of it counts as much as the event concerns the persona: a neutral event changes
    nothing, and neither does one of relevance -1.

    Args:
        appraisal: What the event means.
        relationship: What the persona has with whoever it comes from.
        traits: Who perceives it.
        body: The body budget, in [0, 1].
    """
    concern = relevance(appraisal, relationship)
    called = activations(appraisal, relationship)
    valence = arousal = dominance = 0.0
    for name, strength in called.items():
        weight = strength * gain(name, traits, body)
        point = k.EMOTIONS[name]
        valence += weight * point[0]
        arousal += weight * point[1]
        dominance += weight * point[2]
    novelty = k.AROUSAL_BY_NOVELTY * (1.0 - 2.0 * appraisal.expectedness)
    arousal += novelty * (1.0 - k.OPENNESS_ON_NOVELTY * traits.lean("openness"))
    arousal += k.AROUSAL_BY_URGENCY * (2.0 * appraisal.urgency - 1.0)
    dominance += k.DOMINANCE_BY_CONTROL * (2.0 * appraisal.controllability - 1.0)
    dominance += k.DOMINANCE_BY_ADJUSTMENT * (2.0 * appraisal.adjustment_potential - 1.0)
    change = (
        limited(concern * valence, -1.0, 1.0),
        limited(concern * arousal, -1.0, 1.0),
        limited(concern * dominance, -1.0, 1.0),
    )
    return Impact(change, concern, called)


def gain(emotion: str, traits: Traits, body: float) -> float:
    """How much more, or less, than usual this character feels an emotion.

    Extraverts feel pleasant things more, emotional characters unpleasant ones (Larsen & Ketelaar
    1991); a spent body makes the unpleasant weigh more (Barrett 2017). Conscientious characters
    are prouder, agreeable ones slower to blame, honest ones more ashamed.
    """
    if emotion in PLEASANT:
        factor = 1.0 + k.EXTRAVERSION_ON_PLEASANT * traits.lean("extraversion")
        if emotion == "pride":
            factor *= 1.0 + k.CONSCIENTIOUSNESS_ON_PRIDE * traits.lean("conscientiousness")
        return factor
    spent = max(k.BODY_SET_POINT - body, 0.0) / k.BODY_SET_POINT
    factor = 1.0 + k.EMOTIONALITY_ON_UNPLEASANT * traits.lean("emotionality")
    factor *= 1.0 + k.EXHAUSTION_ON_UNPLEASANT * spent
    if emotion in ("anger", "reproach"):
        factor *= 1.0 - k.AGREEABLENESS_ON_BLAME * traits.lean("agreeableness")
    elif emotion == "shame":
        factor *= 1.0 + k.HONESTY_ON_SHAME * traits.lean("honesty")
    return factor


def inertia(traits: Traits) -> float:
    """Share of an impact that does not get through: 0.2 to 0.4, more in emotional characters.

    Feelings that resist change go with neuroticism (Kuppens, Allen & Sheeber 2010).
    """
    return k.INERTIA + k.EMOTIONALITY_ON_INERTIA * traits.lean("emotionality")
