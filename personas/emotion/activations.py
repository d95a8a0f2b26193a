"""Which emotions an event calls up: the appraisal read by Ortony, Clore & Collins (1988)."""

from __future__ import annotations

from collections.abc import Mapping

from ..affect import limited
from . import constants as k
from .appraisal import AppraisalVector, Relationship

PLEASANT = ("joy", "gratitude", "admiration", "pride")


def relevance(appraisal: AppraisalVector, relationship: Relationship) -> float:
    """How much an event concerns the persona, in [0, 1]; 0 leaves it untouched.

    Relevance gates everything else (Scherer 2001), and what comes from somebody familiar concerns
    more.
    """
    close = 1.0 + k.FAMILIARITY_ON_RELEVANCE * relationship.familiarity
    return limited((1.0 + appraisal.goal_relevance) / 2.0 * close, 0.0, 1.0)


def trusting(value: float, relationship: Relationship) -> float:
    """A judgement in [-1, 1] as trust shifts it: the benefit of the doubt, or its opposite.

    The shift is a share of the judgement's own size, so that trust makes nothing out of nothing.
    """
    lean = 2.0 * relationship.trust - 1.0
    return limited(value + k.TRUST_ON_JUDGEMENT * lean * abs(value), -1.0, 1.0)


def activations(appraisal: AppraisalVector, relationship: Relationship) -> Mapping[str, float]:
    """How strongly the event calls up each of nine emotions, in [0, 1].

    Joy and distress are about what happens, admiration and reproach about what another does,
    pride and shame about oneself; gratitude and anger are the compounds of the first two pairs.
    Urgency without control turns distress into fear, control over what another did turns it into
    anger (Scherer 2001). The products themselves are conventions.
    """
    congruence = trusting(appraisal.goal_congruence, relationship)
    norm = trusting(appraisal.norm_compatibility, relationship)
    good, bad = max(congruence, 0.0), max(-congruence, 0.0)
    praise, blame = max(norm, 0.0), max(-norm, 0.0)
    other = max(appraisal.agency, 0.0)
    urgency, control = appraisal.urgency, appraisal.controllability
    standards = appraisal.internal_standards
    return {
        "joy": good,
        "gratitude": good * other * praise,
        "admiration": 0.5 * other * praise,
        "pride": max(standards, 0.0),
        "shame": max(-standards, 0.0),
        "reproach": 0.5 * other * blame,
        "distress": bad * (1.0 - 0.5 * urgency) * (1.0 - other * control),
        "fear": bad * urgency * (1.0 - control),
        "anger": bad * other * control * (0.5 + 0.5 * blame),
    }


def dominant(called: Mapping[str, float]) -> str | None:
    """The strongest of the emotions, the first by the alphabet of equals; ``None`` without any."""
    strength, name = min(((-strength, name) for name, strength in called.items()), default=(0, ""))
    return name if strength < 0 else None
