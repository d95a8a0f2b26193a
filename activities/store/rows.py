"""Statements and rows that several subjects of the store share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete
from sqlalchemy.dialects import postgresql, sqlite

from ...personas.messages import Message
from ...workflows.trace import TraceEntry
from .fences import epoch_floor, epoch_of
from .tables import messages, trace, usage

Values = dict[str, Any]
Upsert = sqlite.Insert | postgresql.Insert


def insert_into(dialect: str, table: Table) -> Upsert:
    """An insertion that may say what becomes of rows whose key is there."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def _overwrite(
    statement: Upsert, table: Table, keep: set[str], where: ColumnElement[bool]
) -> Upsert:
    keys = list(table.primary_key.columns)
    names = {column.name for column in keys} | keep
    changed = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in names}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed, where=where)


@cache
def upsert_message(dialect: str) -> Upsert:
    """Insert messages; an existing one is overwritten unless it is newer."""
    statement = insert_into(dialect, messages)
    return _overwrite(statement, messages, set(), messages.c.fence <= statement.excluded.fence)


@cache
def upsert_trace(dialect: str) -> Upsert:
    """Insert trace entries; an existing one is overwritten unless it is newer."""
    statement = insert_into(dialect, trace)
    return _overwrite(statement, trace, set(), trace.c.fence <= statement.excluded.fence)


@cache
def upsert_usage(dialect: str) -> Upsert:
    """Insert rows of the ledger; a settled row is never a reservation again."""
    statement = insert_into(dialect, usage)
    where = (usage.c.state == "reserved") | (statement.excluded.state != "reserved")
    return _overwrite(statement, usage, {"at"}, where)


@cache
def add(dialect: str, table: Table) -> Upsert:
    """Insert rows whose key is not there yet; leaves those that are as they stand."""
    return insert_into(dialect, table).on_conflict_do_nothing(
        index_elements=list(table.primary_key)
    )


def message_values(
    session: str, turn: str, step: int, index: int, message: Message, fence: int
) -> Values:
    """A row of ``messages``."""
    body = message.model_dump_json(exclude_defaults=True)
    return {
        "session": session,
        "turn": turn,
        "step": step,
        "idx": index,
        "role": message.role,
        "body": body,
        "bytes": len(body.encode()),
        "fence": fence,
    }


def write_trace(
    conn: Connection,
    session: str,
    entries: Sequence[TraceEntry],
    fence: int,
    hidden_turn: str | None = None,
) -> None:
    """Write trace entries under their sequence.

    ``hidden_turn`` was forgotten: what its entries tell in detail is not kept.
    """
    if not entries:
        return
    if epoch_of(fence):
        # Entries that a reset abandoned would stand among the new ones.
        abandoned = (
            (trace.c.session == session)
            & (trace.c.seq > min(entry.seq for entry in entries))
            & (trace.c.fence < epoch_floor(epoch_of(fence)))
        )
        conn.execute(delete(trace).where(abandoned))
    rows = [
        {
            "session": session,
            "seq": entry.seq,
            "turn": entry.turn,
            "type": entry.type,
            "message": entry.message,
            "details": {} if hidden_turn and entry.turn == hidden_turn else entry.details,
            "fence": fence,
            "at": entry.at,
        }
        for entry in entries
    ]
    conn.execute(upsert_trace(conn.dialect.name), rows)
