"""The name of a feeling."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from ..affect import Share, Vad
from . import constants as k

NEUTRAL = "neutral"


class Label(BaseModel):
    """A feeling in a word.

    Attributes:
        primary: The word: ``neutral``, or an emotion of Ortony, Clore & Collins (1988).
        intensity: In [0, 1].
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    primary: str = NEUTRAL
    intensity: Share = 0.0


def label(vad: Vad) -> Label:
    """The emotion whose point lies most in the direction of ``vad``.

    Of equals it is the first by the alphabet. A feeling shorter than 0.1 is neutral. The word
    names the whole feeling, with what was felt before, and not the last event.
    """
    length = math.hypot(*vad.point)
    intensity = min(length / math.sqrt(3.0), 1.0)
    if length < k.LABEL_FROM:
        return Label(intensity=intensity)

    def away(name: str) -> float:
        point = k.EMOTIONS[name]
        along = sum(a * b for a, b in zip(vad.point, point, strict=True))
        # Rounded, so that points in one direction are equals whatever their lengths.
        return -round(along / (length * math.hypot(*point)), 12)

    return Label(primary=min(sorted(k.EMOTIONS), key=away), intensity=intensity)
