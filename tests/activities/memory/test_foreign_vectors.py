"""Vectors of another size under one model's name cost no turn and no memory."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
import pytest

from gmi.activities.embedders.embedder import EmbedKind, Vectors
from gmi.activities.memory.cache import ScopeCache
from gmi.activities.memory.clusters import Cluster, dumped, grouped
from gmi.activities.memory.encode import Encoder
from gmi.activities.memory.maintain import Maintainer
from gmi.activities.memory.recall import MAX_INVOLUNTARY, Recaller
from gmi.activities.memory.store import Vector, Writing
from gmi.activities.memory.traces import DAY, Trace
from gmi.activities.store import SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.memory import MemorySettings

from .conversation import NOW, Life, WordEmbedder

SMALL = 32


class SmallEmbedder(WordEmbedder):
    """Another model that answers under the same name."""

    dimension = SMALL

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        found = (await super().embed(texts, kind))[:, :SMALL] + np.float32(1e-3)
        scaled: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
        return scaled


@pytest.fixture
async def life(store: SQLStore, memory: SQLMemoryStore) -> Life:
    settings = MemorySettings.model_validate({"mechanisms": {}})
    return await Life(store, memory, settings, WordEmbedder()).open()


def changes_model(life: Life, embedder: WordEmbedder) -> None:
    """The worker starts anew with another model under the same name."""
    life.embedder = embedder
    life.cache = ScopeCache(life.memory)
    life.recaller = Recaller(life.memory, life.cache, embedder)
    life.encoder = Encoder(life.memory, life.cache, embedder)


async def tidy(life: Life, run: str) -> list[str]:
    maintainer = Maintainer(life.memory, life.owner.persona_id, life.scaled, {}, life.embedder)
    return (await maintainer.tidy(life.user, NOW, run)).warnings


async def test_turns_are_recalled_and_remembered_over_vectors_of_another_size(
    life: Life,
) -> None:
    await life.says("I like figs")
    # What an earlier consolidation knew has the old size as well.
    old = Cluster("c1", np.eye(64, dtype=np.float32)[0], 5)
    kept = {"model": WordEmbedder.model, "clusters": dumped([old])}
    await life.memory.keep_consolidated(life.owner.persona_id, life.user, NOW, kept)
    changes_model(life, SmallEmbedder())
    found = await life.recalls("figs")
    assert [item.trace.content for item in found.items] == ["I like figs"]
    assert any("1 memories have vectors of another size" in w for w in found.warnings)
    done = await life.says("I like plums")
    assert (done.applied, done.warnings) == (True, [])
    mixed = await life.recalls("what do I like")
    assert {i.trace.content for i in mixed.items} == {"I like figs", "I like plums"}
    await tidy(life, "run-1")
    healed = await life.recalls("what do I like")
    assert healed.warnings == []
    assert len(healed.items) == 2
    marks = await life.memory.vectors([i.trace.id for i in healed.items], WordEmbedder.model)
    assert {vector.dimension for vector in marks.values()} == {SMALL}


async def test_a_scope_with_vectors_of_two_sizes_is_read_by_both_models(life: Life) -> None:
    await life.says("I like figs")
    odd = Trace(str(uuid.uuid4()), life.user, "mixed plums", created_at=NOW, last_access=NOW)
    vector = Vector(WordEmbedder.model, SMALL, np.ones(SMALL, "<f4").tobytes())
    await life.memory.write(Writing(now=NOW, new=[odd], vectors={odd.id: vector}))
    for embedder in (WordEmbedder(), SmallEmbedder(), WordEmbedder()):
        changes_model(life, embedder)
        found = await life.recalls("figs and mixed plums")
        assert {"I like figs", "mixed plums"} <= {i.trace.content for i in found.items}
        assert len(found.warnings) == 1
        assert (await life.says("I like pears")).warnings == []


async def test_a_turn_that_can_be_compared_with_nothing_is_kept(life: Life) -> None:
    await life.says("I like figs")

    class Broken(ScopeCache):
        async def load(self, *args: object, **names: object) -> list[object]:  # type: ignore[override]
            raise ValueError("the index is broken")

    assert life.embedder is not None
    life.encoder = Encoder(life.memory, Broken(life.memory), life.embedder)
    done = await life.says("I like plums")
    assert done.applied
    assert done.warnings == [
        "ENCODED_ALONE: the turn was compared with no other memory: ValueError"
    ]
    plums = await life.standing("I like plums")
    assert plums.id in await life.memory.vectors([plums.id], WordEmbedder.model)


async def test_a_hurried_turn_is_written_without_asking_the_model(life: Life) -> None:
    assert life.embedder is not None
    done = await life.says("I like figs", patient=False)
    assert done.applied
    assert done.warnings[0].startswith("ENCODED_WITHOUT_VECTORS")
    assert life.embedder.texts == []
    await tidy(life, "run-1")
    figs = await life.standing("I like figs")
    assert figs.id in await life.memory.vectors([figs.id], WordEmbedder.model)


def test_groups_are_made_of_vectors_of_one_size() -> None:
    near = {f"a{n}": np.array([1.0, 0.0], np.float32) for n in range(6)}
    odd = {f"b{n}": np.array([1.0, 0.0, 0.0], np.float32) for n in range(5)}
    alone = grouped({**near, **odd}, [], 0.8)
    assert [cluster.members for cluster in alone.clusters] == [6]
    known = Cluster("c", np.array([1.0, 0.0, 0.0], np.float32), 5)
    joined = grouped({**near, **odd}, [known], 0.8)
    assert joined.joined == dict.fromkeys(odd, "c")
    fresh = grouped({**near, **odd}, [known], 0.8, size=2)
    assert set(fresh.joined) == set(near)
    assert known not in fresh.clusters


async def test_chance_brings_up_the_newer_memories_of_a_large_scope_too(
    store: SQLStore, memory: SQLMemoryStore
) -> None:
    settings = MemorySettings.model_validate(
        {"mechanisms": {"involuntaryRecall": {"probability": 1.0}}, "topK": 1}
    )
    life = await Life(store, memory, settings, None).open()
    count = 3 * MAX_INVOLUNTARY
    traces = [
        Trace(
            f"{life.user.id}-{number:05}",
            life.user,
            f"thing {number}",
            created_at=NOW - 100 * DAY + number,
            last_access=NOW,
            strength=1.0,
        )
        for number in range(count)
    ]
    await memory.write(Writing(now=NOW, new=traces))

    async def came_up(seed: str) -> int:
        found = (await life.recalls("thing 1", seed=seed)).involuntary
        assert found is not None
        return int(found.id[-5:])

    numbers = [await came_up(str(n)) for n in range(40)]
    thirds = {number // MAX_INVOLUNTARY for number in numbers}
    assert thirds == {0, 1, 2}
    # On another worker the same ones come up.
    life.recaller = Recaller(memory, ScopeCache(memory))
    assert [await came_up(str(n)) for n in range(5)] == numbers[:5]
