"""What a session's client gives the mind to remember later."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from ..personas.errors import ValidationError
from ..personas.prospective import Intention, Then
from ..workflows.decode import parse
from ..workflows.intention_calls import (
    MAX_EVERY,
    CancelIntention,
    CancelledIntention,
    Intend,
    IntentionAck,
    IntentionList,
    Notice,
    NoticeAck,
)
from .session_mind import SessionMind


class SessionIntentions(SessionMind):
    """Things to remember later, beside the memory that :class:`SessionMind` gives."""

    async def intend(
        self,
        content: str,
        *,
        at: datetime | None = None,
        after: float | timedelta | None = None,
        event: str | None = None,
        cue: str | None = None,
        then: Then = "remind",
        importance: float = 0.5,
        recurring: bool = False,
        every: float | None = None,
        tier: int = 0,
        id: str | None = None,
        request_id: str | None = None,
    ) -> IntentionAck:
        """Have something remembered later: one of ``at``, ``after``, ``event``, ``cue`` says when.

        Args:
            content: What to remember, at most 500 characters.
            at: From this time on; with its time zone.
            after: From so many seconds, or so long, after now on. A repeat of the call counts
                from its own now, so it is another intention; where that matters give ``at``.
            event: When :meth:`notice` names this event.
            cue: When something like these words is said.
            then: ``remind`` shows it in the prompt of the next turn that ends well, ``turn``
                starts a turn by itself (not for a ``cue``).
            importance: In [0, 1]; the more important is told first.
            recurring: It comes again after it came.
            every: Seconds from one time to the next, of a recurring ``at``; at least 60 where it
                starts turns. Times that were missed are not made up for.
            tier: A turn sent with a lower ``ceiling`` leaves it for a later one.
            id: Names it. An id whose intention waits, or came and said the same, adds nothing.
            request_id: Repeating a call with the same one adds nothing.

        Raises:
            ValidationError: The arguments do not fit together.
            MessageTooLargeError: It takes more than 1 KB.
            SessionBusyError: 32 intentions wait.
            RequestMismatchError: The id is that of another intention which waits.
        """
        asked = parse(
            {
                "id": id,
                "request_id": request_id or str(uuid.uuid4()),
                "content": content,
                "at": _time(at, after),
                "event": event,
                "cue": cue,
                "then": then,
                "importance": importance,
                "recurring": recurring,
                "every": every,
                "tier": tier,
            },
            Intend,
        )
        return await self._update("intend", asked, IntentionAck)

    async def intentions(self) -> list[Intention]:
        """What is to be remembered later, the oldest first."""
        return (await self._query("list_intentions", None, IntentionList)).intentions

    async def cancel_intention(self, id: str) -> bool:
        """Drop an intention; a turn that it started goes on. Returns whether there was one."""
        asked = parse({"id": id}, CancelIntention)
        return (await self._update("cancel_intention", asked, CancelledIntention)).cancelled

    async def notice(self, event: str) -> list[str]:
        """Say that an event happened; returns the ids of the intentions that are due by it."""
        return (await self._update("notice", parse({"event": event}, Notice), NoticeAck)).due


def _time(at: datetime | None, after: float | timedelta | None) -> datetime | None:
    """When a timed intention comes."""
    if after is None:
        return at
    if at is not None:
        raise ValidationError("Both at and after are given; keep one.")
    if isinstance(after, timedelta):
        seconds = after.total_seconds()
    elif isinstance(after, int | float) and not isinstance(after, bool):
        seconds = float(after)
    else:
        raise ValidationError(f"after is {after!r}; give seconds, or a timedelta.")
    if not 0 <= seconds <= MAX_EVERY:
        raise ValidationError(f"after is {seconds:g} seconds; give 0 to {MAX_EVERY:.0f}.")
    return datetime.now(UTC) + timedelta(seconds=seconds)
