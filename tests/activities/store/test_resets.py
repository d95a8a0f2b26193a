from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.errors import StaleWriteError
from gmi.personas.messages import Message, Usage
from gmi.workflows.pages import Read
from gmi.workflows.steps import Segment

from .reading import load_history


async def listed(life: Any) -> dict[str, str]:
    page = await life.store.read(Read(what="turns", session_id=life.session_id))
    return {item["turn"]: item["status"] for item in page.items}


async def three_turns(life: Any) -> Any:
    """Three turns, then a run that a reset took back to the first; returns a late place."""
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    late = life.at("t3")
    life.run, life.reset = "run-reset", True
    life.counter, life.seq, life.parent, life.depth = 2, 1, "t1", 1
    return late


async def test_turns_that_a_reset_abandoned_are_superseded(life: Any) -> None:
    await three_turns(life)
    await life.whole_turn("other")
    assert await listed(life) == {
        "t1": "done",
        "t2": "superseded",
        "t3": "superseded",
        "other": "done",
    }
    row = await life.store.get_session(life.session)
    assert (row.head, row.head_depth) == ("other", 2)


async def test_the_model_is_not_shown_what_a_reset_abandoned(life: Any) -> None:
    await three_turns(life)
    await life.whole_turn("other")
    history = await load_history(
        life,
        life.at("next"),
        step=0,
        path=[Segment(branch="main", depth=2)],
        parent="other",
        partials=[],
        limit=20,
    )
    assert [message.text for message in history.earlier] == [
        "question t1",
        "answer to t1",
        "question other",
        "answer to other",
    ]


async def test_the_abandoned_run_may_not_write_any_more(life: Any) -> None:
    late = await three_turns(life)
    await life.begin("other")
    with pytest.raises(StaleWriteError, match="abandoned by a reset"):
        await life.reply(late)
    with pytest.raises(StaleWriteError):
        await life.store.close_turn(
            late,
            status="stopped",
            output=life.output("t3", "stopped"),
            opening=None,
            layout=[2],
            messages=[],
            trace=[],
            head="t3",
        )
    with pytest.raises(StaleWriteError):
        await life.store.save_session(late, closed=True, state=None, trace=[])
    assert (await life.store.get_session(life.session)).closed_at is None


async def test_a_turn_made_again_after_a_reset_overwrites_its_old_rows(life: Any) -> None:
    await three_turns(life)
    at = life.at("t2")
    for attempt in (1, 2):
        begun = await life.store.begin_step(
            at,
            attempt,
            step=0,
            opening=life.opening("t2").model_copy(update={"seq": 2}),
            new=[Message(role="user", content="question t2, again")],
            expect_messages=0,
            reserve=None,
            trace=[],
        )
        assert begun.existing is None
    assert await listed(life) == {"t1": "done", "t2": "running", "t3": "superseded"}
    page = await life.store.read(Read(what="messages", session_id=life.session_id, turn="t2"))
    assert [item["message"]["content"] for item in page.items] == ["question t2, again"]


async def test_a_reset_into_the_middle_of_a_turn_goes_on_with_it(life: Any) -> None:
    await three_turns(life)
    step = life.at("t2")
    await life.store.begin_step(
        step,
        1,
        step=1,
        opening=None,
        new=[Message(role="tool", content="42", call_id="c")],
        expect_messages=2,
        reserve=None,
        trace=[],
    )
    assert await listed(life) == {"t1": "done", "t2": "running", "t3": "superseded"}


async def test_a_run_that_opened_before_it_said_it_was_reset_gets_its_epoch(life: Any) -> None:
    late = await three_turns(life)
    await life.open()
    await life.begin("other")
    with pytest.raises(StaleWriteError):
        await life.reply(late)


async def test_a_run_after_the_reset_one_writes_in_its_epoch(life: Any) -> None:
    await three_turns(life)
    await life.whole_turn("other")
    life.run, life.reset = "run-3", False
    await life.whole_turn("more")
    assert (await listed(life))["more"] == "done"
    life.run, life.reset = "run-reset", True
    await life.whole_turn("even-more")
    page = await life.store.read(Read(what="session", session_id=life.session_id))
    assert page.items[0]["epoch"] == 1


async def test_an_attempt_billed_before_and_after_a_reset_is_two_bills(life: Any) -> None:
    late = await three_turns(life)
    at = life.at("t3")
    await life.store.record_usage(at, [life.bill("t3", usage=Usage(prompt_tokens=7))])
    # What the abandoned run was billed late is still a bill.
    await life.store.record_usage(late, [life.bill("t3", attempt=2)])
    page = await life.store.read(Read(what="usage", session_id=life.session_id, turn="t3"))
    found = {(r["epoch"], r["attempt"], r["usage"]["prompt_tokens"]) for r in page.items}
    assert found == {(0, 1, 10), (0, 2, 10), (1, 1, 7)}


async def test_trace_entries_that_a_reset_abandoned_make_room_for_the_new_ones(
    life: Any,
) -> None:
    old = [life.entry(seq) for seq in range(1, 6)]
    await life.store.save_session(life.at(), closed=False, state=None, trace=old)
    life.run, life.reset = "run-reset", True
    new = life.entry(3).model_copy(update={"message": "anew"})
    await life.store.save_session(life.at(), closed=False, state=None, trace=[new])
    page = await life.store.read(Read(what="trace", session_id=life.session_id))
    assert [item["message"] for item in page.items] == ["entry 1", "entry 2", "anew"]


async def test_the_counter_starts_again_where_the_reset_went_back_to(life: Any) -> None:
    await three_turns(life)
    at = await life.begin("other")
    page = await life.store.read(
        Read(what="session", session_id=life.session_id, min_counter=at.counter, wait=0)
    )
    assert page.behind
    await life.close("other")
    page = await life.store.read(
        Read(what="session", session_id=life.session_id, min_counter=at.counter, wait=0)
    )
    assert not page.behind
