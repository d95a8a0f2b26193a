"""Care over a real store, with an embedding model that can be down."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gmi.activities.embedders.embedder import EmbedderDownError, EmbedKind, Vectors
from gmi.activities.memory.care import MemoryCare
from gmi.activities.memory.memories import Memories
from gmi.activities.memory.store import Find, Writing
from gmi.activities.memory.traces import DAY, Scope, Trace
from gmi.activities.store import SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.schema import Persona
from gmi.workflows.memory import Care, CareAnswer

NOW = 1_780_000_000.0
MODEL = "test:small"


class SmallEmbedder:
    """Counts letters; can be down."""

    model = MODEL
    dimension: int | None = 26

    def __init__(self) -> None:
        self.down = False

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        if self.down:
            raise EmbedderDownError("it sleeps")
        rows = np.array(
            [[t.lower().count(chr(97 + n)) + 0.01 for n in range(26)] for t in texts], np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Personas:
    """One persona that remembers."""

    def __init__(self) -> None:
        self.one = Persona.model_validate(
            {
                "id": "mira",
                "name": "Mira",
                "description": "Remembers.",
                "version": "1.0.0",
                "baseSystemPrompt": "You are Mira.",
                "memoryConfig": {"enabled": True},
            }
        )

    async def persona(self, digest: str) -> Persona:
        return self.one

    async def known(self, persona_id: str) -> Persona | None:
        return self.one if persona_id == "mira" else None


class World:
    """Care over a real store, and a user of its own."""

    def __init__(self, store: SQLStore, embedder: SmallEmbedder | None = None) -> None:
        self.store = SQLMemoryStore(store.database)
        self.embedder = embedder
        self.memories = Memories(self.store, lambda name: embedder)
        self.serve = MemoryCare(self.memories, store, Personas()).serve
        self.user = f"user-{uuid.uuid4().hex[:8]}"
        self.scope = Scope("user", self.user)

    async def ask(self, kind: str, **asked: Any) -> CareAnswer:
        given: dict[str, Any] = {"now": NOW, "request_id": str(uuid.uuid4())} | asked
        return await self.serve(Care.model_validate({"kind": kind, **given}))

    def trace(self, content: str = "alpacas hum", **changes: Any) -> Trace:
        made = Trace(
            id=str(uuid.uuid4()),
            scope=self.scope,
            content=content,
            created_at=NOW - DAY,
            last_access=NOW - DAY,
            persona_id="mira",
        )
        return replace(made, **changes)

    async def keep(self, *traces: Trace, **more: Any) -> None:
        await self.store.write(Writing(now=NOW, new=list(traces), **more))

    async def left(self) -> list[str]:
        found = await self.store.find(Find(scopes=[self.scope], faded=True))
        return [trace.content for trace in found]
