"""Consolidation gives memories the vectors that they lack."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmi.activities.memory import clusters
from gmi.activities.memory.reembedding import BATCH
from gmi.activities.memory.store import Writing
from gmi.activities.memory.traces import DAY
from gmi.activities.store.memory.sql import SQLMemoryStore

from .mind import NOW, Mind
from .models import TopicEmbedder, Writer, wording


async def test_a_gist_gets_a_vector_of_its_own_words(memory: SQLMemoryStore) -> None:
    mind, writer = Mind(memory), Writer("About the garden.")
    mind.embedder, mind.wording = TopicEmbedder(), wording(writer)
    old = await mind.remembers("coffee, all day long", retrievals=3)
    await mind.tidy()
    before = (await memory.vectors([old], "test:topics"))[old]
    await mind.tidy(NOW + 61 * DAY)
    assert mind.embedder.texts[-1] == "About the garden."
    assert (await memory.vectors([old], "test:topics"))[old].data != before.data


async def test_another_embedding_model_embeds_everything_anew_and_vectors_never_mix(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    mind.embedder = TopicEmbedder("test:old", 16)
    ids = {await mind.remembers(f"coffee {number}") for number in range(2 * BATCH + 3)}
    said: list[int] = []
    report = await mind.maintainer().tidy(mind.scope, NOW, "first", said.append)
    assert (report.embedded, report.clusters) == (len(ids), 1)
    assert said == [BATCH, 2 * BATCH, 2 * BATCH + 3]
    mind.embedder = TopicEmbedder("test:new", 24)
    assert (await mind.tidy()).embedded == len(ids)
    assert await mind.vectors("test:new") == await mind.vectors("test:old") == ids
    old = await memory.vectors(sorted(ids), "test:old")
    new = await memory.vectors(sorted(ids), "test:new")
    assert {vector.dimension for vector in old.values()} == {16}
    assert {vector.dimension for vector in new.values()} == {24}
    kept = await memory.consolidated(mind.persona, mind.scope)
    assert clusters.centroids(kept, "test:old") == {}
    assert {len(c) for c in clusters.centroids(kept, "test:new").values()} == {24}
    assert (await mind.tidy()).embedded == 0


async def test_a_model_that_is_down_leaves_vectors_for_later_and_the_rest_is_done(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    mind.embedder = TopicEmbedder()
    mind.embedder.down = True
    await mind.remembers("it rained", last_access=NOW - 91 * DAY)
    left = await mind.remembers("it snowed")
    report = await mind.tidy()
    assert (report.embedded, report.waiting_for_vectors, report.pruned) == (0, 1, 1)
    assert report.warnings[0].startswith("EMBEDDED_LATER: test:topics")
    mind.embedder.down = False
    report = await mind.tidy()
    assert (report.embedded, report.waiting_for_vectors, report.warnings) == (1, 0, [])
    assert await mind.vectors("test:topics") == {left}


async def test_a_text_that_the_model_refuses_holds_no_other_up(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    mind.embedder = TopicEmbedder()
    mind.embedder.refuses = "unspeakable"
    bad = await mind.remembers("unspeakable")
    good = {await mind.remembers(f"coffee {number}") for number in range(BATCH + 1)}
    report = await mind.tidy()
    assert (report.embedded, report.waiting_for_vectors) == (BATCH + 1, 1)
    assert await mind.vectors("test:topics") == good - {bad}


async def test_a_text_that_changes_while_it_is_embedded_is_embedded_again(
    memory: SQLMemoryStore, store: Any
) -> None:
    mind = Mind(memory)
    mind.embedder = embedder = TopicEmbedder()
    changing = await mind.remembers("coffee")
    corrected = asyncio.Event()

    class Slow(TopicEmbedder):
        async def embed(self, texts: Any, kind: Any) -> Any:
            vectors = await embedder.embed(texts, kind)
            if not corrected.is_set():
                corrected.set()
                trace = await mind.get(changing)
                await memory.write(Writing(now=NOW, new=[replace(trace, content="chess")]))
            return vectors

    mind.embedder = Slow()
    assert (await mind.tidy()).embedded == 1
    assert embedder.texts == ["coffee", "chess"]
    [kept] = (await memory.vectors([changing], "test:topics")).values()
    [wanted] = await embedder.embed(["chess"], "passage")
    assert np.frombuffer(kept.data, "<f4") == pytest.approx(wanted)
