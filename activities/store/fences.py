"""Which write is newer: one integer per row that orders the writes to it.

A fence is made of the session's epoch, its write counter and the activity's attempt, in this
order of weight. A late attempt, a command that was overtaken and a run that a reset abandoned all
carry a lower fence than what stands in the row, and change nothing.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Insert, and_, bindparam, insert, select, update

from ...personas.errors import StaleWriteError, StoreUnknownSessionError
from ...workflows.steps import At
from .tables import runs, sessions

ATTEMPT_BITS = 16
COUNTER_BITS = 32
LAST_ATTEMPT = (1 << ATTEMPT_BITS) - 1
"""Attempt of writes that are repeated with the same content, such as a turn's end."""


def fence(epoch: int, counter: int, attempt: int = LAST_ATTEMPT) -> int:
    """The fence of a write.

    Args:
        epoch: The run's epoch in its session.
        counter: The session's write counter.
        attempt: The activity's attempt, from 1; every attempt past 65535 counts as that one.
    """
    return epoch_floor(epoch) | counter << ATTEMPT_BITS | min(attempt, LAST_ATTEMPT)


def epoch_floor(epoch: int) -> int:
    """The lowest fence of an epoch; every older epoch's fences are below it."""
    return epoch << (ATTEMPT_BITS + COUNTER_BITS)


def epoch_of(value: int) -> int:
    """The epoch in a fence."""
    return value >> (ATTEMPT_BITS + COUNTER_BITS)


def counter_of(value: int) -> int:
    """The write counter in a fence."""
    return (value >> ATTEMPT_BITS) & ((1 << COUNTER_BITS) - 1)


_lock = select(sessions.c.session).where(sessions.c.session == bindparam("s")).with_for_update()

_standing = (
    select(
        sessions.c.epoch.label("session_epoch"),
        sessions.c.state.is_not(None).label("has_state"),
        runs.c.epoch.label("run_epoch"),
        runs.c.reset.label("run_reset"),
    )
    .select_from(
        sessions.outerjoin(
            runs, and_(runs.c.session == sessions.c.session, runs.c.run == bindparam("run"))
        )
    )
    .where(sessions.c.session == bindparam("s"))
)

_add_run: Insert = insert(runs)


def lock_session(conn: Connection, session: str) -> None:
    """Let no other write of this session in until the transaction ends.

    On SQLite a write transaction has the whole file already.
    """
    if conn.dialect.name != "sqlite":
        conn.execute(_lock, {"s": session})


def resolve_epoch(conn: Connection, at: At) -> int:
    """The epoch of the run that writes; an unknown run is registered.

    Raises:
        StoreUnknownSessionError: No such session.
        StaleWriteError: A reset has made a newer epoch than the run's.
    """
    lock_session(conn, at.session)
    row = conn.execute(_standing, {"s": at.session, "run": at.run}).first()
    return settle_epoch(conn, at, row)


def settle_epoch(conn: Connection, at: At, row: Any) -> int:
    """As :func:`resolve_epoch`, from a row that holds what it would read.

    The row has ``session_epoch``, ``run_epoch`` and ``run_reset``, read under the session's lock.
    """
    if row is None:
        raise unknown_session(at.session)
    current: int = row.session_epoch
    known: int | None = row.run_epoch
    if known is None:
        return _register(conn, at, current)
    if at.reset and not row.run_reset:
        # The run opened its session before it said that it began by a reset.
        return _register(conn, at, current, known=True)
    if known < current:
        raise StaleWriteError(
            f"run {at.run} of session {at.session} was abandoned by a reset; its write was dropped",
            details={"session": at.session, "turn": at.turn, "epoch": known, "current": current},
        )
    return known


def unknown_session(session: str) -> StoreUnknownSessionError:
    """The error for a session that the store does not have."""
    return StoreUnknownSessionError(
        f"the store has no session {session!r}; check that the worker uses the database that the "
        "session was opened with",
        details={"session": session},
    )


def _register(conn: Connection, at: At, current: int, known: bool = False) -> int:
    epoch = current + 1 if at.reset else current
    if known:
        mine = (runs.c.session == at.session) & (runs.c.run == at.run)
        conn.execute(update(runs).where(mine).values(epoch=epoch, reset=True))
    else:
        row = {"session": at.session, "run": at.run, "epoch": epoch, "reset": at.reset}
        conn.execute(_add_run, row)
    if at.reset:
        # The counter starts again where the reset's history stands.
        conn.execute(
            update(sessions)
            .where(sessions.c.session == at.session)
            .values(epoch=epoch, counter=max(at.counter - 1, 0))
        )
    return epoch


def raise_counter(conn: Connection, at: At) -> None:
    """Record that the store holds everything up to this write counter."""
    conn.execute(
        update(sessions)
        .where(sessions.c.session == at.session, sessions.c.counter < at.counter)
        .values(counter=at.counter)
    )


def advance(conn: Connection, at: At, stamp: int) -> None:
    """Record a write beside the turns: the counter, and that no released record has it."""
    raise_counter(conn, at)
    outdate_state(conn, at.session, stamp)


def outdate_state(conn: Connection, session: str, stamp: int) -> None:
    """Drop the record of a released session: it goes on without what is written now."""
    older = (sessions.c.session == session) & (sessions.c.state_fence < stamp)
    conn.execute(update(sessions).where(older, sessions.c.state.is_not(None)).values(state=None))
