from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from gmi.activities.store import SQLStore
from gmi.personas.errors import (
    NotFoundError,
    SessionNotFoundError,
    TurnNotFoundError,
    ValidationError,
)
from gmi.personas.messages import Message
from gmi.workflows.pages import Page, Read
from gmi.workflows.trace import TraceEntry

BOUND = 256 * 1024


async def pages(life: Any, what: Any, **more: Any) -> list[Page]:
    """Every page of a list."""
    found: list[Page] = []
    after = None
    while True:
        request = Read(what=what, session_id=life.session_id, after=after, **more)
        page = await life.store.read(request)
        assert len(page.model_dump_json().encode()) <= BOUND
        found.append(page)
        after = page.next
        if after is None:
            return found


def items(found: list[Page]) -> list[dict[str, Any]]:
    return [item for page in found for item in page.items]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_every_list_is_whole_whatever_the_page_holds(life: Any, limit: int) -> None:
    names = [f"t{n}" for n in range(1, 6)]
    for turn in names:
        await life.whole_turn(turn)
    entries = [life.entry(seq, "t1", n=seq) for seq in range(1, 6)]
    await life.store.save_session(life.at(), closed=False, state=None, trace=entries)

    found = items(await pages(life, "turns", limit=limit))
    assert [item["turn"] for item in found] == names
    assert [item["preview"] for item in found] == [f"question {turn}" for turn in names]
    found = items(await pages(life, "messages", limit=limit))
    expected = [text for turn in names for text in (f"question {turn}", f"answer to {turn}")]
    assert [item["message"]["content"] for item in found] == expected
    found = items(await pages(life, "usage", limit=limit))
    assert [(item["turn"], item["state"]) for item in found] == [(t, "done") for t in names]
    found = items(await pages(life, "trace", limit=limit))
    assert [TraceEntry.model_validate(item) for item in found] == entries


async def test_lists_of_one_turn_hold_that_turn_only(life: Any) -> None:
    await life.whole_turn("t1")
    await life.whole_turn("t2")
    for what in ("messages", "usage"):
        found = items(await pages(life, what, turn="t2", limit=1))
        assert {item["turn"] for item in found} == {"t2"}
    entries = [life.entry(1, "t1"), life.entry(2, "t2")]
    await life.store.save_session(life.at(), closed=False, state=None, trace=entries)
    assert [item["seq"] for item in items(await pages(life, "trace", turn="t2"))] == [2]


async def test_the_conversation_follows_the_head_through_its_forks(life: Any) -> None:
    for turn in ("t1", "t2"):
        await life.whole_turn(turn)
    life.branch, life.parent, life.depth = "side", "t1", 1
    await life.whole_turn("u2")
    await life.begin("running")
    found = items(await pages(life, "messages", limit=1))
    assert [item["turn"] for item in found] == ["t1", "t1", "u2", "u2"]


async def test_large_items_are_spread_over_pages(life: Any) -> None:
    for n in range(4):
        await life.whole_turn(f"t{n}", said=f"{n}" + "ä" * 50_000)
    found = await pages(life, "messages")
    assert len(found) > 1
    assert len(items(found)) == 8
    assert not any(item.get("truncated") for item in items(found))


async def test_an_item_over_the_bound_is_cut_and_says_so(life: Any) -> None:
    at = await life.begin("t1", said="ж" * 400_000)
    await life.reply(at, said="short")
    await life.close("t1")
    found = items(await pages(life, "messages"))
    assert found[0]["truncated"] is True
    assert found[0]["bytes"] > 800_000
    assert found[0]["message"]["content"].startswith("жжж")
    assert "truncated" not in found[1]


async def test_a_message_over_the_bound_is_read_whole_in_pieces(life: Any) -> None:
    said = 'ж\\"\n' * 120_000
    at = await life.begin("t1", said=said)
    await life.reply(at, said="short")
    await life.close("t1")
    row, other = items(await pages(life, "messages"))
    assert row["truncated"] is True
    found = await pages(life, "message", turn="t1", step=row["step"], index=row["index"])
    assert len(found) > 1
    whole = "".join(item["json"] for item in items(found))
    assert Message.model_validate_json(whole) == Message(role="user", content=said)
    assert {item["bytes"] for item in items(found)} == {len(whole.encode())}
    place = {"turn": "t1", "step": other["step"], "index": other["index"]}
    [piece] = items(await pages(life, "message", **place))
    assert Message.model_validate_json(piece["json"]).text == "short"


async def test_a_message_is_read_by_a_place_that_its_turn_has(life: Any) -> None:
    await life.whole_turn("t1")
    with pytest.raises(ValidationError, match="`index`"):
        await pages(life, "message", turn="t1", step=0)
    with pytest.raises(NotFoundError, match="index 7") as caught:
        await pages(life, "message", turn="t1", step=0, index=7)
    assert caught.value.details == {"turn": "t1", "step": 0, "index": 7}
    with pytest.raises(TurnNotFoundError):
        await pages(life, "message", turn="t9", step=0, index=0)


