"""The store on a SQL database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import text

from ...personas.errors import ConfigurationError, StoreError
from ...personas.messages import Message
from ...workflows.pages import Page, Read
from ...workflows.steps import At, OpenTurn
from ...workflows.trace import TraceEntry
from ...workflows.turns import TurnOutput, TurnStatus
from ...workflows.writes import PlacedMessage
from . import blobs, endings, history, imports, intentions, ledger, minds, reads, sessions, steps
from .engine import BUSY_TIMEOUT, Database, connect, is_locked
from .left_behind import left_behind
from .protocol import Begun, Closing, LeftBehind, SessionRow, Shown, UsageRow
from .schema import is_current, upgrade


class SQLStore:
    """:class:`~gmi.activities.store.Store` on SQLite or PostgreSQL; see :func:`open_store`.

    Args:
        database: The connections; the store does not close them.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    @property
    def database(self) -> Database:
        """The connections, for parts that keep tables of their own in the same database."""
        return self._db

    @classmethod
    def connect(cls, url: str) -> SQLStore:
        """A store that is not opened yet: call :meth:`prepare` before use and :meth:`close` after.

        Args:
            url: ``sqlite:///path.db`` or ``postgresql://user:password@host:port/name``.

        Raises:
            ConfigurationError: The URL is wrong.
        """
        return cls(connect(url))

    async def prepare(self, *, migrate: bool = True) -> None:
        """Bring the database to this version's schema; see :func:`open_store`."""
        await _prepare(self._db, migrate)

    async def close(self) -> None:
        """Wait for the writes under way and close every connection."""
        await self._db.close()

    async def find_session(self, session_id: str) -> SessionRow | None:
        """See :meth:`Store.find_session`."""
        return await self._db.read(lambda conn: sessions.find_session(conn, session_id))

    async def get_session(self, session: str) -> SessionRow | None:
        """See :meth:`Store.get_session`."""
        return await self._db.read(lambda conn: sessions.get_session(conn, session))

    async def open_session(self, row: SessionRow, run: str) -> SessionRow:
        """See :meth:`Store.open_session`."""
        return await self._db.write(lambda conn: sessions.open_session(conn, row, run))

    async def left_behind(self, row: SessionRow) -> LeftBehind:
        """See :meth:`Store.left_behind`."""
        return await self._db.read(lambda conn: left_behind(conn, row))

    async def set_persona(self, at: At, persona_digest: str, toolset_digest: str) -> None:
        """See :meth:`Store.set_persona`."""
        await self._db.write(
            lambda conn: sessions.set_persona(conn, at, persona_digest, toolset_digest)
        )

    async def save_session(
        self, at: At, *, closed: bool, state: dict[str, Any] | None, trace: Sequence[TraceEntry]
    ) -> None:
        """See :meth:`Store.save_session`."""
        await self._db.write(
            lambda conn: sessions.save_session(conn, at, closed=closed, state=state, entries=trace)
        )

    async def put_blobs(self, kind: str, values: Sequence[bytes]) -> list[str]:
        """See :meth:`Store.put_blobs`."""
        digests = [blobs.digest_of(value) for value in values]
        unique = dict(zip(digests, values, strict=True))
        missing = await self._db.read(lambda conn: blobs.missing_blobs(conn, list(unique)))
        new = {digest: unique[digest] for digest in missing}
        if new:
            await self._db.write(lambda conn: blobs.put_blobs(conn, kind, new))
        return digests

    async def get_blob(self, digest: str) -> bytes:
        """See :meth:`Store.get_blob`."""
        return await self._db.read(lambda conn: blobs.get_blob(conn, digest))

    async def begin_step(
        self,
        at: At,
        attempt: int,
        *,
        step: int,
        opening: OpenTurn | None,
        new: Sequence[Message],
        expect_messages: int,
        reserve: UsageRow | None,
        trace: Sequence[TraceEntry],
        shown: Shown | None = None,
    ) -> Begun:
        """See :meth:`Store.begin_step`."""
        return await self._db.write(
            lambda conn: steps.begin_step(
                conn,
                at,
                attempt,
                step=step,
                opening=opening,
                new=new,
                expect_messages=expect_messages,
                reserve=reserve,
                entries=trace,
                shown=shown,
            )
        )

    async def save_reply(
        self,
        at: At,
        attempt: int,
        *,
        step: int,
        index: int,
        reply: Message,
        usage: UsageRow,
        closing: Closing | None = None,
    ) -> None:
        """See :meth:`Store.save_reply`."""
        await self._db.write(
            lambda conn: steps.save_reply(
                conn,
                at,
                attempt,
                step=step,
                index=index,
                reply=reply,
                bill=usage,
                closing=closing,
            )
        )

    async def record_usage(self, at: At, rows: Sequence[UsageRow]) -> None:
        """See :meth:`Store.record_usage`."""
        if rows:
            await self._db.write(lambda conn: ledger.record_usage(conn, at, rows))

    async def close_turn(
        self,
        at: At,
        *,
        status: TurnStatus,
        output: TurnOutput,
        opening: OpenTurn | None,
        layout: Sequence[int],
        messages: Sequence[tuple[PlacedMessage, Message]],
        step_counter: int = 0,
        trace: Sequence[TraceEntry],
        head: str | None,
    ) -> None:
        """See :meth:`Store.close_turn`."""
        await self._db.write(
            lambda conn: endings.close_turn(
                conn,
                at,
                status=status,
                output=output,
                opening=opening,
                step_counter=step_counter,
                layout=layout,
                added=messages,
                entries=trace,
                head=head,
            )
        )

    async def conversation(self, at: At, shown: Shown) -> list[Message]:
        """See :meth:`Store.conversation`."""
        return await self._db.read(lambda conn: history.conversation(conn, at, shown))

    async def import_history(
        self,
        at: At,
        *,
        opening: OpenTurn,
        messages: Sequence[Message],
        forget: bool,
        output: TurnOutput,
        trace: Sequence[TraceEntry],
    ) -> list[str]:
        """See :meth:`Store.import_history`."""
        return await self._db.write(
            lambda conn: imports.import_history(
                conn,
                at,
                opening=opening,
                given=messages,
                forget=forget,
                output=output,
                entries=trace,
            )
        )

    async def keep_mind(self, at: At, mind: dict[str, Any]) -> set[str]:
        """See :meth:`Store.keep_mind`."""
        return await self._db.write(lambda conn: minds.keep_mind(conn, at, mind))

    async def known_turn(self, at: At, opening: OpenTurn) -> TurnOutput | None:
        """See :meth:`Store.known_turn`."""
        return await self._db.write(lambda conn: steps.known_turn(conn, at, opening))

    async def keep_intentions(self, at: At, data: dict[str, Any]) -> None:
        """See :meth:`Store.keep_intentions`."""
        await self._db.write(lambda conn: intentions.keep_intentions(conn, at, data))

    async def read(self, request: Read) -> Page:
        """See :meth:`Store.read`."""
        return await reads.read(self._db, request)

    async def ping(self) -> None:
        """See :meth:`Store.ping`."""
        await self._db.read(lambda conn: conn.execute(text("SELECT 1")))


@asynccontextmanager
async def open_store(url: str, *, migrate: bool = True) -> AsyncIterator[SQLStore]:
    """Open the store; leaving the context waits for the writes under way.

    Args:
        url: ``sqlite:///path.db`` or ``postgresql://user:password@host:port/name``.
        migrate: Bring an older or empty database to this version's schema first; safe
            when several processes start at once.

    Raises:
        ConfigurationError: The URL is wrong, a newer version wrote the database, or its schema is
            older and ``migrate`` is off.
        StoreError: The database is down or locked.
    """
    database = connect(url)
    try:
        await _prepare(database, migrate)
        yield SQLStore(database)
    finally:
        await database.close()


async def _prepare(database: Database, migrate: bool) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BUSY_TIMEOUT
    while True:
        try:
            if await database.read(is_current):
                return
            break
        except StoreError as error:
            # A new SQLite file is switched to its journal by one connection alone; the others
            # are refused at once, without the wait that locks have otherwise.
            if not is_locked(error) or loop.time() >= deadline:
                raise
            await asyncio.sleep(0.05)
    if not migrate:
        raise ConfigurationError(
            "the store's database has no schema or an older one; open the store once with "
            "migrate=True"
        )
    await database.write(upgrade)
