"""Things to remember later: at a time, at an event, or when something comes up.

After Einstein & McDaniel (1990), who tell time-based from event-based prospective memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

IntentionKind = Literal["time", "event", "context"]
Then = Literal["remind", "turn"]


class Intention(BaseModel):
    """Something to remember later.

    Attributes:
        id: Names it.
        content: What to remember.
        kind: ``time``: from ``at`` on. ``event``: when the event was noticed. ``context``: when
            what is talked about is close to the cue.
        at: For ``time``: its next time.
        event: For ``event``: the event's name.
        cue: For ``context``: words that bring it up.
        importance: In [0, 1].
        recurring: Whether it comes again after it came.
        every: Seconds between two times of a recurring ``time``; without it, it comes at every
            look once its time has passed.
        tier: Rank of whom it is meant for; a look with a ceiling below it leaves it for later.
        then: ``remind``: the next turn's prompt shows it. ``turn``: the session starts a turn.
        fired: How often it came.
        noticed: How often its event happened.
        created_at: When it was noted.
        due: It came up, or the turn that it started came to nothing, and it was not told yet.
        turn: The turn that it started and that has not ended.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    content: str
    kind: IntentionKind
    at: AwareDatetime | None = None
    event: str | None = None
    cue: str | None = None
    importance: float = Field(default=0.5, ge=0, le=1)
    recurring: bool = False
    every: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tier: int = 0
    then: Then = "remind"
    fired: int = 0
    noticed: int = 0
    created_at: AwareDatetime
    due: bool = False
    turn: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it can still come by itself: it has not come yet, or comes again."""
        return self.recurring or not self.fired


def due(
    intentions: Iterable[Intention], now: datetime, *, ceiling: int | None = None
) -> list[Intention]:
    """What comes to mind now, the most important first, equals in their order.

    Args:
        intentions: All that there are; what came before and does not recur is passed over, and
            so is what waits for its cue.
        now: The time of this look.
        ceiling: The highest tier that may be told; ``None`` tells all.
    """
    found = [
        item
        for item in intentions
        if told(item, ceiling) and (item.due or (item.waits and time_has_come(item, now)))
    ]
    return sorted(found, key=lambda item: -item.importance)


def told(item: Intention, ceiling: int | None) -> bool:
    """Whether a look with this ceiling may tell it."""
    return ceiling is None or item.tier <= ceiling


def time_has_come(item: Intention, now: datetime) -> bool:
    """Whether it is of kind ``time`` and its time is not ahead."""
    return item.kind == "time" and item.at is not None and item.at <= now


def after_firing(item: Intention, now: datetime) -> Intention:
    """The intention after it came; a recurring one with its next time after ``now``.

    Times that were missed are not made up for: the next one lies in the future, on the same beat.
    """
    at = item.at
    if item.recurring and item.every is not None and at is not None and at <= now:
        beats = math.floor((now - at).total_seconds() / item.every) + 1
        at += timedelta(seconds=item.every * beats)
        if at <= now:
            # The product was rounded down to the beat that has passed.
            at += timedelta(seconds=item.every)
    return item.model_copy(update={"at": at, "fired": item.fired + 1, "due": False})
