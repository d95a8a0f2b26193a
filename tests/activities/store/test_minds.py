from __future__ import annotations

from typing import Any

import pytest

from gmi.workflows.pages import Read


async def read(life: Any, **more: Any) -> Any:
    return await life.store.read(Read(what="mind", session_id=life.session_id, **more))


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_the_minds_of_all_turns_are_listed_in_their_order(life: Any, limit: int) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    for turn in ("t3", "t1"):
        await life.store.keep_mind(life.at(turn), {"mark": turn})
    found: list[Any] = []
    after = None
    while True:
        page = await read(life, after=after, limit=limit)
        found += page.items
        after = page.next
        if after is None:
            break
    assert [(item["turn"], item["mind"]) for item in found] == [
        ("t1", {"mark": "t1"}),
        ("t3", {"mark": "t3"}),
    ]
    assert found[0]["seq"] < found[1]["seq"]


async def test_a_turn_that_left_no_mind_of_its_own_has_none(life: Any) -> None:
    await life.whole_turn("t1")
    assert (await read(life, turn="t1")).items == []
    await life.store.keep_mind(life.at("t1"), {"mood": "calm ☃"})
    [item] = (await read(life, turn="t1")).items
    assert item["mind"] == {"mood": "calm ☃"}


async def test_an_older_mind_never_replaces_a_newer_one(life: Any) -> None:
    await life.whole_turn("t1")
    older, newer = life.at("t1"), life.at("t1")
    assert older.counter < newer.counter
    await life.store.keep_mind(newer, {"mark": "newer"})
    await life.store.keep_mind(older, {"mark": "older"})
    await life.store.keep_mind(newer, {"mark": "newer again"})
    [item] = (await read(life, turn="t1")).items
    assert item["mind"] == {"mark": "newer again"}
