"""Memories in the store, on both databases."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from gmi.activities.memory.store import Find, Link, Marker, Vector, Writing
from gmi.activities.memory.traces import Affect, Scope, Trace
from gmi.activities.store import SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore

from .conftest import Life


@pytest.fixture
def memories(store: SQLStore) -> SQLMemoryStore:
    return SQLMemoryStore(store.database)


@pytest.fixture
def scope() -> Scope:
    """A scope of the test's own."""
    return Scope("user", f"user-{uuid.uuid4().hex[:8]}")


def trace(scope: Scope, content: str = "alpacas hum", **changes: object) -> Trace:
    made = Trace(id=str(uuid.uuid4()), scope=scope, content=content, created_at=1000.0)
    return replace(made, **changes)


def vector(*numbers: float, model: str = "test:small") -> Vector:
    data = np.array(numbers, dtype="<f4")
    return Vector(model, len(numbers), data.tobytes())


def stronger(standing: Mapping[str, Trace]) -> Iterable[Trace]:
    return [replace(t, retrievals=t.retrievals + 1) for t in standing.values()]


async def test_a_trace_comes_back_as_it_was_written(memories: SQLMemoryStore, scope: Scope) -> None:
    written = trace(
        scope,
        type="semantic",
        source="reflection",
        tags=("a", "b"),
        entities=("ottilie",),
        affect=Affect(-0.5, 0.25, 1.0),
        intensity=0.31,
        mood="curious",
        next_at=12.5,
        mechanisms={"reconsolidation": {"drift": 0.1}},
        confidence=0.123456789,
    )
    await memories.write(Writing(now=2000.0, new=[written], vectors={written.id: vector(1, 2)}))
    changes = await memories.changes(scope, 0, "test:small")
    assert changes.traces == [replace(written, updated_at=2000.0, version=1)]
    assert changes.vectors == {written.id: vector(1, 2)}
    assert changes.version == 1
    assert await memories.versions([scope]) == {scope: 1}


async def test_only_what_changed_since_a_version_is_read_again(
    memories: SQLMemoryStore, scope: Scope
) -> None:
    old, new = trace(scope), trace(scope, "ducks swim")
    await memories.write(Writing(now=1.0, new=[old]))
    await memories.write(Writing(now=2.0, new=[new]))
    assert [t.id for t in (await memories.changes(scope, 1, None)).traces] == [new.id]
    await memories.write(Writing(now=3.0, touched=[old.id], change=stronger))
    [changed] = (await memories.changes(scope, 2, None)).traces
    assert (changed.id, changed.retrievals, changed.version) == (old.id, 1, 3)
    assert (await memories.changes(scope, 3, None)).traces == []


async def test_a_vector_that_comes_later_is_a_change(
    memories: SQLMemoryStore, scope: Scope
) -> None:
    made = trace(scope)
    await memories.write(Writing(now=1.0, new=[made]))
    assert [t.id for t in await memories.without_vector("test:small", scope, 10)] == [made.id]
    await memories.write(Writing(now=2.0, vectors={made.id: vector(1)}))
    changes = await memories.changes(scope, 1, "test:small")
    assert changes.vectors == {made.id: vector(1)}
    assert await memories.without_vector("test:small", scope, 10) == []
    assert (await memories.changes(scope, 0, "test:other")).vectors == {}


async def test_new_words_lose_the_old_words_vector(memories: SQLMemoryStore, scope: Scope) -> None:
    made = trace(scope)
    await memories.write(Writing(now=1.0, new=[made], vectors={made.id: vector(1)}))

    def reworded(standing: Mapping[str, Trace]) -> Iterable[Trace]:
        return [replace(t, content="llamas hum") for t in standing.values()]

    await memories.write(Writing(now=2.0, touched=[made.id], change=reworded))
    assert (await memories.changes(scope, 0, "test:small")).vectors == {}


async def test_a_marked_write_is_done_once(
    memories: SQLMemoryStore, scope: Scope, life: Life
) -> None:
    made = trace(scope)
    marker = Marker(life.at("turn-1"), "encode")
    assert await memories.write(Writing(now=1.0, marker=marker, new=[made]))
    again = Writing(now=2.0, marker=marker, touched=[made.id], change=stronger)
    assert not await memories.write(again)
    [standing] = await memories.find(Find(scopes=[scope]))
    assert standing.retrievals == 0


async def test_a_turn_that_a_reset_makes_anew_takes_the_place_of_the_abandoned_one(
    memories: SQLMemoryStore, scope: Scope, life: Life
) -> None:
    lost = trace(scope, session=life.session, turn="turn-1", branch="main", depth=1)
    await memories.write(
        Writing(
            now=1.0,
            marker=Marker(life.at("turn-1"), "encode"),
            new=[lost],
            replaces=("main", 1),
        )
    )
    life.run, life.reset = "run-2", True
    made = trace(scope, "llamas hum", session=life.session, turn="turn-2", depth=1)
    await memories.write(
        Writing(
            now=2.0,
            marker=Marker(life.at("turn-2", counter=1), "encode"),
            new=[made],
            replaces=("main", 1),
        )
    )
    assert [t.turn for t in await memories.find(Find(scopes=[scope]))] == ["turn-2"]
    assert (await memories.changes(scope, 1, None)).whole


