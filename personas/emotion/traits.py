"""A character as the emotion model reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..affect import limited
from ..traits import HEXACO, is_number, normalize_traits

AVERAGE = 0.5


@dataclass(frozen=True, slots=True)
class Traits:
    """The six HEXACO traits, each in [0, 1].

    Emotionality stands where the literature says neuroticism. The two are close kin and not the
    same; taking one for the other is a convention.
    """

    honesty: float = AVERAGE
    emotionality: float = AVERAGE
    extraversion: float = AVERAGE
    agreeableness: float = AVERAGE
    conscientiousness: float = AVERAGE
    openness: float = AVERAGE

    @classmethod
    def of(cls, traits: Mapping[str, Any] | None) -> Self:
        """A persona's traits; what is missing or no finite number is average, the rest limited."""
        given = normalize_traits(dict(traits or {}))
        return cls(
            **{
                name: float(limited(given[name], 0.0, 1.0))
                for name in HEXACO
                if is_number(given.get(name))
            }
        )

    def lean(self, name: str) -> float:
        """How far a trait is from the average, in [-1, 1]."""
        value: float = getattr(self, name)
        return 2.0 * value - 1.0
