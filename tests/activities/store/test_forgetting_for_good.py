"""What was erased or corrected stays so, whatever makes the memories anew; on both databases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gmi.activities.memory.cache import vector_of
from gmi.activities.memory.store import Marker, Writing
from gmi.activities.memory.traces import Scope, Trace, trace_id
from gmi.activities.store import SQLStore
from gmi.personas.errors import NotFoundError

from .caring import MODEL, Personas, World
from .conftest import Life

NOW = 1_780_000_000.0


@pytest.fixture
def world(store: SQLStore) -> World:
    return World(store)


async def said(world: World, life: Life, turn: str, content: str, **more: Any) -> bool:
    """Encode what the user said in a turn."""
    made = world.trace(
        content,
        id=trace_id(life.session, turn, "user"),
        session=life.session,
        turn=turn,
        **more,
    )
    return await world.store.write(
        Writing(
            now=NOW,
            marker=Marker(life.at(turn), "encode"),
            new=[made],
            vectors={made.id: vector_of(MODEL, np.ones(4, np.float32))},
            words={made.id: content},
        )
    )


@pytest.fixture
async def talk(world: World, lives: type[Life], store: SQLStore) -> Life:
    """A session of the world's user."""
    life = lives(store)
    await life.open(user_id=world.user)
    return life


async def test_a_reset_does_not_bring_a_memory_back_that_was_erased_by_its_id(
    world: World, talk: Life
) -> None:
    await talk.whole_turn("t1")
    await talk.whole_turn("t2")
    for turn in ("t1", "t2"):
        assert await said(world, talk, turn, f"words of {turn}")
    await world.ask("forget", ids=[trace_id(talk.session, "t1", "user")])
    talk.run, talk.reset = "run-2", True
    for turn in ("t1", "t2"):
        assert await said(world, talk, turn, f"words of {turn}")
    assert await world.left() == ["words of t2"]


async def test_a_reset_does_not_undo_a_correction(world: World, talk: Life) -> None:
    await talk.whole_turn("t1")
    await said(world, talk, "t1", "I am allergic to peanuts")
    id_ = trace_id(talk.session, "t1", "user")
    await world.ask("correct", ids=[id_], text="I am allergic to almonds")
    talk.run, talk.reset = "run-2", True
    assert await said(world, talk, "t1", "I am allergic to peanuts")
    assert await world.left() == ["I am allergic to almonds"]
    # The old words' vector would find it still.
    assert await world.store.vectors([id_], MODEL) == {}


async def test_a_late_vector_of_other_words_is_passed_over(world: World) -> None:
    made = world.trace("alpacas spit")
    await world.keep(made)
    vector = vector_of(MODEL, np.ones(4, np.float32))
    late = Writing(now=NOW, vectors={made.id: vector}, words={made.id: "alpacas hum"})
    await world.store.write(late)
    assert await world.store.vectors([made.id], MODEL) == {}
    await world.store.write(
        Writing(now=NOW, vectors={made.id: vector}, words={made.id: "alpacas spit"})
    )
    assert list(await world.store.vectors([made.id], MODEL)) == [made.id]


async def test_a_turn_that_a_reset_abandoned_may_come_back(world: World, talk: Life) -> None:
    await talk.whole_turn("t1")
    await said(world, talk, "t1", "first", branch="main", depth=1)
    other = world.trace("second", session=talk.session, turn="t2", branch="main", depth=1)
    await talk.whole_turn("t2")
    await world.store.write(
        Writing(now=NOW, marker=Marker(talk.at("t2"), "encode"), new=[other], replaces=("main", 1))
    )
    assert await world.left() == ["second"]
    talk.run, talk.reset = "run-2", True
    assert await said(world, talk, "t1", "first", branch="main", depth=1)
    assert sorted(await world.left()) == ["first", "second"]


async def test_a_repeated_request_does_not_put_an_erased_note_in_again(world: World) -> None:
    asked: dict[str, Any] = {
        "scopes": [f"user:{world.user}"],
        "text": "tea at four",
        "request_id": f"{world.user}-note",
    }
    answer = await world.ask("remember", **asked)
    await world.ask("forget", ids=[answer.items[0]["id"]])
    with pytest.raises(NotFoundError, match="new id"):
        await world.ask("remember", **asked)
    assert await world.left() == []


