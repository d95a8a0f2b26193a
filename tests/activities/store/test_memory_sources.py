"""Who says a memory that is put in: only a person's hand confirms one."""

from __future__ import annotations

import uuid

import pytest

from gmi.activities.memory.care import MemoryCare
from gmi.activities.memory.memories import Memories
from gmi.activities.memory.traces import DAY
from gmi.activities.store import SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.schema import Persona
from gmi.workflows.memory import Care

from .caring import NOW, World


class Forgetful:
    """One persona without a memory of ours."""

    one = Persona(id="f", name="F", description="f", version="1.0.0", base_system_prompt="F.")

    async def persona(self, digest: str) -> Persona:
        return self.one

    async def known(self, persona_id: str) -> Persona | None:
        return self.one


@pytest.mark.parametrize(
    ("source", "role", "confirmed"),
    [
        ("human_approval", "note", True),
        ("reflection", "reflection", False),
        ("user_statement", "user", False),
    ],
)
async def test_a_source_has_its_usual_confidence_and_stability(
    store: SQLStore, source: str, role: str, confirmed: bool
) -> None:
    world = World(store)
    answer = await world.ask(
        "remember", scopes=[f"user:{world.user}"], persona="mira", text="It rains", source=source
    )
    [item] = answer.items
    assert (item["source"], item["role"]) == (source, role)
    assert (item["confidence"] > 0.9, item["verifications"] > 0) == (confirmed, confirmed)
    assert (item["stability_seconds"] >= 365 * DAY) == confirmed
    assert ("note" in item["tags"]) == confirmed


@pytest.mark.parametrize("source", ["reflection", "user_statement", "human_approval"])
async def test_a_persona_without_our_memory_keeps_only_what_a_person_puts_in(
    store: SQLStore, source: str
) -> None:
    memories = SQLMemoryStore(store.database)
    care = MemoryCare(Memories(memories), store, Forgetful())
    scope = f"user:{uuid.uuid4().hex}"
    asked = Care.model_validate(
        {
            "kind": "remember",
            "scopes": [scope],
            "persona": "f",
            "text": "Too long",
            "source": source,
            "now": NOW,
            "request_id": uuid.uuid4().hex,
        }
    )
    answer = await care.serve(asked)
    assert len(answer.items) == (1 if source == "human_approval" else 0)
    kept = await care.serve(Care(kind="list", scopes=[scope], now=NOW))
    assert len(kept.items) == len(answer.items)
