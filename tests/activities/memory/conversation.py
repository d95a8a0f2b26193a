"""One user's conversation with one persona, remembered and recalled on a real store."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from gmi.activities.embedders.embedder import EmbedderDownError, EmbedKind, Vectors
from gmi.activities.memory.cache import ScopeCache
from gmi.activities.memory.encode import EncodedTurn, Encoder, Moment, Owner
from gmi.activities.memory.index import SearchFilter
from gmi.activities.memory.modulation import modulated
from gmi.activities.memory.recall import Recaller, RecallQuery, Recollection
from gmi.activities.memory.store import Find, FinishedTurn
from gmi.activities.memory.traces import Affect, Scope, Trace
from gmi.activities.store import SessionRow, SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.memory import MemorySettings
from gmi.workflows.steps import At

from ...support.word_vectors import DIMENSION, word_vector

NOW = 1_800_000_000.0
_numbers = itertools.count(1)


class WordEmbedder:
    """Embeds texts by their words."""

    model = "test:words"
    dimension = DIMENSION

    def __init__(self) -> None:
        self.down = False
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        if self.down:
            raise EmbedderDownError("the test's model is down")
        self.texts.extend(texts)
        return np.array([word_vector(text) for text in texts], dtype=np.float32)


@dataclass
class Life:
    """One user's conversation with one persona."""

    store: SQLStore
    memory: SQLMemoryStore
    settings: MemorySettings
    embedder: WordEmbedder | None = None
    traits: dict[str, float] = field(default_factory=dict)
    reranker: Any = None

    def __post_init__(self) -> None:
        number = next(_numbers)
        self.session = f"flow-{number}"
        self.owner = Owner(f"person-{number}", "", f"persona-{number}")
        self.user = self.owner.user_scope(self.session)
        self.thread = Scope("thread", self.session)
        self.cache = ScopeCache(self.memory)
        self.recaller = Recaller(self.memory, self.cache, self.embedder, self.reranker)
        self.encoder = Encoder(self.memory, self.cache, self.embedder)
        self.depth = 0

    async def open(self) -> Life:
        await self.store.open_session(
            SessionRow(
                session=self.session,
                session_id=self.session,
                user_id=self.owner.user_id,
                org="",
                persona_digest="",
                toolset_digest="",
                config={},
                state=None,
                counter=0,
                created_at=datetime.fromtimestamp(NOW, UTC),
                closed_at=None,
            ),
            "run",
        )
        return self

    @property
    def scaled(self) -> MemorySettings:
        mechanisms = self.settings.mechanisms
        if mechanisms is None:
            return self.settings
        scaled = modulated(mechanisms, self.traits or None)
        return self.settings.model_copy(update={"mechanisms": scaled})

    async def says(
        self,
        said: str,
        answered: str = "",
        *,
        now: float = NOW,
        recalled: Recollection | None = None,
        mood: Affect | None = None,
        patient: bool = True,
    ) -> EncodedTurn:
        """A turn that ends and is encoded, with the effects of what it recalled."""
        self.depth += 1
        turn = f"{self.session}-turn-{self.depth}"
        context = None
        if recalled is not None:
            context = {
                "recalled": [
                    {"id": item.trace.id, "accessed": item.trace.id in recalled.accessed}
                    for item in recalled.items
                ],
                "suppressed": recalled.suppressed,
            }
        finished = FinishedTurn(
            session=self.session,
            turn=turn,
            status="done",
            branch="main",
            depth=self.depth,
            said=said,
            answered=answered,
            ended_at=now,
            context=context,
        )
        at = At(
            session=self.session,
            turn=turn,
            counter=self.depth,
            now=datetime.fromtimestamp(now, UTC),
            run="run",
        )
        moment = Moment(self.scaled, self.traits, mood or Affect())
        return await self.encoder.encode(at, finished, self.owner, moment, patient=patient)

    async def recalls(self, text: str, *, now: float = NOW, **changes: Any) -> Recollection:
        query = RecallQuery(
            text=text,
            scopes=[self.user, self.thread],
            now=now,
            settings=self.scaled,
            where=SearchFilter(session=self.session, path=[("main", None)]),
            seed=changes.pop("seed", "seed"),
        )
        imagine = changes.pop("imagine", None)
        return await self.recaller.recall(replace(query, **changes), imagine)

    async def standing(self, content: str) -> Trace:
        found = await self.memory.find(Find(scopes=[self.user, self.thread], faded=True))
        return next(trace for trace in found if trace.content == content)
