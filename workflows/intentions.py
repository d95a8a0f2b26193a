"""A session's intentions: what its state holds of them, and how it changes.

They live in the state, which is carried through continue-as-new, release and restart. The store
has a copy, for a session whose workflow is ended from outside.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime

from ..personas.errors import MessageTooLargeError, RequestMismatchError, SessionBusyError
from ..personas.prospective import Intention, after_firing, due, time_has_come, told
from .decode import encoded_size, short_digest
from .intention_calls import Intend, IntentionAck
from .state import Offered, SessionState, TurnRecord
from .steps import Reminder
from .turns import TurnStatus
from .writes import KeptIntentions

_INTENTIONS = uuid.UUID("c2a3f0de-6f65-5f0b-8d51-6a5b5d8e3d21")

MAX_INTENTIONS = 32
MAX_INTENTION_BYTES = 1024
MAX_CAME = 64
"""Intentions that came and are over whose ids are known, so that a repeat adds nothing."""


def add(state: SessionState, asked: Intend, request_id: str, now: datetime) -> IntentionAck:
    """Note an intention, once.

    Args:
        state: The session's state.
        asked: What to remember.
        request_id: Makes the id, where ``asked`` names neither an id nor a request.
        now: The time.

    Raises:
        MessageTooLargeError: It takes more than 1 KB.
        RequestMismatchError: The id is that of another intention which waits.
        SessionBusyError: 32 intentions wait.
    """
    size = encoded_size(asked)
    if size > MAX_INTENTION_BYTES:
        raise MessageTooLargeError(
            f"The intention has {size} bytes and the limit is {MAX_INTENTION_BYTES}; say it more "
            "shortly.",
            details={"bytes": size, "limit": MAX_INTENTION_BYTES},
        )
    name = asked.id or intention_id(state.session, asked.request_id or request_id)
    known = find(state, name)
    if known is not None:
        if state.intention_digests.get(name) != digest(asked):
            raise RequestMismatchError(
                f"The intention {name!r} is another one; cancel it first, or use a new id.",
                details={"id": name},
            )
        return IntentionAck(id=name, added=False, intention=known)
    if state.intention_digests.get(name) == digest(asked):
        return IntentionAck(id=name, added=False)
    if len(state.intentions) >= MAX_INTENTIONS:
        raise SessionBusyError(
            f"{len(state.intentions)} intentions wait and the limit is {MAX_INTENTIONS}; cancel "
            "one first.",
            details={"limit": MAX_INTENTIONS},
        )
    taken = asked.model_dump(exclude={"id", "request_id"})
    item = Intention(id=name, kind=asked.kind, created_at=now, **taken)
    state.intentions.append(item)
    # Put at the end, where it is not the next to be forgotten.
    state.intention_digests.pop(name, None)
    state.intention_digests[name] = digest(asked)
    _forget_old(state)
    return IntentionAck(id=name, added=True, intention=item)


def cancel(state: SessionState, name: str) -> bool:
    """Drop an intention; a turn that it started goes on. Returns whether there was one."""
    if find(state, name) is None:
        return False
    _remove(state, name)
    # Whoever cancelled it may want it again under the same id.
    state.intention_digests.pop(name, None)
    return True


def notice(state: SessionState, event: str) -> list[Intention]:
    """An event happened: the next turn is told what waits for it.

    Returns:
        All that waits for it, the most important first; what starts turns has still to start
        one. One whose turn has not ended is passed over.
    """
    found = [
        item
        for item in state.intentions
        if item.kind == "event" and item.event == event and item.waits and item.turn is None
    ]
    for item in found:
        if item.then == "remind":
            noticed = {"due": True, "noticed": item.noticed + 1}
            _replace(state, item.model_copy(update=noticed))
    return sorted(found, key=lambda item: -item.importance)


def find(state: SessionState, name: str) -> Intention | None:
    """The intention of an id."""
    return next((item for item in state.intentions if item.id == name), None)


def stands(state: SessionState, item: Intention) -> bool:
    """Whether an intention is still as it was when it was looked up."""
    return find(state, item.id) == item


def reminders(state: SessionState, now: datetime, ceiling: int | None) -> list[Reminder]:
    """What a turn that opens now is told: what is due, and what waits for its cue.

    One that starts turns is told only where its own turn came to nothing.
    """
    found = [
        item
        for item in due(state.intentions, now, ceiling=ceiling)
        if item.then == "remind" or item.due
    ]
    found += [item for item in state.intentions if item.kind == "context" and told(item, ceiling)]
    return [
        Reminder(id=item.id, content=item.content, cue=item.cue, importance=item.importance)
        for item in found
    ]


def offered(state: SessionState, told: Collection[Reminder]) -> list[Offered]:
    """How the intentions stand that a turn is told of."""
    ids = {item.id for item in told}
    return [
        Offered(id=item.id, created_at=item.created_at, noticed=item.noticed)
        for item in state.intentions
        if item.id in ids
    ]


def to_start(state: SessionState, now: datetime) -> list[Intention]:
    """The intentions whose time has come to start a turn, the most important first."""
    return [
        item
        for item in due(state.intentions, now)
        if item.then == "turn" and item.turn is None and item.waits and time_has_come(item, now)
    ]


def next_start(state: SessionState) -> datetime | None:
    """When the session has to start a turn by itself, or ``None``.

    One whose turn has not ended starts no other; its time comes when that turn is over.
    """
    times = [
        item.at
        for item in state.intentions
        if item.then == "turn" and item.waits and item.turn is None and item.at is not None
    ]
    return min(times) if times else None


def passed(state: SessionState, item: Intention, now: datetime) -> None:
    """The intention has come without a turn of its own: one was made before, or cannot be."""
    _settle(state, after_firing(item, now).model_copy(update={"turn": None, "due": False}))


def started(state: SessionState, item: Intention, turn: str, now: datetime) -> None:
    """The intention's turn is queued."""
    _replace(state, after_firing(item, now).model_copy(update={"turn": turn}))


