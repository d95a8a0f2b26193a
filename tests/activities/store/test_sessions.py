from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from gmi.activities.store import SQLStore
from gmi.personas.errors import StoreUnknownSessionError
from gmi.workflows.pages import Read


async def test_a_session_opened_twice_is_one_session(store: SQLStore, lives: Any) -> None:
    life = lives(store)
    first = await life.open()
    again = await life.open(user_id="somebody else", persona_digest="p9")
    assert again == first
    assert (again.user_id, again.persona_digest, again.config) == ("ada", "p1", {"stream": True})
    assert await store.find_session(life.session_id) == first
    assert await store.get_session(life.session) == first


async def test_ten_openings_at_once_make_one_session(store: SQLStore, lives: Any) -> None:
    life = lives(store)
    rows = await asyncio.gather(*(life.open() for _ in range(10)))
    assert all(row == rows[0] for row in rows)


async def test_an_unknown_session_is_not_found(store: SQLStore) -> None:
    assert await store.find_session("nobody") is None
    assert await store.get_session("nobody~1") is None


async def test_the_newest_session_of_an_id_is_found(store: SQLStore, life: Any) -> None:
    await store.save_session(life.at(), closed=True, state=None, trace=[])
    first = await store.find_session(life.session_id)
    assert first is not None
    assert first.closed_at is not None
    later = first.created_at + timedelta(days=1)
    await life.open(session=f"{life.session_id}~2", created_at=later)
    newest = await store.find_session(life.session_id)
    assert newest is not None
    assert (newest.session, newest.closed_at) == (f"{life.session_id}~2", None)


async def test_a_time_comes_back_in_utc_to_the_microsecond(store: SQLStore, lives: Any) -> None:
    life = lives(store)
    at = life.at().now.replace(microsecond=123456)
    row = await life.open(created_at=at)
    assert row.created_at == at
    assert row.created_at.utcoffset() == timedelta(0)


async def test_a_naive_time_is_refused(store: SQLStore, lives: Any) -> None:
    life = lives(store)
    with pytest.raises(Exception, match="no time zone"):
        await life.open(created_at=life.at().now.replace(tzinfo=None))
    assert await store.get_session(life.session) is None


async def test_a_record_left_behind_is_handed_out_until_a_turn_is_recorded(life: Any) -> None:
    store = life.store
    state = {"mind": {"mood": "calm ☃"}, "queue": []}
    for _ in range(2):
        await store.save_session(life.at(), closed=False, state=state, trace=[life.entry(1)])
    life.run = "run-2"
    assert (await life.open()).state == state
    # The worker may die before the run knows its record.
    assert (await life.open()).state == state
    await life.begin("t1")
    assert (await life.open()).state is None
    assert (await store.get_session(life.session)).trace_seq == 1


async def test_a_late_close_of_a_turn_does_not_clear_a_newer_record(life: Any) -> None:
    await life.reply(await life.begin("t1"))
    at = life.at("t1")
    await life.store.save_session(life.at(), closed=False, state={"a": 1}, trace=[])
    await life.store.close_turn(
        at,
        status="done",
        output=life.output("t1"),
        opening=None,
        layout=[2],
        messages=[],
        trace=[],
        head="t1",
    )
    assert (await life.store.get_session(life.session)).state == {"a": 1}


async def test_closing_twice_keeps_the_first_time(life: Any) -> None:
    at = life.at()
    await life.store.save_session(at, closed=True, state=None, trace=[])
    await life.store.save_session(life.at(), closed=True, state=None, trace=[])
    assert (await life.store.get_session(life.session)).closed_at == at.now


async def test_an_older_release_does_not_overwrite_a_newer_one(life: Any) -> None:
    old, new = life.at(), life.at()
    await life.store.save_session(new, closed=False, state={"n": 2}, trace=[])
    await life.store.save_session(old, closed=False, state={"n": 1}, trace=[])
    assert (await life.store.get_session(life.session)).state == {"n": 2}


async def test_the_newest_persona_counts_whatever_comes_last(life: Any) -> None:
    old, new = life.at(), life.at()
    await life.store.set_persona(new, "p3", "t3")
    await life.store.set_persona(old, "p2", "t2")
    row = await life.store.get_session(life.session)
    assert (row.persona_digest, row.toolset_digest) == ("p3", "t3")
    page = await life.store.read(Read(what="session", session_id=life.session_id))
    assert page.items[0]["persona_digest"] == "p3"


async def test_the_counter_of_a_turn_that_never_ended_is_not_forgotten(life: Any) -> None:
    at = await life.begin("t1")
    assert (await life.store.get_session(life.session)).counter == at.counter


async def test_writes_to_an_unknown_session_are_refused(store: SQLStore, lives: Any) -> None:
    life = lives(store)
    with pytest.raises(StoreUnknownSessionError):
        await store.set_persona(life.at(), "p", "t")
    with pytest.raises(StoreUnknownSessionError):
        await store.save_session(life.at(), closed=True, state=None, trace=[])
