"""Erasing memories, and keeping turns from being remembered; on both databases."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from gmi.activities.memory.cache import vector_of
from gmi.activities.memory.store import Link, Marker, Writing
from gmi.activities.store import SQLStore
from gmi.personas.errors import ValidationError

from .caring import MODEL, NOW, World
from .conftest import Life


@pytest.fixture
def world(store: SQLStore) -> World:
    return World(store)


async def test_forgetting_takes_all_that_was_made_of_it(world: World, life: Life) -> None:
    at = await life.begin("t1")
    one, other = world.trace("alpacas hum"), world.trace("llamas spit")
    schema = world.trace("animals", role="schema", mechanisms={"derived_from": [one.id]})
    vector = vector_of(MODEL, np.ones(4, np.float32))
    await world.keep(one, other, schema, vectors={one.id: vector, other.id: vector})
    await world.keep(links=[Link(one.id, other.id, "co_recalled", 0.3)])
    await world.store.keep_context(
        at, 1, {"text": "alpacas hum", "recalled": [{"id": one.id}], "opened": {}}
    )
    answer = await world.ask("forget", ids=[one.id])
    assert answer.counts == {"traces": 1, "derived": 1, "vectors": 1, "links": 1, "contexts": 1}
    assert await world.left() == ["llamas spit"]
    kept = await world.store.context(life.session, "t1")
    assert kept is not None
    assert "alpacas" not in json.dumps(kept)


async def test_forgetting_reaches_what_has_faded(world: World) -> None:
    await world.keep(world.trace("gone", active=False), world.trace("here"))
    answer = await world.ask("forget", scopes=[f"user:{world.user}"])
    assert answer.counts["traces"] == 2
    assert await world.left() == []


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"text": "alpacas"},
        {"types": ["semantic"]},
        {"ids": []},
        {"scopes": []},
        {"user_id": "x", "types": []},
    ],
)
async def test_forgetting_everything_is_refused(world: World, asked: dict[str, Any]) -> None:
    await world.keep(world.trace())
    with pytest.raises(ValidationError):
        await world.ask("forget", **asked)
    assert await world.left() == ["alpacas hum"]


async def test_what_a_session_only_reads_is_not_forgotten_with_it(world: World, life: Life) -> None:
    with pytest.raises(ValidationError, match="readable"):
        await world.ask("forget", session_id=life.session_id, readable=True)


@pytest.mark.parametrize("by", ["turn", "session", "user", "thread"])
async def test_a_turn_forgotten_before_it_was_encoded_does_not_come_back(
    world: World, lives: type[Life], store: SQLStore, by: str
) -> None:
    life = lives(store)
    await life.open(user_id=world.user)
    await life.whole_turn("t1")
    await life.whole_turn("t2")
    asked: dict[str, Any] = {
        "turn": {"turn": "t1", "session_id": life.session_id},
        "session": {"session_id": life.session_id},
        "user": {"user_id": world.user},
        "thread": {"scopes": [f"thread:{life.session}"]},
    }[by]
    await world.ask("forget", **asked)

    async def encoded(turn: str) -> bool:
        made = world.trace(turn, session=life.session, turn=turn)
        marker = Marker(life.at(turn), "encode")
        return await world.store.write(Writing(now=NOW, marker=marker, new=[made]))

    assert await encoded("t1") is False
    assert await encoded("t2") is (by == "turn")
    await life.whole_turn("t3")
    assert await encoded("t3") is True


async def test_a_forgotten_turn_stays_forgotten_after_a_reset(
    world: World, lives: type[Life], store: SQLStore
) -> None:
    life = lives(store)
    await life.open(user_id=world.user)
    await life.whole_turn("t1")
    marker = Marker(life.at("t1"), "encode")
    made = world.trace("t1", session=life.session, turn="t1")
    assert await world.store.write(Writing(now=NOW, marker=marker, new=[made]))
    await world.ask("forget", turn="t1", session_id=life.session_id)
    life.run, life.reset = "run-2", True
    again = Marker(life.at("t1"), "encode")
    assert await world.store.write(Writing(now=NOW, marker=again, new=[made])) is False
    assert await world.left() == []


async def test_forgetting_by_words_leaves_turns_to_be_encoded(
    world: World, lives: type[Life], store: SQLStore
) -> None:
    life = lives(store)
    await life.open(user_id=world.user)
    await life.whole_turn("t1")
    await world.ask("forget", user_id=world.user, text="alpacas")
    marker = Marker(life.at("t1"), "encode")
    assert await world.store.write(Writing(now=NOW, marker=marker))


async def test_forgetting_and_encoding_at_once_leave_nothing(
    world: World, lives: type[Life], store: SQLStore
) -> None:
    life = lives(store)
    await life.open(user_id=world.user)
    turns = [f"t{n}" for n in range(8)]
    for turn in turns:
        await life.whole_turn(turn)
    writings = [
        Writing(
            now=NOW,
            marker=Marker(life.at(turn), "encode"),
            new=[world.trace(turn, session=life.session, turn=turn)],
        )
        for turn in turns
    ]
    await asyncio.gather(
        *(world.store.write(writing) for writing in writings[:4]),
        world.ask("forget", user_id=world.user),
        *(world.store.write(writing) for writing in writings[4:]),
    )
    assert await world.left() == []
