"""Memories."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of memories."""
    op.create_table(
        "scopes",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("erased_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "scope_id", name="pk_scopes"),
    )
    op.create_table(
        "traces",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("persona_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("verifications", sa.Integer(), nullable=False),
        sa.Column("verified_at", sa.Double(), nullable=True),
        sa.Column("contradicted_by", sa.Text(), nullable=True),
        sa.Column("policy", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("entities", sa.Text(), nullable=False),
        sa.Column("v", sa.Double(), nullable=False),
        sa.Column("a", sa.Double(), nullable=False),
        sa.Column("d", sa.Double(), nullable=False),
        sa.Column("intensity", sa.Double(), nullable=False),
        sa.Column("mood", sa.Text(), nullable=False),
        sa.Column("strength", sa.Double(), nullable=False),
        sa.Column("stability", sa.Double(), nullable=False),
        sa.Column("importance", sa.Double(), nullable=False),
        sa.Column("retrievals", sa.Integer(), nullable=False),
        sa.Column("accesses", sa.Integer(), nullable=False),
        sa.Column("last_access", sa.Double(), nullable=False),
        sa.Column("interval", sa.Double(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=True),
        sa.Column("mechanisms", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("consolidated_at", sa.Double(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_traces"),
    )
    op.create_index(
        "ix_traces_persona_id_scope_scope_id", "traces", ["persona_id", "scope", "scope_id"]
    )
    op.create_index("ix_traces_scope_scope_id_version", "traces", ["scope", "scope_id", "version"])
    op.create_index("ix_traces_session_turn", "traces", ["session", "turn"])
    op.create_table(
        "vectors",
        sa.Column("trace", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dim", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("trace", "model", name="pk_vectors"),
        sa.ForeignKeyConstraint(["trace"], ["traces.id"], name="fk_vectors_traces"),
    )
    op.create_table(
        "edges",
        sa.Column("a", sa.Text(), nullable=False),
        sa.Column("b", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("a", "b", "kind", name="pk_edges"),
        sa.ForeignKeyConstraint(["a"], ["traces.id"], name="fk_edges_traces_a"),
        sa.ForeignKeyConstraint(["b"], ["traces.id"], name="fk_edges_traces_b"),
    )
    op.create_index("ix_edges_b", "edges", ["b"])
    op.create_table(
        "applied",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("session", "turn", "what", name="pk_applied"),
    )
    op.create_table(
        "contexts",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", "turn", name="pk_contexts"),
        sa.ForeignKeyConstraint(
            ["session", "turn"], ["turns.session", "turns.turn"], name="fk_contexts_turns"
        ),
    )
    op.create_table(
        "shown",
        sa.Column("trace", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("trace", "session", "turn", name="pk_shown"),
        sa.ForeignKeyConstraint(
            ["session", "turn"], ["contexts.session", "contexts.turn"], name="fk_shown_contexts"
        ),
    )
    op.create_index("ix_shown_session_turn", "shown", ["session", "turn"])
    op.create_table(
        "forgotten",
        sa.Column("trace", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("trace", name="pk_forgotten"),
    )
    op.create_table(
        "consolidations",
        sa.Column("persona_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("persona_id", "scope", "scope_id", name="pk_consolidations"),
    )


def downgrade() -> None:
    """Drop them."""
    for table in (
        "consolidations",
        "forgotten",
        "shown",
        "contexts",
        "applied",
        "edges",
        "vectors",
        "traces",
        "scopes",
    ):
        op.drop_table(table)
