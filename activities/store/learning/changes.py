"""Reading, making and undoing changes, each in the transaction of its connection."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, delete, insert, or_, select, text, update

from ....personas.learning import LearnerKey
from ....personas.self_changes import ChangeKind, Holder, SelfChange
from ...learning.store import Call, Decide, StepRecord
from ..rows import add
from ..tables import sessions
from .tables import run_steps, self_changes

MAX_READ = 5000
"""Changes of a learner that are looked at, the newest."""

_IDS = uuid.UUID("7d5c3c0e-52a5-5c0f-9c0a-3f4f8b6a2d11")

_c = self_changes.c


def change_id(key: str) -> str:
    """The id of the change that a call makes."""
    return str(uuid.uuid5(_IDS, key))


def changes(
    conn: Connection, holder: Holder, kinds: Sequence[ChangeKind] | None = None
) -> list[SelfChange]:
    """A learner's changes and a session's own, the oldest first."""
    own = and_(_c.agent == "", _c.session == holder.session)
    whose = own
    if holder.learner is not None:
        whose = or_(own, _is(holder.learner))
    query = select(self_changes).where(whose)
    if kinds is not None:
        query = query.where(_c.kind.in_(list(kinds)))
    newest = query.order_by(_c.at.desc(), _c.step.desc(), _c.id.desc()).limit(MAX_READ)
    return [_change(row) for row in reversed(conn.execute(newest).all())]


def made(conn: Connection, key: str) -> SelfChange | None:
    """The change that a call has made."""
    row = conn.execute(select(self_changes).where(_c.id == change_id(key))).first()
    return None if row is None else _change(row)


def make(
    conn: Connection, call: Call, decide: Decide, kinds: Sequence[ChangeKind] | None
) -> SelfChange | None:
    """Make a change, unless its call has made it."""
    _lock(conn, call.holder.session)
    known = made(conn, call.key)
    if known is not None:
        return known
    draft = decide(changes(conn, call.holder, kinds))
    if draft is None:
        return None
    learner = call.holder.learner if draft.kept else None
    row = {
        "id": change_id(call.key),
        "namespace": learner.namespace if learner else "",
        "agent": learner.agent if learner else "",
        "user_id": learner.user if learner else "",
        "session": call.holder.session,
        "turn": call.turn,
        "step": call.step,
        "kind": draft.kind,
        "name": draft.name,
        "data": draft.data,
        "delta": draft.delta,
        "rate": draft.rate,
        "at": call.now,
    }
    conn.execute(insert(self_changes), row)
    written = made(conn, call.key)
    assert written is not None  # written in this transaction
    return written


def undo(conn: Connection, id_: str, now: float, key: LearnerKey | None) -> bool:
    """Undo a change that stands."""
    where = and_(_c.id == id_, _c.undone_at.is_(None))
    if key is not None:
        where = and_(where, _is(key))
    return conn.execute(update(self_changes).where(where).values(undone_at=now)).rowcount > 0


def forget(conn: Connection, user_id: str, namespace: str | None) -> int:
    """Delete a user's changes, and what his sessions keep."""
    theirs = select(sessions.c.session).where(sessions.c.user_id == user_id)
    mine = _c.user_id == user_id
    if namespace is not None:
        theirs = theirs.where(sessions.c.org == namespace)
        # A persona may name a namespace of its own, which is no organization.
        mine = and_(mine, or_(_c.namespace == namespace, _c.session.in_(theirs)))
    own = and_(_c.agent == "", _c.session.in_(theirs))
    conn.execute(delete(run_steps).where(run_steps.c.session.in_(theirs)))
    return conn.execute(delete(self_changes).where(or_(mine, own))).rowcount


def begin_step(conn: Connection, call: Call, step: int) -> StepRecord | None:
    """Claim a step."""
    key = call.key
    row: dict[str, Any] = {
        "key": key,
        "step": step,
        "session": call.holder.session,
        "done": 0,
        "result": None,
        "at": call.now,
    }
    claim = add(conn.dialect.name, run_steps).returning(run_steps.c.step)
    if conn.execute(claim, row).first() is not None:
        return None
    found = conn.execute(
        select(run_steps).where(run_steps.c.key == key, run_steps.c.step == step)
    ).one()
    return StepRecord(bool(found.done), found.result)


def end_step(conn: Connection, key: str, step: int, result: Any) -> None:
    """Record a step's result."""
    conn.execute(
        update(run_steps)
        .where(run_steps.c.key == key, run_steps.c.step == step)
        .values(done=1, result=result)
    )


def _is(key: LearnerKey) -> Any:
    return and_(_c.namespace == key.namespace, _c.agent == key.agent, _c.user_id == key.user)


def _lock(conn: Connection, session: str) -> None:
    """Let no other call of this session decide until the transaction ends.

    Not the session's row: a turn loop of the host's own has none. SQLite has one writer anyway.
    """
    if conn.dialect.name == "sqlite":
        return
    digest = hashlib.sha256(session.encode(errors="replace")).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    conn.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})


def _change(row: Row[Any]) -> SelfChange:
    learner = None
    if row.agent:
        learner = LearnerKey(namespace=row.namespace, agent=row.agent, user=row.user_id)
    return SelfChange(
        id=row.id,
        kind=row.kind,
        name=row.name,
        data=row.data,
        learner=learner,
        session=row.session,
        turn=row.turn,
        step=row.step,
        at=row.at,
        delta=row.delta,
        rate=row.rate,
        undone_at=row.undone_at,
    )


def forget_judged(conn: Connection, session: str, turn: Select[tuple[str]]) -> None:
    """Take the words that were judged in some turns out of what evaluations keep.

    Args:
        conn: In a transaction.
        session: The session's key.
        turn: Selects the turns.
    """
    mine = (
        self_changes.c.session == session,
        self_changes.c.kind == "evaluation",
        self_changes.c.turn.in_(turn),
    )
    for row in conn.execute(select(self_changes.c.id, self_changes.c.data).where(*mine)).all():
        patch = {k: v for k, v in (row.data.get("patch") or {}).items() if k != "remember"}
        data = {**row.data, "query": "", "patch": patch}
        conn.execute(update(self_changes).where(self_changes.c.id == row.id).values(data=data))
