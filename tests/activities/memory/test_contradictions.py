"""Consolidation finds memories that contradict each other."""

from __future__ import annotations

import pytest

from gmi.activities.memory.contradictions import contradictions
from gmi.activities.memory.traces import DAY, Scope
from gmi.activities.store.memory.sql import SQLMemoryStore

from .making import trace
from .mind import NOW, Mind


async def test_an_honest_character_believes_what_it_heard_last(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    mind.traits = {"honesty": 0.8}
    old = await mind.remembers("I like strong coffee.", created_at=NOW - DAY)
    new = await mind.remembers("I don't like strong coffee any more.", session="s2")
    same = await mind.remembers("Do you not like strong coffee?", session="s3")
    assert (await mind.tidy()).contradictions == 1
    wrong = await mind.get(old)
    assert (wrong.confidence, wrong.active) == (0.4, True)
    assert wrong.mechanisms["contradicted"]["by"] == [new]
    assert (await mind.get(new)).confidence == (await mind.get(same)).confidence == 0.8
    assert await mind.links("contradicts") == {(old, new): 0.5}
    assert (await mind.tidy()).contradictions == 0
    assert (await mind.get(old)).confidence == 0.4


@pytest.mark.parametrize(("trusted", "doubted"), [(0.9, True), (0.6, False)])
async def test_otherwise_the_more_trusted_memory_counts_if_the_gap_is_clear(
    memory: SQLMemoryStore, trusted: float, doubted: bool
) -> None:
    mind = Mind(memory)
    mind.traits = {"honesty": 0.5}
    first = await mind.remembers("I eat red meat", confidence=trusted, created_at=NOW - DAY)
    second = await mind.remembers("I never eat red meat", confidence=0.5)
    assert (await mind.tidy()).contradictions == 1
    assert (await mind.get(first)).confidence == trusted
    assert (await mind.get(second)).confidence == (0.25 if doubted else 0.5)


async def test_a_correction_makes_doubtful_what_was_said_just_before(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    mind.traits = {"honesty": 0.8}
    said = await mind.remembers("My sister is called Anna.")
    await mind.remembers("Actually, my sister is called Maria.", created_at=NOW + 60)
    elsewhere = await mind.remembers("My sister is called Ida.", session="s0", created_at=NOW - 60)
    assert (await mind.tidy(NOW + 100)).contradictions == 1
    assert (await mind.get(said)).confidence == 0.4
    assert (await mind.get(elsewhere)).confidence == 0.8


async def test_many_people_in_one_scope_do_not_contradict_each_other(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    mind.scope = Scope("organization", mind.scope.id)
    await mind.remembers("I like strong coffee.")
    await mind.remembers("I do not like strong coffee.")
    assert (await mind.tidy()).contradictions == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I like tea", "I do not like loud music"),
        ("I am not tired", "I am never tired"),
        ("I like tea", "Do you not like tea?"),
        ("My sister is called Anna", "Actually, my sister is called Anna"),
        ("My sister is called Anna", "My sister is called Maria"),
        ("It is cold", "No dogs live in the cold house"),
    ],
)
def test_what_differs_in_other_ways_is_no_contradiction(first: str, second: str) -> None:
    pair = [
        trace("a", content=first, session="s", turn="t1", depth=1),
        trace("b", content=second, session="s", turn="t2", depth=2),
    ]
    assert contradictions(pair, 1.0) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("We saw rain. I eat red meat every day.", "I don’t eat red meat every day."),
        ("I never smoke cigars", "I smoke cigars"),
        ("The shop is open on Sunday", "Correction: the shop is open on Monday"),
    ],
)
def test_a_denial_and_a_correction_are_found_in_either_order_of_the_words(
    first: str, second: str
) -> None:
    pair = [
        trace("a", content=first, session="s", turn="t1", depth=1),
        trace("b", content=second, session="s", turn="t2", depth=2),
    ]
    [found] = contradictions(pair, 1.0)
    assert (found.older, found.newer, found.wrong) == ("a", "b", "a")


def test_what_the_assistant_said_does_not_contradict_the_user() -> None:
    pair = [
        trace("a", content="I eat red meat", role="user"),
        trace("b", content="I do not eat red meat", role="assistant"),
    ]
    assert contradictions(pair, 1.0) == []
