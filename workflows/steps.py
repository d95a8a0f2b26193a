"""What crosses the ports for one model step and its tool calls."""

from __future__ import annotations

from datetime import datetime
from math import isfinite
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator

from ..personas.emotion import Interlocutor
from ..personas.learning import Binding, TurnLearning
from ..personas.messages import Message, Usage, Wire
from ..personas.mind import Slot
from ..personas.options import CompletionOptions
from ..personas.sentiment import Sentiment
from ..personas.traits import HEXACO
from .trace import TraceEntry
from .turns import ErrorInfo, HopSpec, ToolCallView, TurnKind, TurnOutput

INLINE_TEXT_BYTES = 8 * 1024
"""A text over this size is kept in the store, and carried as a digest."""

RESULT_TEXT_BYTES = 16 * 1024
"""A step's text over this size is not part of its result."""

ROUND_BYTES = 32 * 1024
"""A round's calls together, and its results together, carry no more than this by value."""

SMALL_BYTES = 512
"""What is no larger than this is always carried by value: a digest would save nothing."""

TOOL_INLINE_BYTES = 256 * 1024
"""A tool's result up to this size crosses the boundary by value."""

MAX_RESULT_BYTES = 2_000_000
"""A tool's result over this size is a typed error result."""


class PortModel(Wire):
    """Base of what crosses a port: fields that a newer release added are passed over.

    Workers of two releases serve one session during a deploy, and old results are replayed.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class At(PortModel):
    """Where in a session's life a write belongs.

    Attributes:
        session: The session key.
        turn: The turn, or ``""`` for what belongs to none.
        counter: The session's write counter; with the attempt it orders writes to one row.
        now: The workflow's clock.
        run: The workflow run that asks.
        reset: That run began by a reset to an earlier point, so it starts a newer epoch.
    """

    session: str
    turn: str = ""
    counter: int
    now: datetime
    run: str
    reset: bool = False


class Segment(PortModel):
    """A stretch of a path: the done turns of ``branch`` up to ``depth``."""

    branch: str
    depth: int


class StoredMessage(PortModel):
    """A message, or a message whose content is kept in the store under a digest."""

    message: Message
    content_ref: str | None = None


class Feeling(PortModel):
    """What a mind feels: valence, arousal and dominance in [-1, 1], and the mood's word."""

    valence: float = 0.0
    arousal: float = 0.0
    dominance: float = 0.0
    mood: str = "neutral"


class MindBrief(PortModel):
    """What a prompt is told of the mind.

    Attributes:
        mood: The mood's word.
        preferences: The user's, as the prompt knows them.
        traits: Traits that the host has set, over the persona's.
        feeling: What is felt, in words; ``None`` for a persona whose feelings never change.
        happened: What happened since the last message, the newest last.
        source: Who the newest of it came from.
    """

    mood: str = "neutral"
    skill_level: str = "novice"
    complexity: str = "moderate"
    domain: str = "general"
    preferences: dict[str, Any] = Field(default_factory=dict)
    traits: dict[str, float] = Field(default_factory=dict)
    feeling: str | None = None
    happened: list[str] = Field(default_factory=list)
    source: Interlocutor | None = None


class Reminder(PortModel):
    """Something that the persona meant to do, or to think of when its cue comes up.

    Attributes:
        cue: The words that bring it to mind; ``None`` when it is due already.
    """

    id: str
    content: str
    cue: str | None = None
    importance: float = 0.5


class RecallOrder(PortModel):
    """What a turn's opening shall bring to mind.

    Attributes:
        org: Organization of the session, or ``""``.
        feeling: What the mind feels.
        slots: What its working memory holds.
        reminders: What is due, and what waits for a cue.
    """

    org: str = ""
    feeling: Feeling = Feeling()
    slots: list[Slot] = Field(default_factory=list)
    reminders: list[Reminder] = Field(default_factory=list)


class LearnOrder(PortModel):
    """What learning has to know to prepare a turn.

    Attributes:
        org: Organization of the session, or ``""``.
        binding: What the session was bound to by the turn before; ``None`` at its first.
        overrides: Traits that the host set in this session, over the persona's.
        seat: A workflow speaks instead of a user.
    """

    org: str = ""
    binding: Binding | None = None
    overrides: dict[str, float] = Field(default_factory=dict)
    seat: bool = False


class MindFacts(PortModel):
    """What a tool is told that changes the mind of the session that calls it.

    Attributes:
        session: The session's key.
        now: The workflow's clock.
        at: Where the call belongs.
        traits: The traits as they are in force when the round begins, under canonical names.
        model: ``provider:model`` that the session has instead of the persona's.
        fallback: The same for its fallback chain.
        credentials: Provider to ``env:NAME``, as the session has them.
    """

    session: str
    now: datetime
    at: At | None = None
    org: str = ""
    persona_digest: str
    toolset_digest: str
    traits: dict[str, float] = Field(default_factory=dict)
    model: str | None = None
    fallback: list[HopSpec] | None = None
    credentials: dict[str, str] = Field(default_factory=dict)


