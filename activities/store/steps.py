"""Steps of a turn: what is new before the model is asked, and its reply."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from ...personas.errors import RequestMismatchError
from ...personas.messages import Message
from ...workflows.steps import At, OpenTurn
from ...workflows.trace import TraceEntry
from ...workflows.turns import FINAL_STATUSES, TurnOutput
from .endings import end_turn, settle_session
from .fences import counter_of, epoch_of, fence, outdate_state, raise_counter, resolve_epoch
from .history import load_history
from .ledger import settle_usage
from .protocol import Begun, Closing, Shown, UsageRow
from .rows import message_values, upsert_message, write_trace
from .standing import Standing, behind, look_up, open_row, stale, supersede
from .tables import messages, turns

_mine = and_(turns.c.session == bindparam("s"), turns.c.turn == bindparam("t"))
_run_on = (
    update(turns)
    .where(_mine)
    .values(status="running", output=None, ended_at=None, fence=bindparam("stamp"))
)
_drop_since = delete(messages).where(
    messages.c.session == bindparam("s"),
    messages.c.turn == bindparam("t"),
    messages.c.step >= bindparam("from_step"),
)
_turn_fence = select(turns.c.fence).where(_mine)


def begin_step(
    conn: Connection,
    at: At,
    attempt: int,
    *,
    step: int,
    opening: OpenTurn | None,
    new: Sequence[Message],
    expect_messages: int,
    reserve: UsageRow | None,
    entries: Sequence[TraceEntry],
    shown: Shown | None = None,
) -> Begun:
    """Open the turn or go on with it: its new messages, the reservation and the trace."""
    standing = look_up(conn, at, opening, step)
    row, epoch = standing.row, standing.epoch
    stamp = fence(epoch, at.counter, attempt)
    if row.turn is not None and row.fence > stamp:
        raise stale(at, row.fence, stamp)
    existing = _made_before(standing, at, opening)
    if existing is not None:
        raise_counter(conn, at)
        return Begun(existing=existing)
    if row.before != expect_messages:
        raise behind(at, step, expect_messages, row.before)

    if opening is not None:
        open_row(conn, at, opening, standing, stamp, "running", new[0] if new else None)
    elif row.turn is None:
        raise behind(at, step, expect_messages, row.before)
    else:
        if epoch_of(row.fence) < epoch:
            supersede(conn, at, row.branch, row.depth, epoch)
        conn.execute(_run_on, {"s": at.session, "t": at.turn, "stamp": stamp})
    if row.since:
        conn.execute(_drop_since, {"s": at.session, "t": at.turn, "from_step": step})
    if new:
        placed = [
            message_values(at.session, at.turn, step, index, message, stamp)
            for index, message in enumerate(new)
        ]
        conn.execute(insert(messages), placed)
    if reserve is not None:
        settle_usage(conn, at, epoch, reserve)
    write_trace(conn, at.session, entries, stamp)
    if row.has_state:
        outdate_state(conn, at.session, stamp)
    if shown is None:
        return Begun()
    return Begun(history=load_history(conn, at, step=step, shown=shown))


def known_turn(conn: Connection, at: At, opening: OpenTurn) -> TurnOutput | None:
    """What the request's turn came to, if it was made before; no turn is written."""
    existing = _made_before(look_up(conn, at, opening), at, opening)
    raise_counter(conn, at)
    return existing


def _made_before(standing: Standing, at: At, opening: OpenTurn | None) -> TurnOutput | None:
    row = standing.row
    if opening is None or row.turn is None or epoch_of(row.fence) != standing.epoch:
        return None
    if row.digest != opening.digest:
        raise RequestMismatchError(
            f"request id {opening.request_id!r} was used before with another input; "
            "send the same input again, or use a new request id",
            details={"session": at.session, "turn": at.turn},
        )
    ended = row.status in FINAL_STATUSES and row.output is not None
    # What an earlier attempt of this very step ended was never seen: it is done again.
    if not ended or counter_of(row.fence) == at.counter:
        return None
    return TurnOutput.model_validate(row.output)


def save_reply(
    conn: Connection,
    at: At,
    attempt: int,
    *,
    step: int,
    index: int,
    reply: Message,
    bill: UsageRow,
    closing: Closing | None = None,
) -> None:
    """Write a step's reply, settle its usage, and end the turn where the reply is its answer."""
    epoch = resolve_epoch(conn, at)
    stamp = fence(epoch, at.counter, attempt)
    newest = conn.execute(_turn_fence, {"s": at.session, "t": at.turn}).scalar()
    if newest is None:
        raise behind(at, step, index, 0)
    if newest > stamp:
        raise stale(at, newest, stamp)
    values = message_values(at.session, at.turn, step, index, reply, stamp)
    conn.execute(upsert_message(conn.dialect.name), values)
    settle_usage(conn, at, epoch, bill)
    if closing is not None:
        end_turn(conn, at, stamp, "done", closing.output, closing.messages)
        settle_session(conn, at, stamp, at.turn)
