from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from gmi.activities.store import UsageRow
from gmi.personas.errors import (
    RequestMismatchError,
    StaleWriteError,
    StoreBehindError,
    StoreUnknownSessionError,
)
from gmi.personas.messages import Message, ReplayBlock, ToolCall, Usage
from gmi.workflows.pages import Read
from gmi.workflows.steps import At

from .reading import load_history


async def texts(life: Any, turn: str) -> list[str]:
    page = await life.store.read(Read(what="messages", session_id=life.session_id, turn=turn))
    return [item["message"].get("content") for item in page.items]


async def ledger(life: Any) -> list[dict[str, Any]]:
    page = await life.store.read(Read(what="usage", session_id=life.session_id))
    return page.items


async def status(life: Any, turn: str) -> str:
    page = await life.store.read(Read(what="turn", session_id=life.session_id, turn=turn))
    return str(page.items[0]["status"])


async def test_a_step_opens_its_turn_with_message_reservation_and_trace(life: Any) -> None:
    at = life.at("t1")
    begun = await life.store.begin_step(
        at,
        1,
        step=0,
        opening=life.opening("t1"),
        new=[Message(role="user", content="hello")],
        expect_messages=0,
        reserve=life.bill("t1", "reserved"),
        trace=[life.entry(1, "t1", why="because")],
    )
    assert begun.existing is None
    assert await status(life, "t1") == "running"
    assert await texts(life, "t1") == ["hello"]
    assert [row["state"] for row in await ledger(life)] == ["reserved"]
    trace = await life.store.read(Read(what="trace", session_id=life.session_id))
    assert trace.items[0]["details"] == {"why": "because"}


async def test_a_step_begun_twice_leaves_what_one_leaves(life: Any) -> None:
    at, opening = life.at("t1"), life.opening("t1")
    for _ in range(2):
        await life.store.begin_step(
            at,
            1,
            step=0,
            opening=opening,
            new=[Message(role="user", content="hello")],
            expect_messages=0,
            reserve=life.bill("t1", "reserved"),
            trace=[life.entry(1, "t1")],
        )
    assert await texts(life, "t1") == ["hello"]
    assert len(await ledger(life)) == 1


async def test_a_reply_saved_twice_is_one_message_and_one_bill(life: Any) -> None:
    at = await life.begin("t1")
    await life.reply(at)
    await life.reply(at)
    assert await texts(life, "t1") == ["question t1", "answer to t1"]
    rows = await ledger(life)
    assert [(row["state"], row["usage"]["prompt_tokens"]) for row in rows] == [("done", 10)]


async def test_a_message_comes_back_as_it_was(life: Any) -> None:
    at = await life.begin("t1")
    reply = Message(
        role="assistant",
        content='nul \x00, snowman ☃, quote "',
        calls=[ToolCall(id="c1", name="look", arguments={"b": 1, "a": [None, 1.5]})],
        replay=[
            ReplayBlock(
                provider="anthropic",
                model="m",
                data={"type": "thinking", "thinking": "", "signature": "Zm9v/+=="},
            )
        ],
    )
    await life.store.save_reply(at, 1, step=0, index=1, reply=reply, usage=life.bill("t1"))
    history = await load_history(life, at, step=0, path=[], parent=None, partials=[], limit=20)
    assert history.turn[1] == reply
    assert history.turn[1].model_dump_json() == reply.model_dump_json()


async def test_the_next_step_replaces_what_a_lost_attempt_left_behind(life: Any) -> None:
    at = await life.begin("t1")
    await life.reply(at)
    second = life.at("t1")
    results = [Message(role="tool", content="42", call_id="c1")]
    for attempt in (1, 2):
        await life.store.begin_step(
            second,
            attempt,
            step=1,
            opening=None,
            new=results,
            expect_messages=2,
            reserve=None,
            trace=[],
        )
        await life.store.save_reply(
            second,
            attempt,
            step=1,
            index=1,
            reply=Message(role="assistant", content=f"attempt {attempt}"),
            usage=life.bill("t1", step=1, attempt=attempt),
        )
    assert await texts(life, "t1") == ["question t1", "answer to t1", "42", "attempt 2"]
    assert len(await ledger(life)) == 3


