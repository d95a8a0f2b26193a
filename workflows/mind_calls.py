"""Calls of the session's mind: what is perceived, felt, told and set."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, Field, model_validator

from ..personas.affect import Vad
from ..personas.emotion import AppraisalVector, Interlocutor, Relationship, Stimulus
from ..personas.messages import Told, Wire

WORDS_FORGOTTEN = "words_forgotten"

MAX_EVENT_TEXT = 4000
MAX_EPISODES = 8
MAX_EPISODE_TEXT = 1000


class Episode(Wire):
    """Something that the persona remembers.

    Attributes:
        content: What happened, in words.
        at: When.
    """

    content: str = Field(min_length=1, max_length=MAX_EPISODE_TEXT)
    at: AwareDatetime | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_words(cls, value: Any) -> Any:
        """An episode may be given by its words alone."""
        return {"content": value} if isinstance(value, str) else value


class Perceive(Wire):
    """Input of ``perceive``: something that happens to the persona, beside the conversation.

    Attributes:
        message: What happens, in words.
        type: What kind of event it is.
        source: Who or what it comes from; ``user`` without.
        appraisal: What it means to the persona.
        stimulus: What acts on the persona's state itself.
        relationship: What the persona has with the source.
        prior_episodes: What the persona remembers that bears on it, for a model that is asked for
            the appraisal.
        payload: Anything that belongs to the event; kept with it.
        skip_memory: Not to be remembered, however much it moves the persona.
        request_id: Makes one event of however many sends.
    """

    message: str = Field(min_length=1, max_length=MAX_EVENT_TEXT)
    type: str = Field(default="event", min_length=1, max_length=100)
    source: Interlocutor = Interlocutor()
    appraisal: AppraisalVector | None = None
    stimulus: Stimulus | None = None
    relationship: Relationship | None = None
    prior_episodes: tuple[Episode, ...] = Field(default=(), max_length=MAX_EPISODES)
    payload: dict[str, Any] = Field(default_factory=dict)
    skip_memory: bool = False
    request_id: str | None = Field(default=None, max_length=200)
    user_id: str | None = None


class Perception(Told):
    """What an event left.

    Attributes:
        vad: What is felt now.
        label: The feeling's word.
        intensity: In [0, 1].
        dominant: The emotion that the event itself called up most.
        importance: How much the event is worth a memory, in [0, 1].
        remembered: Whether it became a memory.
    """

    vad: Vad
    label: str
    intensity: float
    dominant: str | None = None
    importance: float = 0.0
    remembered: bool = False


class SetTrait(Wire):
    """Input of ``set_trait``.

    Attributes:
        trait: A HEXACO trait.
        value: In [0, 1]; ``None`` goes back to the persona's own.
    """

    trait: str
    value: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


class TraitsView(Told):
    """Answer of ``set_trait``: the traits in force."""

    traits: dict[str, float] = Field(default_factory=dict)


class Feedback(Wire):
    """Input of ``record_feedback``.

    Attributes:
        sentiment: Whether the user was content.
        text: What the user said of it.
        correction: What would have been right; remembered as a fact.
        turn: The turn that is meant; the newest without.
        request_id: Makes one feedback of however many sends.
    """

    sentiment: Literal["positive", "negative", "neutral"] = "neutral"
    text: str | None = Field(default=None, max_length=2000)
    correction: str | None = Field(default=None, max_length=2000)
    turn: str | None = None
    request_id: str | None = Field(default=None, max_length=200)


class FeedbackAck(Told):
    """Answer of ``record_feedback``: the memories that it left."""

    turn: str | None
    memories: list[str] = Field(default_factory=list)


class WordsForgotten(Wire):
    """Input of the signal ``words_forgotten``, with which forgetting tells a session that runs.

    Attributes:
        session: The session's key.
        turns: The turns whose words its mind shall hold no longer.
    """

    session: str
    turns: list[str]


class Reflected(Told):
    """Answer of ``reflect``.

    Attributes:
        started: Whether the self-reflection runs now; ``settle`` waits for its end.
        skipped: Why it does not.
    """

    started: bool
    skipped: str | None = None


class MindShown(Told):
    """Answer of the query ``mind``.

    Attributes:
        mood: The mood's word.
        pad: Where the mood is.
        affect: What the mind feels.
        emotion: The feeling's word and intensity, the body's energy and the needs.
        sentiment: How the user's messages felt, and for how many turns.
        pending: Events that nothing has taken yet.
        running: Metaprompts that run or wait.
        traits: The traits in force.
    """

    mood: str
    pad: Vad
    affect: Vad
    since: datetime | None = None
    emotion: dict[str, Any] | None = None
    sentiment: dict[str, Any] = Field(default_factory=dict)
    pending: list[str] = Field(default_factory=list)
    running: list[str] = Field(default_factory=list)
    counters: dict[str, int] = Field(default_factory=dict)
    user: dict[str, Any] = Field(default_factory=dict)
    task: dict[str, Any] = Field(default_factory=dict)
    working: dict[str, Any] = Field(default_factory=dict)
    traits: dict[str, float] = Field(default_factory=dict)
