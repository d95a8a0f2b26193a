"""The store of changes on a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....personas.learning import LearnerKey
from ....personas.self_changes import ChangeKind, Holder, SelfChange
from ...learning.store import Call, Decide, StepRecord
from ..engine import Database
from . import changes


class SQLLearningStore:
    """:class:`~gmi.activities.learning.store.LearningStore` on SQLite or PostgreSQL.

    Args:
        database: The connections of the session store.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def changes(
        self, holder: Holder, kinds: Sequence[ChangeKind] | None = None
    ) -> list[SelfChange]:
        """See :meth:`LearningStore.changes`."""
        return await self._db.read(lambda conn: changes.changes(conn, holder, kinds))

    async def made(self, key: str) -> SelfChange | None:
        """See :meth:`LearningStore.made`."""
        return await self._db.read(lambda conn: changes.made(conn, key))

    async def make(
        self, call: Call, decide: Decide, kinds: Sequence[ChangeKind] | None = None
    ) -> SelfChange | None:
        """See :meth:`LearningStore.make`."""
        return await self._db.write(lambda conn: changes.make(conn, call, decide, kinds))

    async def undo(self, id_: str, now: float, key: LearnerKey | None = None) -> bool:
        """See :meth:`LearningStore.undo`."""
        return await self._db.write(lambda conn: changes.undo(conn, id_, now, key))

    async def forget(self, user_id: str, namespace: str | None = None) -> int:
        """See :meth:`LearningStore.forget`."""
        return await self._db.write(lambda conn: changes.forget(conn, user_id, namespace))

    async def begin_step(self, call: Call, step: int) -> StepRecord | None:
        """See :meth:`LearningStore.begin_step`."""
        return await self._db.write(lambda conn: changes.begin_step(conn, call, step))

    async def end_step(self, key: str, step: int, result: Any) -> None:
        """See :meth:`LearningStore.end_step`."""
        await self._db.write(lambda conn: changes.end_step(conn, key, step, result))
