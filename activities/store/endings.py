"""How turns end: what they came to, and which of their rows stay."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Text, bindparam, case, delete, select, update

from ...personas.messages import Message
from ...workflows.steps import At, OpenTurn
from ...workflows.trace import TraceEntry
from ...workflows.turns import FINAL_STATUSES, TurnOutput, TurnStatus
from ...workflows.writes import PlacedMessage
from .fences import counter_of, epoch_of, fence
from .rows import message_values, upsert_message, write_trace
from .standing import behind, look_up, open_row
from .tables import messages, sessions, turns

_end_turn = (
    update(turns)
    .where(turns.c.session == bindparam("s"), turns.c.turn == bindparam("t"))
    .values(
        status=bindparam("new_status"),
        output=bindparam("new_output"),
        usage=bindparam("new_usage"),
        steps=bindparam("new_steps"),
        messages=bindparam("new_messages"),
        ended_at=bindparam("now"),
        fence=bindparam("stamp"),
    )
)
_newer_head = sessions.c.head_fence <= bindparam("stamp")
_newer_counter = sessions.c.counter < bindparam("new_counter")
_settle_session = (
    update(sessions)
    .where(sessions.c.session == bindparam("s"))
    .values(
        head=case((_newer_head, bindparam("new_head", type_=Text)), else_=sessions.c.head),
        head_fence=case((_newer_head, bindparam("stamp")), else_=sessions.c.head_fence),
        counter=case((_newer_counter, bindparam("new_counter")), else_=sessions.c.counter),
        state=case((sessions.c.state_fence < bindparam("stamp"), None), else_=sessions.c.state),
    )
)
_present = select(messages.c.step, messages.c.idx).where(
    messages.c.session == bindparam("s"), messages.c.turn == bindparam("t")
)
_drop_message = delete(messages).where(
    messages.c.session == bindparam("s"),
    messages.c.turn == bindparam("t"),
    messages.c.step == bindparam("at_step"),
    messages.c.idx == bindparam("at_idx"),
)


def close_turn(
    conn: Connection,
    at: At,
    *,
    status: TurnStatus,
    output: TurnOutput,
    opening: OpenTurn | None,
    step_counter: int,
    layout: Sequence[int],
    added: Sequence[tuple[PlacedMessage, Message]],
    entries: Sequence[TraceEntry],
    head: str | None,
) -> None:
    """Record the end of a turn; rows that the workflow never recorded go."""
    standing = look_up(conn, at, opening)
    row = standing.row
    stamp = fence(standing.epoch, at.counter)
    if row.turn is None and opening is None:
        raise behind(at, len(layout), sum(layout), 0)
    # No step of this record is known to have opened it, and it has ended: an old request was sent
    # again and its repeat was stopped, or failed, before anybody saw that. What it came to stays,
    # unless it was this record's own step that ended it meanwhile.
    known = (
        opening is not None
        and row.turn is not None
        and row.status in FINAL_STATUSES
        and row.output is not None
        and epoch_of(row.fence) == standing.epoch
        and counter_of(row.fence) != step_counter
    )
    if not known and (row.turn is None or row.fence <= stamp):
        if opening is not None and (row.turn is None or epoch_of(row.fence) < standing.epoch):
            open_row(conn, at, opening, standing, stamp, status, added[0][1] if added else None)
        count = settle_messages(conn, at, stamp, layout, added)
        end_turn(conn, at, stamp, status, output, count)
    write_trace(conn, at.session, entries, stamp, at.turn if row.hidden else None)
    settle_session(conn, at, stamp, head)


def settle_messages(
    conn: Connection,
    at: At,
    stamp: int,
    layout: Sequence[int],
    added: Sequence[tuple[PlacedMessage, Message]],
) -> int:
    """Make the turn's messages those of the layout and the added ones; returns their number."""
    found = conn.execute(_present, {"s": at.session, "t": at.turn})
    present = {(step, idx) for step, idx in found}
    keep = {(step, idx) for step, idx in present if step < len(layout) and idx < layout[step]}
    new = {(place.step, place.index): message for place, message in added}
    drop = present - keep - new.keys()
    if drop:
        gone = [
            {"s": at.session, "t": at.turn, "at_step": step, "at_idx": idx} for step, idx in drop
        ]
        conn.execute(_drop_message, gone)
    if new:
        placed = [
            message_values(at.session, at.turn, step, idx, message, stamp)
            for (step, idx), message in new.items()
        ]
        conn.execute(upsert_message(conn.dialect.name), placed)
    return len(keep | new.keys())


def end_turn(
    conn: Connection, at: At, stamp: int, status: str, output: TurnOutput, count: int
) -> None:
    """Write what the turn came to."""
    ended = {
        "s": at.session,
        "t": at.turn,
        "new_status": status,
        "new_output": output.model_dump(mode="json", exclude_defaults=True),
        "new_usage": output.usage.model_dump(mode="json"),
        "new_steps": output.steps,
        "new_messages": count,
        "now": at.now,
        "stamp": stamp,
    }
    conn.execute(_end_turn, ended)


def settle_session(conn: Connection, at: At, stamp: int, head: str | None) -> None:
    """Move the session's head and counter; a record left behind is no longer the newest."""
    settled = {"s": at.session, "stamp": stamp, "new_head": head, "new_counter": at.counter}
    conn.execute(_settle_session, settled)
