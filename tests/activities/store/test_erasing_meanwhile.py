"""Erasing while a turn recalls, while a consolidation runs, and a great deal at once."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert

from gmi.activities.memory.cache import vector_of
from gmi.activities.memory.maintain import Maintainer
from gmi.activities.memory.memories import Memories
from gmi.activities.memory.store import Find, Link, Writing
from gmi.activities.memory.traces import Trace
from gmi.activities.store import SQLStore
from gmi.activities.store.memory import erasing
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.activities.store.memory.tables import contexts, shown
from gmi.activities.store.protocol import History
from gmi.activities.store.tables import turns as rows
from gmi.personas.memory import MemorySettings
from gmi.workflows.steps import At, RecallOrder, Reminder, RunStep

from .caring import MODEL, NOW, Personas, SmallEmbedder, World
from .conftest import Life, user


@pytest.fixture
def world(store: SQLStore) -> World:
    return World(store)


class Interrupted(SQLMemoryStore):
    """A store in which memories are erased between a recall and the keeping of it."""

    def __init__(self, store: SQLStore, *gone: Find) -> None:
        super().__init__(store.database)
        self.gone = list(gone)

    async def keep_context(
        self, at: At, attempt: int, data: dict[str, Any]
    ) -> dict[str, Any] | None:
        if self.gone:
            await self.erase(self.gone.pop(0), NOW)
        return await super().keep_context(at, attempt, data)


def opening(life: Life, at: At, who: str) -> RunStep:
    """The first step of a turn that recalls, with a reminder that is due."""
    order = RecallOrder(reminders=[Reminder(id="due", content="offer tea", importance=0.5)])
    return RunStep(
        at=at.model_copy(update={"now": datetime.fromtimestamp(NOW, UTC)}),
        step=0,
        opening=life.opening(at.turn).model_copy(update={"recall": order}),
        persona_digest="",
        toolset_digest="",
        user_id=who,
        remembers=True,
    )


async def recalled(world: World, life: Life, store: SQLMemoryStore) -> tuple[str, dict[str, Any]]:
    """What a turn about alpacas is shown, and what is kept of it."""
    at = await life.begin("t1", said="what of the alpacas?")
    history = History(turn=[user("what of the alpacas?")])
    reminded = await Memories(store).for_step(
        opening(life, at, world.user), 1, Personas().one, history, []
    )
    kept = await store.context(life.session, "t1")
    assert kept is not None
    assert reminded.opened is not None
    assert (kept["text"], kept["opened"]) == (
        reminded.text,
        reminded.opened.model_dump(mode="json"),
    )
    return reminded.text, kept


async def test_what_is_erased_while_a_turn_recalls_is_neither_shown_nor_kept(
    world: World, life: Life, store: SQLStore
) -> None:
    secret = world.trace("alpacas guard the secret")
    await world.keep(secret, world.trace("alpacas hum"))
    text, kept = await recalled(world, life, Interrupted(store, Find(ids=[secret.id])))
    assert "secret" not in str(kept)
    assert "alpacas hum" in text
    assert "offer tea" in text


async def test_a_recall_whose_memories_are_erased_again_and_again_is_given_up(
    world: World, life: Life, store: SQLStore
) -> None:
    made = [world.trace(f"alpacas hum {tone}") for tone in ("high", "low", "long")]
    await world.keep(*made)
    gone = [Find(ids=[trace.id]) for trace in made]
    text, kept = await recalled(world, life, Interrupted(store, *gone))
    assert "alpacas" not in text
    assert "offer tea" in text
    assert kept["opened"]["reminded"] == ["due"]


async def test_recalls_and_erasures_at_once_leave_no_words(
    world: World, store: SQLStore, lives: type[Life]
) -> None:
    talks = []
    made = [world.trace(f"secret {n}") for n in range(12)]
    await world.keep(*made)
    for _ in made:
        life = lives(store)
        await life.open(user_id=world.user)
        talks.append((life, await life.begin("t1")))
    keeping = [
        world.store.keep_context(
            at, 1, {"text": trace.content, "recalled": [{"id": trace.id}], "opened": {}}
        )
        for (_, at), trace in zip(talks, made, strict=True)
    ]
    erasing_ = [world.store.erase(Find(ids=[trace.id]), NOW) for trace in made]
    await asyncio.gather(*(work for pair in zip(keeping, erasing_, strict=True) for work in pair))
    for life, _ in talks:
        kept = await world.store.context(life.session, "t1")
        assert kept is None or "secret" not in str(kept)


async def test_a_later_attempt_with_an_emptied_text_tells_of_no_reminder(
    world: World, life: Life, store: SQLStore
) -> None:
    secret = world.trace("alpacas guard the secret")
    await world.keep(secret)
    text, _ = await recalled(world, life, world.store)
    assert "secret" in text
    await world.ask("forget", ids=[secret.id])
    kept = await world.store.context(life.session, "t1")
    assert kept is not None
    assert kept["text"] == ""
    assert kept["opened"]["reminded"] == kept["opened"]["recalled"] == []


class Consolidated(SQLMemoryStore):
    """A store in which memories are erased or corrected before a consolidation writes."""

    def __init__(self, store: SQLStore, world: World) -> None:
        super().__init__(store.database)
        self.world = world
        self.asked: dict[str, Any] | None = None

    async def write(self, writing: Writing) -> bool:
        if writing.tidied is not None and self.asked is not None:
            asked, self.asked = self.asked, None
            await self.world.ask(**asked)
        return await super().write(writing)


async def grouped(world: World, store: SQLStore) -> tuple[Consolidated, list[Trace]]:
    embedder = SmallEmbedder()
    made = [world.trace("my diagnosis is lupus", depth=n) for n in range(6)]
    rows = await embedder.embed([trace.content for trace in made], "passage")
    vectors = {t.id: vector_of(MODEL, rows[n]) for n, t in enumerate(made)}
    await world.keep(*made, vectors=vectors)
    return Consolidated(store, world), made


async def tidy(world: World, store: SQLMemoryStore, run: str) -> list[Any]:
    settings = MemorySettings.model_validate({"mechanisms": {}})
    maintainer = Maintainer(store, "mira", settings, {}, SmallEmbedder(), None)
    await maintainer.tidy(world.scope, NOW + (10 if run == "r1" else 1_000_000), run)
    kept = await store.consolidated("mira", world.scope)
    return [] if kept is None else kept["clusters"]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("how", ["all", "one", "correct"])
async def test_no_centre_is_kept_of_what_goes_while_a_consolidation_runs(
    world: World, store: SQLStore, how: str, again: bool
) -> None:
    held, made = await grouped(world, store)
    if again:
        assert len(await tidy(world, held, "r1")) == 1
        # A seventh joins: the group is looked at again.
        late = replace(made[0], id=str(uuid.uuid4()))
        [row] = await SmallEmbedder().embed([late.content], "passage")
        await world.keep(late, vectors={late.id: vector_of(MODEL, row)})
        made.append(late)
    held.asked = {
        "all": {"kind": "forget", "scopes": [f"user:{world.user}"]},
        "one": {"kind": "forget", "ids": [made[-1].id]},
        "correct": {"kind": "correct", "ids": [made[-1].id], "text": "I am well"},
    }[how]
    assert await tidy(world, held, "r2") == []
    assert len(await tidy(world, held, "r3")) == (0 if how == "all" else 1)


async def test_clusters_go_with_the_last_memory_of_a_scope(world: World, store: SQLStore) -> None:
    held, made = await grouped(world, store)
    assert len(await tidy(world, held, "r1")) == 1
    # Members that were pruned and deleted long ago leave their centre behind.
    other = world.trace("the last")
    await world.keep(other)

    def faded(standing: Any) -> list[Trace]:
        return [replace(trace, active=False) for trace in standing.values()]

    ids = [trace.id for trace in made]
    await held.write(Writing(now=NOW, touched=ids, change=faded))
    await held.write(Writing(now=NOW, removed=ids))
    assert await world.left() == ["the last"]
    await world.ask("forget", ids=[other.id])
    assert await held.consolidated("mira", world.scope) is None


TRACES, STEP, CONTEXTS, EACH = 10_000, 5_000, 1_000, 20


async def test_a_great_deal_is_erased_in_seconds_and_others_write_meanwhile(
    world: World, life: Life, store: SQLStore
) -> None:
    made = [world.trace(f"fact {n}", session=life.session) for n in range(TRACES)]
    vector = vector_of(MODEL, np.ones(4, np.float32))
    for start in range(0, TRACES, STEP):
        part = made[start : start + STEP]
        links = [Link(a.id, b.id, "entity", 0.5) for a, b in pairwise(part)]
        await world.keep(*part, vectors={trace.id: vector for trace in part}, links=links)
    schema = world.trace("facts", role="schema", mechanisms={"derived_from": [made[7].id]})
    await world.keep(schema)
    # Turns in the middle of their first step, each with its context.
    turns = [f"t{n}" for n in range(CONTEXTS)]
    rng = np.random.default_rng(1)
    picks = [[made[int(i)].id for i in rng.integers(0, TRACES, EACH)] for _ in turns]
    await fill(store, life, turns, [sorted(set(ids)) for ids in picks])

    began = time.monotonic()
    task = asyncio.create_task(world.ask("forget", scopes=[f"user:{world.user}"]))
    waits = []
    other = Life(store)
    await other.open()
    while not task.done():
        before = time.monotonic()
        await other.store.open_session(await row_of(other), other.run)
        waits.append(time.monotonic() - before)
        await asyncio.sleep(0.05)
    counts = (await task).counts
    took = time.monotonic() - began
    assert counts["traces"] + counts["derived"] == TRACES + 1
    assert (counts["vectors"], counts["links"]) == (TRACES, TRACES - TRACES // STEP)
    assert counts["contexts"] == CONTEXTS
    assert await world.left() == []
    assert took < 30
    # Nobody waits for the whole of it.
    assert TRACES > 4 * erasing.BATCH
    assert max(waits) < max(took / 2, 2.0)


async def row_of(life: Life) -> Any:
    found = await life.store.find_session(life.session_id)
    assert found is not None
    return found


async def fill(store: SQLStore, life: Life, turns: list[str], picks: list[list[str]]) -> None:
    """Give a session many turns at once, each with a context that shows memories."""
    at = await life.begin("first")
    standing = await store.database.read(
        lambda conn: dict(
            conn.execute(rows.select().where(rows.c.session == life.session)).one()._mapping
        )
    )
    assert at.turn == "first"

    def work(conn: Any) -> None:
        conn.execute(
            insert(rows),
            [
                standing | {"turn": turn, "request_id": turn, "seq": n + 10}
                for n, turn in enumerate(turns)
            ],
        )
        conn.execute(
            insert(contexts),
            [
                {
                    "session": life.session,
                    "turn": turn,
                    "fence": 1,
                    "data": {"text": "fact " * 300, "recalled": [{"id": i} for i in ids]},
                }
                for turn, ids in zip(turns, picks, strict=True)
            ],
        )
        conn.execute(
            insert(shown),
            [
                {"trace": id_, "session": life.session, "turn": turn}
                for turn, ids in zip(turns, picks, strict=True)
                for id_ in ids
            ],
        )

    await store.database.write(work)
