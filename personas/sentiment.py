"""How the user's messages feel over the turns, and the events that this raises.

Scores are given to this module; it follows them. Thresholds and counts are conventions.

Three counters of turns in a row say what their names say. A turn below the frustration threshold
counts as frustration and one above the satisfaction threshold as satisfaction; a turn counts as
confused by what it says, whatever its score. A fourth counter is for listless turns: those between
the thresholds, whatever they say.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from .affect import Share, Signed, limited
from .confusion import confusion_phrases
from .parts import SentimentTracking

Polarity = Literal["positive", "negative", "neutral"]
Method = Literal["lexicon", "llm", "own"]
EventType = Literal[
    "user_frustrated",
    "user_confused",
    "user_satisfied",
    "error_threshold_exceeded",
    "low_engagement",
]
Severity = Literal["low", "medium", "high"]

EVENTS: tuple[EventType, ...] = (
    "user_frustrated",
    "user_confused",
    "user_satisfied",
    "error_threshold_exceeded",
    "low_engagement",
)
"""Every event, in the order in which one turn raises them."""

NEUTRAL_BELOW = 0.05
"""A score nearer to 0 than this is neutral; the usual bound of the VADER scale."""

FRUSTRATED_INTENSITY = 0.6
SATISFIED_INTENSITY = 0.5
SEVERE_TURNS = 2
NEGATIVE_WORDS = 2
ERRORS = 2
LISTLESS_TURNS = 4
LISTLESS_CHARS = 50
MAX_TRENDS = 10
EXCERPT_CHARS = 100
LONG_CHARS = 8192
"""The length that a text counts with whose own is not known, such as one that is kept elsewhere."""
CONSIDERED_CHARS = 4_000

_METHODS: dict[str | None, Method] = {"llm": "llm", "trained_classifier": "own"}


def considered(text: str) -> str:
    """What is looked at of a text: all, or the beginning and the end of one that is too long.

    Where somebody pastes a log, what they think of it stands ahead of it or behind it.
    """
    if len(text) <= CONSIDERED_CHARS:
        return text
    half = CONSIDERED_CHARS // 2
    return f"{text[:half]}\n{text[-half:]}"


class Sentiment(BaseModel):
    """How one text feels.

    Attributes:
        score: From -1, wholly negative, to 1, wholly positive.
        intensity: How much of the text carries feeling, whichever, from 0 to 1.
        polarity: ``neutral`` for a score nearer to 0 than 0.05.
        positive: Words that count as positive where they stand.
        negative: Words that count as negative where they stand.
        language: Language of the text, such as ``en``.
        known: Whether the scorer could tell; otherwise the rest is neutral and says nothing.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    score: Signed = 0.0
    intensity: Share = 0.0
    polarity: Polarity = "neutral"
    positive: int = Field(default=0, ge=0)
    negative: int = Field(default=0, ge=0)
    language: str = "en"
    known: bool = True

    @classmethod
    def of(
        cls,
        score: float,
        intensity: float,
        *,
        positive: int = 0,
        negative: int = 0,
        language: str = "en",
    ) -> Self:
        """A sentiment with its numbers moved into their ranges and its polarity told.

        Raises:
            pydantic.ValidationError: A number is not finite.
        """
        score = limited(score, -1.0, 1.0)
        polarity: Polarity = "neutral"
        if abs(score) >= NEUTRAL_BELOW:
            polarity = "positive" if score > 0 else "negative"
        return cls(
            score=score,
            intensity=limited(intensity, 0.0, 1.0),
            polarity=polarity,
            positive=positive,
            negative=negative,
            language=language,
        )

    @classmethod
    def unknown(cls, language: str) -> Self:
        """What is said of a text that nobody here can judge."""
        return cls(language=language, known=False)


