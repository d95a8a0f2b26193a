"""Where a trace stands in its conversation, and which traces stand next to it.

What was said just before and just after tells what a short text is about ("Rex!"). A user's words
and the replies to them lie in different scopes, so neighbours are found by a number that needs no
scope: equal but for the last digits within a branch, and one higher for each text in it.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from .traces import Trace

Keys = NDArray[np.int64]
Numbers = NDArray[np.intp]

NO_PLACE = -1
DISTANCES = (-2, -1, 1, 2)
"""How far a neighbour may be, in texts."""

_TEXTS = 23
"""Bits that count the texts of a branch: four million turns."""
_SLOTS = {"user": 0, "assistant": 1}


def place_of(trace: Trace) -> int:
    """The place of a trace, or ``NO_PLACE`` when no user and no model said it in a session."""
    slot = _SLOTS.get(trace.role)
    if slot is None or not trace.turn or trace.depth < 0:
        return NO_PLACE
    return _start(trace.session, trace.branch) + (2 * trace.depth + slot) % (1 << _TEXTS)


@lru_cache(maxsize=4096)
def _start(session: str, branch: str) -> int:
    digest = blake2b(f"{session}\n{branch}".encode(), digest_size=5).digest()
    return int.from_bytes(digest, "big") << _TEXTS


class Places:
    """The places of a scope's rows."""

    def __init__(self) -> None:
        self._size = 0
        self._keys: Keys = np.full(256, NO_PLACE, np.int64)
        self._near: Numbers = np.full((len(DISTANCES), 256), -1, np.intp)
        self._row_of: dict[int, int] = {}
        self._ordered: Keys = np.zeros(0, np.int64)
        self._ordered_rows: Numbers = np.zeros(0, np.intp)

    def __len__(self) -> int:
        return self._size

    @property
    def keys(self) -> Keys:
        """The place of each row."""
        return self._keys[: self._size]

    @property
    def bytes(self) -> int:
        """An estimate of the memory that is held."""
        arrays = (self._keys, self._near, self._ordered, self._ordered_rows)
        return sum(array.nbytes for array in arrays) + 120 * len(self._row_of)

    def near(self, number: int) -> Numbers:
        """For each row, the row at ``DISTANCES[number]`` from it; -1 where there is none."""
        return self._near[number, : self._size]

    def add(self, keys: list[int]) -> None:
        """Add a row for each place."""
        first = self._size
        self._reserve(first + len(keys))
        self._size += len(keys)
        self._keys[first : self._size] = keys
        placed = [(key, row) for row, key in enumerate(keys, first) if key != NO_PLACE]
        self._row_of.update(placed)
        for key, row in placed:
            for number, distance in enumerate(DISTANCES):
                other = self._row_of.get(key + distance, -1)
                self._near[number, row] = other
                if other >= 0:
                    self._near[-1 - number, other] = row
        self._order(np.array(sorted(placed), np.int64).reshape(-1, 2))

    def drop(self, row: int) -> None:
        """Take the place from a row that is gone."""
        key = int(self._keys[row])
        self._keys[row] = NO_PLACE
        if self._row_of.get(key) == row:
            del self._row_of[key]
        for number in range(len(DISTANCES)):
            other = int(self._near[number, row])
            if other >= 0:
                self._near[-1 - number, other] = -1
        self._near[:, row] = -1

    def find(self, keys: Keys) -> Numbers:
        """The row at each place; -1 where there is none."""
        if not len(self._ordered):
            return np.full(len(keys), -1, np.intp)
        # Of rows that stood at the same place only the last one can still be there.
        at = np.searchsorted(self._ordered, keys, side="right") - 1
        rows = self._ordered_rows[np.maximum(at, 0)]
        return np.where((at >= 0) & (self._keys[rows] == keys), rows, np.intp(-1))

    def placed(self) -> tuple[Keys, Numbers]:
        """The places that are taken, in ascending order, and the row at each."""
        last = np.ones(len(self._ordered), np.bool_)
        last[:-1] = self._ordered[1:] != self._ordered[:-1]
        keys, rows = self._ordered[last], self._ordered_rows[last]
        still = self._keys[rows] == keys
        return keys[still], rows[still]

    def compacted(self, keep: NDArray[np.bool_]) -> Places:
        """The places of some of the rows, which move together in their order."""
        kept = Places()
        kept.add(self.keys[keep].tolist())
        return kept

    def _order(self, placed: Keys) -> None:
        keys, rows = placed[:, 0], placed[:, 1].astype(np.intp)
        at = np.searchsorted(self._ordered, keys, side="right")
        self._ordered = np.insert(self._ordered, at, keys)
        self._ordered_rows = np.insert(self._ordered_rows, at, rows)

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._keys):
            return
        size = max(rows, 2 * len(self._keys))
        keys: Keys = np.full(size, NO_PLACE, np.int64)
        near: Numbers = np.full((len(DISTANCES), size), -1, np.intp)
        keys[: self._size] = self.keys
        near[:, : self._size] = self._near[:, : self._size]
        self._keys, self._near = keys, near
