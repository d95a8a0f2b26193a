"""Numbers that the memory's formulas take: finite, and inside their range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

from ...personas.errors import ValidationError
from .traces import Affect

AVERAGE_TRAIT = 0.5


def finite(name: str, value: float) -> float:
    """The value as a float.

    Raises:
        ValidationError: It is no number, or not a finite one.
    """
    # Asking an abstract class takes ten times as long, and nearly every value is a plain float.
    number = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
    if not number or not math.isfinite(value):
        raise ValidationError(f"{name} is {value!r}; give a finite number.", details={"name": name})
    return float(value)


def within(name: str, value: float, low: float, high: float) -> float:
    """The value moved into the range; one that is not finite is refused.

    Raises:
        ValidationError: It is no finite number.
    """
    return min(high, max(low, finite(name, value)))


def trait(traits: Mapping[str, float] | None, name: str) -> float:
    """A HEXACO trait in [0, 1]; one that the persona does not have is average.

    Raises:
        ValidationError: The trait is no finite number.
    """
    value = None if traits is None else traits.get(name)
    return AVERAGE_TRAIT if value is None else within(name, value, 0.0, 1.0)


def affect_within(affect: Affect) -> Affect:
    """The affect with each part moved into [-1, 1].

    Raises:
        ValidationError: A part is no finite number.
    """
    return Affect(
        within("valence", affect.valence, -1.0, 1.0),
        within("arousal", affect.arousal, -1.0, 1.0),
        within("dominance", affect.dominance, -1.0, 1.0),
    )


def arousal_share(arousal: float) -> float:
    """Arousal from [-1, 1] as a share from 0 (asleep) to 1 (most excited)."""
    return (arousal + 1.0) / 2.0


def intensity(affect: Affect) -> float:
    """How strong a feeling is, in [0, 1]: far from neutral, and awake."""
    return abs(affect.valence) * arousal_share(affect.arousal)
