"""A memory trace as the memory's mathematics sees it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Literal

TraceType = Literal["episodic", "semantic", "procedural", "prospective", "relational"]
ScopeKind = Literal["user", "thread", "persona", "organization"]
SourceType = Literal[
    "user_statement",
    "agent_inference",
    "tool_result",
    "observation",
    "reflection",
    "external",
    "fact_graph",
    "typed_network",
    "retrieved_document",
    "human_approval",
    "identity_provider",
    "system_config",
    "external_api",
    "memory_summary",
]

DERIVED_ROLES = ("schema", "gist")
"""Roles of traces that were made from others, which are erased with them."""

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Whose memory a trace is: a user's, a thread's, a persona's or an organization's."""

    kind: ScopeKind
    id: str


@dataclass(frozen=True, slots=True)
class Affect:
    """Valence, arousal and dominance, each in [-1, 1]."""

    valence: float = 0.0
    arousal: float = 0.0
    dominance: float = 0.0


def trace_id(session: str, turn: str, role: str) -> str:
    """The id of what a turn leaves of a role: the same whenever it is made."""
    space = uuid.uuid5(uuid.NAMESPACE_OID, f"{session}/{turn}")
    return str(uuid.uuid5(space, role))


@dataclass(slots=True)
class Trace:
    """One memory.

    All times are seconds since the epoch (UTC), all durations seconds.

    Attributes:
        id: Deterministic: the same turn and role give the same id.
        session: Key of the session that it was made in, or ``""`` for one made outside of any.
        turn: The turn that it was made in, or ``""`` for one put in by hand.
        branch: Branch of that turn.
        depth: Depth of that turn on its branch.
        role: ``user``, ``assistant``, or what else made it (``gist``, ``schema``, ``note``,
            ``reflection``).
        source_id: What it comes from within that source, such as a document's or a call's id; of
            one that is put in by hand the turn that it is about.
        confidence: How far the source is trusted, in [0, 1].
        verifications: How often it was confirmed.
        verified_at: When it was confirmed last.
        contradicted_by: A newer memory that says otherwise.
        policy: What it may be used for; ``None`` leaves that to its source, see :mod:`.trust`.
        affect: Felt when it was made; arousal in [-1, 1].
        intensity: Of that feeling, in [0, 1].
        mood: Mood word when it was made.
        strength: At the last access, in [0, 1].
        stability: Seconds in which the strength falls to 1/e.
        importance: In [0, 1].
        retrievals: How often it was recalled.
        interval: Spacing interval in seconds.
        next_at: When rehearsing it would serve it best.
        mechanisms: What the mechanisms note of it, each under its name.
        data: Anything structured that belongs to it.
        consolidated_at: When a consolidation looked at it last.
        version: Of its scope when it last changed.
    """

    id: str
    scope: Scope
    content: str
    type: TraceType = "episodic"
    source: SourceType = "user_statement"
    session: str = ""
    turn: str = ""
    branch: str = ""
    depth: int = 0
    role: str = "user"
    persona_id: str = ""
    source_id: str = ""
    confidence: float = 0.8
    verifications: int = 0
    verified_at: float | None = None
    contradicted_by: str | None = None
    policy: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    affect: Affect = Affect()
    intensity: float = 0.0
    mood: str = "neutral"
    strength: float = 0.5
    stability: float = HOUR
    importance: float = 0.5
    retrievals: int = 0
    accesses: int = 0
    last_access: float = 0.0
    interval: float = HOUR
    next_at: float | None = None
    mechanisms: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    consolidated_at: float | None = None
    active: bool = True
    created_at: float = 0.0
    updated_at: float = 0.0
    version: int = 0

    @property
    def about(self) -> str:
        """The turn that it was made in, or that what was put in by hand is about; or ``""``."""
        return self.turn or (self.source_id if self.session else "")
