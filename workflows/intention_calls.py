"""What crosses the session's handlers about things to remember later."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import AwareDatetime, BeforeValidator, Field, field_validator, model_validator

from ..personas.messages import Told, Wire
from ..personas.prospective import Intention, IntentionKind, Then

LAST_TIME = datetime(9000, 1, 1, tzinfo=UTC)
MAX_EVERY = 100 * 365 * 86_400.0
TURN_EVERY = 60.0
"""Seconds between two turns that an intention starts, at least: each asks a model."""


def _no_number(value: object) -> object:
    """Refuse what would be read as seconds since 1970, such as ``5``."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return value
    raise ValueError(
        "a number is no time; give a time with its time zone (ISO 8601 in JSON), or in the Python "
        "client after=, in seconds from now"
    )


class Intend(Wire):
    """Input of the update ``intend``: exactly one of ``at``, ``event`` and ``cue`` is given.

    Attributes:
        id: Names it; without one it is made of the request id.
        request_id: Makes one intention of however many calls carry it.
        content: What to remember; at most 500 characters.
        at: When to remember it, with its time zone; what lies in the past is due at once.
        event: Name of the event at which to remember it; see ``notice``.
        cue: Words that, when something like them is said, bring it to mind.
        importance: In [0, 1]; of several, the more important is told first.
        recurring: It comes again after it came.
        every: Seconds from one time to the next, for a recurring one with ``at``.
        tier: A turn with a lower ceiling leaves it for a later one.
        then: ``remind`` shows it in the next turn's prompt, ``turn`` starts a turn for it.
    """

    id: str | None = Field(default=None, min_length=1, max_length=100)
    request_id: str | None = Field(default=None, min_length=1, max_length=200)
    content: str = Field(max_length=500)
    at: Annotated[AwareDatetime | None, BeforeValidator(_no_number)] = None
    event: str | None = Field(default=None, max_length=200)
    cue: str | None = Field(default=None, max_length=500)
    importance: float = Field(default=0.5, ge=0, le=1)
    recurring: bool = False
    every: float | None = Field(default=None, ge=1, le=MAX_EVERY)
    tier: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    then: Then = "remind"

    @field_validator("content", "event", "cue")
    @classmethod
    def _says_something(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("it is empty; give some text")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        given = [name for name in ("at", "event", "cue") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"{' and '.join(given) or 'nothing'} says when to remember it; give exactly one "
                "of at, event and cue"
            )
        if self.at is not None and self.at > LAST_TIME:
            raise ValueError(f"its time is after the year {LAST_TIME.year}; give an earlier one")
        if self.every is not None and not (self.recurring and self.kind == "time"):
            raise ValueError("every is for a recurring one with at; leave it out, or give both")
        if self.then == "turn":
            self._can_start_turns()
        return self

    def _can_start_turns(self) -> None:
        if self.kind == "context":
            raise ValueError("a cue comes up in a turn and starts none; use then='remind'")
        if self.recurring and self.kind == "time" and (self.every or 0) < TURN_EVERY:
            raise ValueError(
                f"one that starts turns again and again needs every, {TURN_EVERY:.0f} seconds at "
                "least"
            )

    @property
    def kind(self) -> IntentionKind:
        """What brings it up."""
        if self.at is not None:
            return "time"
        return "event" if self.event is not None else "context"


class IntentionAck(Told):
    """Answer of ``intend``.

    Attributes:
        id: The intention.
        added: Whether this call added it; a repeat adds nothing.
        intention: It, as it stands; ``None`` when it has come since and is over.
    """

    id: str
    added: bool
    intention: Intention | None = None


class CancelIntention(Wire):
    """Input of ``cancel_intention``."""

    id: str


class CancelledIntention(Told):
    """Answer of ``cancel_intention``: whether there was one to cancel."""

    cancelled: bool


class Notice(Wire):
    """Input of the update ``notice``: an event happened.

    Attributes:
        event: Its name.
    """

    event: str = Field(min_length=1, max_length=200)


class NoticeAck(Told):
    """Answer of ``notice``.

    Attributes:
        due: Ids of the intentions that the event brought up.
    """

    due: list[str] = Field(default_factory=list)


class IntentionList(Told):
    """Answer of the query ``list_intentions``, the oldest first."""

    intentions: list[Intention] = Field(default_factory=list)
