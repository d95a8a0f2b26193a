from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import Connection, text

from gmi.activities.store import SQLStore
from gmi.personas.messages import Message
from gmi.workflows.steps import Segment

from .reading import load_history


async def load(
    life: Any,
    *,
    path: list[Segment] | None = None,
    parent: str | None = None,
    partials: list[str] | None = None,
    limit: int = 20,
) -> Any:
    return await load_history(
        life,
        life.at("next"),
        step=0,
        path=[Segment(branch="main", depth=life.depth)] if path is None else path,
        parent=parent or life.parent,
        partials=partials or [],
        limit=limit,
    )


def said(history: Any) -> list[str]:
    return [message.text for message in history.earlier]


def both(*names: str) -> list[str]:
    return [text for name in names for text in (f"question {name}", f"answer to {name}")]


async def test_the_newest_messages_come_oldest_first(life: Any) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    history = await load(life, limit=4)
    assert said(history) == both("t2", "t3")
    assert history.left_out == 2
    history = await load(life, limit=20)
    assert (said(history), history.left_out) == (both("t1", "t2", "t3"), 0)


@pytest.mark.parametrize("limit", range(1, 8))
async def test_every_limit_gives_that_many_messages_and_counts_the_rest(
    life: Any, limit: int
) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    history = await load(life, limit=limit)
    assert said(history) == both("t1", "t2", "t3")[-limit:]
    assert len(history.earlier) + history.left_out == 6


async def test_a_session_without_turns_has_no_history(life: Any) -> None:
    await life.begin("t1")
    history = await load(life, path=[])
    assert (history.earlier, history.left_out) == ([], 0)


async def test_the_current_turn_has_its_earlier_steps_and_what_is_new(life: Any) -> None:
    await life.whole_turn("t1")
    await life.reply(await life.begin("t2"))
    at = life.at("t2")
    await life.store.begin_step(
        at,
        1,
        step=1,
        opening=None,
        new=[Message(role="tool", content="42", call_id="c"), Message(role="user", content="+")],
        expect_messages=2,
        reserve=None,
        trace=[],
    )
    history = await load_history(
        life, at, step=1, path=[Segment(branch="main", depth=1)], parent="t1", partials=[], limit=20
    )
    assert said(history) == both("t1")
    assert [message.text for message in history.turn] == [*both("t2"), "42", "+"]


async def test_the_parent_is_shown_before_its_end_is_recorded(life: Any) -> None:
    await life.whole_turn("t1")
    await life.reply(await life.begin("t2"))
    life.parent, life.depth = "t2", 2
    await life.begin("t3")
    history = await load(life)
    assert (said(history), history.left_out) == (both("t1", "t2"), 0)
    history = await load(life, limit=3)
    assert (said(history), history.left_out) == (["answer to t1", *both("t2")], 1)


async def test_what_is_left_out_is_right_when_a_turn_opened_before_its_parents_end(
    life: Any,
) -> None:
    await life.whole_turn("t1")
    await life.reply(await life.begin("t2"))
    life.parent, life.depth = "t2", 2
    await life.reply(await life.begin("t3"))
    life.parent, life.depth = "t1", 1
    await life.close("t2")
    await life.close("t3")
    history = await load(life, limit=2)
    assert (said(history), history.left_out) == (both("t3"), 4)


async def test_stopped_turns_are_shown_only_when_named_and_after_the_path(life: Any) -> None:
    await life.whole_turn("t1")
    for turn in ("s1", "s2"):
        await life.reply(await life.begin(turn))
        await life.close(turn, "stopped")
    assert said(await load(life)) == both("t1")
    history = await load(life, partials=["s2", "s1"])
    assert said(history) == both("t1", "s1", "s2")
    history = await load(life, partials=["s2", "s1"], limit=3)
    assert said(history) == ["answer to s1", *both("s2")]
    assert history.left_out == 2