async def test_writers_at_the_same_time_lose_nothing(
    memories: SQLMemoryStore, scope: Scope
) -> None:
    made = trace(scope)
    await memories.write(Writing(now=1.0, new=[made]))
    writing = Writing(now=2.0, touched=[made.id], change=stronger)
    await asyncio.gather(*(memories.write(writing) for _ in range(10)))
    [standing] = await memories.find(Find(scopes=[scope]))
    assert standing.retrievals == 10
    assert standing.version == 11


async def test_links_grow_up_to_one_and_need_both_ends(
    memories: SQLMemoryStore, scope: Scope
) -> None:
    one, two = trace(scope), trace(scope)
    link = Link(two.id, one.id, "co_recalled", 0.4)
    lost = Link(one.id, "nowhere", "co_recalled", 0.4)
    await memories.write(Writing(now=1.0, new=[one, two], links=[link, lost]))
    [found] = await memories.links([one.id])
    assert ({found.a, found.b}, found.weight) == ({one.id, two.id}, 0.4)
    for _ in range(3):
        await memories.write(Writing(now=2.0, links=[link]))
    [grown] = await memories.links([two.id])
    assert grown.weight == pytest.approx(1.0)


async def test_the_first_context_of_a_turn_stands(memories: SQLMemoryStore, life: Life) -> None:
    at = await life.begin("turn-1")
    assert await memories.context(life.session, "turn-1") is None
    first = await memories.keep_context(at, 1, {"text": "first"})
    second = await memories.keep_context(at, 2, {"text": "second"})
    assert (first, second) == ({"text": "first"}, {"text": "first"})
    assert await memories.context(life.session, "turn-1") == {"text": "first"}


async def test_erasing_takes_what_was_made_of_it_and_every_text_that_shows_it(
    memories: SQLMemoryStore, scope: Scope, life: Life
) -> None:
    secret, other = trace(scope, "the secret"), trace(scope, "something else")
    schema = trace(scope, "a pattern", role="schema", mechanisms={"derived_from": [secret.id]})
    await memories.write(
        Writing(
            now=1.0,
            new=[secret, other, schema],
            vectors={secret.id: vector(1), other.id: vector(2)},
            links=[Link(secret.id, other.id, "entity", 0.5)],
        )
    )
    at = await life.begin("turn-1")
    shown = {"text": "the secret", "recalled": [{"id": secret.id}, {"id": other.id}]}
    await memories.keep_context(at, 1, shown)
    erased = await memories.erase(Find(scopes=[scope], ids=[secret.id]))
    assert (erased.traces, erased.derived, erased.vectors, erased.links) == (1, 1, 1, 1)
    assert erased.contexts == 1
    changes = await memories.changes(scope, 1, "test:small")
    assert changes.whole
    assert [t.id for t in changes.traces] == [other.id]
    assert list(changes.vectors) == [other.id]
    context = await memories.context(life.session, "turn-1")
    assert context is not None
    assert (context["text"], [item["id"] for item in context["recalled"]]) == ("", [other.id])


async def test_lists_go_from_the_newest_to_the_oldest_by_cursor(
    memories: SQLMemoryStore, scope: Scope
) -> None:
    made = [trace(scope, f"fact {n}", created_at=float(n)) for n in range(5)]
    faded = trace(scope, "faded fact", active=False, created_at=9.0)
    await memories.write(Writing(now=9.0, new=[*made, faded]))
    first = await memories.find(Find(scopes=[scope], limit=3))
    place = (first[-1].created_at, first[-1].id)
    rest = await memories.find(Find(scopes=[scope], limit=3, before=place))
    assert [t.content for t in (*first, *rest)] == [f"fact {n}" for n in (4, 3, 2, 1, 0)]
    every = await memories.find(Find(scopes=[scope], faded=True))
    assert every[0].content == "faded fact"
    assert [t.content for t in await memories.find(Find(scopes=[scope], text="FACT 2"))] == [
        "fact 2"
    ]
    counts = await memories.count(Find(scopes=[scope], faded=True))
    assert (counts["traces"], counts["active"], counts["scope:user"]) == (6, 5, 6)


async def test_no_scopes_find_nothing(memories: SQLMemoryStore, scope: Scope) -> None:
    await memories.write(Writing(now=1.0, new=[trace(scope)]))
    assert await memories.find(Find(scopes=[])) == []
    assert await memories.versions([]) == {}
