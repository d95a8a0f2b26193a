"""How well the words of traces answer a query: BM25 over several scopes, neighbours counted.

A word counts where it was said and, at a part of its weight, for what was said up to two texts
before and after, in whichever scope that lies: an answer rarely repeats the words of its
question. Counting at the time of the query, not of the storing, leaves every stored row as it is
when another is added beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .places import DISTANCES, NO_PLACE, Keys, Numbers, Places
from .words import Counts, Mask, WordIndex, tokenize

NEIGHBOUR_WEIGHT = 0.4
"""What a word counts for each neighbour, against 1 where it was said."""
SATURATION = 1.2
"""BM25's k1: how soon repeating a word stops to count."""
LENGTH_WEIGHT = 0.2
"""BM25's b: how far long texts are marked down. Low, as a text's neighbours are counted with it."""
FEW = 4
"""Scopes that are searched for neighbours one by one; more are put together first."""
MOST_WORDS = 32
"""Words of a query that count, the rarest; bounds the work for a query of many pages."""

Scores = NDArray[np.float32]


class Searched(NamedTuple):
    """A scope's words, and which of its rows count."""

    words: WordIndex
    places: Places
    mask: Mask


@dataclass(frozen=True, slots=True)
class WordScores:
    """Scores of the rows of several scopes.

    Attributes:
        scores: For each scope, the score of each row. A row that does not count may have one too.
        best: What a row would score that holds every word of the query without end.
    """

    scores: list[Scores]
    best: float


class _Word(NamedTuple):
    weight: float
    found: list[tuple[Numbers, Counts]]


def rank_words(query: str, scopes: Sequence[Searched]) -> WordScores:
    """Score every row of some scopes against a query.

    The scopes count as one collection: a word that is rare in all of them weighs most.

    Args:
        query: What is asked.
        scopes: What is searched.
    """
    total = sum(int(np.count_nonzero(scope.mask)) for scope in scopes)
    words = [_look_up(word, scopes, total) for word in dict.fromkeys(tokenize(query))]
    words = sorted(words, key=lambda word: -word.weight)[:MOST_WORDS]
    best = (SATURATION + 1) * sum(word.weight for word in words)
    spoken = sum(float(scope.words.lengths[scope.mask].sum()) for scope in scopes)
    average = max(spoken / total, 1.0) if total else 1.0
    sheets = [_Sheet(scope.words, average) for scope in scopes]
    directory = _Directory(scopes) if len(scopes) > FEW else _OneByOne(scopes)
    for word in words:
        _count(word.found, scopes, sheets, directory)
        for sheet in sheets:
            sheet.add_up(word.weight)
    return WordScores([sheet.scores[:-1] for sheet in sheets], best)


class _Sheet:
    """The scores of a scope's rows, and what is counted for the word at hand.

    Both have one place more than there are rows: the last one, which is also the place -1, takes
    what falls to a neighbour that is not there.
    """

    def __init__(self, words: WordIndex, average: float) -> None:
        self.scores: Scores = np.zeros(len(words) + 1, np.float32)
        self._counted: Counts = np.zeros(len(words) + 1, np.float32)
        self._long = np.full(len(words) + 1, SATURATION, np.float32)
        share = SATURATION * LENGTH_WEIGHT
        self._long[:-1] = SATURATION - share + share / average * words.lengths
        self._touched: list[Numbers] = []

    def count(self, rows: Numbers, counts: Counts) -> None:
        """Add to rows, each of which comes once but for -1."""
        self._counted[rows] += counts
        self._touched.append(rows)

    def add_up(self, weight: float) -> None:
        """Turn what was counted into scores, and begin with the next word."""
        touched, self._touched = self._touched, []
        if not touched:
            return
        gain = np.float32(weight * (SATURATION + 1))
        if 4 * sum(map(len, touched)) > len(self.scores):
            self.scores += gain * self._counted / (self._counted + self._long)
            self._counted.fill(0)
            return
        # A row may be here more than once: it is then given the same value again.
        rows = np.concatenate(touched)
        counts = self._counted[rows]
        self.scores[rows] = self.scores[rows] + gain * counts / (counts + self._long[rows])
        self._counted[rows] = 0


def _look_up(word: str, scopes: Sequence[Searched], total: int) -> _Word:
    found: list[tuple[Numbers, Counts]] = []
    for scope in scopes:
        rows, counts = scope.words.postings(word)
        shown = scope.mask[rows]
        found.append((rows[shown].astype(np.intp), counts[shown]))
    holding = sum(len(rows) for rows, _ in found)
    return _Word(math.log1p((total - holding + 0.5) / (holding + 0.5)), found)


class _Neighbours(Protocol):
    def find(self, wanted: Keys, apart_from: int) -> Iterator[tuple[int, Numbers, Mask | slice]]:
        """The rows at some places in all scopes but one.

        Yields:
            A scope, rows of it (-1 for a place where it has none), and which of the places they
            are for.
        """
        ...


class _OneByOne:
    """Looks into each scope; as many times as there are scopes."""

    def __init__(self, scopes: Sequence[Searched]) -> None:
        self._places = [(at, scope.places) for at, scope in enumerate(scopes) if len(scope.places)]

    def find(self, wanted: Keys, apart_from: int) -> Iterator[tuple[int, Numbers, Mask | slice]]:
        for at, places in self._places:
            if at != apart_from:
                yield at, places.find(wanted), slice(None)


class _Directory:
    """The places of many scopes in one, so that a search does not grow with their square."""

    def __init__(self, scopes: Sequence[Searched]) -> None:
        placed = [scope.places.placed() for scope in scopes]
        keys = np.concatenate([keys for keys, _ in placed])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._rows = np.concatenate([rows for _, rows in placed])[order]
        self._scopes = np.repeat(np.arange(len(scopes)), [len(keys) for keys, _ in placed])[order]

    def find(self, wanted: Keys, apart_from: int) -> Iterator[tuple[int, Numbers, Mask | slice]]:
        at = np.searchsorted(self._keys, wanted, side="left")
        end = np.searchsorted(self._keys, wanted, side="right")
        # Two scopes may have a text at the same place: then there is more than one round.
        while (here := np.flatnonzero(at < end)).size:
            owners, rows = self._scopes[at[here]], self._rows[at[here]]
            for scope in np.unique(owners[owners != apart_from]):
                mine = owners == scope
                which = np.zeros(len(wanted), np.bool_)
                which[here[mine]] = True
                yield int(scope), rows[mine], which
            at = at + 1


def _count(
    found: list[tuple[Numbers, Counts]],
    scopes: Sequence[Searched],
    sheets: Sequence[_Sheet],
    directory: _Neighbours,
) -> None:
    """Count a word for its rows and for their neighbours in every scope."""
    for at, (rows, counts) in enumerate(found):
        if not len(rows):
            continue
        sheets[at].count(rows, counts)
        places, part = scopes[at].places, np.float32(NEIGHBOUR_WEIGHT) * counts
        for number in range(len(DISTANCES)):
            sheets[at].count(places.near(number)[rows], part)
        if len(scopes) == 1:
            continue
        keys = places.keys[rows]
        placed = keys != NO_PLACE
        for distance in DISTANCES:
            for other, near, which in directory.find(keys[placed] + distance, at):
                sheets[other].count(near, part[placed][which])
