"""A history given from outside: a new root turn, and what is forgotten with the old ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, update

from ...personas.messages import Message
from ...workflows.steps import At, OpenTurn
from ...workflows.trace import TraceEntry
from ...workflows.turns import TurnOutput
from .endings import end_turn, settle_messages, settle_session
from .fences import epoch_of, fence
from .minds import forget_words
from .rows import message_values, upsert_message, write_trace
from .standing import look_up, open_row
from .tables import messages, trace, turns

_hide = (
    update(turns)
    .where(turns.c.session == bindparam("s"), turns.c.turn == bindparam("t"))
    .values(hidden=bindparam("mark"))
)
_hidden_here = select(turns.c.turn).where(
    turns.c.session == bindparam("s"), turns.c.hidden == bindparam("mark")
)
_blank = (
    update(trace)
    .where(trace.c.session == bindparam("s"), trace.c.turn.in_(_hidden_here))
    .values(details={})
)


def import_history(
    conn: Connection,
    at: At,
    *,
    opening: OpenTurn,
    given: Sequence[Message],
    forget: bool,
    output: TurnOutput,
    entries: Sequence[TraceEntry],
) -> list[str]:
    """Record the root turn with the given messages at step 0; returns the turns hidden."""
    standing = look_up(conn, at, opening)
    row = standing.row
    stamp = fence(standing.epoch, at.counter)
    if row.turn is None or row.fence <= stamp:
        if row.turn is None or epoch_of(row.fence) < standing.epoch:
            open_row(conn, at, opening, standing, stamp, "done")
        if given:
            rows = [
                message_values(at.session, at.turn, 0, index, message, stamp)
                for index, message in enumerate(given)
            ]
            conn.execute(upsert_message(conn.dialect.name), rows)
        count = settle_messages(conn, at, stamp, [len(given)], [])
        end_turn(conn, at, stamp, "done", output, count)
    hidden = _forget(conn, at, opening, given) if forget else []
    write_trace(conn, at.session, entries, stamp)
    settle_session(conn, at, stamp, at.turn)
    return hidden


def _forget(conn: Connection, at: At, opening: OpenTurn, given: Sequence[Message]) -> list[str]:
    """Hide the older turns whose input the given history no longer holds."""
    # The write counter marks what this import hid, so that a repeated one returns the same.
    mark = max(at.counter, 1)
    older = select(turns.c.turn, turns.c.hidden).where(
        turns.c.session == at.session,
        turns.c.hidden.in_((0, mark)),
        turns.c.turn != at.turn,
        turns.c.seq < opening.seq,
    )
    candidates = (conn.execute(older.order_by(turns.c.seq.desc()))).all()
    unclaimed = Counter(message.text for message in given if message.role == "user")
    inputs = _first_inputs(conn, at.session) if unclaimed else {}
    gone: list[str] = []
    for turn, hidden in candidates:
        said = inputs.get(turn)
        if not hidden and said is not None and unclaimed[said] > 0:
            unclaimed[said] -= 1
        else:
            gone.append(turn)
    if gone:
        conn.execute(_hide, [{"s": at.session, "t": turn, "mark": mark} for turn in gone])
        conn.execute(_blank, {"s": at.session, "mark": mark})
        forget_words(conn, at.session, set(gone))
    return gone


def _first_inputs(conn: Connection, session: str) -> dict[str, str]:
    """The text of each turn's first user message."""
    said = (
        select(messages.c.turn, messages.c.body)
        .where(messages.c.session == session, messages.c.role == "user")
        .order_by(messages.c.turn, messages.c.step, messages.c.idx)
    )
    first: dict[str, str] = {}
    for turn, body in conn.execute(said):
        if turn not in first:
            first[turn] = Message.model_validate_json(body).text
    return first
