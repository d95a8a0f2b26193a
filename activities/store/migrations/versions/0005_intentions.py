"""What each session means to do later."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of intentions."""
    op.create_table(
        "intentions",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", name="pk_intentions"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_intentions_sessions"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("intentions")
