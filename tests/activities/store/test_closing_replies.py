"""A reply that is its turn's answer ends the turn in the same transaction."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.store import Closing
from gmi.personas.errors import StaleWriteError
from gmi.personas.messages import Message
from gmi.workflows.pages import Read
from gmi.workflows.steps import At


async def row(life: Any, turn: str) -> dict[str, Any]:
    page = await life.store.read(Read(what="turn", session_id=life.session_id, turn=turn))
    return dict(page.items[0])


async def answer(life: Any, at: At, *, attempt: int = 1, said: str = "answer") -> None:
    await life.store.save_reply(
        at,
        attempt,
        step=0,
        index=1,
        reply=Message(role="assistant", content=said),
        usage=life.bill(at.turn, attempt=attempt),
        closing=Closing(output=life.output(at.turn, write_counter=at.counter), messages=2),
    )


async def test_the_answer_ends_the_turn_and_moves_the_head_and_the_counter(life: Any) -> None:
    at = await life.begin("t1")
    await answer(life, at)
    ended = await row(life, "t1")
    assert ended["status"] == "done"
    assert ended["output"]["response_text"] == "answer to t1"
    session = await life.store.get_session(life.session)
    assert session.head == "t1"
    page = await life.store.read(Read(what="session", session_id=life.session_id))
    assert page.counter == at.counter


async def test_ending_a_turn_twice_changes_nothing(life: Any) -> None:
    at = await life.begin("t1")
    await answer(life, at)
    before = await row(life, "t1")
    await answer(life, at)
    assert await row(life, "t1") == before


async def test_a_second_attempt_of_the_same_step_opens_the_turn_again(life: Any) -> None:
    at = await life.begin("t1")
    await answer(life, at, said="never seen")
    begun = await life.store.begin_step(
        at,
        2,
        step=0,
        opening=life.opening("t1"),
        new=[Message(role="user", content="question t1")],
        expect_messages=0,
        reserve=None,
        trace=[],
    )
    assert begun.existing is None
    assert (await row(life, "t1"))["status"] == "running"
    await answer(life, at, attempt=2, said="seen")
    page = await life.store.read(Read(what="messages", session_id=life.session_id, turn="t1"))
    assert [item["message"]["content"] for item in page.items] == ["question t1", "seen"]


async def test_a_later_attempt_of_another_record_gets_the_stored_output(life: Any) -> None:
    at = await life.begin("t1")
    await answer(life, at)
    begun = await life.store.begin_step(
        life.at("t1"),
        1,
        step=0,
        opening=life.opening("t1"),
        new=[Message(role="user", content="question t1")],
        expect_messages=0,
        reserve=None,
        trace=[],
    )
    assert begun.existing is not None
    assert begun.existing.response_text == "answer to t1"


async def test_a_stop_that_came_first_wins_over_the_answer(life: Any) -> None:
    at = await life.begin("t1")
    await answer(life, at)
    await life.close("t1", "stopped")
    assert (await row(life, "t1"))["status"] == "stopped"
    assert (await life.store.get_session(life.session)).head is None
    with pytest.raises(StaleWriteError):
        await answer(life, at)
    assert (await row(life, "t1"))["status"] == "stopped"
