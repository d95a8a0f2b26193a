"""What crosses the memory port: what a turn recalls, what it leaves behind, tidying, and care."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ..personas.messages import Usage, Wire
from ..personas.texts import is_storable
from .steps import At, Feeling, PortModel

LATEST = 1e10
"""Seconds since the epoch, in the year 2286: a later time is one in another unit."""

MAX_TAG = 100
"""Characters of a tag."""


def _storable(value: str) -> str:
    if not is_storable(value):
        raise ValueError("it holds NUL or half of a surrogate pair, which no name here has")
    return value


def _words(value: str) -> str:
    # As the store keeps it, so that what was put in is found by the same words.
    return value.replace("\x00", "\ufffd")


Name = Annotated[str, Field(min_length=1), AfterValidator(_storable)]
"""An id or a name. It is never empty: an empty one stands for "none" in what is kept, and would
mean everything that has none."""

Words = Annotated[str, Field(min_length=1), AfterValidator(_words)]
"""What somebody says or looks for."""

Moment = Annotated[float, Field(ge=0, le=LATEST, allow_inf_nan=False)]
"""Seconds since the epoch."""

MemoryType = Literal["episodic", "semantic", "procedural", "prospective", "relational"]


def user_scope_id(user: str, org: str) -> str:
    """The id of a user's scope: ``org/user``, or the user alone without an organization.

    A ``/`` or ``%`` in either is written ``%2F`` and ``%25``, so that no two users share a scope.
    """
    return "/".join(_escaped(part) for part in (org, user) if part)


def scope_owner(scope_id: str) -> tuple[str, str]:
    """The user, and the organization or ``""``, of a user's scope."""
    org, _, user = scope_id.rpartition("/")
    return _plain(user), _plain(org)


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def _plain(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")


class Encode(PortModel):
    """Input of ``gmi.memory.encode``: a done turn is made into memories.

    Attributes:
        org: Organization of the session, or ``""``.
        feeling: What the mind felt at the turn's end.
        domain: What the conversation is about, or ``""``.
        patient: Wait for an embedding model that is down. Without it the memories are written
            with their words alone, and a consolidation embeds them later.
    """

    at: At
    session_id: str = ""
    user_id: str
    org: str = ""
    persona_digest: str
    feeling: Feeling = Feeling()
    domain: str = ""
    patient: bool = True


class Encoded(PortModel):
    """Result of ``gmi.memory.encode``.

    Attributes:
        traces: Ids of the turn's traces; the same however often it is asked for.
        applied: Whether this attempt wrote them and the effects of what the turn recalled.
        changed: Recalled and suppressed traces that changed.
        links: Links that grew.
    """

    traces: list[str] = Field(default_factory=list)
    applied: bool = False
    changed: int = 0
    links: int = 0
    warnings: list[str] = Field(default_factory=list)


class Consolidate(Wire):
    """Input of the workflow ``GMIConsolidation``.

    Attributes:
        persona: Id of the persona whose memories are tidied.
        now: Seconds since the epoch to tidy at; ``None`` for the workflow's clock.
    """

    persona: Name
    now: Moment | None = None


class Maintain(PortModel):
    """Input of ``gmi.memory.maintain``."""

    persona: Name
    now: Moment
    run: str


class MaintenanceReport(PortModel):
    """What a consolidation did, summed over the persona's scopes.

    Attributes:
        traces: Memories that it looked at; a scope where nothing changed and nothing is due is
            passed over.
        pruned: Memories that became too faint; they are no longer recalled.
        removed: Memories pruned long ago that were deleted.
        gisted: Memories that shrank to their gist.
        regulated: Agitating memories that were calmed.
        faded: Memories whose source is doubtful, which hold less long now.
        rehearsed: Memories that hold longer now.
        clusters: Groups of similar memories that are known now.
        schemas: Memories that a model made of such a group.
        contradictions: Pairs found to contradict each other.
        links: New links.
        embedded: Memories that got a vector; at least so many, when a worker was lost.
        waiting_for_vectors: Memories that have none, because the model did not answer.
        proposals: Suggested changes of traits; nothing applies them.
        usage: What the model calls were billed.
    """

    persona: str = ""
    scopes: int = 0
    traces: int = 0
    pruned: int = 0
    removed: int = 0
    gisted: int = 0
    regulated: int = 0
    faded: int = 0
    rehearsed: int = 0
    clusters: int = 0
    schemas: int = 0
    contradictions: int = 0
    links: int = 0
    embedded: int = 0
    waiting_for_vectors: int = 0
    proposals: list[dict[str, Any]] = Field(default_factory=list)
    usage: Usage = Usage()
    warnings: list[str] = Field(default_factory=list)


CareKind = Literal[
    "list", "search", "show", "stats", "health", "remember", "correct", "forget", "clusters"
]

NoteSource = Literal["human_approval", "reflection", "user_statement"]


class Care(Wire):
    """Input of the workflow ``GMIMemory``: look at memories, put one in, correct or erase some.

    Which memories is said by scopes, a user, a persona, a session, a turn, ids and types, all of
    which must hold; what is not said is not narrowed, and nothing that is said is empty.
    ``forget`` and ``correct`` need at least one of them.

    Attributes:
        kind: What is asked.
        scopes: ``kind:id`` of each scope, such as ``user:anna``.
        user_id: What is in this user's scope, and what was made in this user's sessions.
        org: The user's organization; ``""`` means the user of this id who belongs to none.
        session_id: The session whose newest key is meant: what was made in it.
        turn: What was made in this turn, or is about it. For ``remember`` with a session: the
            turn that the memory is about.
        readable: With ``session_id``, for what only looks: everything that the session's recall
            reads instead. A search always looks there. For ``remember``: only a scope that the
            session reads, or its user's, may be named.
        text: What to search for, to remember, or the right words of ``correct``; in a list and in
            ``forget`` the words that a memory contains.
        type: Type of a memory to remember.
        importance: Of a memory to remember, in [0, 1].
        source: Where a memory to remember comes from: a person put it in, the persona concluded
            it about itself, or the user said it.
        faded: In a list also what is no longer recalled.
        after: Cursor of the page before.
        now: Seconds since the epoch to look from; ``None`` for the workflow's clock.
        request_id: Makes one memory of ``remember``, however often it is asked; the workflow's id
            without.
    """

    kind: CareKind
    scopes: list[Name] | None = Field(default=None, max_length=50)
    user_id: Name | None = None
    org: Annotated[str, AfterValidator(_storable)] = ""
    persona: Name | None = None
    session_id: Name | None = None
    readable: bool = False
    turn: Name | None = None
    ids: list[Name] | None = Field(default=None, max_length=200)
    types: list[MemoryType] | None = Field(default=None, max_length=10)
    text: Words | None = None
    type: MemoryType = "semantic"
    importance: float | None = Field(default=None, ge=0, le=1)
    source: NoteSource = "human_approval"
    tags: list[Annotated[Name, Field(max_length=MAX_TAG)]] = Field(
        default_factory=list, max_length=20
    )
    faded: bool = False
    after: Name | None = None
    limit: int = Field(default=20, ge=1, le=200)
    now: Moment | None = None
    request_id: Name | None = None


class CareAnswer(PortModel):
    """Answer of ``GMIMemory``, at most 256 KB.

    Attributes:
        items: Memories, as the list shows them, or schema clusters.
        next: Cursor of the next page, or ``None``.
        counts: Numbers by name: of ``stats``, and what ``forget`` erased.
        details: Of ``show`` the links, the vectors and what was made of the memory; of ``stats``
            the strengths and the vectors; of ``health`` the report.
        forgotten: For the workflow alone: turns that were forgotten as a whole, by the key of a
            session whose mind may still hold their words.
        warnings: What went wrong without stopping the call; each begins with a stable code.
    """

    items: list[dict[str, Any]] = Field(default_factory=list)
    next: str | None = None
    forgotten: dict[str, list[str]] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)
    details: dict[str, Any] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
