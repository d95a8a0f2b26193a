"""A scope's traces in memory: what a filter lets through, and what changes do to it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gmi.activities.memory.candidates import find_candidates
from gmi.activities.memory.index import ScopeIndex, SearchFilter
from gmi.activities.memory.traces import Affect, Scope, Trace

KIM = Scope("user", "kim")


def trace(name: str, **facts: object) -> Trace:
    made: dict[str, object] = {"content": f"words of {name}", "session": "s1", "turn": name}
    return Trace(id=name, scope=KIM, **{**made, **facts})  # type: ignore[arg-type]


def index_of(*traces: Trace, model: str | None = None) -> ScopeIndex:
    index = ScopeIndex(KIM, model)
    index.apply(traces)
    return index


def seen(index: ScopeIndex, wanted: SearchFilter) -> set[str]:
    return {index.trace(int(row)).id for row in np.flatnonzero(index.mask(wanted))}


def test_columns_hold_what_the_traces_say() -> None:
    given = trace(
        "a",
        strength=0.7,
        stability=60.0,
        last_access=5.0,
        importance=0.2,
        confidence=0.9,
        intensity=0.3,
        created_at=4.0,
        affect=Affect(-0.5, 0.25, 0.0),
    )
    index = index_of(trace("b"), given)
    row = index.row("a")
    assert row is not None
    found = {
        "strength": index.strength[row],
        "stability": index.stability[row],
        "last_access": index.last_access[row],
        "importance": index.importance[row],
        "confidence": index.confidence[row],
        "intensity": index.intensity[row],
        "created_at": index.created_at[row],
        "valence": index.valence[row],
        "arousal": index.arousal[row],
    }
    assert found == {
        "strength": 0.7,
        "stability": 60.0,
        "last_access": 5.0,
        "importance": 0.2,
        "confidence": 0.9,
        "intensity": 0.3,
        "created_at": 4.0,
        "valence": -0.5,
        "arousal": 0.25,
    }


def test_a_changed_trace_keeps_its_row_and_its_vector() -> None:
    index = ScopeIndex(KIM, "test:model")
    index.apply([trace("a"), trace("b")], {"a": [1.0, 0.0]})
    row = index.row("a")
    index.apply([trace("a", strength=0.9, version=4)])
    assert index.row("a") == row
    assert row is not None
    assert index.strength[row] == 0.9
    assert index.version == 4
    assert index.missing() == ["b"]


def test_a_corrected_text_is_found_by_its_new_words_only_and_needs_a_new_vector() -> None:
    index = ScopeIndex(KIM, "test:model")
    index.apply([trace("a", content="the old harbour")], {"a": [1.0, 0.0]})
    index.apply([trace("a", content="a new bridge")])
    assert len(index) == 1
    assert [t.content for t in find_candidates([index], "bridge").traces] == ["a new bridge"]
    assert find_candidates([index], "harbour").traces == ()
    assert index.missing() == ["a"]


def test_a_trace_that_is_no_longer_active_leaves() -> None:
    index = index_of(trace("a"), trace("b"))
    index.apply([trace("a", active=False)])
    assert index.ids() == ["b"]
    assert "a" not in index
    assert index.get("a") is None
    assert seen(index, SearchFilter()) == {"b"}
    index.apply([trace("a")])
    assert seen(index, SearchFilter()) == {"a", "b"}


def test_the_last_word_on_a_trace_counts() -> None:
    index = index_of(trace("a"), trace("a", strength=0.9), trace("b"), trace("b", active=False))
    assert index.ids() == ["a"]
    row = index.row("a")
    assert row is not None
    assert index.strength[row] == 0.9


def test_the_row_of_a_trace_that_is_gone_has_no_trace() -> None:
    index = index_of(trace("a"))
    row = index.row("a")
    assert row is not None
    index.remove(["a", "unknown"])
    with pytest.raises(KeyError):
        index.trace(row)


def test_within_the_asking_session_only_the_path_counts() -> None:
    index = index_of(
        trace("m1", branch="main", depth=1),
        trace("m3", branch="main", depth=3),
        trace("x4", branch="x", depth=4),
        trace("y4", branch="y", depth=4),
        trace("other", session="s2", branch="main", depth=9),
        trace("by hand", session="", turn=""),
        trace("note", session="s1", turn=""),
    )
    path = [("main", 2), ("x", None)]
    always = {"other", "by hand", "note"}
    assert seen(index, SearchFilter(session="s1", path=path)) == {"m1", "x4", *always}
    assert seen(index, SearchFilter(session="s1")) == always
    assert seen(index, SearchFilter(session="s9", path=path)) == set(index.ids())
    assert seen(index, SearchFilter()) == set(index.ids())


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (SearchFilter(types=["semantic"]), {"b"}),
        (SearchFilter(types=["episodic", "semantic"]), {"a", "b"}),
        (SearchFilter(types=["procedural"]), set()),
        (SearchFilter(types=[]), set()),
        (SearchFilter(min_confidence=0.5), {"a"}),
        (SearchFilter(created_from=20), {"b"}),
        (SearchFilter(created_until=10), {"a"}),
        (SearchFilter(created_from=10, created_until=20), {"a", "b"}),
        (SearchFilter(exclude_turns=[("s1", "a")]), {"b"}),
        (SearchFilter(exclude_turns=[("s2", "a"), ("s1", "unknown")]), {"a", "b"}),
    ],
)
def test_a_filter_lets_through_what_it_says(wanted: SearchFilter, found: set[str]) -> None:
    index = index_of(
        trace("a", confidence=0.9, created_at=10.0),
        trace("b", confidence=0.3, created_at=20.0, type="semantic"),
    )
    assert seen(index, wanted) == found


def test_a_vector_of_another_size_is_no_vector() -> None:
    index = ScopeIndex(KIM, "test:model")
    index.apply([trace("a"), trace("b")], {"a": [1.0, 0.0]})
    index.apply([], {"b": [1.0, 0.0, 0.0]})
    assert (index.foreign, index.missing()) == ({"b"}, ["b"])
    assert index.similarity([1.0, 0.0]).tolist() == [1.0, 0.0]
    index.apply([], {"b": [0.0, 1.0]})
    assert (index.foreign, index.missing()) == (set(), [])
    index.apply([], {"a": [1.0]})
    assert (index.foreign, index.missing()) == ({"a"}, ["a"])
    index.remove(["a"])
    assert index.foreign == set()


@pytest.mark.parametrize("broken", [[0.0, 0.0], [float("nan"), 1.0], [[1.0, 0.0]], []])
def test_a_vector_that_cannot_be_used_is_no_vector(broken: list[float]) -> None:
    index = ScopeIndex(KIM, "test:model")
    index.apply([trace("a"), trace("b")], {"b": broken, "a": [1.0, 0.0]})
    assert index.missing() == ["b"]


def test_a_scope_with_a_known_size_takes_no_other_as_the_first() -> None:
    index = ScopeIndex(KIM, "test:model", 2)
    index.apply([trace("a"), trace("b")], {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0]})
    assert index.foreign == {"a"}
    assert index.similarity([0.0, 1.0]).tolist() == [0.0, 1.0]


def test_a_scope_without_a_model_takes_no_vectors() -> None:
    index = index_of(trace("a"))
    index.apply([], {"a": [1.0, 0.0]})
    assert index.missing() == []
    assert index.similarity([1.0, 0.0]).tolist() == [0.0]


def changed_at_random(make: Callable[[str], Trace], chance: random.Random) -> list[Trace]:
    names = [f"t{chance.randrange(1500)}" for _ in range(400)]
    return [replace(make(name), active=chance.random() < 0.5) for name in names]


def test_after_many_changes_it_is_as_if_it_had_been_made_new() -> None:
    chance = random.Random(5)

    def make(name: str) -> Trace:
        number = int(name[1:])
        words = " ".join(f"w{chance.randrange(60)}" for _ in range(6))
        return trace(name, content=words, depth=number // 2, role=("user", "assistant")[number % 2])

    index, now = ScopeIndex(KIM, "test:model"), {}
    for _ in range(20):
        changes = changed_at_random(make, chance)
        vectors = {t.id: [1.0, float(t.id[1:])] for t in changes}
        now |= {t.id: t for t in changes}
        index.apply(changes, vectors)
    kept = [t for t in now.values() if t.active]
    fresh = ScopeIndex(KIM, "test:model")
    fresh.apply(kept, {t.id: [1.0, float(t.id[1:])] for t in kept})
    assert len(index) == len(kept)
    assert index.size < 2 * len(kept) + 1000, "rows that are gone were never cleared away"
    for query in ("w3 w17", "w5", "w59 w58 w57"):
        found = [
            find_candidates([i], query, vector=[1.0, 50.0], model="test:model", limit=2000)
            for i in (index, fresh)
        ]
        told = [
            {t.id: r for t, r in zip(f.traces, f.relevance.tolist(), strict=True)} for f in found
        ]
        assert told[0].keys() == told[1].keys()
        assert told[0] == pytest.approx(told[1], abs=1e-5)


def test_memory_is_said_to_grow_with_the_scope() -> None:
    few = index_of(*(trace(f"t{i}") for i in range(10)))
    many = index_of(*(trace(f"t{i}", content="x" * 1000) for i in range(1000)))
    assert many.bytes > few.bytes + 990 * 1000
