"""What a session whose workflow was ended from outside finds in the store."""

from __future__ import annotations

from typing import Any

from gmi.activities.memory.store import Find, Marker, Writing
from gmi.activities.store.left_behind import MAX_TURNS
from gmi.activities.store.memory.sql import SQLMemoryStore


async def left_behind(life: Any) -> Any:
    row = await life.store.get_session(life.session)
    assert row is not None
    return await life.store.left_behind(row)


async def test_a_session_without_turns_left_nothing(life: Any) -> None:
    found = await left_behind(life)
    assert (found.mind, list(found.turns)) == (None, [])


async def test_the_newest_mind_counts_also_where_the_head_left_none_of_its_own(life: Any) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    for turn in ("t2", "t1"):
        await life.store.keep_mind(life.at(turn), {"mark": turn})
    found = await left_behind(life)
    assert found.mind == {"mark": "t2"}
    assert [(left.turn, left.mind) for left in found.turns] == [
        ("t1", {"mark": "t1"}),
        ("t2", {"mark": "t2"}),
        ("t3", None),
    ]
    assert found.turns[0].persona_digest
    assert found.turns[0].output["status"] == "done"


async def test_turns_that_are_remembered_or_forgotten_are_not_listed(life: Any) -> None:
    memories = SQLMemoryStore(life.store.database)
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    await memories.write(Writing(now=1.0, marker=Marker(life.at("t1"), "encode")))
    await memories.erase(Find(session=life.session, turn="t2"), 2.0)
    assert [left.turn for left in (await left_behind(life)).turns] == ["t3"]


async def test_only_the_newest_turns_are_listed(life: Any) -> None:
    for number in range(MAX_TURNS + 2):
        await life.whole_turn(f"t{number}")
    found = [left.turn for left in (await left_behind(life)).turns]
    assert found == [f"t{number}" for number in range(2, MAX_TURNS + 2)]
