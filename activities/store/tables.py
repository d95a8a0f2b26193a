"""The tables, the same on SQLite and PostgreSQL.

A turn lies on a branch at a depth, so "on this path?" is one indexed predicate per fork. Every
row that a step or a turn's end writes carries a ``fence``; see :mod:`.fences`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)


class FreeText(TypeDecorator[str]):
    """Text from outside. PostgreSQL cannot keep NUL, so it becomes U+FFFD on both databases."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """See :class:`sqlalchemy.types.TypeDecorator`."""
        if value is None or "\x00" not in value:
            return value
        return value.replace("\x00", "\ufffd")


class JsonText(TypeDecorator[Any]):
    """A JSON value kept as text; escaped to ASCII, so every string survives on both databases."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """See :class:`sqlalchemy.types.TypeDecorator`."""
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """See :class:`sqlalchemy.types.TypeDecorator`."""
        return None if value is None else json.loads(value)


class UtcTime(TypeDecorator[datetime]):
    """An aware time in UTC, to the microsecond; a naive one is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """See :class:`sqlalchemy.types.TypeDecorator`."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time {value.isoformat()} has no time zone; pass an aware datetime")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """See :class:`sqlalchemy.types.TypeDecorator`."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

sessions = Table(
    "sessions",
    metadata,
    Column("session", Text, primary_key=True),
    Column("session_id", FreeText, nullable=False),
    Column("user_id", FreeText, nullable=False),
    Column("org", FreeText, nullable=False),
    Column("persona_digest", Text, nullable=False),
    Column("toolset_digest", Text, nullable=False),
    Column("persona_fence", BigInteger, nullable=False),
    Column("config", JsonText, nullable=False),
    # The newest epoch; a run of an older one may not write.
    Column("epoch", Integer, nullable=False),
    # The highest counter of a turn's end, an import, a release or a close.
    Column("counter", BigInteger, nullable=False),
    Column("head", Text),
    Column("head_fence", BigInteger, nullable=False),
    # The record that a released session goes on from.
    Column("state", JsonText),
    Column("state_fence", BigInteger, nullable=False),
    Column("forked_session", Text),
    Column("forked_turn", Text),
    Column("created_at", UtcTime, nullable=False),
    Column("closed_at", UtcTime),
    Index("ix_sessions_session_id_created_at", "session_id", "created_at"),
)

runs = Table(
    "runs",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("run", Text, primary_key=True),
    Column("epoch", Integer, nullable=False),
    # Whether the run is known to have begun by a reset.
    Column("reset", Boolean, nullable=False),
)

blobs = Table(
    "blobs",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)

branches = Table(
    "branches",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("branch", Text, primary_key=True),
    Column("parent_branch", Text),
    Column("fork_depth", Integer, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("turn", Text, primary_key=True),
    # Not unique: after a reset the newer epoch counts from the reset's point again.
    Column("seq", Integer, nullable=False),
    Column("request_id", FreeText, nullable=False),
    Column("digest", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("parent", Text),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("sender", FreeText),
    Column("options", JsonText),
    Column("reads", JsonText, nullable=False),
    Column("persona_digest", Text, nullable=False),
    Column("toolset_digest", Text, nullable=False),
    Column("output", JsonText),
    Column("usage", JsonText),
    # The first characters of the input, for lists.
    Column("preview", FreeText, nullable=False),
    Column("steps", Integer, nullable=False),
    # Messages of a turn that ended; 0 before that.
    Column("messages", Integer, nullable=False),
    # Messages on the path before this turn, so that nobody has to count them.
    Column("base", Integer, nullable=False),
    # Depth of the turn that starts this turn's path.
    Column("root_depth", Integer, nullable=False),
    # 0, or the write counter of the import that hid the turn.
    Column("hidden", BigInteger, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    UniqueConstraint("session", "request_id"),
    Index("ix_turns_session_seq", "session", "seq"),
    Index("ix_turns_session_fence", "session", "fence"),
    Index(
        "ix_turns_done",
        "session",
        "branch",
        "depth",
        sqlite_where=text("status = 'done'"),
        postgresql_where=text("status = 'done'"),
    ),
)

messages = Table(
    "messages",
    metadata,
    Column("session", Text, primary_key=True),
    Column("turn", Text, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("role", Text, nullable=False),
    # The whole message as JSON; replayed blocks come back as they were.
    Column("body", Text, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("fence", BigInteger, nullable=False),
    ForeignKeyConstraint(["session", "turn"], ["turns.session", "turns.turn"]),
)

entries = Table(
    "entries",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("turn", Text),
    Column("plugin", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("data", JsonText, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("at", UtcTime, nullable=False),
)

trace = Table(
    "trace",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("turn", Text),
    Column("type", Text, nullable=False),
    Column("message", FreeText, nullable=False),
    Column("details", JsonText, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("at", UtcTime, nullable=False),
)

minds = Table(
    "minds",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("turn", Text, primary_key=True),
    Column("data", JsonText, nullable=False),
    Column("fence", BigInteger, nullable=False),
)

# Of each session, as they stand; its workflow has them at hand.
intentions = Table(
    "intentions",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("data", JsonText, nullable=False),
    Column("fence", BigInteger, nullable=False),
)

usage = Table(
    "usage",
    metadata,
    Column("session", Text, ForeignKey("sessions.session"), primary_key=True),
    Column("turn", Text, primary_key=True),
    Column("purpose", Text, primary_key=True),
    # A reset bills the same attempt again: its bill stands beside the first one.
    Column("epoch", Integer, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("hop", Integer, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("usage", JsonText, nullable=False),
    Column("at", UtcTime, nullable=False),
    Index("ix_usage_session_at", "session", "at"),
)
