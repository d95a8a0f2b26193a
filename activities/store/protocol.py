"""The seam to the store: what activities need of it. Users may plug in their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from ...personas.messages import Message, Usage
from ...workflows.steps import At, OpenTurn, Page, PlacedMessage, Read, Segment
from ...workflows.trace import TraceEntry
from ...workflows.turns import TurnOutput, TurnStatus


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as the store knows it."""

    session: str
    session_id: str
    user_id: str
    org: str
    persona_digest: str
    toolset_digest: str
    config: dict[str, Any]
    state: dict[str, Any] | None
    counter: int
    created_at: datetime
    closed_at: datetime | None
    seq: int = 0
    """Highest turn sequence."""
    trace_seq: int = 0
    """Highest trace sequence."""
    head: str | None = None
    """The turn that the next one continues from."""
    head_branch: str = "main"
    """Its branch."""
    head_depth: int = 0
    """Its depth; 0 when there is none."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Result of :meth:`Store.begin_step`.

    Attributes:
        existing: The turn had ended already: its output. Nothing was written.
    """

    existing: TurnOutput | None = None


@dataclass(frozen=True, slots=True)
class History:
    """Earlier messages for a prompt.

    Attributes:
        earlier: The newest messages of the path's turns, oldest first; at most the limit, and
            extended back to the start of a turn's tool round is not the store's business.
        turn: All messages of the current turn that stand before the current step's reply.
        left_out: Messages of the path older than ``earlier``.
    """

    earlier: list[Message] = field(default_factory=list)
    turn: list[Message] = field(default_factory=list)
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One billed attempt: a row of the ledger.

    Attributes:
        state: ``reserved`` before the call, ``done`` or ``failed`` after it.
    """

    turn: str
    step: int
    attempt: int
    hop: int
    provider: str
    model: str
    state: str
    usage: Usage
    purpose: str = "step"
    at: datetime | None = None


class Store(Protocol):
    """Sessions, turns, messages, trace, usage and blobs.

    Every write carries :class:`At` and the activity's attempt; a write whose fence is older than
    the row's changes nothing. Doing a write twice changes nothing. While the database is down or
    locked, methods raise :class:`~gmi.personas.errors.StoreError` with ``retryable`` details.
    """

    async def find_session(self, session_id: str) -> SessionRow | None:
        """The newest row of this id, closed or not."""
        ...

    async def get_session(self, session: str) -> SessionRow | None:
        """The row of this key."""
        ...

    async def open_session(self, row: SessionRow, run: str) -> SessionRow:
        """Insert the row unless its key exists; registers the run; clears a left-behind state.

        Returns:
            The row as it was *before* its state was cleared.
        """
        ...

    async def set_persona(self, at: At, persona_digest: str, toolset_digest: str) -> None:
        """Record which persona and tools later turns use."""
        ...

    async def save_session(
        self, at: At, *, closed: bool, state: dict[str, Any] | None, trace: Sequence[TraceEntry]
    ) -> None:
        """Record a release (with the state to go on from) or a close."""
        ...

    async def put_blobs(self, kind: str, values: Sequence[bytes]) -> list[str]:
        """Keep values; returns their SHA-256 digests in hex."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """A kept value.

        Raises:
            NotFoundError: No blob has this digest.
        """
        ...

    async def begin_step(
        self,
        at: At,
        attempt: int,
        *,
        step: int,
        opening: OpenTurn | None,
        new: Sequence[Message],
        expect_messages: int,
        reserve: UsageRow | None,
        trace: Sequence[TraceEntry],
    ) -> Begun:
        """In one transaction: open the turn, write its new messages, reserve the call.

        Raises:
            StoreUnknownSessionError: No such session.
            StoreBehindError: The turn has another number of messages before this step.
            StaleWriteError: A newer write of this turn exists; nothing was written.
        """
        ...

    async def load_history(
        self,
        at: At,
        *,
        step: int,
        path: Sequence[Segment],
        parent: str | None,
        partials: Sequence[str],
        limit: int,
    ) -> History:
        """Messages for the prompt of this step."""
        ...

    async def save_reply(
        self, at: At, attempt: int, *, step: int, index: int, reply: Message, usage: UsageRow
    ) -> None:
        """In one transaction: write the step's reply and settle its usage."""
        ...

    async def record_usage(self, at: At, rows: Sequence[UsageRow]) -> None:
        """Write or settle rows of the ledger."""
        ...

    async def close_turn(
        self,
        at: At,
        *,
        status: TurnStatus,
        output: TurnOutput,
        opening: OpenTurn | None,
        layout: Sequence[int],
        messages: Sequence[tuple[PlacedMessage, Message]],
        trace: Sequence[TraceEntry],
        head: str | None,
    ) -> None:
        """In one transaction: record the end of a turn, remove rows that were never recorded."""
        ...

    async def import_history(
        self,
        at: At,
        *,
        opening: OpenTurn | None,
        messages: Sequence[Message],
        forget: bool,
        output: TurnOutput | None,
        trace: Sequence[TraceEntry],
    ) -> list[str]:
        """Record a new root turn that holds these messages; returns the turns forgotten."""
        ...

    async def read(self, request: Read) -> Page:
        """A page of at most 256 KB."""
        ...

    async def ping(self) -> None:
        """Raise :class:`~gmi.personas.errors.StoreError` when the database does not answer."""
        ...