class Opened(PortModel):
    """What a turn's opening brought to mind.

    Attributes:
        recalled: Ids of the memories that the prompt shows, the best first.
        feelings: How many memories almost came up.
        involuntary: A memory that came up by itself.
        slots: What working memory holds now.
        reminded: Reminders that the prompt shows.
        seconds: How long the recall took.
    """

    recalled: list[str] = Field(default_factory=list)
    feelings: int = 0
    involuntary: str | None = None
    slots: list[Slot] = Field(default_factory=list)
    reminded: list[str] = Field(default_factory=list)
    seconds: float = 0.0
    warnings: list[str] = Field(default_factory=list)


class OpenTurn(PortModel):
    """A turn as it is recorded before the model is asked.

    Attributes:
        recall: What to bring to mind; ``None`` when nothing is remembered here.
        score: Whether the user's words are to be scored.
        learn: What learning has to know; ``None`` when the persona neither learns nor changes.
    """

    seq: int
    request_id: str
    digest: str
    kind: TurnKind
    parent: str | None
    segment: Segment
    sender: str | None = None
    options: CompletionOptions | None = None
    reads: list[str] = Field(default_factory=list)
    persona_digest: str = ""
    toolset_digest: str = ""
    created_at: datetime
    recall: RecallOrder | None = None
    score: bool = False
    learn: LearnOrder | None = None


class TurnDraft(PortModel):
    """What a turn has come to before a step; see :mod:`.drafts`."""

    request_id: str
    text: str = ""
    tool_calls: list[ToolCallView] = Field(default_factory=list)
    usage: Usage = Usage()
    warnings: list[str] = Field(default_factory=list)
    limit_reached: bool = False
    steps: int = 0


class RunStep(PortModel):
    """Input of ``gmi.model.run_step``: where the turn stands, and what is new since the last step.

    Attributes:
        opening: Set on the turn's first step.
        path: The branch path whose done turns the model is shown.
        parent: The turn directly before this one; shown whatever its row's status says.
        partials: Stopped or failed turns directly before this one, shown with their steps.
        expect_messages: Messages of this turn that earlier steps wrote.
        new: Messages since the last step: the input, or the results of a tool round.
        history_ref: A history given by the caller, to be used instead of the session's.
        with_tools: Whether tools are offered.
        start_hop: Hop that served the turn's last step.
        trace: Trace entries since the last write.
        draft: The turn so far; a step that turns out to be the last then ends the turn itself.
        remembers: The turn was opened with something to bring to mind: it is shown in each step.
        mind: What the prompt is told of the mind; the same in each step of a turn.
        interlocutor: Who speaks with the persona.
        learning: What learning prepared at the turn's opening, for its later steps.
    """

    at: At
    step: int
    opening: OpenTurn | None = None
    path: list[Segment] = Field(default_factory=list)
    parent: str | None = None
    partials: list[str] = Field(default_factory=list)
    expect_messages: int = 0
    new: list[StoredMessage] = Field(default_factory=list)
    history_ref: str | None = None
    persona_digest: str
    toolset_digest: str
    session_id: str = ""
    user_id: str
    model: str | None = None
    fallback: list[HopSpec] | None = None
    options: CompletionOptions | None = None
    max_messages: int | None = None
    suffix: str | None = None
    with_tools: bool = True
    start_hop: int = 0
    max_wait: float = 3600
    credentials: dict[str, str] = Field(default_factory=dict)
    stream: bool = True
    trace: list[TraceEntry] = Field(default_factory=list)
    draft: TurnDraft | None = None
    remembers: bool = False
    mind: MindBrief | None = None
    interlocutor: Interlocutor | None = None
    learning: TurnLearning | None = None


Effect = Literal["read", "idempotent", "once"]


class Route(PortModel):
    """How a planned tool call is carried out.

    Attributes:
        activity: Activity type; the tool's name.
        task_queue: Queue of the workers that serve it; ``None`` for the session's own.
        effect: ``read`` and ``idempotent`` calls are retried, ``once`` calls never.
        timeout: Seconds that one attempt may take.
        heartbeat: Seconds between heartbeats before an attempt counts as lost; ``None`` for
            tools that do not heartbeat.
        schedule_timeout: Seconds that a call waits for a worker to take it; ``None`` for ever.
        max_attempts: Attempts of a ``read`` or ``idempotent`` call.
        external: The host runs it.
        approval: The host must allow it first.
        reads_mind: The tool is told of the mind whose call it is.
    """

    activity: str
    task_queue: str | None = None
    effect: Effect = "once"
    timeout: float = 30
    heartbeat: float | None = 15
    schedule_timeout: float | None = None
    max_attempts: int = 3
    external: bool = False
    approval: bool = False
    reads_mind: bool = False