def turn_ended(state: SessionState, record: TurnRecord, status: TurnStatus, now: datetime) -> None:
    """A turn ended: what a done one told has come, what any other told is told again."""
    done = status == "done"
    offered = {item.id: item for item in record.offered}
    for item in list(state.intentions):
        if item.turn == record.turn:
            _settle(state, item.model_copy(update={"turn": None, "due": not done}))
        elif done and item.id in record.reminded:
            shown = offered.get(item.id)
            if shown is not None and shown.created_at != item.created_at:
                # Another one, noted under the same id while the turn was made.
                continue
            # What starts turns has come with its turn, whatever became of that.
            came = item if item.then == "turn" else after_firing(item, now)
            again = shown is not None and item.noticed > shown.noticed and came.waits
            _settle(state, came.model_copy(update={"due": again}))


def drop_all(state: SessionState) -> list[str]:
    """Forget every intention; returns their ids."""
    dropped = [item.id for item in state.intentions]
    state.intentions = []
    state.intention_digests = {}
    return dropped


def still_meant(kept: KeptIntentions, done: Collection[str]) -> KeptIntentions:
    """The intentions of a session whose workflow was ended from outside.

    Args:
        kept: As the store has them.
        done: Turns that are done; what any other turn was started for is told by the next one.
    """
    found = []
    for item in kept.waiting:
        if item.turn is not None:
            item = item.model_copy(update={"turn": None, "due": item.turn not in done})
        if item.waits or item.due:
            found.append(item)
    return kept.model_copy(update={"waiting": found})


def intention_id(session: str, request_id: str) -> str:
    """The id of the intention that a request makes in a session."""
    return str(uuid.uuid5(_INTENTIONS, f"{session}\n{request_id}"))


def digest(asked: Intend) -> str:
    """Digest of what an intention says; 16 hex characters."""
    text = asked.model_dump_json(exclude={"id", "request_id"}, exclude_defaults=True)
    return short_digest(text)


def _settle(state: SessionState, item: Intention) -> None:
    """Keep what comes again or is to be told again."""
    if item.waits or item.due:
        _replace(state, item)
    else:
        _remove(state, item.id)


def _replace(state: SessionState, item: Intention) -> None:
    state.intentions = [item if known.id == item.id else known for known in state.intentions]


def _remove(state: SessionState, name: str) -> None:
    state.intentions = [item for item in state.intentions if item.id != name]


def _forget_old(state: SessionState) -> None:
    waiting = {item.id for item in state.intentions}
    over = [name for name in state.intention_digests if name not in waiting]
    for name in over[: max(0, len(over) - MAX_CAME)]:
        del state.intention_digests[name]