async def test_a_trace_entry_over_the_bound_loses_its_details(life: Any) -> None:
    entry = life.entry(1, None, huge="x" * 400_000)
    await life.store.save_session(life.at(), closed=False, state=None, trace=[entry])
    (found,) = items(await pages(life, "trace"))
    assert found["truncated"] is True
    assert (found["seq"], found["message"]) == (1, "entry 1")


async def test_a_long_text_is_read_in_pieces(life: Any) -> None:
    text = "".join(f"{n} ☃ " for n in range(40_000))
    await life.reply(await life.begin("t1"), said=text)
    await life.close("t1")
    found = await pages(life, "text", turn="t1")
    assert len(found) > 1
    assert "".join(item["text"] for item in items(found)) == text


async def test_the_text_of_a_turn_is_that_of_all_its_steps(life: Any) -> None:
    await life.reply(await life.begin("t1"), said="first, ")
    second = life.at("t1")
    await life.store.begin_step(
        second,
        1,
        step=1,
        opening=None,
        new=[Message(role="tool", content="42", call_id="c")],
        expect_messages=2,
        reserve=None,
        trace=[],
    )
    reply = Message(role="assistant", content="second")
    await life.store.save_reply(second, 1, step=1, index=1, reply=reply, usage=life.bill("t1"))
    (found,) = items(await pages(life, "text", turn="t1"))
    assert found["text"] == "first, second"


async def test_a_blob_is_read_in_pieces(life: Any) -> None:
    value = bytes(range(256)) * 2000
    (digest,) = await life.store.put_blobs("json", [value])
    found = await pages(life, "blob", digest=digest)
    assert len(found) > 1
    assert b"".join(base64.b64decode(item["data"]) for item in items(found)) == value
    assert {(item["kind"], item["bytes"]) for item in items(found)} == {("json", len(value))}


async def test_what_is_not_there_is_named(life: Any) -> None:
    read = life.store.read
    with pytest.raises(SessionNotFoundError, match="nobody"):
        await read(Read(what="turns", session_id="nobody"))
    with pytest.raises(SessionNotFoundError):
        await read(Read(what="turns", session_id=life.session_id, session_key="other~1"))
    for what in ("turn", "text", "messages"):
        with pytest.raises(TurnNotFoundError, match="t9"):
            await read(Read(what=what, session_id=life.session_id, turn="t9"))
    with pytest.raises(NotFoundError, match="abc"):
        await read(Read(what="blob", session_id=life.session_id, digest="abc"))


async def test_a_key_of_another_session_does_not_open_it(life: Any, lives: Any) -> None:
    other = lives(life.store)
    await other.open()
    with pytest.raises(SessionNotFoundError):
        await life.store.read(
            Read(what="session", session_id=life.session_id, session_key=other.session)
        )


@pytest.mark.parametrize("after", ["x", "[1]", '["a","b"]', "{}", "[true,1]"])
async def test_a_cursor_that_is_not_of_the_list_is_refused(life: Any, after: str) -> None:
    with pytest.raises(ValidationError, match="not a cursor"):
        await life.store.read(Read(what="turns", session_id=life.session_id, after=after))


async def test_a_read_waits_until_the_store_has_the_counter(life: Any) -> None:
    await life.reply(await life.begin("t1"))
    waiting = asyncio.create_task(
        life.store.read(
            Read(
                what="messages",
                session_id=life.session_id,
                min_counter=life.counter + 1,
                wait=30,
            )
        )
    )
    await life.close("t1")
    page = await waiting
    assert (page.counter, page.behind, len(page.items)) == (life.counter, False, 2)


async def test_a_read_that_waited_in_vain_says_that_it_is_behind(life: Any) -> None:
    await life.whole_turn("t1")
    page = await life.store.read(
        Read(what="turns", session_id=life.session_id, min_counter=99, wait=0.05)
    )
    assert (page.behind, page.counter, len(page.items)) == (True, life.counter, 1)


async def test_pages_are_json(life: Any) -> None:
    await life.whole_turn("t1")
    for what in ("session", "turns", "messages", "trace", "usage", "turn", "text"):
        for page in await pages(life, what, turn="t1" if what in ("turn", "text") else None):
            assert json.loads(json.dumps(page.items)) == page.items


async def test_the_newest_session_of_an_id_is_read_unless_a_key_is_given(
    store: SQLStore, life: Any
) -> None:
    await life.whole_turn("t1")
    await store.save_session(life.at(), closed=True, state=None, trace=[])
    await life.open(session=f"{life.session_id}~2", created_at=life.at().now)
    newest = await store.read(Read(what="turns", session_id=life.session_id))
    first = await store.read(
        Read(what="turns", session_id=life.session_id, session_key=life.session)
    )
    assert (len(newest.items), len(first.items)) == (0, 1)
