"""Where a turn stands when something is written to it, and the opening of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, func, insert, or_, select, update

from ...personas.errors import RequestMismatchError, StaleWriteError, StoreBehindError
from ...personas.messages import Message
from ...workflows.steps import At, OpenTurn
from .fences import epoch_floor, lock_session, settle_epoch, unknown_session
from .rows import add
from .tables import branches, messages, runs, sessions, turns

PREVIEW = 100
"""Characters of a turn's input that lists show."""

_parent = turns.alias("parent")


def _count(*where: Any) -> Any:
    mine = (messages.c.session == bindparam("s"), *where)
    return select(func.count()).select_from(messages).where(*mine).scalar_subquery()


_of_turn = messages.c.turn == bindparam("turn")
_at_step = messages.c.step == bindparam("step")

# Everything that a write to a turn has to know, in one round trip.
_standing = (
    select(
        sessions.c.epoch.label("session_epoch"),
        sessions.c.state.is_not(None).label("has_state"),
        runs.c.epoch.label("run_epoch"),
        runs.c.reset.label("run_reset"),
        turns.c.turn,
        turns.c.fence,
        turns.c.status,
        turns.c.digest,
        turns.c.output,
        turns.c.branch,
        turns.c.depth,
        turns.c.hidden,
        _parent.c.base.label("parent_base"),
        _parent.c.branch.label("parent_branch"),
        _parent.c.depth.label("parent_depth"),
        _parent.c.root_depth.label("parent_root"),
        case(
            (_parent.c.status == "done", _parent.c.messages),
            else_=_count(messages.c.turn == _parent.c.turn),
        ).label("parent_messages"),
        _count(_of_turn, messages.c.step < bindparam("step")).label("before"),
        _count(_of_turn, or_(messages.c.step > bindparam("step"), _at_step)).label("since"),
    )
    .select_from(
        sessions.outerjoin(
            runs, and_(runs.c.session == sessions.c.session, runs.c.run == bindparam("run"))
        )
        .outerjoin(
            turns,
            and_(
                turns.c.session == sessions.c.session,
                or_(turns.c.turn == bindparam("turn"), turns.c.request_id == bindparam("request")),
            ),
        )
        .outerjoin(
            _parent,
            and_(
                _parent.c.session == sessions.c.session,
                _parent.c.turn == func.coalesce(bindparam("parent"), turns.c.parent),
            ),
        )
    )
    .where(sessions.c.session == bindparam("s"))
)

_add_turn = insert(turns)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a turn stands, read under its session's lock.

    Attributes:
        epoch: The epoch of the run that writes.
        row: The joined row; ``row.turn`` is ``None`` when the turn has no row.
    """

    epoch: int
    row: Any


def look_up(conn: Connection, at: At, opening: OpenTurn | None, step: int = 0) -> Standing:
    """Lock the session, check the run, and read what is known of the turn."""
    lock_session(conn, at.session)
    given = {
        "s": at.session,
        "run": at.run,
        "turn": at.turn,
        "step": step,
        "request": opening.request_id if opening else None,
        "parent": opening.parent if opening else None,
    }
    row = conn.execute(_standing, given).first()
    epoch = settle_epoch(conn, at, row)
    if row is None:
        raise unknown_session(at.session)
    if row.turn is not None and row.turn != at.turn:
        raise RequestMismatchError(
            f"request id {opening.request_id if opening else ''!r} belongs to turn {row.turn}, "
            f"not {at.turn}; use a new request id for a new turn",
            details={"session": at.session, "turn": row.turn},
        )
    return Standing(epoch, row)


def open_row(
    conn: Connection,
    at: At,
    opening: OpenTurn,
    standing: Standing,
    stamp: int,
    status: str,
    said: Message | None = None,
) -> None:
    """Insert the turn's row, or overwrite the one that an earlier attempt or epoch left."""
    row, segment = standing.row, opening.segment
    root = opening.parent is None or opening.kind == "import" or row.parent_base is None
    values = {
        "seq": opening.seq,
        "request_id": opening.request_id,
        "digest": opening.digest,
        "branch": segment.branch,
        "depth": segment.depth,
        "parent": opening.parent,
        "kind": opening.kind,
        "status": status,
        "sender": opening.sender,
        "options": opening.options.model_dump(mode="json", exclude_none=True)
        if opening.options
        else None,
        "reads": opening.reads,
        "persona_digest": opening.persona_digest,
        "toolset_digest": opening.toolset_digest,
        "preview": said.text[:PREVIEW] if said is not None else "",
        "steps": 0,
        "messages": 0,
        "base": 0 if root else row.parent_base + row.parent_messages,
        "root_depth": segment.depth if root else row.parent_root,
        "hidden": 0,
        "fence": stamp,
        "created_at": opening.created_at,
    }
    if row.turn is None:
        conn.execute(_add_turn, values | {"session": at.session, "turn": at.turn})
    else:
        cleared = {"output": None, "usage": None, "ended_at": None}
        mine = (turns.c.session == at.session) & (turns.c.turn == at.turn)
        conn.execute(update(turns).where(mine).values(**values, **cleared))
    if standing.epoch:
        supersede(conn, at, segment.branch, segment.depth, standing.epoch)
    if row.parent_branch is not None and row.parent_branch != segment.branch:
        branch = {
            "session": at.session,
            "branch": segment.branch,
            "parent_branch": row.parent_branch,
            "fork_depth": row.parent_depth,
        }
        conn.execute(add(conn.dialect.name, branches), branch)


def supersede(conn: Connection, at: At, branch: str, depth: int, epoch: int) -> None:
    """Turns that a reset abandoned never count again."""
    conn.execute(
        update(turns)
        .where(
            turns.c.session == at.session,
            turns.c.branch == branch,
            turns.c.depth >= depth,
            turns.c.status == "done",
            turns.c.turn != at.turn,
            turns.c.fence < epoch_floor(epoch),
        )
        .values(status="superseded")
    )


def stale(at: At, newest: int, mine: int) -> StaleWriteError:
    """The error for a write that a newer one of the same turn overtook."""
    return StaleWriteError(
        f"a newer write of turn {at.turn} exists; this one (counter {at.counter}) was dropped",
        details={"session": at.session, "turn": at.turn, "newest": newest, "fence": mine},
    )


def behind(at: At, step: int, expected: int, found: int) -> StoreBehindError:
    """The error for a turn that has other messages than the workflow recorded."""
    return StoreBehindError(
        f"turn {at.turn} of session {at.session} has {found} messages before step {step}, the "
        f"session recorded {expected}; was the database restored to an older state?",
        details={
            "session": at.session,
            "turn": at.turn,
            "step": step,
            "expected": expected,
            "found": found,
        },
    )