class SentimentSettings(BaseModel):
    """How a persona follows the user's sentiment.

    Attributes:
        enabled: Whether it does.
        method: ``lexicon``: by words, without a call. ``llm``: one model call a turn. ``own``: by
            a scorer that the host registered, and by none other.
        model: For ``llm``: ``provider:model``, or the persona's without one.
        window: Turns that the trend keeps, at most 10.
        frustration: Scores below it count as frustration.
        satisfaction: Scores above it count as satisfaction.
        consecutive_turns: Frustrated turns in a row that raise an event; one more is needed for
            satisfied ones.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    enabled: bool = False
    method: Method = "lexicon"
    model: str | None = None
    window: int = Field(default=MAX_TRENDS, ge=1, le=MAX_TRENDS)
    frustration: float = -0.3
    satisfaction: float = 0.3
    consecutive_turns: int = Field(default=2, ge=1)

    @classmethod
    def from_tracking(cls, tracking: SentimentTracking | None) -> Self:
        """What the persona asks for; without a word of it nothing is followed."""
        if tracking is None:
            return cls()
        model = tracking.model_id
        if model and tracking.provider_id:
            model = f"{tracking.provider_id}:{model}"
        return cls(
            enabled=tracking.enabled,
            method=_METHODS.get(tracking.method, "lexicon"),
            model=model or None,
            window=min(tracking.history_window, MAX_TRENDS),
            frustration=_finite(tracking.frustration_threshold, -0.3),
            satisfaction=_finite(tracking.satisfaction_threshold, 0.3),
            consecutive_turns=tracking.consecutive_turns_for_trigger,
        )


class Trend(BaseModel):
    """How one turn felt.

    Attributes:
        turn: The turn's id.
        at: When it was judged.
        excerpt: The first 100 characters of what was said; blank once they are forgotten.
        length: Characters of all that was said.
        confusing: The phrases of confusion in all that was at hand of it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    turn: str
    at: AwareDatetime
    score: float
    polarity: Polarity
    intensity: float
    known: bool = True
    excerpt: str = ""
    length: int = Field(default=LONG_CHARS, ge=0)
    confusing: tuple[str, ...] = ()


class SentimentState(BaseModel):
    """What is kept of the user's sentiment.

    Attributes:
        trends: The last turns, the oldest first.
        frustration: Turns in a row, up to the last one, that scored below the threshold.
        confusion: Turns in a row that were confused.
        satisfaction: Turns in a row that scored above the threshold.
        listless: Turns in a row that scored between the thresholds.
        last_turn: The last turn that was looked at.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    trends: tuple[Trend, ...] = ()
    frustration: int = Field(default=0, ge=0)
    confusion: int = Field(default=0, ge=0)
    satisfaction: int = Field(default=0, ge=0)
    listless: int = Field(default=0, ge=0)
    last_turn: str | None = None

    @property
    def current(self) -> Polarity | None:
        """How the last turn felt; ``None`` before the first one."""
        return self.trends[-1].polarity if self.trends else None


class Event(BaseModel):
    """Something about the user that a mind should notice.

    Attributes:
        type: What it is.
        turn: The turn that raised it.
        severity: How grave it is.
        metadata: What raised it, JSON-able.
        at: When.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: EventType
    turn: str
    severity: Severity
    metadata: dict[str, Any] = Field(default_factory=dict)
    at: AwareDatetime


class Observed(NamedTuple):
    """What a turn made of the sentiment's state, and the events that it raised."""

    state: SentimentState
    events: tuple[Event, ...] = ()


