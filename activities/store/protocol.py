"""The seam to the store: what activities need of it. Users may plug in their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from ...personas.messages import Message, Usage
from ...workflows.pages import Page, Read
from ...workflows.steps import At, OpenTurn, Segment
from ...workflows.trace import TraceEntry
from ...workflows.turns import TurnOutput, TurnStatus
from ...workflows.writes import PlacedMessage


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
class LeftTurn:
    """A done turn that was never encoded.

    Attributes:
        output: What it came to, as :class:`~gmi.workflows.turns.TurnOutput` in JSON.
        mind: The mind that it left, where it left one of its own.
    """

    turn: str
    persona_digest: str
    output: dict[str, Any]
    mind: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What a session whose workflow was ended from outside goes on with.

    Attributes:
        mind: The newest mind on the path to the head; where a given history began a path that
            has none yet, the newest one before that.
        hidden: Turns that are forgotten, where the mind may still have their words.
        turns: Turns that may not be in long-term memory yet, the oldest first.
        intentions: What it means to do later, as it was kept last.
        done: Which of the turns that those have started are done.
        usage: What all its model calls were billed.
        usage_by_model: The same by ``provider:model``, of 32 models and ``others`` at most.
        ended: How many turns have ended, imports not counted.
    """

    mind: dict[str, Any] | None = None
    turns: Sequence[LeftTurn] = ()
    intentions: dict[str, Any] | None = None
    done: Collection[str] = ()
    hidden: Collection[str] = ()
    usage: Usage = field(default_factory=Usage)
    usage_by_model: Mapping[str, Usage] = field(default_factory=dict)
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Begun:
    """Result of :meth:`Store.begin_step`.

    Attributes:
        existing: The turn had ended already: its output. Nothing was written.
        history: The messages for the prompt, where they were asked for.
    """

    existing: TurnOutput | None = None
    history: History | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """Which earlier messages a step's prompt shows.

    Shown are the done turns on the path, and ``parent`` whatever its status; hidden ones and what
    stands before a turn without parent are not. The messages of ``partials`` follow them in the
    order of their sequence, and count towards the limit.

    Attributes:
        path: Stretches of the path, root first.
        parent: The turn directly before this one.
        partials: Stopped or failed turns to show after the path.
        limit: Most messages in ``History.earlier``, from 1.
    """

    path: Sequence[Segment]
    parent: str | None
    partials: Sequence[str]
    limit: int


