"""The session's state: what its loop and its queries need, and nothing that can be read elsewhere.

The same record serves a running turn, a pause and continue-as-new. :meth:`SessionState.trim`
keeps every part within its bound, so the whole stays under 256 KB however old the session is.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from temporalio.contrib.workflow_streams import WorkflowStreamState

from ..personas.emotion import Interlocutor
from ..personas.learning import Binding, TurnLearning
from ..personas.messages import Message, Part, Usage
from ..personas.metaprompts.answers import MindPatch
from ..personas.metaprompts.triggers import DueKind
from ..personas.metaprompts.variables import MindView
from ..personas.mind import Mind
from ..personas.options import CompletionOptions
from ..personas.prospective import Intention
from .mind_calls import Perceive, Perception
from .session_records import SessionConfig, SessionRules, Unremembered
from .steps import MindBrief, PlannedCall, StoredMessage, ToolPatch
from .trace import TraceEntry
from .turns import HopSpec, PauseReason, ToolCallView, TurnCard, TurnKind, TurnOutput

WORKFLOW_PREFIX = "gmi-session-"
"""A session's workflow has this and the session's id as its id."""

MAX_QUEUE = 32
MAX_CARDS = 48
MAX_REQUESTS = 128
MAX_OUTPUTS = 4
MAX_MODELS = 32
MAX_FEEDBACK = 32
MAX_OUTPUT_BYTES = 24 * 1024
MAX_TRACE_TAIL = 40
MAX_ANSWERED = 64
MAX_SIGNAL_WARNINGS = 8


class Carried(BaseModel):
    """Base of the mutable records that are carried through continue-as-new."""

    model_config = ConfigDict(extra="ignore")


class TurnInput(Carried):
    """A turn as it was asked for; large content stands in the store under its digest."""

    content: str | list[Part] | None = None
    content_ref: str | None = None
    history_ref: str | None = None
    history: list[Message] | None = None
    sender: str | None = None
    suffix: str | None = None
    options: CompletionOptions | None = None
    model: str | None = None
    fallback: list[HopSpec] | None = None
    stream: bool = True
    max_tool_iterations: int | None = None
    interlocutor: Interlocutor | None = None
    event: Perceive | None = None
    ceiling: int | None = None
    user_context: dict[str, Any] | None = None
    task_context: dict[str, Any] | None = None


class ToolResult(Carried):
    """The answer to one call, as it enters the history.

    Attributes:
        patch: What the call changes in the mind.
    """

    call_id: str
    name: str
    content: str | None = None
    content_ref: str | None = None
    is_error: bool = False
    error: dict[str, Any] | None = None
    patch: ToolPatch | None = None


class Pause(Carried):
    """What a turn waits for.

    Attributes:
        reasons: Call id to why the host is asked.
        since: When the pause began.
        expires_at: When it answers itself, or ``None``.
    """

    reasons: dict[str, PauseReason]
    since: datetime
    expires_at: datetime | None = None


class Offered(Carried):
    """An intention that a turn could be reminded of, as it stood when the turn began."""

    id: str
    created_at: datetime
    noticed: int = 0


class TakenFeedback(Carried):
    """A feedback that was taken, so that a repeat is known; ``None`` while it is remembered."""

    digest: str
    turn: str | None = None
    memories: list[str] | None = None


class TurnRecord(Carried):
    """One turn on its way: queued, running, paused or ending.

    Attributes:
        phase: ``model`` before a step, ``tools`` with open calls, ``paused`` with the host.
        layout: Messages written by each finished step.
        new: Messages that the next step takes along.
        calls: Calls of the round that is open.
        results: Answers of that round, by call id.
        approved: Calls of the round that the host allowed.
        texts: Text of the finished steps, joined; ``None`` once it is over the limit.
        overtakes: It was sent over a pause, and waits for no later pause of the turns before it.
        remembers: Its opening brought memories to mind, which each of its steps shows.
        reminded: Intentions that its prompt shows.
        offered: The intentions that it could be reminded of, as they stood then.
        persona: The persona that it began with; empty before that.
        keeps: Whether that one had a memory; ``None`` before it began.
        brief: What its prompts are told of the mind.
        learning: What learning prepared for the turn.
        perception: What the event left, for a turn that was one.
        made: All calls of the turn as its output shows them, without large arguments.
        iterations: Tool rounds done.
    """

    turn: str
    seq: int
    request_id: str
    digest: str
    kind: TurnKind = "text"
    input: TurnInput
    ready: bool = True
    created_at: datetime
    branch: str = "main"
    depth: int = 0
    parent: str | None = None
    reads: list[str] = Field(default_factory=list)
    phase: Literal["queued", "model", "tools", "paused"] = "queued"
    step: int = 0
    step_counter: int = 0
    opened: bool = False
    overtakes: bool = False
    remembers: bool = False
    brief: MindBrief | None = None
    learning: TurnLearning | None = None
    perception: Perception | None = None
    reminded: list[str] = Field(default_factory=list)
    offered: list[Offered] = Field(default_factory=list)
    persona: str = ""
    keeps: bool | None = None
    start_hop: int = 0
    layout: list[int] = Field(default_factory=list)
    new: list[StoredMessage] = Field(default_factory=list)
    calls: list[PlannedCall] = Field(default_factory=list)
    results: dict[str, ToolResult] = Field(default_factory=dict)
    approved: list[str] = Field(default_factory=list)
    pause: Pause | None = None
    texts: str | None = ""
    made: list[ToolCallView] = Field(default_factory=list)
    iterations: int = 0
    limit_reached: bool = False
    usage: Usage = Usage()
    finish_reason: str | None = None
    provider: str | None = None
    model: str | None = None
    warnings: list[str] = Field(default_factory=list)
    persona_digest: str = ""
    toolset_digest: str = ""

    @property
    def messages(self) -> int:
        """Messages that finished steps wrote."""
        return sum(self.layout)

    @property
    def preview(self) -> str:
        """The first 100 characters of the turn's input."""
        content = self.input.content
        if content is None:
            return "(large input)"
        text = content if isinstance(content, str) else Message(role="user", content=content).text
        return text[:100]

    def open_calls(self) -> list[PlannedCall]:
        """Calls of the open round that have no answer yet, in call order."""
        return [call for call in self.calls if call.id not in self.results]


