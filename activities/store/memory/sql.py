"""The store of memories on a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ....workflows.steps import At
from ...memory.store import Erased, Find, FinishedTurn, Link, ScopeChanges, Vector, Writing
from ...memory.traces import Scope, Trace
from ..engine import Database
from ..minds import forget_words
from . import contexts, erasing, finding, turns, writes


class SQLMemoryStore:
    """:class:`~gmi.activities.memory.store.MemoryStore` on SQLite or PostgreSQL.

    Args:
        database: The connections of the session store, whose turns memories are made of.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def versions(self, scopes: Sequence[Scope]) -> dict[Scope, int]:
        """See :meth:`MemoryStore.versions`."""
        return await self._db.read(lambda conn: finding.versions(conn, scopes))

    async def changes(self, scope: Scope, since: int, model: str | None) -> ScopeChanges:
        """See :meth:`MemoryStore.changes`."""
        return await self._db.read(lambda conn: finding.changes(conn, scope, since, model))

    async def links(self, ids: Sequence[str]) -> list[Link]:
        """See :meth:`MemoryStore.links`."""
        return await self._db.read(lambda conn: finding.links(conn, ids))

    async def keep_context(
        self, at: At, attempt: int, data: dict[str, Any]
    ) -> dict[str, Any] | None:
        """See :meth:`MemoryStore.keep_context`."""
        return await self._db.write(lambda conn: contexts.keep_context(conn, at, attempt, data))

    async def context(self, session: str, turn: str) -> dict[str, Any] | None:
        """See :meth:`MemoryStore.context`."""
        return await self._db.read(lambda conn: contexts.get_context(conn, session, turn))

    async def finished_turn(self, session: str, turn: str) -> FinishedTurn | None:
        """See :meth:`MemoryStore.finished_turn`."""
        return await self._db.read(lambda conn: turns.finished_turn(conn, session, turn))

    async def write(self, writing: Writing) -> bool:
        """See :meth:`MemoryStore.write`."""
        return await self._db.write(lambda conn: writes.write(conn, writing))

    async def find(self, wanted: Find) -> list[Trace]:
        """See :meth:`MemoryStore.find`."""
        return await self._db.read(lambda conn: finding.find(conn, wanted))

    async def count(self, wanted: Find) -> dict[str, int]:
        """See :meth:`MemoryStore.count`."""
        return await self._db.read(lambda conn: finding.count(conn, wanted))

    async def strengths(self, wanted: Find) -> list[tuple[float, float, float]]:
        """See :meth:`MemoryStore.strengths`."""
        return await self._db.read(lambda conn: finding.strengths(conn, wanted))

    async def vectors_by_model(self, wanted: Find) -> dict[str, int]:
        """See :meth:`MemoryStore.vectors_by_model`."""
        return await self._db.read(lambda conn: finding.vectors_by_model(conn, wanted))

    async def erase(self, wanted: Find, now: float = 0.0) -> Erased:
        """See :meth:`MemoryStore.erase`."""
        begun = await self._db.write(lambda conn: erasing.begin(conn, wanted, now))
        erased = await self._erase(begun.ids, now) if begun.ids else begun.erased
        for key, gone in begun.minds.items():
            await self._db.write(partial(forget_words, session=key, turns=set(gone)))
        return replace(erased, minds=begun.minds)

    async def _erase(self, ids: Sequence[str], now: float) -> Erased:
        """Erase many traces, the texts that show them first: each of those once."""
        every = set(ids)
        places = await self._db.read(lambda conn: contexts.showing(conn, ids))
        emptied = 0
        for start in range(0, len(places), erasing.BATCH):
            part = places[start : start + erasing.BATCH]
            emptied += await self._db.write(partial(contexts.empty, places=part, ids=every))
        erased = Erased(0, 0, 0, 0, emptied)
        for start in range(0, len(ids), erasing.BATCH):
            batch = ids[start : start + erasing.BATCH]
            done = await self._db.write(
                partial(erasing.erase_ids, ids=batch, now=now, spared=every)
            )
            erased += done
        return erased

    async def scopes_of(self, persona_id: str) -> list[Scope]:
        """See :meth:`MemoryStore.scopes_of`."""
        return await self._db.read(lambda conn: finding.scopes_of(conn, persona_id))

    async def without_vector(
        self, model: str, scope: Scope, limit: int, dimension: int | None = None
    ) -> list[Trace]:
        """See :meth:`MemoryStore.without_vector`."""
        return await self._db.read(
            lambda conn: finding.without_vector(conn, model, scope, limit, dimension)
        )

    async def vectors(self, ids: Sequence[str], model: str) -> dict[str, Vector]:
        """See :meth:`MemoryStore.vectors`."""
        return await self._db.read(lambda conn: finding.vectors_of(conn, ids, model))

    async def consolidated(self, persona_id: str, scope: Scope) -> dict[str, Any] | None:
        """See :meth:`MemoryStore.consolidated`."""
        return await self._db.read(lambda conn: finding.consolidated(conn, persona_id, scope))

    async def keep_consolidated(
        self, persona_id: str, scope: Scope, now: float, data: dict[str, Any]
    ) -> None:
        """See :meth:`MemoryStore.keep_consolidated`."""
        await self._db.write(
            lambda conn: writes.keep_consolidated(conn, persona_id, scope, now, data)
        )
