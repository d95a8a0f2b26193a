"""Forgetting a user takes along what was learned of them; forgetting a part of it does not."""

from __future__ import annotations

import uuid

from temporalio.testing import ActivityEnvironment

from gmi.activities.catalog import Catalog
from gmi.activities.learning.store import Call, Draft
from gmi.activities.memory.memories import Memories
from gmi.activities.memory_port import MemoryActivities
from gmi.activities.store import SQLStore
from gmi.activities.store.learning.sql import SQLLearningStore
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.activities.tools import ToolRegistry
from gmi.personas.learning import LearnerKey
from gmi.personas.loader import PersonaCatalog, load_catalog
from gmi.personas.self_changes import Holder
from gmi.workflows.memory import Care


async def catalog() -> PersonaCatalog:
    return await load_catalog()


async def test_what_was_learned_of_a_user_goes_with_all_that_is_remembered(
    store: SQLStore,
) -> None:
    learning = SQLLearningStore(store.database)
    user = f"ada-{uuid.uuid4().hex[:8]}"
    holder = Holder("s1", LearnerKey(namespace="acme", agent="tutor", user=user))
    call = Call(holder=holder, key=uuid.uuid4().hex, turn="t1", step=0, now=1000.0)
    opener = Draft("trait", "openness", {}, delta=0.02, rate=0.05)
    await learning.make(call, lambda _: opener)
    port = MemoryActivities(
        Memories(SQLMemoryStore(store.database)),
        Catalog(catalog, ToolRegistry([]), store),
        store,
        learned=learning,
    )
    part = await ActivityEnvironment().run(
        port.care, Care(kind="forget", user_id=user, org="acme", types=["episodic"], now=2000.0)
    )
    assert "learned" not in part.counts
    assert len(await learning.changes(holder)) == 1
    other = await ActivityEnvironment().run(
        port.care, Care(kind="forget", user_id=user, org="other", now=2000.0)
    )
    assert other.counts["learned"] == 0
    whole = await ActivityEnvironment().run(
        port.care, Care(kind="forget", user_id=user, org="acme", now=2000.0)
    )
    assert whole.counts["learned"] == 1
    assert await learning.changes(holder) == []