class RequestMemo(Carried):
    """A request that was accepted: short hashes, since this is the largest part of the state."""

    turn: str
    digest: str


class Answered(Carried):
    """A host's answer that was taken: what it was, so that a repeat is known, and whose it was."""

    digest: str
    turn: str


class PendingMetaprompt(Carried):
    """A metaprompt that has to run, or runs.

    Attributes:
        turn: The turn that made it due.
        kind: What made it due.
        seq: That turn's sequence; an answer to an event is stale once a newer one was counted.
        since: When it was queued.
    """

    id: str
    turn: str
    branch: str = "main"
    depth: int = 0
    kind: DueKind = "interval"
    seq: int = 0
    persona_digest: str
    view: MindView = MindView()
    since: datetime


class PendingPatch(Carried):
    """What a metaprompt wants to change, until the running turn has ended."""

    turn: str
    cause: str
    patch: MindPatch


class AppliedOverlays(Carried):
    """The overlay rules that the newest turn began with, and the mood that they set."""

    rules: list[str] = Field(default_factory=list)
    mood: str | None = None


class SessionState(Carried):
    """Everything that a session carries from run to run.

    Attributes:
        intentions: What is to be remembered later, the oldest first.
        intention_digests: What each of them says, and what the last ones said that are over.
        intentions_kept: Digest of the two as the store has them; empty while it has none.
        moved: The host has moved the mind of a persona that would not change it by itself, so
            that each turn keeps it.
    """

    session: str
    created_at: datetime
    config: SessionConfig
    rules: SessionRules
    persona_digest: str
    toolset_digest: str
    run: int = 1
    counter: int = 0
    seq: int = 0
    trace_seq: int = 0
    head: str | None = None
    depth: int = 0
    branch: str = "main"
    active: TurnRecord | None = None
    paused: list[TurnRecord] = Field(default_factory=list)
    queue: list[TurnRecord] = Field(default_factory=list)
    cards: list[TurnCard] = Field(default_factory=list)
    requests: list[RequestMemo] = Field(default_factory=list)
    outputs: list[TurnOutput] = Field(default_factory=list)
    answered: dict[str, Answered] = Field(default_factory=dict)
    partials: list[str] = Field(default_factory=list)
    trace: list[TraceEntry] = Field(default_factory=list)
    trace_flushed: int = 0
    usage: Usage = Usage()
    usage_by_model: dict[str, Usage] = Field(default_factory=dict)
    turns: int = 0
    signal_warnings: list[str] = Field(default_factory=list)
    mind: Mind = Mind()
    mind_kept: str = ""
    moved: bool = False
    overlays: AppliedOverlays = AppliedOverlays()
    learner: Binding | None = None
    metaprompts: list[PendingMetaprompt] = Field(default_factory=list)
    patches: list[PendingPatch] = Field(default_factory=list)
    unencoded: list[Unremembered] = Field(default_factory=list)
    intentions: list[Intention] = Field(default_factory=list)
    intention_digests: dict[str, str] = Field(default_factory=dict)
    intentions_kept: str = ""
    feedback: dict[str, TakenFeedback] = Field(default_factory=dict)

    def next_counter(self) -> int:
        """The next write counter."""
        self.counter += 1
        return self.counter

    def bill(self, usage: Usage, model: str | None) -> None:
        """Count what was billed, by ``provider:model`` where one is known."""
        self.usage = self.usage + usage
        if model is None:
            if usage == Usage():
                return
            model = "others"
        count_usage(self.usage_by_model, model, usage)

    def card(self, turn: str) -> TurnCard | None:
        """The card of a recent turn."""
        return next((card for card in reversed(self.cards) if card.turn == turn), None)

    def output(self, turn: str) -> TurnOutput | None:
        """The output of one of the last turns, or of a paused one."""
        return next((out for out in reversed(self.outputs) if out.turn == turn), None)

    def record(self, turn: str) -> TurnRecord | None:
        """The record of a turn that has not ended."""
        live = [*([self.active] if self.active else []), *self.paused, *self.queue]
        return next((record for record in live if record.turn == turn), None)

    def put_card(self, card: TurnCard) -> None:
        """Add a card, or replace the turn's."""
        self.cards = [known for known in self.cards if known.turn != card.turn]
        self.cards.append(card)
        self.cards.sort(key=lambda known: known.seq)

    def put_output(self, output: TurnOutput) -> None:
        """Keep an output as the newest."""
        self.outputs = [known for known in self.outputs if known.turn != output.turn]
        self.outputs.append(output)

    def take_feedback(self, request_id: str, taken: TakenFeedback) -> None:
        """Keep what a feedback left, for repeats of it; the oldest ones are forgotten."""
        self.feedback[request_id] = taken
        while len(self.feedback) > MAX_FEEDBACK:
            self.feedback.pop(next(iter(self.feedback)))

    def forget_words(self, turns: Collection[str]) -> None:
        """Hold no word of these turns in the mind, nor in what is to change it."""
        if not turns:
            return
        self.mind = self.mind.without_words_of(turns)
        self.metaprompts = [item for item in self.metaprompts if item.turn not in turns]
        self.patches = [item for item in self.patches if item.turn not in turns]

    def trim(self) -> None:
        """Bring every part within its bound; what falls out is in the store."""
        del self.requests[:-MAX_REQUESTS]
        live = {record.turn for record in (*self.paused, *self.queue)}
        if self.active is not None:
            live.add(self.active.turn)
        spare = len(self.cards) - MAX_CARDS
        kept: list[TurnCard] = []
        for card in self.cards:
            if spare > 0 and card.turn not in live:
                spare -= 1
                continue
            kept.append(card)
        self.cards = kept
        waiting = [out for out in self.outputs if out.turn in live]
        ended = [out for out in self.outputs if out.turn not in live][-MAX_OUTPUTS:]
        while ended and sum(len(out.model_dump_json()) for out in ended) > MAX_OUTPUT_BYTES:
            ended.pop(0)
        self.outputs = [*ended, *waiting]
        while len(self.answered) > MAX_ANSWERED:
            self.answered.pop(next(iter(self.answered)))
        del self.signal_warnings[:-MAX_SIGNAL_WARNINGS]
        flushed = [entry for entry in self.trace if entry.seq <= self.trace_flushed]
        fresh = [entry for entry in self.trace if entry.seq > self.trace_flushed]
        room = max(0, MAX_TRACE_TAIL - len(fresh))
        self.trace = [*(flushed[-room:] if room else []), *fresh]


class SessionStart(BaseModel):
    """Input of the workflow ``GMISession``.

    Attributes:
        expect_key: The session that the caller believes is open; see :class:`OpenSession`.
        search_attributes: Whether the namespace has the project's search attributes.
        state: Carried from the run before.
        stream: The chunk stream carried from the run before.
        stream_marks: Offsets in it at which the newest turns begin.
    """

    session_id: str
    user_id: str
    org: str = ""
    persona: str | None = None
    expect_key: str | None = None
    config: SessionConfig = SessionConfig()
    search_attributes: bool = False
    state: SessionState | None = None
    stream: WorkflowStreamState | None = None
    stream_marks: list[int] = Field(default_factory=list)


def count_usage(by_model: dict[str, Usage], model: str, usage: Usage) -> None:
    """Count what a model billed; models past the first 32 are counted together as ``others``."""
    if model not in by_model and len(by_model) >= MAX_MODELS:
        model = "others"
    by_model[model] = by_model.get(model, Usage()) + usage
