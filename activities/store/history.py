"""The messages that a prompt is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from ...personas.messages import Message
from ...workflows.steps import At, Segment
from .protocol import History, Shown
from .tables import messages, turns

_LONG_TURN = 64
"""A turn of more messages than this is not loaded whole when a part of it is enough."""

_LAST_STEP = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Turn:
    turn: str
    depth: int
    seq: int
    root: bool
    base: int
    count: int
    hidden: bool


_facts = (
    turns.c.turn,
    turns.c.depth,
    turns.c.seq,
    turns.c.parent,
    turns.c.kind,
    turns.c.base,
    turns.c.messages,
    turns.c.hidden,
    turns.c.status,
)
_on_segment = (
    select(*_facts)
    .where(
        turns.c.session == bindparam("s"),
        turns.c.branch == bindparam("branch"),
        turns.c.depth <= bindparam("depth"),
        turns.c.status == "done",
    )
    .order_by(turns.c.depth.desc(), turns.c.seq.desc())
    .limit(bindparam("most"))
)
_by_id = select(*_facts).where(
    turns.c.session == bindparam("s"), turns.c.turn.in_(bindparam("ids", expanding=True))
)
_place = select(*_facts, turns.c.branch).where(
    turns.c.session == bindparam("s"), turns.c.turn == bindparam("t")
)
_whole = (
    select(messages.c.turn, messages.c.step, messages.c.idx, messages.c.body)
    .where(
        messages.c.session == bindparam("s"),
        messages.c.turn.in_(bindparam("ids", expanding=True)),
    )
    .order_by(messages.c.turn, messages.c.step, messages.c.idx)
)
_tail = (
    select(messages.c.body)
    .where(messages.c.session == bindparam("s"), messages.c.turn == bindparam("t"))
    .order_by(messages.c.step.desc(), messages.c.idx.desc())
    .limit(bindparam("most"))
)
_counted = (
    select(messages.c.turn, func.count().label("count"))
    .where(
        messages.c.session == bindparam("s"),
        messages.c.turn.in_(bindparam("ids", expanding=True)),
    )
    .group_by(messages.c.turn)
)


def load_history(conn: Connection, at: At, *, step: int, shown: Shown) -> History:
    """The path's newest messages, the partial turns' after them, and the current turn's.

    Args:
        conn: The connection.
        at: The current turn.
        step: Its step; its messages up to this step are ``History.turn``.
        shown: Which earlier messages are wanted.
    """
    limit = shown.limit
    on_path, beside = _turns_shown(
        conn, at.session, shown.path, shown.parent, shown.partials, limit
    )
    whole: list[str] = []
    complete: list[str] = []
    tails: dict[str, int] = {}
    room = limit
    left_out = on_path[0].base + on_path[0].count if on_path else 0
    for position, turn in enumerate([*beside, *on_path]):
        take = min(turn.count, room)
        room -= take
        if take and take < turn.count > _LONG_TURN:
            tails[turn.turn] = take
        elif take:
            whole.append(turn.turn)
        if take == turn.count:
            complete.append(turn.turn)
        if position >= len(beside):
            left_out = turn.base + turn.count - take
        if not room:
            break

    loaded: dict[str, list[tuple[int, str]]] = {}
    ids = [*whole, at.turn]
    for turn_id, at_step, _, body in conn.execute(_whole, {"s": at.session, "ids": ids}):
        loaded.setdefault(turn_id, []).append((at_step, body))
    earlier: list[str] = []
    for turn in reversed([*beside, *on_path]):
        if turn.turn in tails:
            given = {"s": at.session, "t": turn.turn, "most": tails[turn.turn]}
            bodies = conn.execute(_tail, given).scalars().all()
            earlier.extend(reversed(bodies))
        elif turn.turn in whole:
            earlier.extend(body for _, body in loaded.get(turn.turn, []))
    return History(
        earlier=[Message.model_validate_json(body) for body in earlier[-limit:]],
        turn=[
            Message.model_validate_json(body)
            for at_step, body in loaded.get(at.turn, [])
            if at_step <= step
        ],
        left_out=left_out,
        turns=complete,
    )


def conversation(conn: Connection, at: At, shown: Shown) -> list[Message]:
    """The newest messages up to the end of a turn that is not hidden, oldest first."""
    own = conn.execute(_place, {"s": at.session, "t": at.turn}).first()
    if own is None or own.hidden:
        return []
    before = Shown([], None, [], shown.limit)
    if own.parent is not None and own.kind != "import":
        # The turn itself is read with its messages, so what stands before it ends ahead of it.
        path = [
            Segment(branch=part.branch, depth=min(part.depth, own.depth - 1))
            if part.branch == own.branch
            else part
            for part in shown.path
        ]
        before = replace(before, path=path, parent=own.parent)
    found = load_history(conn, at, step=_LAST_STEP, shown=before)
    return [*found.earlier, *found.turn][-shown.limit :]


def _turns_shown(
    conn: Connection,
    session: str,
    path: Sequence[Segment],
    parent: str | None,
    partials: Sequence[str],
    limit: int,
) -> tuple[list[_Turn], list[_Turn]]:
    """The turns that can be shown, newest first: those on the path, and the partial ones."""
    found: dict[str, _Turn] = {}
    room = limit
    for segment in reversed(path):
        given = {
            "s": session,
            "branch": segment.branch,
            "depth": segment.depth,
            "most": limit,
        }
        for row in conn.execute(_on_segment, given):
            turn = _turn(row)
            if not turn.hidden:
                found.setdefault(turn.turn, turn)
                room -= turn.count
            if turn.root or room <= 0:
                break
        if room <= 0 or any(turn.root for turn in found.values()):
            break
    missing = [turn for turn in (parent, *partials) if turn is not None and turn not in found]
    beside: list[_Turn] = []
    if missing:
        extra = _by_ids(conn, session, missing)
        if parent in extra and not extra[parent].hidden:
            found[parent] = extra[parent]
        beside = [extra[turn] for turn in partials if turn in extra and turn != parent]
        beside.sort(key=lambda turn: turn.seq, reverse=True)
    on_path: list[_Turn] = []
    for turn in sorted(
        found.values(), key=lambda turn: (turn.depth, turn.turn == parent, turn.seq), reverse=True
    ):
        # A run that was ended from outside may still have closed its turn; the newer one counts.
        if on_path and on_path[-1].depth == turn.depth:
            continue
        on_path.append(turn)
        # What stands before the turn that starts a path belongs to another conversation.
        if turn.root:
            break
    return on_path, beside


def _by_ids(conn: Connection, session: str, ids: Sequence[str]) -> dict[str, _Turn]:
    rows = conn.execute(_by_id, {"s": session, "ids": list(ids)}).all()
    # A turn whose end is not recorded yet does not know its number of messages.
    running = [row.turn for row in rows if row.status in ("running", "waiting")]
    counts: dict[str, int] = {}
    if running:
        counted = conn.execute(_counted, {"s": session, "ids": running})
        counts = {row.turn: row[1] for row in counted}
    return {row.turn: _turn(row, counts.get(row.turn)) for row in rows}


def _turn(row: Any, count: int | None = None) -> _Turn:
    return _Turn(
        turn=row.turn,
        depth=row.depth,
        seq=row.seq,
        root=row.parent is None or row.kind == "import",
        base=row.base,
        count=row.messages if count is None else count,
        hidden=bool(row.hidden),
    )
