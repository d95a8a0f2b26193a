"""Exact and rough search over vectors, checked against plain products."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gmi.activities.memory.vectors import ROUGH_FROM, VectorIndex
from gmi.personas.errors import ValidationError

Matrix = NDArray[np.float32]


def vectors(count: int, dimension: int = 16, seed: int = 3) -> Matrix:
    return np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)


def filled(given: Matrix) -> VectorIndex:
    index = VectorIndex("test:model")
    index.extend(len(given))
    for row, vector in enumerate(given):
        index.put(row, vector)
    return index


def cosines(given: Matrix, query: Matrix) -> Matrix:
    lengths = np.linalg.norm(given, axis=1) * np.linalg.norm(query)
    found: Matrix = given @ query / lengths
    return found


def test_similarity_is_the_cosine_with_every_row() -> None:
    given = vectors(9000)
    query = vectors(1, seed=4)[0]
    found = filled(given).similarity(query * 7)
    np.testing.assert_allclose(found, cosines(given, query), atol=1e-5)


def test_rows_without_a_vector_are_like_nothing() -> None:
    index = VectorIndex("test:model")
    index.extend(3)
    assert index.similarity([1.0, 0.0]).tolist() == [0, 0, 0]
    index.put(1, [2.0, 0.0])
    assert index.similarity([1.0, 0.0]).tolist() == [0, 1, 0]
    assert index.known.tolist() == [False, True, False]
    assert index.get(0) is None
    kept = index.get(1)
    assert kept is not None
    assert kept.tolist() == [1, 0]


def test_a_vector_of_another_size_is_refused() -> None:
    index = filled(vectors(2))
    with pytest.raises(ValidationError, match=r"\(8,\).*test:model.*16 numbers"):
        index.put(0, np.ones(8))
    with pytest.raises(ValidationError, match=r"\(8,\)"):
        index.similarity(np.ones(8))


@pytest.mark.parametrize("vector", [[0.0] * 16, [float("nan")] * 16])
def test_a_vector_without_a_length_is_refused(vector: list[float]) -> None:
    with pytest.raises(ValidationError, match="has the length"):
        filled(vectors(2)).put(0, vector)


def test_a_vector_can_be_put_anew() -> None:
    index = filled(vectors(3, 2))
    index.put(1, [0.0, 5.0])
    assert index.similarity([0.0, 1.0])[1] == 1


def test_compacting_moves_the_rows_that_stay_together() -> None:
    given = vectors(20_000, 4)
    keep = np.random.default_rng(1).random(20_000) < 0.6
    index = filled(given)
    index.compact(keep)
    query = vectors(1, 4, seed=9)[0]
    np.testing.assert_allclose(index.similarity(query), cosines(given[keep], query), atol=1e-5)


def test_some_rows_can_be_asked_for() -> None:
    given = vectors(9000)
    index = filled(given)
    query = vectors(1, seed=4)[0]
    rows = np.array([8999, 3, 8191, 8192])
    np.testing.assert_allclose(
        index.similarity_of(rows, query), cosines(given[rows], query), atol=1e-5
    )


def clustered(count: int) -> tuple[Matrix, Matrix]:
    """Vectors that differ in few directions, as those of a real model do, and queries near some."""
    chance = np.random.default_rng(11)
    spread = (1 / np.arange(1, 257)).astype(np.float32)
    given = chance.standard_normal((count, 256), dtype=np.float32) * spread + np.float32(0.5)
    noise = chance.standard_normal((20, 256), dtype=np.float32) * spread
    near = given[:: count // 20][:20] + np.float32(0.3) * noise
    return given.astype(np.float32), near.astype(np.float32)


def test_a_rough_search_of_a_large_scope_finds_nearly_all_of_the_best() -> None:
    given, queries = clustered(ROUGH_FROM)
    index = filled(given)
    index.settle()
    found = []
    for query in queries:
        rough = index.rough_similarity(query)
        exact = index.similarity(query)
        assert np.abs(rough - exact).max() > 1e-6, "the search was not a rough one"
        looked_at = set(np.argsort(-rough)[:200].tolist())
        found.append(np.mean([row in looked_at for row in np.argsort(-exact)[:20].tolist()]))
    assert np.mean(found) > 0.97


def test_rows_put_later_take_part_in_a_rough_search() -> None:
    given, queries = clustered(ROUGH_FROM)
    index = filled(given)
    index.settle()
    index.extend(9000)
    index.put(ROUGH_FROM + 8500, queries[0])
    assert int(np.argmax(index.rough_similarity(queries[0]))) == ROUGH_FROM + 8500


def test_a_search_of_a_small_scope_is_exact() -> None:
    given, queries = clustered(2000)
    index = filled(given)
    index.settle()
    assert index.rough_similarity(queries[0]).tolist() == index.similarity(queries[0]).tolist()
