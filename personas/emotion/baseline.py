"""Where a character's feelings rest."""

from __future__ import annotations

from collections.abc import Mapping

from ..affect import Point
from . import constants as k
from .traits import Traits


def baseline(traits: Traits) -> Point:
    """The feeling to which everything returns; average traits give (0, 0, 0).

    It is a share (a convention) of Mehrabian's temperament (1996)::

        pleasure  = .21 extraversion + .59 agreeableness - .19 emotionality
        arousal   = .15 openness + .30 agreeableness + .57 emotionality
        dominance = .25 openness + .17 conscientiousness + .60 extraversion - .32 agreeableness

    each trait counted from -1 to 1.
    """
    return (
        _sum(traits, k.PLEASURE_OF),
        _sum(traits, k.AROUSAL_OF),
        _sum(traits, k.DOMINANCE_OF),
    )


def _sum(traits: Traits, weights: Mapping[str, float]) -> float:
    return k.BASELINE_SCALE * sum(weight * traits.lean(name) for name, weight in weights.items())
