"""What a mind feels, as a point: valence, arousal and dominance."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

DECIMALS = 9
"""Places to which what a mind keeps is rounded, so that replays and databases agree."""

Point = tuple[float, float, float]
"""Valence, arousal and dominance while they are computed: neither rounded nor limited."""


def rounded(value: float) -> float:
    """``value`` as it is kept: to nine decimals, and never a negative zero."""
    return round(value, DECIMALS) + 0.0


def limited(value: float, low: float, high: float) -> float:
    """The nearest value within ``low`` and ``high``."""
    return min(max(value, low), high)


Signed = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False), AfterValidator(rounded)]
"""A kept number in [-1, 1]."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(rounded)]
"""A kept number in [0, 1]."""


class Vad(BaseModel):
    """A feeling, by the three dimensions of Mehrabian & Russell (1974), each in [-1, 1].

    Attributes:
        valence: From unpleasant to pleasant.
        arousal: From calm to excited.
        dominance: From being at the mercy of things to having them in hand.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    valence: Signed = 0.0
    arousal: Signed = 0.0
    dominance: Signed = 0.0

    @classmethod
    def at(cls, point: Point) -> Self:
        """The feeling nearest to a computed point."""
        valence, arousal, dominance = (limited(value, -1.0, 1.0) for value in point)
        return cls(valence=valence, arousal=arousal, dominance=dominance)

    @property
    def point(self) -> Point:
        """The three numbers, to compute with."""
        return (self.valence, self.arousal, self.dominance)
