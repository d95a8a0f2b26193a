"""The seam to the store of memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...personas.errors import ValidationError
from ...workflows.steps import At
from .traces import Scope, Trace

Change = Callable[[Mapping[str, Trace]], Iterable[Trace]]
"""Changes traces as they stand in the transaction; returns those that it changed."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A trace's vector: float32, little-endian, of one embedding model."""

    model: str
    dimension: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """An undirected link between two traces.

    Attributes:
        kind: ``co_recalled``, ``entity``, ``sequence``, ``schema`` or ``contradicts``.
        weight: In [0, 1]; in a write, what is added to the weight that stands.
    """

    a: str
    b: str
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class ScopeChanges:
    """What changed in a scope since a version.

    Attributes:
        version: The scope's version now.
        whole: Something was erased since: ``traces`` are all there are, and replace what is held.
        vectors: Of the model that was asked for, by trace.
    """

    version: int
    whole: bool
    traces: list[Trace]
    vectors: dict[str, Vector]


@dataclass(frozen=True, slots=True)
class Marker:
    """Names something that is done once: ``what`` for this turn.

    Attributes:
        at: The session and the turn.
        what: Such as ``encode``.
    """

    at: At
    what: str


@dataclass(frozen=True, slots=True)
class Tidied:
    """Names a consolidation of a scope, recorded in the transaction that does it.

    Attributes:
        run: The run that does it; it tidies each scope once.
        data: Asked at the end of the transaction for what :meth:`MemoryStore.consolidated` gives
            back; it is given what that gives now.
    """

    persona_id: str
    scope: Scope
    run: str
    data: Callable[[Mapping[str, Any] | None], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Writing:
    """What is written in one transaction.

    Attributes:
        now: Seconds since the epoch.
        marker: With it nothing is written when it stands already.
        new: Traces to add; one whose id stands is replaced, unless a person has corrected it, and
            one that somebody has erased is passed over.
        vectors: By trace.
        words: What vectors are of, by trace: one whose trace has other words by now is passed
            over. A vector that is not named here is of whatever stands.
        touched: Traces that ``change`` wants to see.
        change: Changes them.
        links: Added to what stands, up to 1; a link whose trace is gone is passed over.
        replaces: A branch and a depth of the marker's session: what other turns left there or
            deeper was abandoned by a reset, and goes.
        at_least: Links that weigh this much afterwards, or more where they did before.
        removed: Traces to delete with their vectors and links; one that is active stays.
        tidied: With it nothing is written when its run tidied the scope already.
    """

    now: float
    marker: Marker | None = None
    new: Sequence[Trace] = ()
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    touched: Sequence[str] = ()
    change: Change | None = None
    links: Sequence[Link] = ()
    replaces: tuple[str, int] | None = None
    at_least: Sequence[Link] = ()
    removed: Sequence[str] = ()
    tidied: Tidied | None = None
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """A turn that ended, as memory needs it.

    Attributes:
        said: What the user said, or ``""``.
        answered: What the assistant said in all its steps.
        ended_at: Seconds since the epoch.
        context: What was recalled for it, or ``None``.
        before: What was said directly before, for the embedding.
        event: What happened, for a turn that was an event, and how much it moved the persona.
    """

    session: str
    turn: str
    status: str
    branch: str
    depth: int
    said: str
    answered: str
    ended_at: float
    context: dict[str, Any] | None
    before: str = ""
    event: dict[str, Any] | None = None
    importance: float = 0.0


@dataclass(frozen=True, slots=True)
class Find:
    """Which traces a list shows, the newest first.

    Attributes:
        scopes: Only these; ``None`` for all.
        user_id: What is in this user's scope, and what was made in this user's sessions.
        org: The user's organization, or ``""``.
        before: Cursor: time and id of the last trace of the page before.
        faded: Also those that are no longer active.

    Raises:
        ValidationError: A name or the text is empty: what no turn or no persona made has an empty
            one, and every text holds the empty text.
    """

    scopes: Sequence[Scope] | None = None
    user_id: str | None = None
    org: str = ""
    persona_id: str | None = None
    session: str | None = None
    turn: str | None = None
    ids: Sequence[str] | None = None
    types: Sequence[str] | None = None
    roles: Sequence[str] | None = None
    text: str | None = None
    before: tuple[float, str] | None = None
    faded: bool = False
    limit: int = 50

    def __post_init__(self) -> None:
        named = (self.user_id, self.persona_id, self.session, self.turn, self.text)
        if "" in (*named, *(self.ids or ())):
            raise ValidationError("A name or a text by which memories are found is empty.")


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed.

    Attributes:
        minds: Turns that were forgotten as a whole, the oldest first, by the key of a session whose
            mind may still hold their words.
    """

    traces: int
    derived: int
    vectors: int
    links: int
    contexts: int
    minds: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __add__(self, other: Erased) -> Erased:
        """What both removed."""
        return Erased(
            self.traces + other.traces,
            self.derived + other.derived,
            self.vectors + other.vectors,
            self.links + other.links,
            self.contexts + other.contexts,
            {**self.minds, **other.minds},
        )


class MemoryStore(Protocol):
    """Traces, vectors, links, and what turns recalled.

    While the database is down or locked, methods raise
    :class:`~gmi.personas.errors.StoreError` with ``retryable`` details.
    """

    async def versions(self, scopes: Sequence[Scope]) -> dict[Scope, int]:
        """The version of each scope; 0 for one that holds nothing."""
        ...

    async def changes(self, scope: Scope, since: int, model: str | None) -> ScopeChanges:
        """What changed in a scope after version ``since``, with the vectors of ``model``."""
        ...

    async def links(self, ids: Sequence[str]) -> list[Link]:
        """The links that touch any of these traces."""
        ...

    async def keep_context(
        self, at: At, attempt: int, data: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Keep what a turn's prompts show; returns what stands.

        An earlier attempt of the same step has kept its own already: that one stands, so that
        every attempt sends the same bytes.

        Returns:
            ``None`` when a memory that is to be shown was erased meanwhile: nothing is kept, and
            what the prompts show has to be made without it.
        """
        ...

    async def context(self, session: str, turn: str) -> dict[str, Any] | None:
        """What :meth:`keep_context` kept."""
        ...

    async def finished_turn(self, session: str, turn: str) -> FinishedTurn | None:
        """A turn that ended; ``None`` for one that is unknown or runs."""
        ...

    async def write(self, writing: Writing) -> bool:
        """Write in one transaction.

        Returns:
            Whether it was written: ``False`` when the marker or the tidying stands, and without a
            marker when all that is new was erased before.
        """
        ...

    async def find(self, wanted: Find) -> list[Trace]:
        """Traces, the newest first."""
        ...

    async def count(self, wanted: Find) -> dict[str, int]:
        """How many there are.

        Returns:
            ``traces``, ``active``, ``vectors``, ``links``, and traces by type (``type:semantic``)
            and by scope (``scope:user``).
        """
        ...

    async def strengths(self, wanted: Find) -> list[tuple[float, float, float]]:
        """Strength, stability and last access of each trace."""
        ...

    async def vectors_by_model(self, wanted: Find) -> dict[str, int]:
        """How many vectors of each model the traces have."""
        ...

    async def erase(self, wanted: Find, now: float = 0.0) -> Erased:
        """Erase traces, what was derived from them, their vectors and links.

        The text of every context that shows one of them goes too, and what was said in turns that
        are forgotten as a whole goes out of the minds that were kept. Turns that are named by
        their session, user, persona, scope or id are never encoded afterwards, whatever they are
        made of anew; where types or words are named, that holds for those memories of what the
        turns have said by now. A memory that is erased does not come back.

        Many are erased in several transactions; an erasure that is broken off goes on when it is
        asked for again.

        Args:
            wanted: Which traces; its ``limit`` does not count.
            now: Seconds since the epoch.
        """
        ...

    async def scopes_of(self, persona_id: str) -> list[Scope]:
        """The scopes in which a persona has traces, in order."""
        ...

    async def without_vector(
        self, model: str, scope: Scope, limit: int, dimension: int | None = None
    ) -> list[Trace]:
        """Active traces that have no vector of this model, the newest first.

        Args:
            model: ``provider:model``.
            scope: The scope.
            limit: Most traces.
            dimension: Numbers in a vector of the model; one of another size counts as none.
        """
        ...

    async def vectors(self, ids: Sequence[str], model: str) -> dict[str, Vector]:
        """The vectors of one model that these traces have."""
        ...

    async def consolidated(self, persona_id: str, scope: Scope) -> dict[str, Any] | None:
        """What the last consolidation of a scope left, with its time ``at`` and its ``run``."""
        ...

    async def keep_consolidated(
        self, persona_id: str, scope: Scope, now: float, data: dict[str, Any]
    ) -> None:
        """Record that a scope was consolidated."""
        ...
