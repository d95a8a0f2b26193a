"""What crosses the session's handlers: inputs, tickets, outputs and views of a turn."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field, model_validator

from ..personas.emotion import Interlocutor
from ..personas.messages import Message, Part, Told, Usage, Wire
from ..personas.options import CompletionOptions
from .mind_calls import Perceive, Perception

TurnStatus = Literal[
    "queued", "running", "waiting", "done", "failed", "stopped", "abandoned", "superseded"
]
TurnKind = Literal["text", "system", "event", "import"]
Sends = Literal["queue", "refuse"]
OnPause = Literal["refuse", "answer"]
PauseReason = Literal["external", "approval", "lost"]

FINAL_STATUSES: frozenset[str] = frozenset({"done", "failed", "stopped", "abandoned"})


class HopSpec(Wire):
    """One leg of the fallback chain; a text alone stands for its model.

    Attributes:
        model: ``provider:model``.
        options: Options for the steps that this hop serves, over the turn's.
        max_tokens_headroom: Tokens added to ``max_tokens`` when the turn sets one.
    """

    model: str
    options: CompletionOptions | None = None
    max_tokens_headroom: int = 0

    @model_validator(mode="before")
    @classmethod
    def _of_a_model(cls, value: Any) -> Any:
        """A hop may be given by its model alone."""
        return {"model": value} if isinstance(value, str) else value


class ErrorInfo(Told):
    """An error as data.

    Attributes:
        code: Stable identifier; see :mod:`gmi.personas.errors`.
        message: What was wrong and what to do.
        details: JSON-able facts.
    """

    code: str
    message: str
    details: dict[str, Any] = Field(default_factory=dict)


class SubmitTurn(Wire):
    """Input of the update ``submit_turn``.

    Attributes:
        content: The user's message: text, or a list of parts.
        request_id: Makes one turn of however many sends carry it; generated when absent.
        user_id: Who sends; a session serves one user.
        org: The sender's organization; checked against the session's when given.
        session_key: The session that the sender believes it talks to; another one's answer is
            ``SESSION_CLOSED``.
        persona: The persona that the sender expects; only checked.
        kind: ``text`` for a user's message, ``system`` for a note of the host.
        sender: Name of the speaker, sent to the model as the message's name.
        options: Completion options of this turn, over the persona's.
        model: ``provider:model`` of this turn's first hop.
        fallback: Fallback chain of this turn; an empty list turns fallback off.
        history: Prompts are built from this history instead of the session's own.
        suffix: Text appended to the system message of this turn.
        sends: What to do when a turn runs: wait in the queue, or be refused.
        on_pause: What to do when a turn waits for the host: be refused with
            ``CONVERSATION_BUSY``, or answer its open calls with ``EXTERNAL_TOOL_NOT_RUN`` and
            queue behind it.
        stream: Whether the model's text reaches the chunk stream piece by piece.
        hold: Whether the call may be held until the turn ends, if that comes soon.
        max_tool_iterations: Tool rounds before the model is asked to answer without tools.
        interlocutor: Who speaks with the persona: a name, or a name with a description and more.
        event: What happens, for a turn of kind ``event``: no model is asked to answer.
        ceiling: The highest tier of intentions that this turn may be reminded of; any without.
        user_context: What the mind is told of the user from this turn on: ``skillLevel``,
            ``preferences`` and anything else; at most 2 KB.
        task_context: The same of the task: ``domain``, ``complexity``, ``status``.
    """

    content: str | list[Part]
    request_id: str | None = None
    user_id: str
    org: str | None = None
    session_key: str | None = None
    persona: str | None = None
    kind: Literal["text", "system", "event"] = "text"
    sender: str | None = None
    options: CompletionOptions | None = None
    model: str | None = None
    fallback: list[HopSpec] | None = None
    history: list[Message] | None = None
    suffix: str | None = None
    sends: Sends = "queue"
    on_pause: OnPause = "refuse"
    stream: bool = True
    hold: bool = True
    max_tool_iterations: int | None = Field(default=None, ge=0, le=100)
    interlocutor: Interlocutor | None = None
    event: Perceive | None = None
    ceiling: int | None = None
    user_context: dict[str, Any] | None = None
    task_context: dict[str, Any] | None = None


class ToolCallView(Told):
    """A tool call as a client sees it.

    Attributes:
        reason: Why the host is asked: ``external`` (it runs the tool), ``approval`` (it allows
            or denies), ``lost`` (the outcome of a tool that may have run is unknown), or
            ``None`` for a call that the session ran itself.
    """

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    arguments_ref: str | None = None
    reason: PauseReason | None = None


class TurnOutput(Told):
    """What a turn came to, or where it pauses.

    Attributes:
        session_key: The session.
        turn: The turn's id.
        status: ``waiting`` when the host has to answer tool calls first.
        is_final: ``False`` only for a pause.
        response_text: The text of the turn's steps, joined; ``None`` when there is none, when
            the turn failed, or when it is long (then ``text_stored`` is set).
        text_stored: The text is over 16 KB: read it with ``GMIRead``.
        tool_calls: For a pause the calls that the host answers, else those the turn made.
        usage: Tokens and USD of all steps and of billed failures.
        limit_reached: The tool rounds ran out and the model was asked to answer without tools.
        event: What happened, for a turn of kind ``event``, and ``perception`` what it left.
        write_counter: The store holds the turn once its counter is at least this.
    """

    session_key: str
    turn: str
    request_id: str
    status: TurnStatus
    is_final: bool
    response_text: str | None = None
    text_stored: bool = False
    tool_calls: list[ToolCallView] = Field(default_factory=list)
    usage: Usage = Usage()
    error: ErrorInfo | None = None
    limit_reached: bool = False
    finish_reason: str | None = None
    provider: str | None = None
    model: str | None = None
    hop: int = 0
    steps: int = 0
    warnings: list[str] = Field(default_factory=list)
    event: Perceive | None = None
    perception: Perception | None = None
    write_counter: int = 0


class TurnTicket(Told):
    """Answer of ``submit_turn`` and ``await_turn``: the output, or where to ask again.

    Attributes:
        session_key: The session that took the turn.
        turn: The turn's id.
        status: Where the turn is.
        output: Its output when it ended, or paused, while the call was held.
    """

    session_key: str
    turn: str
    request_id: str
    status: TurnStatus
    output: TurnOutput | None = None


class AwaitTurn(Wire):
    """Input of the update ``await_turn`` and of the query ``get_turn``."""

    turn: str


class HostResult(Wire):
    """The host's answer to one pending call.

    Attributes:
        call_id: The pending call.
        content: The result, any JSON value; over 2 MB it is refused.
        is_error: The tool failed; ``content`` or ``error`` says how.
        error: JSON-able facts of the failure.
        approved: For a call that needs approval: run it or tell the model that it was denied.
        reason: Why it was denied; the model is told.
        rerun: For a call whose outcome is unknown: run it again.
    """

    call_id: str
    content: Any = None
    is_error: bool = False
    error: dict[str, Any] | None = None
    approved: bool | None = None
    reason: str | None = None
    rerun: bool = False


class ToolResults(Wire):
    """Input of ``tool_results``, as signal and as update.

    Attributes:
        rest: What happens to pending calls that are not named: ``fail`` answers them with
            ``EXTERNAL_TOOL_NOT_RUN`` and continues, ``wait`` keeps collecting.
        user_id: Who answers; checked against the session's user when given.
        turn: The paused turn; needed only when a call id is not unique.
    """

    results: list[HostResult]
    rest: Literal["fail", "wait"] = "fail"
    user_id: str | None = None
    turn: str | None = None


class ToolResultsAck(Told):
    """Answer of the update ``tool_results``.

    Attributes:
        turn: The turn that goes on, or still waits.
        accepted: Calls that this payload answered.
        duplicates: Calls that were answered before, with the same result.
        pending: Calls that still wait.
        resumed: Whether the turn goes on now.
    """

    turn: str
    accepted: list[str] = Field(default_factory=list)
    duplicates: list[str] = Field(default_factory=list)
    pending: list[str] = Field(default_factory=list)
    resumed: bool = False


class StopTurn(Wire):
    """Input of ``stop_turn``; without a turn, everything that runs, waits or is queued stops."""

    turn: str | None = None
    reason: str | None = None


class StopAck(Told):
    """Which turns the stop reached."""

    stopped: list[str] = Field(default_factory=list)


class Settled(Told):
    """Answer of ``settle``.

    Attributes:
        done: Every done turn is closed and remembered; otherwise ask again.
    """

    done: bool


class HeldMemory(Told):
    """A memory that working memory holds ready.

    Attributes:
        trace: Its id; the words are in the store.
        activation: In [0, 1].
        rehearsals: How often it was recalled while it was held.
    """

    trace: str
    activation: float
    rehearsals: int = 0


class WorkingMemoryView(Told):
    """Answer of ``working_memory``.

    Attributes:
        values: By key; what the persona was given to start with, and what it noted since.
        slots: Memories held ready, in the order in which they came.
    """

    values: dict[str, Any] = Field(default_factory=dict)
    slots: list[HeldMemory] = Field(default_factory=list)


class ReplaceHistory(Wire):
    """Input of ``replace_history``.

    Attributes:
        messages: The whole history from now on; an empty list is authoritative.
        forget: Drop what was recorded about turns that the new history no longer holds.
    """

    messages: list[Message]
    forget: bool = True


class RefreshPersona(Wire):
    """Input of ``refresh_persona``; without an id the current persona is loaded again."""

    persona: str | None = Field(default=None, min_length=1)


class PersonaAck(Told):
    """The persona that the session runs now."""

    persona: str
    digest: str
    warnings: list[str] = Field(default_factory=list)


class CloseSession(Wire):
    """Input of ``close``; the reason is kept in the trace of what it stops."""

    reason: str | None = None


class TurnCard(Told):
    """A turn as the session's hot state knows it; the rest is in the store."""

    turn: str
    seq: int
    request_id: str
    kind: TurnKind
    status: TurnStatus
    parent: str | None
    branch: str
    depth: int
    created_at: datetime
    ended_at: datetime | None = None
    messages: int = 0
    steps: int = 0
    usage: Usage = Usage()
    preview: str = ""


