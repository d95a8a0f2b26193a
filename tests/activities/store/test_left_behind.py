"""What a session whose workflow was ended from outside finds in the store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gmi.activities.memory.store import Find, Marker, Writing
from gmi.activities.store.left_behind import MAX_TURNS
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.messages import Message, Usage
from gmi.workflows.state import MAX_MODELS

from .conftest import START


async def left_behind(life: Any) -> Any:
    row = await life.store.get_session(life.session)
    assert row is not None
    return await life.store.left_behind(row)


async def replace(life: Any, turn: str, *, forget: bool = True) -> Any:
    """Replace the history by one message; returns where it was written."""
    life.parent, life.branch, life.depth = None, f"root-{turn}", 0
    at = life.at(turn)
    await life.store.import_history(
        at,
        opening=life.opening(turn, kind="import"),
        messages=[Message(role="user", content="given")],
        forget=forget,
        output=life.output(turn),
        trace=[],
    )
    life.parent, life.depth = turn, 1
    return at


def heard(turn: str) -> dict[str, Any]:
    """A mind that quotes a turn."""
    trend = {
        "turn": turn,
        "at": START.isoformat(),
        "score": -0.5,
        "intensity": 0.5,
        "polarity": "negative",
        "excerpt": "secret",
        "length": 20,
    }
    return {
        "sentiment": {"trends": [trend], "last_turn": turn, "frustration": 3},
        "happened": ["the secret door opened"],
        "working": {"goal": "from the persona", "noted": "secret"},
        "noted_in": {"noted": turn},
        "traits": {"openness": 0.9},
    }


async def test_a_session_without_turns_left_nothing(life: Any) -> None:
    found = await left_behind(life)
    assert (found.mind, list(found.turns)) == (None, [])
    assert (found.usage, found.usage_by_model, found.ended) == (Usage(), {}, 0)


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


@pytest.mark.parametrize("forget", [True, False])
async def test_a_mind_goes_on_where_a_given_history_begins(life: Any, forget: bool) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
    for turn in ("t2", "t1"):
        await life.store.keep_mind(life.at(turn), {"mark": turn})
    await replace(life, "i1", forget=forget)
    assert (await left_behind(life)).mind == {"mark": "t2"}
    await life.whole_turn("t4")
    await replace(life, "i2", forget=forget)
    assert (await left_behind(life)).mind == {"mark": "t2"}
    await life.store.keep_mind(life.at("i2"), {"mark": "i2"})
    assert (await left_behind(life)).mind == {"mark": "i2"}
    await replace(life, "i3", forget=forget)
    assert (await left_behind(life)).mind == {"mark": "i2"}


async def test_a_mind_that_a_reset_abandoned_does_not_count(life: Any) -> None:
    for turn in ("t1", "t2", "t3"):
        await life.whole_turn(turn)
        await life.store.keep_mind(life.at(turn), {"mark": turn})
    life.run, life.reset, life.counter, life.seq = "run-reset", True, 3, 1
    await replace(life, "i1", forget=False)
    assert (await left_behind(life)).mind == {"mark": "t1"}


async def test_a_mind_before_a_given_history_has_no_words_of_what_that_forgot(life: Any) -> None:
    await life.whole_turn("t1")
    await life.store.keep_mind(life.at("t1"), heard("t1"))
    await replace(life, "i1")
    found = await left_behind(life)
    assert "secret" not in str(found.mind)
    assert found.mind["sentiment"]["frustration"] == 3
    assert found.mind["working"] == {"goal": "from the persona"}
    assert found.mind["traits"] == {"openness": 0.9}
    # What is kept of the turn later may have them again, so it is said which turns are hidden.
    await life.store.keep_mind(life.at("t1"), heard("t1"))
    assert list((await left_behind(life)).hidden) == ["t1"]


async def test_turns_that_were_hidden_before_they_were_remembered_are_listed(life: Any) -> None:
    memories = SQLMemoryStore(life.store.database)
    for turn in ("t1", "t2", "t3", "t4"):
        await life.whole_turn(turn)
    await life.store.keep_mind(life.at("t1"), {"mark": "t1"})
    await memories.write(Writing(now=1.0, marker=Marker(life.at("t2"), "encode")))
    await memories.erase(Find(session=life.session, turn="t3"), 2.0)
    await replace(life, "i1")
    found = [(left.turn, left.mind) for left in (await left_behind(life)).turns]
    assert found == [("t1", {"mark": "t1"}), ("t4", None)]


async def test_the_turn_of_an_intention_is_done_also_when_it_was_hidden(life: Any) -> None:
    waiting = [{"turn": turn} for turn in ("t1", "t2", None)]
    await life.whole_turn("t1")
    await life.store.keep_intentions(life.at(), {"waiting": waiting, "digests": {}})
    await replace(life, "i1")
    assert set((await left_behind(life)).done) == {"t1"}


async def test_what_was_billed_is_summed_by_model(life: Any) -> None:
    await life.whole_turn("t1")
    at = await life.begin("t2")
    more = [
        life.bill("t2", "failed", hop=0, usage=Usage(prompt_tokens=600, cost_usd=0.25)),
        life.bill("t2", hop=1, provider="other", usage=Usage(prompt_tokens=1, cost_usd=0.5)),
        life.bill("t2", hop=2, purpose="metaprompt:calm", usage=Usage(completion_tokens=7)),
        # A provider that refused the call, and a call whose end nobody told.
        life.bill("t2", "failed", hop=3, provider="silent", usage=Usage()),
        life.bill("t2", "reserved", step=1, provider="reserved"),
    ]
    await life.store.record_usage(at, more)
    found = await left_behind(life)
    assert found.usage_by_model == {
        "offline:echo": Usage(prompt_tokens=610, completion_tokens=12, cost_usd=0.25),
        "other:echo": Usage(prompt_tokens=1, cost_usd=0.5),
    }
    assert found.usage == Usage(prompt_tokens=611, completion_tokens=12, cost_usd=0.75)


async def test_models_past_the_limit_are_counted_together(life: Any) -> None:
    at = await life.begin("t1")
    rows = [
        life.bill("t1", hop=n, model=f"m{n}", at=START + timedelta(seconds=n))
        for n in range(MAX_MODELS + 2)
    ]
    again = life.bill("t1", hop=0, step=1, model="m0", at=START + timedelta(days=1))
    await life.store.record_usage(at, [*reversed(rows), again])
    found = await left_behind(life)
    each = rows[0].usage
    known = {f"offline:m{n}": each for n in range(1, MAX_MODELS)}
    twice = {"offline:m0": each + each, "others": each + each}
    assert found.usage_by_model == known | twice
    assert found.usage.prompt_tokens == 10 * (MAX_MODELS + 3)


async def test_turns_that_ended_are_counted_and_imports_are_not(life: Any) -> None:
    await life.whole_turn("t1")
    for turn, status in (("t2", "failed"), ("t3", "stopped"), ("t4", "abandoned")):
        await life.begin(turn)
        await life.close(turn, status)
    await replace(life, "i1")
    await life.begin("t5")
    assert (await left_behind(life)).ended == 4


async def test_a_session_whose_turns_all_failed_has_its_bills(life: Any) -> None:
    await life.reply(await life.begin("t1"))
    await life.close("t1", "failed")
    found = await left_behind(life)
    assert (found.ended, found.usage.total_tokens) == (1, 15)


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
