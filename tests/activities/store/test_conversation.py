from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.store import Shown
from gmi.workflows.steps import Segment


async def said(life: Any, turn: str, *, depth: int, limit: int = 20) -> list[str]:
    path = [Segment(branch=life.branch, depth=depth)]
    found = await life.store.conversation(life.at(turn), Shown(path, None, [], limit))
    return [message.text for message in found]


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
async def test_a_conversation_ends_with_the_turn_itself(life: Any, depth: int) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    assert await said(life, "t2", depth=depth) == [
        "question t1",
        "answer to t1",
        "question t2",
        "answer to t2",
    ]


async def test_the_limit_holds_for_all_messages_and_the_newest_stay(life: Any) -> None:
    for turn in ("t1", "t2"):
        await life.whole_turn(turn)
    assert await said(life, "t2", depth=1, limit=3) == [
        "answer to t1",
        "question t2",
        "answer to t2",
    ]
    assert await said(life, "t2", depth=1, limit=1) == ["answer to t2"]


async def test_the_first_turn_has_nothing_before_it(life: Any) -> None:
    await life.whole_turn("t1")
    assert await said(life, "t1", depth=0) == ["question t1", "answer to t1"]


async def test_a_turn_that_is_hidden_or_unknown_has_no_conversation(life: Any) -> None:
    await life.whole_turn("t1")
    assert await said(life, "t9", depth=1) == []
    life.parent, life.branch, life.depth = None, "other", 0
    at, opening = life.at("i"), life.opening("i", kind="import")
    output = life.output("i")
    hid = await life.store.import_history(
        at, opening=opening, messages=[], forget=True, output=output, trace=[]
    )
    assert hid == ["t1"]
    assert await said(life, "t1", depth=0) == []
