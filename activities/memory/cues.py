"""Which cues are met by what is said: by meaning where there is a model for it, and by words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...personas.errors import GMIError
from ...workflows.steps import Reminder
from ..embedders.embedder import Embedder, Vectors
from .vectors import Vector
from .words import tokenize

SIMILARITY = 0.7
"""Cosine of a cue with what is said from which on the cue is met."""

ABOVE_UNRELATED = 0.3
"""Share of the way from the cosine of unrelated texts to 1 that has to be gone in any case: some
models put every two texts near each other."""

WORD_SHARE = 0.6
"""Share of a cue's word stems that what is said must hold."""

MAX_TEXT = 2000
MAX_KEPT = 512

_UNRELATED = (
    "The train to the coast leaves at seven",
    "Please sort this list of numbers",
    "My neighbour's roof was damaged by hail",
    "She plays the cello in an orchestra",
    "Add a pinch of salt to the dough",
    "The contract ends with the fiscal year",
)

# The cosine of vectors in single precision is off by some units in the seventh place.
_ROUNDING = 1e-6


class Cues:
    """Compares cues with what is said.

    A cue is met when most of its words are said, or when its meaning is near: by the cosine of
    the two texts' vectors, where there is an embedding model.

    Args:
        embedder: The model; without one words alone count.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vector] = {}
        self._least: float | None = None

    async def met(
        self, reminders: Sequence[Reminder], text: str
    ) -> tuple[list[Reminder], list[str]]:
        """The reminders whose cue is met, in their order, and what went wrong on the way.

        Args:
            reminders: Those without a cue are passed over.
            text: What is said.
        """
        waiting = [item for item in reminders if item.cue is not None]
        said = text.strip()[:MAX_TEXT]
        if not waiting or not said:
            return [], []
        by_words = {item.id for item in waiting if word_share(item.cue or "", said) >= WORD_SHARE}
        others = [item for item in waiting if item.id not in by_words]
        warnings: list[str] = []
        near: set[str] = set()
        if self._embedder is not None and others:
            try:
                near = await self._near(self._embedder, others, said)
            except GMIError as error:
                warnings.append(
                    f"CUES_WITHOUT_VECTORS: the embedding model {self._embedder.model} did not "
                    f"answer, cues were compared by words alone: {error.message}"
                )
        return [item for item in waiting if item.id in by_words | near], warnings

    async def _near(self, embedder: Embedder, waiting: Sequence[Reminder], said: str) -> set[str]:
        """Ids of the reminders whose cue means about what is said."""
        # While the model is asked, other turns may let go of vectors that this one needs.
        kept = self._vectors
        new = list(dict.fromkeys(i.cue for i in waiting if i.cue and i.cue not in kept))
        probes = list(_UNRELATED) if self._least is None else []
        vectors = await embedder.embed([said, *new, *probes], "query")
        if probes:
            self._least = least_similarity(vectors[1 + len(new) :])
        asked = dict(zip(new, vectors[1:], strict=False))
        known = {**kept, **asked}
        self._vectors = dict(list({**self._vectors, **asked}.items())[-MAX_KEPT:])
        least = max(SIMILARITY, self._least or 0.0) - _ROUNDING
        return {item.id for item in waiting if float(known[item.cue or ""] @ vectors[0]) >= least}


def word_share(cue: str, text: str) -> float:
    """Share of a cue's word stems that a text holds, in [0, 1].

    A cue of nothing but small words has to be said as it stands.
    """
    wanted = set(tokenize(cue))
    if not wanted:
        return float(cue.strip().casefold() in text.casefold())
    return len(wanted & set(tokenize(text))) / len(wanted)


def least_similarity(unrelated: Vectors) -> float:
    """The cosine from which on two texts are near each other for the model of these vectors.

    Measured, since short questions lie elsewhere than the memories that :mod:`.likeness` knows.
    """
    cosines = [float(a @ b) for a, b in itertools.combinations(unrelated, 2)]
    usual = float(np.mean(cosines))
    return usual + ABOVE_UNRELATED * (1 - usual)
