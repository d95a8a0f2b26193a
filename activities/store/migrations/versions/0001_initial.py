"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "blobs",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_blobs"),
    )
    op.create_table(
        "sessions",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("org", sa.Text(), nullable=False),
        sa.Column("persona_digest", sa.Text(), nullable=False),
        sa.Column("toolset_digest", sa.Text(), nullable=False),
        sa.Column("persona_fence", sa.BigInteger(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.Text(), nullable=True),
        sa.Column("head_fence", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("state_fence", sa.BigInteger(), nullable=False),
        sa.Column("forked_session", sa.Text(), nullable=True),
        sa.Column("forked_turn", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("session", name="pk_sessions"),
    )
    op.create_index("ix_sessions_session_id_created_at", "sessions", ["session_id", "created_at"])
    op.create_table(
        "branches",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("parent_branch", sa.Text(), nullable=True),
        sa.Column("fork_depth", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("session", "branch", name="pk_branches"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_branches_sessions"),
    )
    op.create_table(
        "entries",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=True),
        sa.Column("plugin", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session", "seq", name="pk_entries"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_entries_sessions"),
    )
    op.create_table(
        "runs",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("reset", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("session", "run", name="pk_runs"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_runs_sessions"),
    )
    op.create_table(
        "trace",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session", "seq", name="pk_trace"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_trace_sessions"),
    )
    op.create_table(
        "turns",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=True),
        sa.Column("options", sa.Text(), nullable=True),
        sa.Column("reads", sa.Text(), nullable=False),
        sa.Column("persona_digest", sa.Text(), nullable=False),
        sa.Column("toolset_digest", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("usage", sa.Text(), nullable=True),
        sa.Column("preview", sa.Text(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("base", sa.Integer(), nullable=False),
        sa.Column("root_depth", sa.Integer(), nullable=False),
        sa.Column("hidden", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("session", "turn", name="pk_turns"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_turns_sessions"),
        sa.UniqueConstraint("session", "request_id", name="uq_turns_session_request_id"),
    )
    op.create_index(
        "ix_turns_done",
        "turns",
        ["session", "branch", "depth"],
        sqlite_where=sa.text("status = 'done'"),
        postgresql_where=sa.text("status = 'done'"),
    )
    op.create_index("ix_turns_session_fence", "turns", ["session", "fence"])
    op.create_index("ix_turns_session_seq", "turns", ["session", "seq"])
    op.create_table(
        "usage",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("hop", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("usage", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(
            "session", "turn", "purpose", "epoch", "step", "attempt", "hop", name="pk_usage"
        ),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_usage_sessions"),
    )
    op.create_index("ix_usage_session_at", "usage", ["session", "at"])
    op.create_table(
        "messages",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", "turn", "step", "idx", name="pk_messages"),
        sa.ForeignKeyConstraint(
            ["session", "turn"], ["turns.session", "turns.turn"], name="fk_messages_turns"
        ),
    )


def downgrade() -> None:
    """Drop every table."""
    for table in (
        "messages",
        "usage",
        "turns",
        "trace",
        "runs",
        "entries",
        "branches",
        "sessions",
        "blobs",
    ):
        op.drop_table(table)
