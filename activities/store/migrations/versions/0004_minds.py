"""The mind that each turn left."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of minds."""
    op.create_table(
        "minds",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", "turn", name="pk_minds"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_minds_sessions"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("minds")
