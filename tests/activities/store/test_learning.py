"""What agents changed about themselves in the store, on both databases."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from gmi.activities.learning.store import Call, Decide, Draft, StepRecord
from gmi.activities.store import SQLStore
from gmi.activities.store.learning.sql import SQLLearningStore
from gmi.personas.errors import SelfChangeRefusedError
from gmi.personas.learning import LearnerKey
from gmi.personas.self_changes import Holder, SelfChange
from gmi.personas.self_improvement import refused

from .conftest import Life


@pytest.fixture
def learning(store: SQLStore) -> SQLLearningStore:
    return SQLLearningStore(store.database)


@pytest.fixture
def ada() -> LearnerKey:
    """A learner of the test's own."""
    return LearnerKey(namespace="acme", agent="tutor", user=f"ada-{uuid.uuid4().hex[:8]}")


def call(learner: LearnerKey | None, session: str = "s1", **changes: Any) -> Call:
    fields: dict[str, Any] = {"key": uuid.uuid4().hex, "turn": "t1", "step": 0, "now": 1000.0}
    return Call(holder=Holder(session, learner), **(fields | changes))


def drafting(draft: Draft | None) -> Decide:
    return lambda _: draft


OPENER = Draft("trait", "openness", {"result": {"delta": 0.02}}, delta=0.02, rate=0.05)


async def test_a_change_comes_back_as_it_was_made(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    asked = call(ada, now=1234.5, turn="t7", step=3)
    made = await learning.make(asked, drafting(OPENER))
    assert made is not None
    assert made == SelfChange(
        id=made.id,
        kind="trait",
        name="openness",
        data={"result": {"delta": 0.02}},
        learner=ada,
        session="s1",
        turn="t7",
        step=3,
        at=1234.5,
        delta=0.02,
        rate=0.05,
    )
    assert await learning.changes(Holder("another", ada)) == [made]
    assert await learning.made(asked.key) == made


async def test_a_call_makes_its_change_once_however_often_it_is_tried(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    asked = call(ada)
    decided: list[int] = []

    def decide(changes: Sequence[SelfChange]) -> Draft:
        decided.append(len(changes))
        return OPENER

    tries = await asyncio.gather(*(learning.make(asked, decide) for _ in range(6)))
    assert len({change.id for change in tries if change is not None}) == 1
    assert decided == [0]
    assert len(await learning.changes(asked.holder)) == 1


async def test_calls_of_one_session_decide_one_after_the_other(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    session = uuid.uuid4().hex

    def decide(changes: Sequence[SelfChange]) -> Draft:
        if len(changes) >= 3:
            raise refused("adapt_personality", "call_limit", "enough")
        return OPENER

    found = await asyncio.gather(
        *(learning.make(call(ada, session), decide) for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(one, SelfChangeRefusedError) for one in found) == 5
    assert len(await learning.changes(Holder(session, ada))) == 3


async def test_a_decision_against_a_change_writes_nothing(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    asked = call(ada)
    assert await learning.make(asked, drafting(None)) is None
    assert await learning.made(asked.key) is None
    assert await learning.make(asked, drafting(OPENER)) is not None


async def test_learners_are_kept_apart_by_each_part_of_their_key(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    others = [
        ada.model_copy(update={"namespace": "globex"}),
        ada.model_copy(update={"agent": "coach"}),
        ada.model_copy(update={"user": f"{ada.user}-2"}),
    ]
    for key in (ada, *others):
        await learning.make(call(key, session=uuid.uuid4().hex), drafting(OPENER))
    for key in (ada, *others):
        [mine] = await learning.changes(Holder("elsewhere", key))
        assert mine.learner == key


async def test_a_sessions_own_changes_reach_no_other_session(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    here, there = uuid.uuid4().hex, uuid.uuid4().hex
    own = Draft("evaluation", "1", kept=False)
    made = await learning.make(call(ada, here), drafting(own))
    alone = await learning.make(call(None, there), drafting(OPENER))
    assert made is not None
    assert alone is not None
    assert (made.learner, alone.learner) == (None, None)
    assert await learning.changes(Holder(here, ada)) == [made]
    assert await learning.changes(Holder(there)) == [alone]
    assert await learning.changes(Holder("elsewhere", ada)) == []


async def test_only_the_kinds_asked_for_are_read(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    for draft in (OPENER, Draft("skill", "chess", {"on": True})):
        await learning.make(call(ada), drafting(draft))
    [skill] = await learning.changes(Holder("s1", ada), ["skill", "tool"])
    assert skill.name == "chess"


async def test_a_change_is_undone_once_and_by_its_learner_only(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    made = await learning.make(call(ada), drafting(OPENER))
    assert made is not None
    other = ada.model_copy(update={"user": "eve"})
    assert not await learning.undo(made.id, 2000.0, other)
    assert await learning.undo(made.id, 2000.0, ada)
    assert not await learning.undo(made.id, 3000.0)
    [standing] = await learning.changes(Holder("s1", ada))
    assert standing.undone_at == 2000.0
    assert not await learning.undo("nothing", 1.0)


async def test_forgetting_a_user_takes_what_his_sessions_keep_as_well(
    learning: SQLLearningStore, life: Life
) -> None:
    user = LearnerKey(namespace="", agent="tutor", user="ada")
    other = LearnerKey(namespace="", agent="tutor", user="grace")
    kept = call(user, life.session)
    await learning.make(kept, drafting(OPENER))
    await learning.make(call(user, life.session), drafting(Draft("evaluation", "1", kept=False)))
    theirs = await learning.make(call(other, "other-session"), drafting(OPENER))
    assert await learning.begin_step(kept, 0) is None
    assert await learning.forget("ada") >= 2
    assert await learning.changes(Holder(life.session, user)) == []
    assert await learning.begin_step(kept, 0) is None
    assert theirs in await learning.changes(Holder("other-session", other))


async def test_a_user_is_forgotten_in_one_namespace_alone(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    elsewhere = ada.model_copy(update={"namespace": "globex"})
    for key in (ada, elsewhere):
        await learning.make(call(key, uuid.uuid4().hex), drafting(OPENER))
    assert await learning.forget(ada.user, "globex") == 1
    assert await learning.changes(Holder("x", elsewhere)) == []
    assert len(await learning.changes(Holder("x", ada))) == 1


async def test_a_step_is_claimed_by_one_attempt(
    learning: SQLLearningStore, ada: LearnerKey
) -> None:
    asked = call(ada)
    claims = await asyncio.gather(*(learning.begin_step(asked, 0) for _ in range(5)))
    assert claims.count(None) == 1
    assert claims.count(StepRecord(done=False)) == 4
    await learning.end_step(asked.key, 0, {"sent": ["ü", 1]})
    assert await learning.begin_step(asked, 0) == StepRecord(True, {"sent": ["ü", 1]})
    assert await learning.begin_step(asked, 1) is None
