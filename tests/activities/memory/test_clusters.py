"""Consolidation groups similar memories and puts the groups into words."""

from __future__ import annotations

import numpy as np
import pytest

from gmi.activities.memory import clusters
from gmi.activities.memory.store import Find
from gmi.activities.memory.traces import DAY, HOUR
from gmi.activities.store.memory.sql import SQLMemoryStore

from .mind import NOW, Mind
from .models import TopicEmbedder, Writer, wording


async def test_five_similar_memories_make_a_cluster_that_encoding_can_compare_with(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    mind.embedder = TopicEmbedder()
    for number in range(5):
        await mind.remembers(f"coffee number {number}")
        if number < 4:
            await mind.remembers(f"chess game {number}")
    report = await mind.tidy()
    assert (report.clusters, report.schemas) == (1, 0)
    kept = await memory.consolidated(mind.persona, mind.scope)
    [centroid] = clusters.centroids(kept, "test:topics").values()
    [coffee, chess] = await mind.embedder.embed(["more coffee", "more chess"], "passage")
    assert float(centroid @ coffee) > 0.95 > 0.2 > float(centroid @ chess)
    assert np.linalg.norm(centroid) == pytest.approx(1)
    assert clusters.centroids(kept, "test:other") == {}


async def test_a_cluster_grows_by_new_memories_and_counts_none_twice(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    mind.embedder = TopicEmbedder()
    for number in range(5):
        await mind.remembers(f"coffee number {number}")
    await mind.tidy()
    before = await memory.consolidated(mind.persona, mind.scope)
    await mind.remembers("coffee once more")
    await mind.tidy()
    after = await memory.consolidated(mind.persona, mind.scope)
    await mind.tidy()
    again = await memory.consolidated(mind.persona, mind.scope)
    assert before is not None
    assert after is not None
    assert again is not None
    assert [c["members"] for c in before["clusters"]] == [5]
    assert [(c["id"], c["members"]) for c in after["clusters"]] == [
        (before["clusters"][0]["id"], 6)
    ]
    assert again["clusters"] == after["clusters"]


async def test_a_configured_model_puts_a_cluster_into_words(memory: SQLMemoryStore) -> None:
    mind, writer = Mind(memory), Writer("The user drinks much coffee.")
    mind.embedder, mind.wording = TopicEmbedder(), wording(writer)
    members = [await mind.remembers(f"coffee {n}", session=f"s{n % 2}") for n in range(5)]
    report = await mind.tidy()
    assert (report.clusters, report.schemas, report.usage.total_tokens) == (1, 1, 12)
    [schema] = [trace for trace in await mind.all() if trace.role == "schema"]
    assert (schema.content, schema.type) == ("The user drinks much coffee.", "semantic")
    assert (schema.strength, schema.stability) == (0.7, 2 * HOUR)
    assert (schema.persona_id, schema.scope, schema.session) == (mind.persona, mind.scope, "")
    assert set(schema.mechanisms["derived_from"]) == set(members)
    assert {end for pair in await mind.links("schema") for end in pair} == {schema.id, *members}
    assert schema.id in await mind.vectors("test:topics")
    assert (await mind.tidy()).schemas == 0
    assert len(writer.asked) == 1


async def test_a_schema_is_put_into_words_again_when_its_cluster_has_doubled(
    memory: SQLMemoryStore,
) -> None:
    mind, writer = Mind(memory), Writer("One.")
    mind.embedder, mind.wording = TopicEmbedder(), wording(writer)
    for number in range(5):
        await mind.remembers(f"coffee {number}")
    await mind.tidy()
    writer.sentence = "Another."
    for number in range(5):
        await mind.remembers(f"coffee again {number}")
    assert (await mind.tidy()).schemas == 1
    schemas = [trace for trace in await mind.all() if trace.role == "schema"]
    assert [schema.content for schema in schemas] == ["Another."]


async def test_no_schema_carries_what_one_branch_said_to_another(memory: SQLMemoryStore) -> None:
    mind, writer = Mind(memory), Writer()
    mind.embedder, mind.wording = TopicEmbedder(), wording(writer)
    for number in range(6):
        await mind.remembers(f"coffee {number}", branch="main" if number % 2 else "other")
    assert (await mind.tidy()).schemas == 0
    assert writer.asked == []
    alone = Mind(memory)
    alone.embedder, alone.wording = TopicEmbedder(), wording(writer)
    for number in range(6):
        await alone.remembers(f"coffee {number}", branch="other")
    await alone.tidy()
    [schema] = [trace for trace in await alone.all() if trace.role == "schema"]
    assert (schema.session, schema.branch, schema.depth) == ("s1", "other", 6)


async def test_erasing_a_member_erases_the_schema_and_its_cluster(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    mind.embedder, mind.wording = TopicEmbedder(), wording(Writer("Coffee, always."))
    members = [await mind.remembers(f"coffee {number}") for number in range(6)]
    await mind.tidy()
    await memory.erase(Find(ids=members[:1], faded=True), NOW)
    assert {trace.role for trace in await mind.all()} == {"user"}
    kept = await memory.consolidated(mind.persona, mind.scope)
    assert clusters.centroids(kept, "test:topics") == {}
    # What is left is grouped anew.
    assert (await mind.tidy()).schemas == 1


async def test_a_member_is_kept_out_of_sight_as_long_as_its_schema_stands(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory, mechanisms={"temporalGist": {"enabled": False}})
    mind.embedder, mind.wording = TopicEmbedder(), wording(Writer("Coffee, always."))
    for number in range(5):
        await mind.remembers(f"coffee {number}")
    await mind.tidy()
    assert (await mind.tidy(NOW + 91 * DAY)).pruned == 6
    # The schema goes first: whoever has a member erased before has the schema erased too.
    assert (await mind.tidy(NOW + 122 * DAY)).removed == 1
    assert (await mind.tidy(NOW + 122 * DAY)).removed == 5
    assert await mind.all() == []


async def test_what_is_erased_while_a_schema_is_written_is_not_told_by_it(
    memory: SQLMemoryStore,
) -> None:
    mind, writer = Mind(memory), Writer("Coffee, always.")
    mind.embedder, mind.wording = TopicEmbedder(), wording(writer)
    members = [await mind.remembers(f"coffee {number}") for number in range(5)]

    async def forget() -> None:
        await memory.erase(Find(ids=members[:1]), NOW)

    writer.meanwhile = forget
    assert (await mind.tidy()).schemas == 0
    assert {trace.role for trace in await mind.all()} == {"user"}


async def test_a_scope_that_its_run_tidied_asks_no_model_again(memory: SQLMemoryStore) -> None:
    mind, writer = Mind(memory), Writer("Coffee, always.")
    mind.embedder, mind.wording = TopicEmbedder(), wording(writer)
    for number in range(5):
        await mind.remembers(f"coffee {number}")
    first = await mind.tidy(run="one")
    for number in range(5):
        await mind.remembers(f"coffee again {number}")
    assert (await mind.tidy(run="one")).schemas == first.schemas == 1
    assert len(writer.asked) == 1