def observed(
    state: SentimentState,
    sentiment: Sentiment,
    *,
    turn: str,
    text: str,
    now: datetime,
    settings: SentimentSettings,
    length: int | None = None,
    recent_errors: int = 0,
    recent_user_lengths: Sequence[int] = (),
) -> Observed:
    """Take note of one turn of the user.

    An empty text, and a turn that was looked at already, change nothing and raise nothing. A turn
    whose sentiment is not known leaves all counts but that of confusion as they are and raises
    nothing by them; what it says can still be confused. An event is raised anew on every turn
    while its condition holds.

    Args:
        state: What was kept.
        sentiment: How the turn's text feels.
        turn: The turn's id.
        text: What the user said, or as much of it as is at hand.
        now: The time.
        settings: The persona's.
        length: Characters of all that the user said; without it, those of the text.
        recent_errors: Errors among the last ten entries of the reasoning trace; entries about the
            sentiment itself are best left out of the ten, so that they push no error out.
        recent_user_lengths: Characters of each of the user's messages among the conversation's
            last five, this one included; without any, this one's alone.
    """
    if not text.strip() or turn == state.last_turn:
        return Observed(state)
    size = len(text) if length is None else length
    phrases = confusion_phrases(text)
    torn = sentiment.polarity == "neutral" and sentiment.negative > NEGATIVE_WORDS
    confused = bool(phrases) or torn
    after = _counted(state, sentiment, settings, confused=confused)
    trend = Trend(
        turn=turn,
        at=now,
        score=sentiment.score,
        polarity=sentiment.polarity,
        intensity=sentiment.intensity,
        known=sentiment.known,
        excerpt=text[:EXCERPT_CHARS],
        length=size,
        confusing=phrases,
    )
    after = after.model_copy(
        update={"trends": (*state.trends, trend)[-settings.window :], "last_turn": turn}
    )
    found: list[Event] = []

    def add(type: EventType, severity: Severity, **metadata: Any) -> None:
        found.append(Event(type=type, turn=turn, severity=severity, metadata=metadata, at=now))

    measured = {
        "triggered_by": "sentiment",
        "sentiment_score": sentiment.score,
        "sentiment_polarity": sentiment.polarity,
        "sentiment_intensity": sentiment.intensity,
    }
    frustrated = sentiment.known and sentiment.score < settings.frustration
    if frustrated and (
        sentiment.intensity > FRUSTRATED_INTENSITY
        or after.frustration >= settings.consecutive_turns
    ):
        severe = after.frustration >= SEVERE_TURNS
        add(
            "user_frustrated",
            "high" if severe else "medium",
            **measured,
            consecutive_turns=after.frustration,
        )
    if confused:
        severe = after.confusion >= SEVERE_TURNS
        add(
            "user_confused",
            "high" if severe else "medium",
            triggered_by="keyword" if phrases else "sentiment",
            consecutive_turns=after.confusion,
            evidence_preview=text[:EXCERPT_CHARS],
            trigger_keywords=list(phrases),
        )
    satisfied = sentiment.known and sentiment.score > settings.satisfaction
    if satisfied and (
        sentiment.intensity > SATISFIED_INTENSITY or after.satisfaction > settings.consecutive_turns
    ):
        add("user_satisfied", "low", **measured, consecutive_turns=after.satisfaction)
    if recent_errors >= ERRORS:
        add(
            "error_threshold_exceeded",
            "high",
            triggered_by="error",
            error_count=recent_errors,
            consecutive_turns=recent_errors,
        )
    lengths = recent_user_lengths or [size]
    mean = sum(lengths) / len(lengths)
    if (
        after.listless > state.listless
        and after.listless >= LISTLESS_TURNS
        and mean < LISTLESS_CHARS
    ):
        add(
            "low_engagement",
            "medium",
            triggered_by="pattern",
            consecutive_turns=after.listless,
            mean_length=round(mean),
        )
    return Observed(after, tuple(found))


def forgotten(state: SentimentState, kept_turns: Collection[str]) -> SentimentState:
    """The state without the words of turns that the history no longer holds.

    Scores and counters stay: they hold nothing of what was said.
    """
    trends = tuple(
        trend
        if trend.turn in kept_turns
        else trend.model_copy(update={"excerpt": "", "confusing": ()})
        for trend in state.trends
    )
    return state.model_copy(update={"trends": trends})


def _counted(
    state: SentimentState,
    sentiment: Sentiment,
    settings: SentimentSettings,
    *,
    confused: bool,
) -> SentimentState:
    counts = {"confusion": state.confusion + 1 if confused else 0}
    if sentiment.known:
        low = sentiment.score < settings.frustration
        high = sentiment.score > settings.satisfaction and not low
        counts |= {
            "frustration": state.frustration + 1 if low else 0,
            "satisfaction": state.satisfaction + 1 if high else 0,
            "listless": 0 if low or high else state.listless + 1,
        }
    return state.model_copy(update=counts)


def _finite(value: float, instead: float) -> float:
    return value if abs(value) < float("inf") else instead