async def test_a_step_done_again_from_its_start_removes_later_rows(life: Any) -> None:
    at = await life.begin("t1")
    await life.reply(at)
    again = at.model_copy(update={"counter": life.at().counter})
    await life.store.begin_step(
        again,
        1,
        step=0,
        opening=None,
        new=[Message(role="user", content="question t1")],
        expect_messages=0,
        reserve=None,
        trace=[],
    )
    assert await texts(life, "t1") == ["question t1"]


async def test_a_late_attempt_after_a_newer_one_writes_nothing(life: Any) -> None:
    at = await life.begin("t1", attempt=1)
    life.seq -= 1
    again = life.opening("t1")
    await life.store.begin_step(
        at,
        2,
        step=0,
        opening=again,
        new=[Message(role="user", content="question t1")],
        expect_messages=0,
        reserve=life.bill("t1", "reserved", attempt=2),
        trace=[],
    )
    with pytest.raises(StaleWriteError):
        await life.reply(at, attempt=1, said="late")
    with pytest.raises(StaleWriteError):
        await life.store.begin_step(
            at,
            1,
            step=0,
            opening=again,
            new=[Message(role="user", content="late")],
            expect_messages=0,
            reserve=life.bill("t1", "reserved", attempt=3),
            trace=[life.entry(9, "t1")],
        )
    assert await texts(life, "t1") == ["question t1"]
    assert [row["attempt"] for row in await ledger(life)] == [1, 2]
    trace = await life.store.read(Read(what="trace", session_id=life.session_id))
    assert trace.items == []


async def test_a_write_after_the_turn_was_closed_is_dropped(life: Any) -> None:
    at = await life.begin("t1")
    await life.store.close_turn(
        life.at("t1"),
        status="stopped",
        output=life.output("t1", "stopped"),
        opening=None,
        layout=[1],
        messages=[],
        trace=[],
        head=None,
    )
    with pytest.raises(StaleWriteError):
        await life.reply(at)
    with pytest.raises(StaleWriteError):
        await life.store.begin_step(
            at,
            7,
            step=0,
            opening=None,
            new=[Message(role="user", content="late")],
            expect_messages=0,
            reserve=None,
            trace=[],
        )
    assert await texts(life, "t1") == ["question t1"]
    assert await status(life, "t1") == "stopped"


async def test_an_old_request_sent_again_gets_the_stored_output(life: Any) -> None:
    await life.whole_turn("t1")
    opening = life.opening("t1")
    begun = await life.store.begin_step(
        life.at("t1"),
        1,
        step=0,
        opening=opening,
        new=[Message(role="user", content="question t1")],
        expect_messages=0,
        reserve=life.bill("t1", "reserved", attempt=9),
        trace=[],
    )
    assert begun.existing is not None
    assert begun.existing.response_text == "answer to t1"
    assert await texts(life, "t1") == ["question t1", "answer to t1"]
    assert [row["attempt"] for row in await ledger(life)] == [1]


async def test_another_input_under_a_known_request_is_refused(life: Any) -> None:
    await life.whole_turn("t1")
    with pytest.raises(RequestMismatchError, match="request-t1"):
        await life.store.begin_step(
            life.at("t1"),
            1,
            step=0,
            opening=life.opening("t1", digest="other"),
            new=[Message(role="user", content="something else")],
            expect_messages=0,
            reserve=None,
            trace=[],
        )
    assert await texts(life, "t1") == ["question t1", "answer to t1"]


