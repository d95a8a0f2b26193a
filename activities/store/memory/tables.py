"""The tables of memories. Times are seconds since the epoch, so that a simulated clock fits.

Whoever caches a scope learns what changed from its version: every write to a trace moves the
scope's version and stamps the trace with it. An erasure leaves no row behind to stamp; it moves
``erased_version``, and a cache older than that is read anew.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from ..tables import FreeText, JsonText, metadata

scopes = Table(
    "scopes",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("scope_id", FreeText, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("erased_version", BigInteger, nullable=False),
)

traces = Table(
    "traces",
    metadata,
    Column("id", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("scope_id", FreeText, nullable=False),
    Column("session", Text, nullable=False),
    Column("turn", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("persona_id", FreeText, nullable=False),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_id", FreeText, nullable=False),
    Column("confidence", Double, nullable=False),
    Column("verifications", Integer, nullable=False),
    Column("verified_at", Double),
    Column("contradicted_by", Text),
    # None leaves it to the source.
    Column("policy", JsonText),
    Column("content", FreeText, nullable=False),
    # The content without its case, to look for words: databases differ in what they take for one.
    Column("folded", FreeText, nullable=False),
    Column("tags", JsonText, nullable=False),
    Column("entities", JsonText, nullable=False),
    Column("v", Double, nullable=False),
    Column("a", Double, nullable=False),
    Column("d", Double, nullable=False),
    Column("intensity", Double, nullable=False),
    Column("mood", Text, nullable=False),
    Column("strength", Double, nullable=False),
    Column("stability", Double, nullable=False),
    Column("importance", Double, nullable=False),
    Column("retrievals", Integer, nullable=False),
    Column("accesses", Integer, nullable=False),
    Column("last_access", Double, nullable=False),
    Column("interval", Double, nullable=False),
    Column("next_at", Double),
    Column("mechanisms", JsonText, nullable=False),
    Column("data", JsonText, nullable=False),
    Column("consolidated_at", Double),
    Column("active", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("version", BigInteger, nullable=False),
    Index("ix_traces_scope_scope_id_version", "scope", "scope_id", "version"),
    Index("ix_traces_session_turn", "session", "turn"),
    Index("ix_traces_persona_id_scope_scope_id", "persona_id", "scope", "scope_id"),
)

vectors = Table(
    "vectors",
    metadata,
    Column("trace", Text, ForeignKey("traces.id"), primary_key=True),
    # Vectors of two models never mix.
    Column("model", Text, primary_key=True),
    Column("dim", Integer, nullable=False),
    # float32, little-endian.
    Column("data", LargeBinary, nullable=False),
)

edges = Table(
    "edges",
    metadata,
    Column("a", Text, ForeignKey("traces.id", name="fk_edges_traces_a"), primary_key=True),
    Column("b", Text, ForeignKey("traces.id", name="fk_edges_traces_b"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("weight", Double, nullable=False),
    Index("ix_edges_b", "b"),
)

applied = Table(
    "applied",
    metadata,
    Column("session", Text, primary_key=True),
    Column("turn", Text, primary_key=True),
    Column("what", Text, primary_key=True),
    # A reset may make the turn anew; its newer epoch is applied again.
    Column("epoch", Integer, nullable=False),
    Column("at", Double, nullable=False),
)

contexts = Table(
    "contexts",
    metadata,
    Column("session", Text, primary_key=True),
    Column("turn", Text, primary_key=True),
    # What the turn's prompts show of memories and sources, and the ids it came from.
    Column("data", JsonText, nullable=False),
    Column("fence", BigInteger, nullable=False),
    ForeignKeyConstraint(["session", "turn"], ["turns.session", "turns.turn"]),
)

# Which memories the texts of contexts show, so that an erasure finds them at once.
shown = Table(
    "shown",
    metadata,
    Column("trace", Text, primary_key=True),
    Column("session", Text, primary_key=True),
    Column("turn", Text, primary_key=True),
    ForeignKeyConstraint(["session", "turn"], ["contexts.session", "contexts.turn"]),
    Index("ix_shown_session_turn", "session", "turn"),
)

# Memories that somebody had erased: whatever makes them anew, they do not come back.
forgotten = Table(
    "forgotten",
    metadata,
    Column("trace", Text, primary_key=True),
    Column("at", Double, nullable=False),
)

consolidations = Table(
    "consolidations",
    metadata,
    Column("persona_id", FreeText, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("scope_id", FreeText, primary_key=True),
    Column("at", Double, nullable=False),
    Column("data", JsonText, nullable=False),
)
