"""The vectors of a scope's traces under one embedding model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...personas.errors import ValidationError
from .words import Mask

Vector = NDArray[np.float32]

DIRECTIONS = 96
"""Numbers of a row that a rough search reads."""
ROUGH_FROM = 20_000
"""Rows from which on a rough search is worth its while."""

_BLOCK = 8192
"""Rows in a block: growing never copies the vectors that are there."""
_SAMPLE = 1024
"""Vectors that the directions are taken from."""


class VectorIndex:
    """One vector, or none, for each row.

    Vectors are kept at length 1, so that the product with a query of length 1 is the cosine.

    Reading every vector takes longer than everything else in a recall: 150 MB in a scope of
    100,000 rows of 384 numbers. There the search may begin with the directions in which the
    vectors differ most; the cosines that decide are then taken exactly.

    Args:
        model: ``provider:model`` that all of them, and every query, come from.
        dimension: Numbers in a vector; those of the first one without it.
    """

    def __init__(self, model: str, dimension: int | None = None) -> None:
        self.model = model
        self._blocks: list[Vector] = []
        self._known = np.zeros(0, np.bool_)
        self._size = 0
        self._dimension = dimension
        self._directions: _Directions | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; ``None`` before the first one."""
        return self._dimension

    @property
    def known(self) -> Mask:
        """For each row, whether it has a vector."""
        return self._known[: self._size]

    @property
    def bytes(self) -> int:
        """Memory that is held."""
        held = sum(block.nbytes for block in self._blocks) + self._known.nbytes
        return held + (self._directions.bytes if self._directions is not None else 0)

    def extend(self, rows: int) -> None:
        """Add rows without a vector."""
        self._size += rows
        if self._size > len(self._known):
            larger = np.zeros(max(self._size, 2 * len(self._known), 256), np.bool_)
            larger[: len(self._known)] = self._known
            self._known = larger
        self._make_blocks()

    def put(self, row: int, vector: ArrayLike) -> None:
        """Give a row its vector.

        Raises:
            ValidationError: It is no vector, has no length, or another size than the others.
        """
        checked = unit(vector, self.model, self._dimension)
        if self._dimension is None:
            self._dimension = len(checked)
            self._make_blocks()
        self._blocks[row // _BLOCK][row % _BLOCK] = checked
        self._known[row] = True
        if self._directions is not None:
            self._directions.put(row, checked)

    def offer(self, row: int, vector: ArrayLike) -> bool:
        """Give a row its vector if it is one of the model; the row has none otherwise.

        A vector of another size is what another model left that went by the same name.

        Returns:
            Whether the row has it.
        """
        try:
            self.put(row, vector)
        except ValidationError:
            self._known[row] = False
            return False
        return True

    def get(self, row: int) -> Vector | None:
        """The vector of a row, at length 1, or ``None`` where it has none."""
        if not self._known[row]:
            return None
        found: Vector = self._blocks[row // _BLOCK][row % _BLOCK]
        return found

    def similarity(self, query: ArrayLike) -> Vector:
        """The cosine of a query with each row; 0 for a row without a vector.

        Raises:
            ValidationError: The query has another size than the vectors.
        """
        found = np.zeros(self._size, np.float32)
        if self._dimension is None:
            return found
        asked = unit(query, self.model, self._dimension)
        for number, block in enumerate(self._blocks):
            start = number * _BLOCK
            part = block[: self._size - start]
            found[start : start + len(part)] = _products(part, asked)
        return found

    def rough_similarity(self, query: ArrayLike) -> Vector:
        """About the cosine of a query with each row; exact in a scope that is not large.

        What it gives a row without a vector means nothing.

        Raises:
            ValidationError: The query has another size than the vectors.
        """
        if self._directions is None:
            return self.similarity(query)
        asked = unit(query, self.model, self._dimension)
        return self._directions.products(asked, self._size)

    def similarity_of(self, rows: NDArray[np.intp], query: ArrayLike) -> Vector:
        """The cosine of a query with some rows; 0 for a row without a vector.

        Raises:
            ValidationError: The query has another size than the vectors.
        """
        found = np.zeros(len(rows), np.float32)
        if self._dimension is None:
            return found
        asked = unit(query, self.model, self._dimension)
        of_block = rows // _BLOCK
        for number in np.unique(of_block):
            here = of_block == number
            found[here] = _products(self._blocks[number][rows[here] % _BLOCK], asked)
        return found

    def settle(self) -> None:
        """Take the directions of a rough search anew where the scope has outgrown them."""
        fitted = self._directions.fitted if self._directions is not None else ROUGH_FROM // 2
        if self._dimension is None or self._dimension < 2 * DIRECTIONS or self._size < 2 * fitted:
            return
        rows = np.flatnonzero(self.known)
        if len(rows) < _SAMPLE:
            return
        rows = rows[np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.intp)]
        sample = np.stack([self._blocks[row // _BLOCK][row % _BLOCK] for row in rows])
        self._directions = _Directions(sample, self._size)
        for block in self._blocks:
            self._directions.append(block)

    def compact(self, keep: Mask) -> None:
        """Leave only some rows; they move together in their order.

        Args:
            keep: For each row, whether it stays.
        """
        old, self._blocks = self._blocks, []
        self._known = self.known[keep].copy()
        self._size = len(self._known)
        self._directions = None
        self._make_blocks()
        at = 0
        for number, block in enumerate(old):
            here = keep[number * _BLOCK :][:_BLOCK]
            at = self._write(block[: len(here)][here], at)
        self.settle()

    def _write(self, vectors: Vector, at: int) -> int:
        while len(vectors):
            block, row = self._blocks[at // _BLOCK], at % _BLOCK
            part = vectors[: _BLOCK - row]
            block[row : row + len(part)] = part
            at, vectors = at + len(part), vectors[len(part) :]
        return at

    def _make_blocks(self) -> None:
        if self._dimension is None:
            return
        while len(self._blocks) * _BLOCK < self._size:
            block = np.zeros((_BLOCK, self._dimension), np.float32)
            self._blocks.append(block)
            if self._directions is not None:
                self._directions.append(block)


class _Directions:
    """The vectors, less their mean, in the directions in which a sample of them differs most."""

    def __init__(self, sample: Vector, size: int) -> None:
        self.fitted = size
        self._mean = sample.mean(axis=0)
        centred = sample - self._mean
        # The sample's own products are few, however many numbers a vector has.
        lengths, sides = np.linalg.eigh(centred @ centred.T)
        scale = np.sqrt(np.maximum(lengths[-DIRECTIONS:], 1e-12))
        self._axes = np.ascontiguousarray(centred.T @ (sides[:, -DIRECTIONS:] / scale))
        self._blocks: list[Vector] = []

    @property
    def bytes(self) -> int:
        return sum(block.nbytes for block in self._blocks) + self._axes.nbytes

    def append(self, block: Vector) -> None:
        self._blocks.append((block - self._mean) @ self._axes)

    def put(self, row: int, vector: Vector) -> None:
        self._blocks[row // _BLOCK][row % _BLOCK] = (vector - self._mean) @ self._axes

    def products(self, query: Vector, size: int) -> Vector:
        turned = query @ self._axes
        found = np.concatenate([_products(part, turned) for part in self._parts(size)])
        found += np.float32(query @ self._mean)
        return found

    def _parts(self, size: int) -> Iterator[Vector]:
        for number, block in enumerate(self._blocks):
            yield block[: size - number * _BLOCK]


def usual_size(vectors: Iterable[ArrayLike]) -> int | None:
    """How many numbers most of the vectors have; ``None`` where there are none."""
    sizes = Counter(np.size(vector) for vector in vectors)
    return max(sizes, key=lambda size: (sizes[size], size)) if sizes else None


def _products(rows: Vector, query: Vector) -> Vector:
    # As fast as BLAS, which would start threads that wait for each other on a busy machine.
    found: Vector = np.einsum("ij,j->i", rows, query)
    return found


def unit(vector: ArrayLike, model: str, dimension: int | None) -> Vector:
    """A vector at length 1.

    Args:
        vector: The numbers.
        model: The model that they are said to come from, for the message.
        dimension: How many numbers there must be, where that is known.

    Raises:
        ValidationError: It is no vector, has no length, or another size.
    """
    given = np.asarray(vector, np.float32)
    if given.ndim != 1 or (dimension is not None and len(given) != dimension):
        raise ValidationError(
            f"A vector of shape {given.shape} is not of {model}, whose vectors here have "
            f"{dimension} numbers; embed again with one model"
        )
    length = float(np.linalg.norm(given))
    if not 0.0 < length < float("inf"):
        raise ValidationError(f"A vector of {model} has the length {length}; embed the text again")
    scaled: Vector = given / np.float32(length)
    return scaled
