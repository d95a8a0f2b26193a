"""What fits the known is encoded weaker, what is new stronger.

After Bartlett (1932) and the schema-consistency effects that Brewer & Treyens (1981) describe.
The factors are conventions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....personas.errors import ValidationError
from ....personas.memory import SchemaEncoding
from ..ranges import within

# The cosine of vectors in single precision is off by some units in the seventh place.
_ROUNDING = 1e-7


@dataclass(frozen=True, slots=True)
class Fit:
    """How something new fits the known.

    Attributes:
        strength: Its strength afterwards, in [0, 1].
        congruent: Whether it fits a cluster.
        violating: Whether clusters are known and it fits none.
        cluster: The cluster that it fits, or ``None``.
        similarity: To the nearest cluster; ``None`` where none is known.
    """

    strength: float
    congruent: bool
    violating: bool
    cluster: str | None
    similarity: float | None


def fit(
    vector: ArrayLike,
    centroids: Mapping[str, ArrayLike],
    strength: float,
    settings: SchemaEncoding,
) -> Fit:
    """How something new fits the known clusters, and its strength because of that.

    Args:
        vector: Its embedding.
        centroids: The clusters' centres by id, from the same embedding model; without any the
            strength stays as it is.
        strength: Before.
        settings: From which similarity on something fits, and the factors.

    Raises:
        ValidationError: A number is not finite, or the vectors differ in length.
    """
    strength = within("strength", strength, 0.0, 1.0)
    if not settings.enabled or not centroids:
        return Fit(strength, congruent=False, violating=False, cluster=None, similarity=None)
    own = _vector("the new vector", vector)
    nearest: str | None = None
    best = -np.inf
    for cluster, centroid in centroids.items():
        similarity = _cosine(own, _vector(f"the centre of cluster {cluster!r}", centroid))
        if similarity > best:
            nearest, best = cluster, similarity
    if best >= settings.cluster_similarity_threshold - _ROUNDING:
        weaker = min(1.0, strength * settings.congruency_discount)
        return Fit(weaker, congruent=True, violating=False, cluster=nearest, similarity=best)
    stronger = min(1.0, strength * settings.novelty_boost)
    return Fit(stronger, congruent=False, violating=True, cluster=None, similarity=best)


def _vector(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValidationError(f"{name} is not one row of finite numbers; embed the text again.")
    return array


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    if a.shape != b.shape:
        raise ValidationError(
            f"The vectors have {len(a)} and {len(b)} numbers; compare vectors of one model."
        )
    lengths = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / lengths if lengths > 0 else 0.0