class PlannedCall(PortModel):
    """A tool call with the way to carry it out.

    Attributes:
        route: ``None`` when the call cannot run; ``problem`` says why and is the model's answer.
        arguments_ref: The arguments are large and kept in the store.
    """

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    arguments_ref: str | None = None
    route: Route | None = None
    problem: ErrorInfo | None = None


class HopFailure(PortModel):
    """A hop that could not start or failed before any output, and the attempt that saw it."""

    hop: int
    attempt: int = 0
    provider: str
    model: str
    error: ErrorInfo
    usage: Usage | None = None


class OmittedHistory(PortModel):
    """How much of the history a prompt does not show, and why."""

    messages: int = 0
    tokens: int = 0
    reason: str = ""


class StepResult(PortModel):
    """Result of ``gmi.model.run_step``.

    Attributes:
        existing: The turn was made before the session's memory of requests reaches; its output.
        text: The step's text, or ``None`` when it is over 16 KB and only stored.
        written: Messages that this step wrote, its new ones and the reply.
        chunks: Chunk items that the serving attempt sent.
        attempt: The activity attempt that served.
        closed: The reply is the turn's answer, and the turn's end is recorded.
        opened: What the turn's opening brought to mind, of its first step.
        sentiment: How the user's words felt, where the opening asked for it.
        learning: What learning prepared for the turn, of its first step; ``None`` for a persona
            that neither learns nor changes itself.
    """

    existing: TurnOutput | None = None
    text: str | None = ""
    calls: list[PlannedCall] = Field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage = Usage()
    failures: list[HopFailure] = Field(default_factory=list)
    hop: int = 0
    provider: str = ""
    model: str = ""
    response_model: str | None = None
    message_id: str | None = None
    service_tier: str | None = None
    written: int = 0
    chunks: int = 0
    attempt: int = 1
    closed: bool = False
    opened: Opened | None = None
    sentiment: Sentiment | None = None
    learning: TurnLearning | None = None
    prompt_messages: int = 0
    prompt_tokens: int = 0
    left_out: OmittedHistory | None = None
    warnings: list[str] = Field(default_factory=list)


class StepFailure(PortModel):
    """Second detail of the error with which ``run_step`` gives up.

    Attributes:
        failures: The hops that failed before.
        warnings: What the step warned of before it failed.
        beside: What was billed for questions beside the step's own call.
    """

    failures: list[HopFailure] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    beside: Usage = Usage()


class ToolCallInput(PortModel):
    """Input of every tool activity.

    Attributes:
        arguments: The parsed arguments.
        call_id: The model's id of the call.
        key: The same for every attempt of this call: an idempotency key.
        learning: The turn's learner and mode, where there is a learning layer.
        mind: For a tool whose route asks for it.
    """

    arguments: dict[str, Any] = Field(default_factory=dict)
    arguments_ref: str | None = None
    call_id: str
    key: str
    session_id: str
    user_id: str
    turn: str
    step: int
    learning: TurnLearning | None = None
    mind: MindFacts | None = None


class ToolPatch(PortModel):
    """What a tool that reads the mind changes in it.

    Attributes:
        traits: What each HEXACO trait gains.
        params: How the persona answers from now on.
        usage: What the tool was billed.
        remember: Something to remember.
    """

    traits: dict[str, float] = Field(default_factory=dict, max_length=6)
    params: dict[Literal["temperature", "verbosity"], float | str | None] = Field(
        default_factory=dict
    )
    usage: Usage | None = None
    remember: str | None = Field(default=None, max_length=4000)

    @field_validator("traits")
    @classmethod
    def _known_and_small(cls, value: dict[str, float]) -> dict[str, float]:
        for trait, delta in value.items():
            if trait not in HEXACO or not -1 <= delta <= 1:
                raise ValueError(f"{trait[:40]!r}: {delta} is no change of a trait in [-1, 1]")
        return value

    @field_validator("params")
    @classmethod
    def _short(cls, value: dict[str, float | str | None]) -> dict[str, float | str | None]:
        for name, setting in value.items():
            if isinstance(setting, str) and len(setting) > 100:
                raise ValueError(f"{name!r} has {len(setting)} characters; use at most 100")
            if isinstance(setting, float) and not isfinite(setting):
                raise ValueError(f"{name!r} is {setting}; give a finite number")
        return value


class ToolOutcome(PortModel):
    """A tool's result as our own runner returns it; other workers may return any JSON value.

    Attributes:
        gmi_tool_outcome: Tells this object from a tool's own JSON.
        ref: The value is large and kept in the store.
        attempt: The attempt that gave it, from 1; ``None`` where nobody said.
        patch: What changes in the mind of the session; only its workflow applies it.
    """

    gmi_tool_outcome: Literal[1] = 1
    value: Any = None
    ref: str | None = None
    is_error: bool = False
    error: ErrorInfo | None = None
    attempt: int | None = None
    patch: dict[str, Any] | None = None
