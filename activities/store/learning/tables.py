"""The tables of learning. Times are seconds since the epoch, so that a simulated clock fits."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, Table, Text

from ..tables import FreeText, JsonText, metadata

self_changes = Table(
    "self_changes",
    metadata,
    # Made of the tool call's key, so that a call makes one change however often it is tried.
    Column("id", Text, primary_key=True),
    # The learner; an empty agent for a change that is its session's alone.
    Column("namespace", FreeText, nullable=False),
    Column("agent", FreeText, nullable=False),
    Column("user_id", FreeText, nullable=False),
    Column("session", FreeText, nullable=False),
    Column("turn", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", FreeText, nullable=False),
    Column("data", JsonText, nullable=False),
    Column("delta", Double, nullable=False),
    Column("rate", Double, nullable=False),
    Column("at", Double, nullable=False),
    Column("undone_at", Double),
    Index("ix_self_changes_namespace_agent_user_id", "namespace", "agent", "user_id"),
    Index("ix_self_changes_session", "session"),
    Index("ix_self_changes_user_id", "user_id"),
)

run_steps = Table(
    "run_steps",
    metadata,
    # The call that runs a workflow, and the step of it.
    Column("key", FreeText, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("session", FreeText, nullable=False),
    Column("done", Integer, nullable=False),
    Column("result", JsonText),
    Column("at", Double, nullable=False),
    Index("ix_run_steps_session", "session"),
)