class PendingCall(Told):
    """A call that waits for the host."""

    turn: str
    call: ToolCallView
    since: datetime
    expires_at: datetime | None = None


class PendingView(Told):
    """Answer of the query ``list_pending``.

    Attributes:
        warnings: Payloads that came by signal and could not be used, newest last.
    """

    calls: list[PendingCall] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)


class TurnView(Told):
    """Answer of the query ``get_turn``; ``card`` is ``None`` for a turn that only the store has."""

    card: TurnCard | None = None
    output: TurnOutput | None = None
    position: int | None = None


class TurnList(Told):
    """Answer of the query ``list_turns``: the newest turns, oldest first."""

    turns: list[TurnCard] = Field(default_factory=list)
    queued: list[str] = Field(default_factory=list)


GMIState = Literal[
    "initializing", "ready", "processing", "awaiting_tool_result", "shutting_down", "shutdown"
]


class StateView(Told):
    """Answer of the query ``get_state``."""

    session_id: str
    session_key: str | None
    gmi_id: str | None
    user_id: str
    persona: str | None
    persona_digest: str | None
    status: GMIState
    active_turn: str | None
    active_step: int | None
    queued: int
    pending: list[PendingCall]
    head: str | None
    turns: int
    usage: Usage
    write_counter: int
    stream_offset: int
    created_at: datetime
    run: int
    state_bytes: int
    trace_limit: int = 500


class UsageView(Told):
    """Answer of the query ``usage``: the session's totals."""

    usage: Usage = Usage()
    turns: int = 0
    by_model: dict[str, Usage] = Field(default_factory=dict)
