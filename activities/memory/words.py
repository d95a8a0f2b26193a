"""Words of a scope's traces: the tokenizer, and an inverted index that grows row by row.

Both databases share this one ranking; neither's own text search is used, because the two would
find different memories.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Counts = NDArray[np.float32]
Mask = NDArray[np.bool_]

STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "above",
        "after",
        "again",
        "against",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "aren",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "but",
        "by",
        "can",
        "could",
        "couldn",
        "d",
        "did",
        "didn",
        "do",
        "does",
        "doesn",
        "doing",
        "don",
        "down",
        "during",
        "each",
        "few",
        "for",
        "from",
        "further",
        "had",
        "hadn",
        "has",
        "hasn",
        "have",
        "haven",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "herself",
        "him",
        "himself",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "isn",
        "it",
        "its",
        "itself",
        "just",
        "ll",
        "m",
        "me",
        "might",
        "more",
        "most",
        "must",
        "my",
        "myself",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "ours",
        "ourselves",
        "out",
        "over",
        "own",
        "re",
        "s",
        "same",
        "shall",
        "she",
        "should",
        "so",
        "some",
        "such",
        "t",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "themselves",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "ve",
        "very",
        "was",
        "wasn",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "won",
        "would",
        "wouldn",
        "you",
        "your",
        "yours",
        "yourself",
        "yourselves",
    ]
)

_WORD = re.compile(r"\w+")
# Scripts that write words without spaces between them.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
_LONGEST = 64
"""Characters of a word that count; what is longer is no word that anybody asks for."""

_stemming = threading.Lock()


def tokenize(text: str) -> list[str]:
    """The words of a text as they are counted, in their order.

    Unicode words in lower case (NFKC), without English stop words, reduced to their stems by the
    English Snowball stemmer; scripts without spaces between words are cut into pairs of
    neighbouring signs.
    """
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if word in STOP_WORDS:
            continue
        if word.isascii() or not _UNSPACED.search(word):
            found.append(_stem(word[:_LONGEST]))
        else:
            found.extend(_pieces(word))
    return found


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    # The stemmer keeps the word that it works on in itself.
    with _stemming:
        return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    # Its tables take a tenth of a second to load, and many workers remember nothing.
    import snowballstemmer  # type: ignore[import-untyped]

    return snowballstemmer.stemmer("english")


def _pieces(word: str) -> Iterable[str]:
    at = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > at:
            yield _stem(word[at : run.start()][:_LONGEST])
        signs = run.group()
        if len(signs) == 1:
            yield signs
        for first in range(len(signs) - 1):
            yield signs[first : first + 2]
        at = run.end()
    if at < len(word):
        yield _stem(word[at:][:_LONGEST])


class _Segment:
    """Postings of some rows, ordered by term: ``rows[starts[i]:starts[i + 1]]`` hold ``terms[i]``.

    The rows of one term ascend.
    """

    __slots__ = ("counts", "rows", "starts", "terms")

    def __init__(self, terms: Rows, rows: Rows, counts: Counts) -> None:
        self.terms, first = np.unique(terms, return_index=True)
        self.starts = np.append(first, len(terms)).astype(np.int32)
        self.rows = rows
        self.counts = counts

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def bytes(self) -> int:
        arrays = (self.terms, self.starts, self.rows, self.counts)
        return sum(array.nbytes for array in arrays)

    def find(self, term: int) -> slice | None:
        at = int(np.searchsorted(self.terms, term))
        if at == len(self.terms) or self.terms[at] != term:
            return None
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    def spelled_out(self) -> Rows:
        """The term of each posting."""
        return np.repeat(self.terms, np.diff(self.starts))


class WordIndex:
    """Which row holds which word how often.

    Rows are added at the end and are never changed; a row that is gone stays in the postings
    until :meth:`compact`, and whoever asks leaves it out by a mask.

    Postings lie in segments that double in size, so that adding a row costs the same in a scope
    of ten and of a hundred thousand.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._segments: list[_Segment] = []
        self._lengths = np.zeros(256, np.float32)
        self._size = 0
        self._letters = 0

    def __len__(self) -> int:
        return self._size

    @property
    def lengths(self) -> Counts:
        """Words in each row."""
        return self._lengths[: self._size]

    @property
    def bytes(self) -> int:
        """An estimate of the memory that is held."""
        words = self._letters + 120 * len(self._numbers)
        return words + self._lengths.nbytes + sum(segment.bytes for segment in self._segments)

    def add(self, texts: Sequence[str]) -> None:
        """Add a row for each text."""
        if not texts:
            return
        terms: list[int] = []
        rows: list[int] = []
        counts: list[int] = []
        lengths = np.zeros(len(texts), np.float32)
        for place, text in enumerate(texts):
            words = tokenize(text)
            lengths[place] = len(words)
            for word, count in Counter(words).items():
                terms.append(self._number(word))
                rows.append(self._size + place)
                counts.append(count)
        self._grow(len(texts))
        self._lengths[self._size : self._size + len(texts)] = lengths
        self._size += len(texts)
        self._append(
            np.array(terms, np.int32), np.array(rows, np.int32), np.array(counts, np.float32)
        )

    def postings(self, word: str) -> tuple[Rows, Counts]:
        """The rows that hold a word, as :func:`tokenize` gives it, and how often each does."""
        term = self._numbers.get(word)
        if term is None:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        found = [(s, part) for s in self._segments if (part := s.find(term)) is not None]
        if len(found) == 1:
            segment, part = found[0]
            return segment.rows[part], segment.counts[part]
        return (
            np.concatenate([np.zeros(0, np.int32), *(s.rows[part] for s, part in found)]),
            np.concatenate([np.zeros(0, np.float32), *(s.counts[part] for s, part in found)]),
        )

    def compact(self, keep: Mask) -> None:
        """Leave only some rows; they move together in their order.

        Args:
            keep: For each row, whether it stays.
        """
        moved = (np.cumsum(keep) - 1).astype(np.int32)
        parts: list[tuple[Rows, Rows, Counts]] = []
        for segment in self._segments:
            stays = keep[segment.rows]
            parts.append(
                (
                    segment.spelled_out()[stays],
                    moved[segment.rows[stays]],
                    segment.counts[stays],
                )
            )
        self._lengths = self.lengths[keep].copy()
        self._size = len(self._lengths)
        self._segments = []
        used = np.zeros(0, np.int32)
        if parts:
            used = np.unique(np.concatenate([terms for terms, _, _ in parts]))
        renumbered = {int(old): new for new, old in enumerate(used)}
        self._numbers = {
            word: renumbered[old] for word, old in self._numbers.items() if old in renumbered
        }
        self._letters = sum(map(len, self._numbers))
        for terms, rows, counts in parts:
            self._append(np.searchsorted(used, terms).astype(np.int32), rows, counts)

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self._numbers)
            self._letters += len(word)
        return number

    def _grow(self, more: int) -> None:
        needed = self._size + more
        if needed > len(self._lengths):
            larger = np.zeros(max(needed, 2 * len(self._lengths)), np.float32)
            larger[: self._size] = self.lengths
            self._lengths = larger

    def _append(self, terms: Rows, rows: Rows, counts: Counts) -> None:
        if not len(terms):
            return
        # Smaller segments at the end join the new one; the stable order keeps rows ascending.
        while self._segments and len(self._segments[-1]) < 2 * len(terms):
            last = self._segments.pop()
            terms = np.concatenate([last.spelled_out(), terms])
            rows = np.concatenate([last.rows, rows])
            counts = np.concatenate([last.counts, counts])
        order = np.argsort(terms, kind="stable")
        self._segments.append(_Segment(terms[order], rows[order], counts[order]))
