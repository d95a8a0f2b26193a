"""A model that hangs is left alone for a while; one that answers nonsense is not believed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gmi.activities.embedders.embedder import (
    EmbedderDownError,
    EmbedderError,
    EmbedKind,
    Vectors,
)
from gmi.activities.embedders.watched import FIRST_PAUSE, LONGEST_PAUSE, WatchedEmbedder


class Clock:
    """Stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Model:
    """An embedding model whose answers take as long as the test says."""

    model = "test:model"
    dimension: int | None = None

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.takes = 0.0
        self.fails: Exception | None = None
        self.answer: Any = [[3.0, 4.0]]
        self.calls = 0
        self.gate: asyncio.Event | None = None

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        self.calls += 1
        self.clock.now += self.takes
        if self.gate is not None:
            await self.gate.wait()
        if self.fails is not None:
            raise self.fails
        found: Vectors = self.answer
        return found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def model(clock: Clock) -> Model:
    return Model(clock)


@pytest.fixture
def watched(model: Model, clock: Clock) -> WatchedEmbedder:
    return WatchedEmbedder(model, clock)


async def hang(watched: WatchedEmbedder, model: Model) -> None:
    model.takes, model.fails = 5.0, EmbedderDownError("no answer")
    with pytest.raises(EmbedderDownError, match="no answer"):
        await watched.embed(["a"], "query")
    model.takes, model.fails = 0.0, None


async def test_a_model_that_hung_is_not_asked_until_the_pause_is_over(
    watched: WatchedEmbedder, model: Model, clock: Clock
) -> None:
    await hang(watched, model)
    clock.now += FIRST_PAUSE - 1
    with pytest.raises(EmbedderDownError, match="left alone") as left:
        await watched.embed(["a"], "passage")
    assert left.value.details["retry_after"] == pytest.approx(1.0)
    assert model.calls == 1
    clock.now += 2
    assert np.allclose(await watched.embed(["a"], "query"), [[0.6, 0.8]])
    assert model.calls == 2


async def test_the_pause_doubles_while_the_model_hangs_and_is_short_again_afterwards(
    watched: WatchedEmbedder, model: Model, clock: Clock
) -> None:
    for pause in (FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE):
        await hang(watched, model)
        clock.now += pause - 0.5
        with pytest.raises(EmbedderDownError, match="left alone"):
            await watched.embed(["a"], "query")
        clock.now += 1
    await watched.embed(["a"], "query")
    await hang(watched, model)
    clock.now += FIRST_PAUSE + 1
    await watched.embed(["a"], "query")


async def test_calls_that_hang_together_are_one_failure(
    watched: WatchedEmbedder, model: Model, clock: Clock
) -> None:
    model.gate = asyncio.Event()
    model.fails = EmbedderDownError("no answer")
    calls = [asyncio.create_task(watched.embed(["a"], "query")) for _ in range(5)]
    async with asyncio.timeout(10):
        while model.calls < 5:
            await asyncio.sleep(0)
    clock.now += 5
    model.gate.set()
    for failure in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(failure, EmbedderDownError)
    model.gate, model.fails = None, None
    clock.now += FIRST_PAUSE + 1
    await watched.embed(["a"], "query")


async def test_only_one_call_tries_a_model_that_hung(
    watched: WatchedEmbedder, model: Model, clock: Clock
) -> None:
    await hang(watched, model)
    clock.now += FIRST_PAUSE + 1
    model.gate = asyncio.Event()
    trying = asyncio.create_task(watched.embed(["a"], "passage"))
    async with asyncio.timeout(10):
        while model.calls < 2:
            await asyncio.sleep(0)
    with pytest.raises(EmbedderDownError, match="left alone"):
        await watched.embed(["a"], "query")
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    # Who gave up says nothing of the model: the next one may try.
    model.gate.set()
    await watched.embed(["a"], "query")
    assert model.calls == 3


async def test_a_model_that_refuses_at_once_is_asked_again_at_once(
    watched: WatchedEmbedder, model: Model
) -> None:
    model.fails = EmbedderDownError("overloaded")
    for _ in range(3):
        with pytest.raises(EmbedderDownError, match="overloaded"):
            await watched.embed(["a"], "query")
    model.fails = None
    await watched.embed(["a"], "query")
    assert model.calls == 4


async def test_a_call_without_an_end_is_given_up(model: Model, clock: Clock) -> None:
    watched = WatchedEmbedder(model, clock, {"query": 0.01, "passage": 0.01})
    model.gate = asyncio.Event()
    with pytest.raises(EmbedderDownError, match=r"within 0\.01 s"):
        await watched.embed(["a"], "query")
    with pytest.raises(EmbedderDownError, match="left alone"):
        await watched.embed(["a"], "query")


@pytest.mark.parametrize(
    "answer",
    [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0]], [[float("nan"), 1.0]], [[]], [1.0], None],
)
async def test_an_answer_that_is_not_one_vector_for_each_text_is_an_error(
    watched: WatchedEmbedder, model: Model, answer: Any
) -> None:
    model.answer = answer
    with pytest.raises(EmbedderError):
        await watched.embed(["a"], "query")


async def test_a_size_that_changes_under_one_name_is_an_error(
    watched: WatchedEmbedder, model: Model
) -> None:
    await watched.embed(["a"], "query")
    assert watched.dimension == 2
    model.answer = np.ones((1, 3))
    with pytest.raises(EmbedderError, match="another model"):
        await watched.embed(["a"], "query")


async def test_whatever_a_model_raises_is_an_error_of_the_model(
    watched: WatchedEmbedder, model: Model
) -> None:
    model.fails = RuntimeError("out of order")
    with pytest.raises(EmbedderError, match="RuntimeError: out of order"):
        await watched.embed(["a"], "query")
