"""Forgetting turns takes their words out of the minds that were kept; on both databases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gmi.activities.store import SQLStore
from gmi.workflows.pages import Read

from .caring import World
from .conftest import START, Life


@pytest.fixture
def world(store: SQLStore) -> World:
    return World(store)


def mind(*turns: str, happened: tuple[str, ...] = ()) -> dict[str, Any]:
    """A mind that has heard these turns."""
    trends = [
        {
            "turn": turn,
            "at": START.isoformat(),
            "score": 0.5,
            "intensity": 0.5,
            "polarity": "positive",
            "excerpt": f"secret of {turn}",
            "length": 20,
        }
        for turn in turns
    ]
    return {
        "sentiment": {"trends": trends, "last_turn": turns[-1]},
        "happened": list(happened),
        "working": {"goal": "from the persona", "noted": f"secret of {turns[-1]}"},
        "noted_in": {"noted": turns[-1]},
        "counters": {"hourly": 3},
        "a field of a newer release": 1,
    }


async def minds(life: Life) -> dict[str, dict[str, Any]]:
    page = await life.store.read(Read(what="mind", session_id=life.session_id))
    return {item["turn"]: item["mind"] for item in page.items}


def excerpts(kept: dict[str, Any]) -> list[str]:
    return [trend["excerpt"] for trend in kept["sentiment"]["trends"]]


@pytest.fixture
async def talk(world: World, lives: type[Life], store: SQLStore) -> Life:
    """A session of two turns, each with its mind."""
    life = lives(store)
    await life.open(user_id=world.user)
    for number, heard in ((1, ["t1"]), (2, ["t1", "t2"])):
        await life.whole_turn(f"t{number}")
        happened = ("the secret door opened",)
        await store.keep_mind(life.at(f"t{number}"), mind(*heard, happened=happened))
    return life


@pytest.mark.parametrize("by", ["user", "session", "scope"])
async def test_a_user_and_a_session_are_forgotten_by_their_minds_too(
    world: World, talk: Life, by: str
) -> None:
    asked: dict[str, Any] = {
        "user": {"user_id": world.user},
        "session": {"session_id": talk.session_id},
        "scope": {"scopes": [f"user:{world.user}"]},
    }[by]
    await world.ask("forget", **asked)
    kept = await minds(talk)
    assert "secret" not in json.dumps(kept)
    # What was felt stays: it holds nothing of what was said.
    assert kept["t2"]["sentiment"]["trends"][1]["score"] == 0.5
    assert kept["t2"]["counters"] == {"hourly": 3}
    assert kept["t2"]["working"] == {"goal": "from the persona"}
    assert kept["t2"]["a field of a newer release"] == 1


async def test_a_turn_is_forgotten_by_the_minds_of_later_turns(world: World, talk: Life) -> None:
    await world.ask("forget", session_id=talk.session_id, turn="t1")
    kept = await minds(talk)
    assert excerpts(kept["t1"]) == [""]
    assert excerpts(kept["t2"]) == ["", "secret of t2"]


async def test_a_mind_that_a_session_has_at_hand_does_not_bring_the_words_back(
    world: World, talk: Life
) -> None:
    await world.ask("forget", user_id=world.user)
    await talk.whole_turn("t3")
    await talk.store.keep_mind(talk.at("t3"), mind("t1", "t2", "t3"))
    assert excerpts((await minds(talk))["t3"]) == ["", "", "secret of t3"]


async def test_a_note_of_a_forgotten_turn_is_known_when_it_is_kept(
    world: World, talk: Life
) -> None:
    await world.ask("forget", session_id=talk.session_id, turn="t1")
    await talk.whole_turn("t3")
    at_hand = mind("t1") | {"sentiment": {}}
    assert await talk.store.keep_mind(talk.at("t3"), at_hand) == {"t1"}
    assert (await minds(talk))["t3"]["working"] == {"goal": "from the persona"}


async def test_the_record_of_a_released_session_loses_the_words(world: World, talk: Life) -> None:
    await talk.store.save_session(
        talk.at(), closed=False, state={"mind": mind("t1", "t2")}, trace=[]
    )
    await world.ask("forget", session_id=talk.session_id, turn="t2")
    row = await talk.store.find_session(talk.session_id)
    assert row is not None
    assert row.state is not None
    assert excerpts(row.state["mind"]) == ["secret of t1", ""]


async def test_a_session_is_told_whose_words_it_has_at_hand_and_only_once(
    world: World, talk: Life
) -> None:
    await world.ask("forget", user_id=world.user)
    await talk.whole_turn("t3")
    at_hand = mind("t1", "t2", "t3")
    assert await talk.store.keep_mind(talk.at("t3"), at_hand) == {"t1", "t2"}
    for trend in at_hand["sentiment"]["trends"][:2]:
        trend["excerpt"] = ""
    del at_hand["noted_in"]
    await talk.whole_turn("t4")
    assert await talk.store.keep_mind(talk.at("t4"), at_hand) == set()


async def test_what_happened_in_a_forgotten_turn_is_not_kept_by_a_later_one(
    world: World, talk: Life
) -> None:
    await world.ask("forget", session_id=talk.session_id, turn="t1")
    await talk.whole_turn("t3")
    await talk.store.keep_mind(talk.at("t3"), mind("t3", happened=("the secret of t1",)))
    assert (await minds(talk))["t3"]["happened"] == []


async def test_a_session_that_is_released_later_does_not_bring_the_words_back(
    world: World, talk: Life
) -> None:
    await world.ask("forget", session_id=talk.session_id, turn="t2")
    state = {"mind": mind("t1", "t2", happened=("the secret of t2",))}
    await talk.store.save_session(talk.at(), closed=False, state=state, trace=[])
    row = await talk.store.find_session(talk.session_id)
    assert row is not None
    assert row.state is not None
    assert excerpts(row.state["mind"]) == ["secret of t1", ""]
    assert row.state["mind"]["happened"] == []


@pytest.mark.parametrize("part", [{"text": "llamas"}, {"types": ["semantic"]}])
async def test_forgetting_a_part_leaves_the_minds_alone(
    world: World, talk: Life, part: dict[str, Any]
) -> None:
    await world.ask("forget", user_id=world.user, **part)
    assert excerpts((await minds(talk))["t2"]) == ["secret of t1", "secret of t2"]


async def test_other_sessions_keep_their_minds(
    world: World, talk: Life, lives: type[Life], store: SQLStore
) -> None:
    other = lives(store)
    await other.open(user_id=f"{world.user}-2")
    await other.whole_turn("t1")
    await store.keep_mind(other.at("t1"), mind("t1"))
    await world.ask("forget", user_id=world.user)
    assert excerpts((await minds(other))["t1"]) == ["secret of t1"]