async def persona_of(store: SQLStore, name: str) -> str:
    """The digest of a frozen persona."""
    one = Personas().one.model_copy(update={"id": name, "name": name})
    [digest] = await store.put_blobs("persona", [one.model_dump_json(by_alias=True).encode()])
    return digest


class Talk(Life):
    """A session in which each turn may be another persona's."""

    digest = "p1"

    def opening(self, turn: str, *args: Any, **changes: Any) -> Any:
        made = super().opening(turn, *args, **changes)
        return made.model_copy(update={"persona_digest": self.digest})


@pytest.mark.parametrize("user", [True, False])
async def test_forgetting_a_personas_memories_holds_for_turns_that_wait_to_be_encoded(
    world: World, store: SQLStore, user: bool
) -> None:
    life = Talk(store)
    await life.open(user_id=world.user)
    ours = f"ours-{world.user}"
    life.digest = await persona_of(store, ours)
    await life.whole_turn("t1")
    life.digest = await persona_of(store, f"others-{world.user}")
    await life.whole_turn("t2")
    named = {"user_id": world.user} if user else {}
    await world.ask("forget", persona=ours, **named)
    assert await said(world, life, "t1", "ours", persona_id=ours) is False
    assert await said(world, life, "t2", "theirs") is True
    assert await world.left() == ["theirs"]


async def encode(world: World, life: Life, turn: str, roles: Sequence[str]) -> None:
    """Encode what both said in a turn."""
    texts = {"user": f"question {turn}", "assistant": f"answer to {turn}"}
    scopes = {"user": world.scope, "assistant": Scope("thread", life.session)}
    new = [
        world.trace(
            texts[role],
            id=trace_id(life.session, turn, role),
            scope=scopes[role],
            session=life.session,
            turn=turn,
            role=role,
        )
        for role in roles
    ]
    await world.store.write(Writing(now=NOW, marker=Marker(life.at(turn), "encode"), new=new))


async def contents(world: World) -> list[str]:
    answer = await world.ask("list", user_id=world.user, faded=True)
    return sorted(item["content"] for item in answer.items)


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"text": "QUESTION t1"}, ["answer to t1", "answer to t2", "question t2"]),
        ({"text": "answer"}, ["question t1", "question t2"]),
        ({"types": ["episodic"]}, ["answer to t1", "answer to t2"]),
        ({"types": ["semantic"], "text": "t2"}, ["answer to t1", "question t1", "question t2"]),
        ({"text": "llamas"}, ["answer to t1", "answer to t2", "question t1", "question t2"]),
    ],
)
async def test_forgetting_by_words_or_types_holds_for_turns_that_wait_to_be_encoded(
    world: World, talk: Life, asked: dict[str, Any], left: list[str]
) -> None:
    for turn in ("t1", "t2"):
        await talk.whole_turn(turn)
    await world.ask("forget", user_id=world.user, **asked)
    for turn in ("t1", "t2"):
        await encode(world, talk, turn, ("user", "assistant"))
    assert await contents(world) == left


async def test_forgetting_by_a_scope_and_words_leaves_other_scopes(
    world: World, talk: Life
) -> None:
    await talk.whole_turn("t1")
    await world.ask("forget", scopes=[f"thread:{talk.session}"], text="t1")
    await encode(world, talk, "t1", ("user", "assistant"))
    assert await contents(world) == ["question t1"]


async def test_what_is_kept_of_an_erasure_holds_no_words(world: World, talk: Life) -> None:
    await talk.whole_turn("t1", said="the secret")
    await world.ask("forget", user_id=world.user, text="secret")
    made: list[Trace] = [world.trace("the secret", id=trace_id(talk.session, "t1", "user"))]
    assert await world.store.write(Writing(now=NOW, new=made)) is False
    answer = await world.ask("list", user_id=world.user, faded=True)
    assert "secret" not in json.dumps(answer.model_dump(mode="json"))
