"""What agents change about themselves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of learning."""
    op.create_table(
        "self_changes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("rate", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("undone_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_self_changes"),
    )
    op.create_index(
        "ix_self_changes_namespace_agent_user_id",
        "self_changes",
        ["namespace", "agent", "user_id"],
    )
    op.create_index("ix_self_changes_session", "self_changes", ["session"])
    op.create_index("ix_self_changes_user_id", "self_changes", ["user_id"])
    op.create_table(
        "run_steps",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", "step", name="pk_run_steps"),
    )
    op.create_index("ix_run_steps_session", "run_steps", ["session"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("run_steps")
    op.drop_table("self_changes")
