"""The mind of a session as one value: what it feels, what it holds ready, whom it talks to.

It is carried by the session, and kept with each turn that ended, so that a branch can go on with
the mind of the turn that it starts from. Nothing in it changes: a step makes a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from .affect import Vad
from .emotion import EmotionState, Interlocutor, felt
from .emotion.interlocutor import DEFAULT_NAME
from .metaprompts.fields import complexity_word
from .mood import MoodState
from .self_improvement import with_learned
from .sentiment import SentimentState, forgotten

MAX_WORKING_BYTES = 8 * 1024
"""Bytes of the notes in working memory; the oldest ones give way."""

MAX_HAPPENED = 3
HAPPENED_CHARS = 300


class MindModel(BaseModel):
    """Base of what a mind is made of: immutable; fields of a newer release are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Slot(MindModel):
    """A memory that the mind holds ready, by its id: its words stay in the store.

    Attributes:
        activation: In [0, 1].
        rehearsals: How often it was recalled while it was held.
    """

    trace: str
    activation: float
    rehearsals: int = 0


class Context(MindModel):
    """Base of what the mind is told of a conversation; what else a host says is kept beside it."""

    model_config = ConfigDict(frozen=True, extra="allow")


class UserContext(Context):
    """What the mind knows of the user.

    Attributes:
        skill_level: One of :data:`~.metaprompts.SKILL_LEVELS`.
        preferences: ``verbosity``, ``preferredFormat`` and what else the prompt knows.
    """

    skill_level: str = "novice"
    preferences: dict[str, Any] = Field(default_factory=dict)


class TaskContext(Context):
    """What the conversation is about.

    Attributes:
        complexity: One of :data:`~.metaprompts.COMPLEXITIES`, or what the persona starts with.
        status: Where it stands; ``completed`` is what overlays know as its end.
    """

    domain: str = "general"
    complexity: str = "moderate"
    status: str = "not_started"

    @field_validator("complexity")
    @classmethod
    def _known_word(cls, value: str) -> str:
        return complexity_word(value) or value


class Mind(MindModel):
    """What a session's mind is.

    Attributes:
        mood: The mood's word and its place; ``None`` before the session opened.
        emotion: The state of the emotion model; ``None`` where the persona has none.
        sentiment: How the user's messages felt, and for how many turns.
        events: Types of events that no metaprompt has taken yet, the oldest first.
        last_event: The type of the newest event, whoever took it.
        user: The user.
        task: The task.
        happened: What happened since the last message, in a line each, the newest last.
        source: Who the newest of it came from.
        working: Notes by key.
        noted_in: The turn that each note was made of; none for one that the persona began with.
        slots: Memories held ready, in the order in which they came.
        counters: User turns since each interval metaprompt ran.
        traits: Traits that the host has set, over the persona's.
        learned: What was learned of each trait, as a sum of small steps.
        params: What the mind has set of how it answers, such as ``verbosity``.
    """

    mood: MoodState | None = None
    emotion: EmotionState | None = None
    sentiment: SentimentState = SentimentState()
    events: tuple[str, ...] = ()
    last_event: str | None = None
    user: UserContext = UserContext()
    task: TaskContext = TaskContext()
    happened: tuple[str, ...] = ()
    source: Interlocutor | None = None
    working: dict[str, Any] = Field(default_factory=dict)
    noted_in: dict[str, str] = Field(default_factory=dict)
    slots: tuple[Slot, ...] = ()
    counters: dict[str, int] = Field(default_factory=dict)
    traits: dict[str, float] = Field(default_factory=dict)
    learned: dict[str, float] = Field(default_factory=dict)
    params: dict[str, Any] = Field(default_factory=dict)

    def but(self, **changes: Any) -> Self:
        """The mind with other parts."""
        return self.model_copy(update=changes)

    def noted(self, notes: dict[str, Any], turn: str | None = None) -> Self:
        """The mind with notes in working memory; a note that is ``None`` is forgotten.

        Args:
            notes: The notes.
            turn: The turn that they are made of.
        """
        working = {key: value for key, value in self.working.items() if key not in notes}
        working |= {key: value for key, value in notes.items() if value is not None}
        while working and _size(working) > MAX_WORKING_BYTES:
            working.pop(next(iter(working)))
        noted_in = {key: made for key, made in self.noted_in.items() if key not in notes}
        if turn is not None:
            noted_in |= dict.fromkeys(notes, turn)
        return self._with_notes(working, noted_in)

    def without_notes(self, keys: Collection[str]) -> Self:
        """The mind without some notes."""
        working = {key: value for key, value in self.working.items() if key not in keys}
        return self._with_notes(working, self.noted_in)

    def _with_notes(self, working: dict[str, Any], noted_in: dict[str, str]) -> Self:
        kept = {key: turn for key, turn in noted_in.items() if key in working}
        return self.but(working=working, noted_in=kept)

    def told_of(self, message: str, source: Interlocutor) -> Self:
        """The mind after something happened that the next prompt tells of."""
        line = " ".join(message.split())
        if len(line) > HAPPENED_CHARS:
            line = line[: HAPPENED_CHARS - 1] + "…"
        if source.name != DEFAULT_NAME:
            line = f"{source.name}: {line}"
        return self.but(happened=(*self.happened, line)[-MAX_HAPPENED:], source=source)

    def without_words_of(self, turns: Collection[str]) -> Self:
        """The mind without what was said in turns that are forgotten; its numbers stay.

        What happened and what was noted of the conversation goes as a whole, since it may tell of
        more turns than the one that it came in.
        """
        if not turns:
            return self.but(happened=(), source=None)
        kept = [trend.turn for trend in self.sentiment.trends if trend.turn not in turns]
        return self.without_notes(self.noted_in).but(
            sentiment=forgotten(self.sentiment, kept), happened=(), source=None
        )

    @property
    def mood_word(self) -> str:
        """The mood's word; ``neutral`` before the session opened."""
        return self.mood.word if self.mood is not None else "neutral"


def affect(mind: Mind) -> Vad:
    """What a mind feels: the felt emotion where its persona has one, else its mood's place."""
    if mind.emotion is not None:
        return felt(mind.emotion)
    return mind.mood.pad if mind.mood is not None else Vad()


def traits_in_force(authored: Mapping[str, Any], mind: Mind) -> dict[str, Any]:
    """The traits that count: the persona's, the host's over them, and what was learned."""
    return with_learned({**authored, **mind.traits}, mind.learned)


def _size(notes: dict[str, Any]) -> int:
    return len(Notes(values=notes).model_dump_json().encode())


class Notes(MindModel):
    """Notes as they are measured."""

    values: dict[str, Any] = Field(default_factory=dict)