async def test_a_path_of_two_branches_holds_only_what_lies_before_the_fork(life: Any) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    life.branch, life.parent, life.depth = "side", "t1", 1
    await life.whole_turn("u2")
    path = [Segment(branch="main", depth=1), Segment(branch="side", depth=2)]
    history = await load(life, path=path)
    assert said(history) == both("t1", "u2")
    history = await load(life, path=path, limit=3)
    assert (said(history), history.left_out) == (["answer to t1", *both("u2")], 1)
    main = await load(life, path=[Segment(branch="main", depth=3)], parent="t3")
    assert said(main) == both("t1", "t2", "t3")


async def test_a_turn_without_parent_starts_a_conversation_of_its_own(life: Any) -> None:
    await life.whole_turn("t1")
    life.parent = None
    await life.whole_turn("t2")
    assert said(await load(life)) == both("t2")


async def test_a_turn_without_parent_does_so_before_its_end_is_recorded(life: Any) -> None:
    await life.whole_turn("t1")
    life.parent = None
    await life.reply(await life.begin("t2"))
    life.depth = 2
    assert said(await load(life, parent="t2")) == both("t2")


async def test_of_two_done_turns_at_one_depth_the_parent_counts(life: Any) -> None:
    await life.whole_turn("t1")
    await life.reply(await life.begin("lost"))
    lost = life.at("lost")
    await life.whole_turn("t2")
    await life.store.close_turn(
        lost,
        status="done",
        output=life.output("lost"),
        opening=None,
        layout=[2],
        messages=[],
        trace=[],
        head="lost",
    )
    assert said(await load(life)) == both("t1", "t2")


NUMBERS = (
    "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < :last)"
)
TURNS = f"""
INSERT INTO turns (session, turn, seq, request_id, digest, branch, depth, parent, kind, status,
    reads, persona_digest, toolset_digest, preview, steps, messages, base, root_depth, hidden,
    fence, created_at)
{NUMBERS}
SELECT :session, 'old-' || n, n + 1, 'r' || n, '', 'main', n + 1,
    CASE WHEN n > 0 THEN 'old-' || (n - 1) END, 'text', 'done',
    '[]', '', '', '', 1, 2, 2 * n, 1, 0, n, '2026-03-01 12:00:00'
FROM numbers
"""
MESSAGES = f"""
INSERT INTO messages (session, turn, step, idx, role, body, bytes, fence)
{NUMBERS}
SELECT :session, 'old-' || n, 0, :idx, :role, replace(:body, '#', CAST(n AS TEXT)), 300, n
FROM numbers
"""


async def grow(store: SQLStore, life: Any, count: int) -> None:
    """Write many done turns at once, as rows."""

    def write(conn: Connection) -> None:
        given = {"session": life.session, "last": count - 1}
        conn.execute(text(TURNS), given)
        if conn.dialect.name == "postgresql":
            # The check of each message's turn is planned anew; it was planned for an empty table.
            conn.exec_driver_sql("ANALYZE turns")
        for idx, role in enumerate(("user", "assistant")):
            body = Message(role=role, content=f"{role} # {'x' * 300}").model_dump_json()
            spoken = {"idx": idx, "role": role, "body": body}
            conn.execute(text(MESSAGES), given | spoken)

    await store.database.write(write)
    life.parent, life.depth = f"old-{count - 1}", count
    life.counter = life.seq = count


async def best_of(times: int, life: Any) -> float:
    """Seconds of the fastest of several loads."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        history = await load(life)
        found.append(time.perf_counter() - start)
        assert len(history.earlier) == 20
    return min(found)


async def test_ten_thousand_turns_cost_no_more_than_fifty(store: SQLStore, lives: Any) -> None:
    short, long = lives(store), lives(store)
    await short.open()
    await long.open()
    await grow(store, short, 50)
    await grow(store, long, 10_000)
    history = await load(long)
    assert history.left_out == 19_980
    assert said(history)[-1].startswith("assistant 9999 ")
    # A scan of the session would take some fifty times as long.
    assert await best_of(20, long) < 5 * await best_of(20, short)
    await long.whole_turn("new")
    history = await load(long)
    assert said(history)[-2:] == both("new")
    assert history.left_out == 19_982
