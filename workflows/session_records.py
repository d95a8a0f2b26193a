"""What crosses the ports when a session opens, changes its persona, and rests."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from ..personas.emotion import Traits
from ..personas.messages import Usage, Wire
from ..personas.metaprompts.triggers import TriggerRule
from ..personas.mind import Mind, TaskContext, UserContext
from ..personas.mood import MoodSettings
from ..personas.options import CompletionOptions
from ..personas.sentiment import SentimentSettings
from .steps import At, Feeling, PortModel
from .trace import TraceEntry
from .turns import HopSpec
from .writes import KeptIntentions


class SessionConfig(Wire):
    """Settings of a session, fixed when it opens.

    Attributes:
        model: ``provider:model`` over the persona's.
        fallback: Fallback chain over the persona's; an empty list turns fallback off.
        options: Completion options over the persona's.
        tools: Names of the tools to offer; ``None`` offers what the persona names, or every
            registered tool when the persona names none.
        max_tool_iterations: Tool rounds of a turn before it must answer without tools.
        max_messages: History window in messages, over the persona's.
        show_partial: Show the next turn the finished steps of a stopped or failed turn that
            lies directly before it.
        tool_failure_mode: ``fail_open`` gives a tool's error to the model, ``fail_closed``
            fails the turn with ``TOOL_ERROR``.
        on_lost: What happens when a tool that may run only once was lost: the model is told,
            or the turn pauses and asks the host.
        pause_timeout: Seconds after which a pause answers itself with
            ``EXTERNAL_TOOL_NOT_RUN``; ``None`` waits for ever.
        idle_timeout: Seconds without work after which the workflow completes; the next call
            starts it again where it was. ``None`` never.
        max_wait: Longest ``Retry-After`` that a step waits for, in seconds.
        credentials: Provider to ``env:NAME``: which of the worker's variables holds the key.
        overlays: Overlay rules; those that fit are applied anew to each turn.
        roll_events: History events after which the session continues as new.
    """

    model: str | None = None
    fallback: list[HopSpec] | None = None
    options: CompletionOptions | None = None
    tools: list[str] | None = None
    max_tool_iterations: int = Field(default=5, ge=0, le=100)
    max_messages: int | None = Field(default=None, ge=1)
    show_partial: bool = True
    tool_failure_mode: Literal["fail_open", "fail_closed"] = "fail_open"
    on_lost: Literal["tell_model", "pause"] = "tell_model"
    pause_timeout: float | None = Field(default=None, gt=0)
    idle_timeout: float | None = Field(default=None, gt=0)
    max_wait: float = Field(default=3600, ge=0)
    credentials: dict[str, str] = Field(default_factory=dict)
    overlays: list[dict[str, Any]] = Field(default_factory=list)
    roll_events: int = Field(default=2000, ge=1)


class OpenSession(PortModel):
    """Input of ``gmi.store.open_session``.

    Attributes:
        expect_key: The session that the caller believes is open; another one is refused.
        new_key: The key that a new session would get.
    """

    session_id: str
    new_key: str
    expect_key: str | None = None
    user_id: str
    org: str = ""
    persona: str | None = None
    config: SessionConfig = SessionConfig()
    now: datetime
    run: str


class MindRules(PortModel):
    """What the workflow needs to keep the mind of a persona.

    Attributes:
        mood: How its mood moves.
        sentiment: How it follows the user's words.
        triggers: When its metaprompts fire, in their order.
        reflects: It has a self-reflection that can be asked for.
        emotion: The character that feels; ``None`` for a persona without emotions.
        appraises: A model is asked what an event means that says nothing of it.
        user: What it holds of the user at the start.
        task: What it holds of the task at the start.
    """

    mood: MoodSettings = MoodSettings()
    sentiment: SentimentSettings = SentimentSettings()
    triggers: tuple[TriggerRule, ...] = ()
    reflects: bool = False
    emotion: Traits | None = None
    appraises: bool = False
    user: UserContext = UserContext()
    task: TaskContext = TaskContext()


class SessionRules(PortModel):
    """What the workflow itself needs of the frozen persona.

    Attributes:
        memory: Whether something is remembered beyond the conversation.
        negotiates: Whether the persona wants a say when a memory is to be deleted.
        mind: How the persona's mind works.
        traits: The persona's own HEXACO traits.
        imprints: What a new session's working memory holds, by key.
    """

    persona: str
    persona_name: str
    memory: bool = False
    mind: MindRules = MindRules()
    traits: dict[str, float] = Field(default_factory=dict)
    negotiates: bool = False
    imprints: dict[str, Any] = Field(default_factory=dict)
    trace_max_entries: int = 500
    trace_max_message: int = 1000


class Frozen(PortModel):
    """A persona and a set of tools, as they were when the session resolved them."""

    persona_digest: str
    toolset_digest: str
    rules: SessionRules
    warnings: list[str] = Field(default_factory=list)


class Unremembered(PortModel):
    """A done turn that is not in long-term memory yet, and what the mind felt at its end."""

    turn: str
    persona_digest: str
    feeling: Feeling = Feeling()


class OpenedSession(PortModel):
    """Result of ``gmi.store.open_session``.

    Attributes:
        session: The session key.
        created_at: When the session was opened first.
        state: The record that an idle session left behind, or ``None``.
        counter: The highest write counter that the store has seen.
        seq: The highest turn sequence.
        trace_seq: The highest trace sequence.
        head: The newest done turn when no record was left behind.
        head_branch: Its branch.
        head_depth: Its depth.
        mind: The mind that the session had when no record was left behind; ``None`` where it
            kept none.
        unremembered: Done turns that are not remembered yet, the oldest first.
        intentions: What the session means to do later, when no record was left behind.
        usage: What was billed so far, when no record was left behind.
        usage_by_model: The same by ``provider:model``, of 32 models and ``others`` at most.
        turns: How many turns have ended, when no record was left behind.
    """

    session: str
    created_at: datetime
    frozen: Frozen
    state: dict[str, Any] | None = None
    config: SessionConfig = SessionConfig()
    counter: int = 0
    seq: int = 0
    trace_seq: int = 0
    head: str | None = None
    head_branch: str = "main"
    head_depth: int = 0
    mind: Mind | None = None
    unremembered: list[Unremembered] = Field(default_factory=list)
    intentions: KeptIntentions = KeptIntentions()
    usage: Usage = Usage()
    usage_by_model: dict[str, Usage] = Field(default_factory=dict)
    turns: int = 0


class RefreshInput(PortModel):
    """Input of ``gmi.store.refresh_persona``."""

    at: At
    persona: str
    config: SessionConfig


class SaveSession(PortModel):
    """Input of ``gmi.store.save_session``: the session is released or closed.

    Attributes:
        state: The record to go on from; ``None`` when it closes.
    """

    at: At
    closed: bool
    state: dict[str, Any] | None = None
    trace: list[TraceEntry] = Field(default_factory=list)
