from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.errors import StoreBehindError
from gmi.personas.messages import Message, Usage
from gmi.workflows.pages import Read
from gmi.workflows.steps import StoredMessage
from gmi.workflows.writes import PlacedMessage


async def texts(life: Any, turn: str) -> list[str]:
    page = await life.store.read(Read(what="messages", session_id=life.session_id, turn=turn))
    return [item["message"].get("content") for item in page.items]


async def turn_item(life: Any, turn: str) -> dict[str, Any]:
    page = await life.store.read(Read(what="turn", session_id=life.session_id, turn=turn))
    return dict(page.items[0])


def placed(step: int, index: int, message: Message) -> tuple[PlacedMessage, Message]:
    stored = StoredMessage(message=message)
    return PlacedMessage(step=step, index=index, stored=stored), message


async def test_a_closed_turn_has_its_output_and_moves_the_head(life: Any) -> None:
    await life.reply(await life.begin("t1"))
    at = life.at("t1")
    output = life.output("t1", usage=Usage(prompt_tokens=10, completion_tokens=5))
    for _ in range(2):
        await life.store.close_turn(
            at,
            status="done",
            output=output,
            opening=None,
            layout=[2],
            messages=[],
            trace=[life.entry(1, "t1")],
            head="t1",
        )
    item = await turn_item(life, "t1")
    assert (item["status"], item["messages"], item["steps"]) == ("done", 2, 1)
    assert item["output"] == output.model_dump(mode="json")
    assert item["usage"]["prompt_tokens"] == 10
    assert item["ended_at"] == at.now.isoformat()
    row = await life.store.get_session(life.session)
    assert (row.head, row.head_branch, row.head_depth) == ("t1", "main", 1)
    assert (row.counter, row.seq, row.trace_seq) == (at.counter, 1, 1)


async def test_rows_that_the_session_never_recorded_are_removed(life: Any) -> None:
    await life.reply(await life.begin("t1"))
    second = life.at("t1")
    await life.store.begin_step(
        second,
        1,
        step=1,
        opening=None,
        new=[Message(role="tool", content="42", call_id="c1")],
        expect_messages=2,
        reserve=None,
        trace=[],
    )
    cut = Message(role="assistant", content="half of", partial=True)
    at = life.at("t1")
    for _ in range(2):
        await life.store.close_turn(
            at,
            status="stopped",
            output=life.output("t1", "stopped"),
            opening=None,
            layout=[1],
            messages=[placed(0, 1, cut)],
            trace=[],
            head=None,
        )
    assert await texts(life, "t1") == ["question t1", "half of"]
    assert (await turn_item(life, "t1"))["messages"] == 2


async def test_a_turn_that_no_step_recorded_is_recorded_at_its_end(life: Any) -> None:
    opening, at = life.opening("t1"), life.at("t1")
    for _ in range(2):
        await life.store.close_turn(
            at,
            status="failed",
            output=life.output("t1", "failed"),
            opening=opening,
            layout=[1],
            messages=[placed(0, 0, Message(role="user", content="never asked"))],
            trace=[],
            head=None,
        )
    item = await turn_item(life, "t1")
    assert (item["status"], item["preview"], item["messages"]) == ("failed", "never asked", 1)
    assert await texts(life, "t1") == ["never asked"]
    assert (await life.store.get_session(life.session)).head is None


async def test_the_end_of_an_unknown_turn_without_its_opening_is_behind(life: Any) -> None:
    with pytest.raises(StoreBehindError):
        await life.close("t1")


async def test_a_late_close_is_ignored_but_its_trace_is_kept(life: Any) -> None:
    await life.reply(await life.begin("t1"))
    early = life.at("t1")
    late_output = life.output("t1", "stopped")
    await life.close("t1")
    await life.store.close_turn(
        early,
        status="stopped",
        output=late_output,
        opening=None,
        layout=[],
        messages=[],
        trace=[life.entry(1, "t1")],
        head=None,
    )
    item = await turn_item(life, "t1")
    assert (item["status"], item["messages"]) == ("done", 2)
    assert (await life.store.get_session(life.session)).head == "t1"
    trace = await life.store.read(Read(what="trace", session_id=life.session_id))
    assert [entry["seq"] for entry in trace.items] == [1]


async def test_a_close_that_comes_after_the_next_turns_close_leaves_the_newer_head(
    life: Any,
) -> None:
    await life.reply(await life.begin("t1"))
    first = life.at("t1")
    life.parent, life.depth = "t1", 1
    await life.reply(await life.begin("t2"))
    await life.close("t2")
    await life.store.close_turn(
        first,
        status="done",
        output=life.output("t1"),
        opening=None,
        layout=[2],
        messages=[],
        trace=[],
        head="t1",
    )
    row = await life.store.get_session(life.session)
    assert (row.head, row.head_depth) == ("t2", 2)
    assert (await turn_item(life, "t1"))["status"] == "done"


async def test_the_counter_that_readers_wait_for_moves_at_the_end_of_a_turn_only(
    life: Any,
) -> None:
    await life.begin("t1")
    page = await life.store.read(Read(what="session", session_id=life.session_id))
    assert page.counter == 0
    await life.close("t1")
    page = await life.store.read(Read(what="session", session_id=life.session_id))
    assert page.counter == life.counter


@pytest.mark.parametrize("status", ["failed", "stopped"])
async def test_a_turn_that_ended_long_ago_stays_what_it_was(life: Any, status: Any) -> None:
    await life.whole_turn("t1", said="kept")
    before, said = await turn_item(life, "t1"), await texts(life, "t1")
    repeated = Message(role="user", content="sent again")
    await life.store.close_turn(
        life.at("t1"),
        status=status,
        output=life.output("t1", status),
        opening=life.opening("t1"),
        layout=[1],
        messages=[placed(0, 0, repeated)],
        trace=[],
        head="t1",
    )
    assert await turn_item(life, "t1") == before
    assert await texts(life, "t1") == said