async def test_a_known_request_under_another_turn_is_refused(life: Any) -> None:
    await life.whole_turn("t1")
    opening = life.opening("t2").model_copy(update={"request_id": "request-t1"})
    with pytest.raises(RequestMismatchError, match="belongs to turn t1"):
        await life.store.begin_step(
            life.at("t2"),
            1,
            step=0,
            opening=opening,
            new=[],
            expect_messages=0,
            reserve=None,
            trace=[],
        )


@pytest.mark.parametrize("expected", [1, 3])
async def test_another_number_of_messages_than_recorded_is_behind(life: Any, expected: int) -> None:
    await life.reply(await life.begin("t1"))
    with pytest.raises(StoreBehindError) as caught:
        await life.store.begin_step(
            life.at("t1"),
            1,
            step=1,
            opening=None,
            new=[Message(role="tool", content="42", call_id="c1")],
            expect_messages=expected,
            reserve=None,
            trace=[],
        )
    assert caught.value.details["found"] == 2
    assert not caught.value.details.get("retryable")
    assert await texts(life, "t1") == ["question t1", "answer to t1"]


async def test_a_step_of_a_turn_that_was_never_opened_is_behind(life: Any) -> None:
    with pytest.raises(StoreBehindError):
        await life.store.begin_step(
            life.at("t1"),
            1,
            step=1,
            opening=None,
            new=[],
            expect_messages=0,
            reserve=None,
            trace=[],
        )
    with pytest.raises(StoreBehindError):
        await life.reply(life.at("t1"))


async def test_a_write_to_an_unknown_session_is_refused(life: Any) -> None:
    at = At(session="nobody", turn="t", counter=1, now=life.at().now, run="r")
    with pytest.raises(StoreUnknownSessionError, match="nobody"):
        await life.store.record_usage(at, [life.bill("t")])
    with pytest.raises(StoreUnknownSessionError, match="nobody"):
        await life.store.begin_step(
            at,
            1,
            step=0,
            opening=life.opening("t"),
            new=[],
            expect_messages=0,
            reserve=None,
            trace=[],
        )


async def test_a_settled_bill_is_never_a_reservation_again(life: Any) -> None:
    at = await life.begin("t1")
    await life.reply(at)
    await life.store.record_usage(at, [life.bill("t1", "reserved")])
    assert [row["state"] for row in await ledger(life)] == ["done"]


async def test_each_billed_attempt_is_a_row_of_its_own(life: Any) -> None:
    at = await life.begin("t1")
    failed = life.bill("t1", "failed", usage=Usage(prompt_tokens=600, cost_usd=0.25))
    other = UsageRow(
        turn="t1",
        step=0,
        attempt=2,
        hop=1,
        provider="p",
        model="m",
        state="done",
        usage=Usage(prompt_tokens=500),
    )
    for _ in range(2):
        await life.store.record_usage(at, [failed, other])
    rows = await ledger(life)
    assert [(r["attempt"], r["hop"], r["state"]) for r in rows] == [
        (1, 0, "failed"),
        (2, 1, "done"),
    ]
    assert sum(r["usage"]["prompt_tokens"] for r in rows) == 1100
    assert rows[0]["usage"]["cost_usd"] == 0.25


@pytest.mark.parametrize("turn", ["t1", "t2", "t3", "t4", "t5", "t6"])
async def test_ten_attempts_of_a_step_at_once_leave_what_one_leaves(life: Any, turn: str) -> None:
    at, opening = life.at(turn), life.opening(turn)

    async def begin(attempt: int) -> None:
        # A late attempt is refused; nothing else may go wrong.
        with contextlib.suppress(StaleWriteError):
            await life.store.begin_step(
                at,
                attempt,
                step=0,
                opening=opening,
                new=[Message(role="user", content=f"attempt {attempt}")],
                expect_messages=0,
                reserve=None,
                trace=[life.entry(1, turn)],
            )

    await asyncio.gather(*(begin(attempt) for attempt in range(1, 11)))
    assert await texts(life, turn) == ["attempt 10"]
