"""One persona's memories of one user, tidied in a test."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping
from typing import Any

from gmi.activities.memory.maintain import Maintainer
from gmi.activities.memory.store import Find, Writing
from gmi.activities.memory.traces import Scope, Trace
from gmi.activities.memory.wording import Wording
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.memory import MemorySettings
from gmi.workflows.memory import MaintenanceReport

from .models import TopicEmbedder

NOW = 1_800_000_000.0


class Mind:
    """The memories that one persona has of one user."""

    def __init__(self, memory: SQLMemoryStore, **settings: Any) -> None:
        name = uuid.uuid4().hex[:8]
        self.memory = memory
        self.persona = f"keeper-{name}"
        self.scope = Scope("user", f"someone-{name}")
        self.settings = MemorySettings.model_validate({"mechanisms": {}, **settings})
        self.traits: Mapping[str, float] = {}
        self.embedder: TopicEmbedder | None = None
        self.wording: Wording | None = None
        self._runs = itertools.count(1)
        self._traces = itertools.count(1)

    async def remembers(self, content: str, **fields: Any) -> str:
        """Put a memory in; it was made and last used now unless the fields say otherwise."""
        number = next(self._traces)
        fields.setdefault("created_at", NOW)
        fields.setdefault("last_access", fields["created_at"])
        fields.setdefault("persona_id", self.persona)
        fields.setdefault("session", "s1")
        fields.setdefault("turn", f"turn-{number}")
        fields.setdefault("branch", "main")
        fields.setdefault("depth", number)
        trace = Trace(f"{self.scope.id}-{number:04}", self.scope, content, **fields)
        await self.memory.write(Writing(now=NOW, new=[trace]))
        return trace.id

    def maintainer(self) -> Maintainer:
        return Maintainer(
            self.memory, self.persona, self.settings, self.traits, self.embedder, self.wording
        )

    async def tidy(self, now: float = NOW, run: str | None = None) -> MaintenanceReport:
        run = run or f"run-{next(self._runs)}"
        return await self.maintainer().tidy(self.scope, now, run)

    async def get(self, trace_id: str) -> Trace:
        [found] = await self.memory.find(Find(ids=[trace_id], faded=True))
        return found

    async def all(self) -> list[Trace]:
        found = await self.memory.find(Find(scopes=[self.scope], faded=True, limit=1000))
        return sorted(found, key=lambda trace: trace.id)

    async def links(self, kind: str) -> dict[tuple[str, str], float]:
        ids = [trace.id for trace in await self.all()]
        found = await self.memory.links(ids)
        return {(link.a, link.b): link.weight for link in found if link.kind == kind}

    async def vectors(self, model: str) -> set[str]:
        return set(await self.memory.vectors([trace.id for trace in await self.all()], model))