@dataclass(frozen=True, slots=True)
class History:
    """Earlier messages for a prompt.

    Attributes:
        earlier: The newest messages of the path's turns, oldest first, at most the limit; the
            oldest may be the rest of a tool round.
        turn: All messages of the current turn that stand before the current step's reply.
        left_out: Messages of the path older than ``earlier``.
        turns: The turns that ``earlier`` shows whole.
    """

    earlier: list[Message] = field(default_factory=list)
    turn: list[Message] = field(default_factory=list)
    left_out: int = 0
    turns: list[str] = field(default_factory=list)


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


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a turn that its last step records.

    Attributes:
        output: What the turn came to.
        messages: Messages of the whole turn, the reply included.
    """

    output: TurnOutput
    messages: int


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
        """Insert the row unless its key exists, and register the run.

        Returns:
            The row as it stands. A state that was left behind stays in it until the session's
            next turn begins or ends, so opening twice loses nothing.
        """
        ...

    async def left_behind(self, row: SessionRow) -> LeftBehind:
        """What a session that has no state to go on from left with its turns and its bills.

        Of the turns that may not be in long-term memory only those among the newest 64.
        """
        ...

    async def set_persona(self, at: At, persona_digest: str, toolset_digest: str) -> None:
        """Record which persona and tools later turns use; an older call changes nothing."""
        ...

    async def save_session(
        self, at: At, *, closed: bool, state: dict[str, Any] | None, trace: Sequence[TraceEntry]
    ) -> None:
        """Record a release (with the state to go on from) or a close.

        The first close keeps its time; an older release does not overwrite a newer one.
        """
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
        shown: Shown | None = None,
    ) -> Begun:
        """In one transaction: open the turn, write its new messages, reserve the call.

        With ``shown`` the answer also holds the messages for the step's prompt.

        What an earlier attempt left at this step or later is removed. A turn that is opened in a
        newer epoch takes the place of those that a reset abandoned at its depth or deeper.

        Raises:
            RequestMismatchError: The turn's request id was used before with another input.
            StoreUnknownSessionError: No such session.
            StoreBehindError: The turn has another number of messages before this step.
            StaleWriteError: A newer write of this turn exists; nothing was written.
        """
        ...

    async def save_reply(
        self,
        at: At,
        attempt: int,
        *,
        step: int,
        index: int,
        reply: Message,
        usage: UsageRow,
        closing: Closing | None = None,
    ) -> None:
        """In one transaction: write the step's reply, settle its usage, end the turn with it.

        With ``closing`` the reply is the turn's answer, and the turn ends done; a repeated attempt
        of the step opens it again.

        Raises:
            StoreBehindError: The turn was never opened.
            StaleWriteError: A newer write of this turn exists; neither was written. What was
                billed can still be told to :meth:`record_usage`.
        """
        ...

    async def record_usage(self, at: At, rows: Sequence[UsageRow]) -> None:
        """Write or settle rows of the ledger.

        A settled row is never a reservation again. Bills of a run that a reset abandoned are
        recorded too, beside those of the run that took its place.
        """
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
        step_counter: int = 0,
        trace: Sequence[TraceEntry],
        head: str | None,
    ) -> None:
        """In one transaction: record the end of a turn, remove rows that were never recorded.

        A close older than the turn's newest write leaves the turn as it is, without an error; its
        trace is kept.

        Args:
            at: The turn; its counter is what reads can wait for.
            status: How it ended.
            output: What it came to.
            opening: Records the turn when no step did.
            layout: Messages of each step that stay.
            messages: Messages to add or overwrite; they stay too.
            step_counter: Counter of the turn's last step, whose own end of it does not stand.
            trace: Entries since the last write.
            head: The turn that the next one continues from.

        Raises:
            StoreBehindError: The turn has no row, and no opening was given.
        """
        ...

    async def conversation(self, at: At, shown: Shown) -> list[Message]:
        """The newest messages up to the end of a turn, oldest first.

        Nothing of a hidden turn is among them, and none when the turn itself is hidden or unknown.

        Args:
            at: The turn.
            shown: The path that ends with it, or before it; the turn's own parent is on it. The
                limit holds for all messages together.
        """
        ...

    async def import_history(
        self,
        at: At,
        *,
        opening: OpenTurn,
        messages: Sequence[Message],
        forget: bool,
        output: TurnOutput,
        trace: Sequence[TraceEntry],
    ) -> list[str]:
        """Record a new root turn, done, that holds these messages at step 0.

        With ``forget`` every older turn is hidden, unless its first user message is also one of
        the given ones (each claims one turn, the newest first); the trace of hidden turns keeps
        its types and messages and loses its details.

        Returns:
            The turns that this import hid; the same when it is repeated.
        """
        ...

    async def keep_mind(self, at: At, mind: dict[str, Any]) -> set[str]:
        """Keep the mind that a turn left; an older one never replaces a newer one.

        Returns:
            The turns whose words it held though they are forgotten; they are not kept.
        """
        ...

    async def known_turn(self, at: At, opening: OpenTurn) -> TurnOutput | None:
        """What a request's turn came to, if it was made before and not reset since.

        Raises:
            RequestMismatchError: The request was another one then.
        """
        ...

    async def keep_intentions(self, at: At, data: dict[str, Any]) -> None:
        """Keep what a session means to do later; an older state never replaces a newer one."""
        ...

    async def read(self, request: Read) -> Page:
        """A page of at most 256 KB.

        - ``session``: one item, the session's row.
        - ``turns``: every turn, oldest first; hidden ones are marked and have no preview.
        - ``messages``: those of one turn, or of the conversation that ends at the head.
        - ``message``: one message's JSON, in pieces that follow each other.
        - ``trace``: the entries, of one turn when it is given.
        - ``usage``: the ledger, of one turn when it is given.
        - ``turn``: one item, the turn with its output.
        - ``mind``: one item, the mind that a turn left, where it left one of its own; without a
          turn, those of all turns, oldest first.
        - ``text``: what the assistant said in one turn, in pieces that follow each other.
        - ``blob``: a kept value in base64, in pieces that follow each other.

        An item that alone is larger than a page is cut and has ``"truncated": true``.

        Raises:
            SessionNotFoundError: No such session.
            TurnNotFoundError: The session has no such turn.
            NotFoundError: No blob has this digest, or no message stands at this place.
            ValidationError: ``after`` is not a cursor of this list, or something that the read
                needs is not named.
        """
        ...

    async def ping(self) -> None:
        """Raise :class:`~gmi.personas.errors.StoreError` when the database does not answer."""
        ...
