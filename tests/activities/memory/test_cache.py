"""Scopes in memory: loaded in the background, kept within a bound, searched in linear time."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gmi.activities.memory.cache import ALWAYS, ScopeCache
from gmi.activities.memory.index import ScopeIndex
from gmi.activities.memory.ranking import FEW, Searched, rank_words
from gmi.activities.memory.recall import MAX_SCOPES, Recaller, RecallQuery
from gmi.activities.memory.store import MemoryStore, ScopeChanges, Writing
from gmi.activities.memory.traces import Scope, Trace
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.errors import StoreError
from gmi.personas.memory import MemorySettings

from .making import NOW


class SlowStore:
    """A store whose scopes can be read only when the test says so."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self.traces = list(traces)
        self.gate = asyncio.Event()
        self.reads = 0
        self.away = False

    async def versions(self, scopes: Sequence[Scope]) -> dict[Scope, int]:
        return dict.fromkeys(scopes, 7)

    async def changes(self, scope: Scope, since: int, model: str | None) -> ScopeChanges:
        self.reads += 1
        await self.gate.wait()
        if self.away:
            raise StoreError("the store is away")
        mine = [trace for trace in self.traces if trace.scope == scope]
        return ScopeChanges(7, False, mine, {})


def said(scope: Scope, content: str, **fields: object) -> Trace:
    trace = Trace(str(uuid.uuid4()), scope, content, created_at=NOW, last_access=NOW)
    return replace(trace, **fields)  # type: ignore[arg-type]


def cache_of(store: SlowStore, max_bytes: int = 10**9) -> ScopeCache:
    held: MemoryStore = store  # type: ignore[assignment]
    return ScopeCache(held, max_bytes)


async def test_a_load_that_has_just_ended_is_not_waited_for_once_more() -> None:
    kim = Scope("user", "kim")
    store = SlowStore([said(kim, "figs")])
    store.gate.set()
    cache = cache_of(store)
    await cache.load([kim], None)
    # As it is between the end of a load and the loop's next round, with a newer version at hand.
    ended = asyncio.create_task(asyncio.sleep(0))
    await ended
    [held] = cache._held.values()
    held.version, held.loading = 6, ended
    [index] = await cache.load([kim], None)
    assert len(index) == 1
    cache.close()


async def test_a_load_that_nobody_waits_for_any_longer_goes_on() -> None:
    kim = Scope("user", "kim")
    store = SlowStore([said(kim, "figs")])
    cache = cache_of(store)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await cache.load([kim], None)
    store.gate.set()
    [index] = await cache.load([kim], None)
    assert len(index) == 1
    assert store.reads == 1
    cache.close()


async def test_a_load_that_failed_is_tried_anew() -> None:
    kim = Scope("user", "kim")
    store = SlowStore([said(kim, "figs")])
    cache = cache_of(store)
    store.away = True
    store.gate.set()
    with pytest.raises(StoreError):
        await cache.load([kim], None)
    store.away = False
    [index] = await cache.load([kim], None)
    assert len(index) == 1
    cache.close()


async def test_closing_ends_what_is_loading() -> None:
    kim = Scope("user", "kim")
    cache = cache_of(SlowStore([]))
    waiting = asyncio.create_task(cache.load([kim], None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cache.close()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(10):
            await waiting


async def test_many_scopes_are_read_up_to_what_may_be_held() -> None:
    scopes = [Scope("thread", f"t{number}") for number in range(40)]
    store = SlowStore([said(scope, "figs") for scope in scopes])
    store.gate.set()
    whole = cache_of(store)
    everything = await whole.load(scopes, None)
    assert (len(everything), whole.is_full(everything)) == (40, False)
    one = everything[0].bytes
    small = cache_of(store, 10 * one)
    found = await small.load(scopes, None)
    assert ALWAYS < len(found) <= 11
    assert small.is_full(found)
    # As many as a session has are read whatever they weigh, and stay.
    tiny = cache_of(store, 1)
    before = store.reads
    for _ in range(2):
        assert len(await tiny.load(scopes[:ALWAYS], None)) == ALWAYS
    assert store.reads == before + ALWAYS
    for cache in (whole, small, tiny):
        cache.close()


async def test_a_recall_over_too_many_scopes_reads_some_and_says_so(
    memory: SQLMemoryStore,
) -> None:
    name = uuid.uuid4().hex
    scopes = [Scope("thread", f"{name}-{number}") for number in range(MAX_SCOPES + 5)]
    traces = [said(scope, "figs are sweet") for scope in scopes]
    await memory.write(Writing(now=NOW, new=traces))
    # What was written to most is read.
    await memory.write(Writing(now=NOW, new=[said(scopes[-1], "figs grow on trees")]))
    cache = ScopeCache(memory)
    recaller = Recaller(memory, cache)
    settings = MemorySettings(mechanisms=None, top_k=20)
    found = await recaller.recall(RecallQuery("trees", scopes, NOW, settings))
    assert [item.trace.content for item in found.items] == ["figs grow on trees"]
    assert found.warnings[0].startswith(f"RECALL_NARROWED: {MAX_SCOPES} of {MAX_SCOPES + 5}")
    few = await recaller.recall(RecallQuery("trees", scopes[-2:], NOW, settings))
    assert few.warnings == []
    cache.close()


def conversations(scopes: int, pieces: int) -> list[Searched]:
    """Sessions of two who speak in turn, each of whose words lie in one of the scopes."""
    texts: dict[int, list[Trace]] = {number: [] for number in range(scopes)}
    for piece in range(pieces):
        place = Scope("thread", f"t{piece % scopes}")
        texts[piece % scopes] += [
            said(
                place,
                f"word{piece % 7} and figs{depth}",
                id=f"{piece}-{depth}",
                session=f"s{piece // 2}",
                turn=f"t{depth}",
                branch="main",
                depth=depth,
                role=("user", "assistant")[piece % 2],
            )
            for depth in range(4)
        ]
    found = []
    for traces in texts.values():
        index = ScopeIndex(traces[0].scope)
        index.apply(traces)
        # A row that is gone has no place any longer.
        index.remove(trace.id for trace in traces if trace.depth == 3)
        found.append(Searched(index.words, index.places, index.active))
    return found


@pytest.mark.parametrize("scopes", [FEW, FEW + 1, 12])
def test_neighbours_count_the_same_in_whichever_scopes_they_lie(scopes: int) -> None:
    question = "word3 figs1 figs2"
    [alone] = rank_words(question, conversations(1, 24)).scores
    spread = rank_words(question, conversations(scopes, 24)).scores
    for number, scores in enumerate(spread):
        pieces = alone.reshape(24, 4)[number::scopes].reshape(-1)
        active = np.arange(len(pieces)) % 4 != 3
        assert scores[active].any()
        assert np.allclose(scores[active], pieces[active])


def test_two_scopes_may_have_texts_at_the_same_place() -> None:
    scopes = conversations(12, 12)
    # The replies of the first session, a second time.
    scopes.append(scopes[1])
    scores = rank_words("word0", scopes).scores
    assert scores[1].any()
    assert np.allclose(scores[1], scores[-1])


def test_the_time_of_a_search_grows_with_the_scopes_and_not_with_their_square() -> None:
    def seconds(count: int) -> float:
        scopes = conversations(count, count)
        times = []
        for _ in range(3):
            began = time.perf_counter()
            rank_words("word1 word2 word3 figs1 figs2", scopes)
            times.append(time.perf_counter() - began)
        return min(times)

    assert seconds(800) < 25 * seconds(80)
