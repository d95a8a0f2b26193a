"""What turns' prompts show of memories, and the emptying of it when a memory is erased."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, tuple_, update

from ....workflows.steps import At
from ..fences import epoch_of, fence, resolve_epoch
from .rows import lock_traces, parts
from .tables import contexts, shown

Place = tuple[str, str]
"""A session and a turn of it."""

_context = select(contexts.c.data, contexts.c.fence).where(
    contexts.c.session == bindparam("s"), contexts.c.turn == bindparam("t")
)
_here = (contexts.c.session == bindparam("s"), contexts.c.turn == bindparam("t"))
_shown_here = (shown.c.session == bindparam("s"), shown.c.turn == bindparam("t"))


def keep_context(
    conn: Connection, at: At, attempt: int, data: dict[str, Any]
) -> dict[str, Any] | None:
    """Keep what a turn's prompts show, unless an attempt of the same step has kept its own.

    Returns:
        What stands; ``None`` when a memory that ``data`` shows is erased: nothing is kept then.
    """
    epoch = resolve_epoch(conn, at)
    stamp = fence(epoch, at.counter, attempt)
    here = {"s": at.session, "t": at.turn}
    found = conn.execute(_context, here).first()
    if found is not None and epoch_of(found.fence) == epoch:
        kept: dict[str, Any] = found.data
        return kept
    ids = shows(data)
    # Whoever erases one of them locks it first, and so finds this context or makes it fail here.
    if lock_traces(conn, ids, sharing=True) != ids:
        return None
    if found is None:
        row = {"session": at.session, "turn": at.turn, "data": data, "fence": stamp}
        conn.execute(insert(contexts), row)
    else:
        conn.execute(update(contexts).where(*_here).values(data=data, fence=stamp), here)
        conn.execute(delete(shown).where(*_shown_here), here)
    _note(conn, {(at.session, at.turn): ids})
    return data


def get_context(conn: Connection, session: str, turn: str) -> dict[str, Any] | None:
    """What a turn's prompts show."""
    found = conn.execute(_context, {"s": session, "t": turn}).first()
    return None if found is None else found.data


def shows(data: Mapping[str, Any]) -> set[str]:
    """Ids of the memories that a context is made of."""
    recalled = (item.get("id") for item in data.get("recalled", []))
    ids = {*recalled, *data.get("shown", []), *data.get("hinted", [])}
    return {id_ for id_ in ids if id_}


def showing(conn: Connection, ids: Sequence[str]) -> list[Place]:
    """The contexts that show one of these memories, in order."""
    found: set[Place] = set()
    for part in parts(ids):
        query = select(shown.c.session, shown.c.turn).where(shown.c.trace.in_(part)).distinct()
        found |= {(row.session, row.turn) for row in conn.execute(query)}
    return sorted(found)


def empty(conn: Connection, places: Sequence[Place], ids: Collection[str]) -> int:
    """Empty the text of these contexts, since it shows memories that go.

    Returns:
        How many were emptied.
    """
    count = 0
    for part in parts(places):
        query = (
            select(contexts.c.session, contexts.c.turn, contexts.c.data)
            .where(tuple_(contexts.c.session, contexts.c.turn).in_(part))
            .order_by(contexts.c.session, contexts.c.turn)
        )
        rows = conn.execute(query if conn.dialect.name == "sqlite" else query.with_for_update())
        emptied = [{"s": row.session, "t": row.turn, "new": without(row.data, ids)} for row in rows]
        if not emptied:
            continue
        conn.execute(update(contexts).where(*_here).values(data=bindparam("new")), emptied)
        conn.execute(
            delete(shown).where(*_shown_here), [{"s": e["s"], "t": e["t"]} for e in emptied]
        )
        _note(conn, {(e["s"], e["t"]): shows(e["new"]) for e in emptied})
        count += len(emptied)
    return count


def without(data: Mapping[str, Any], ids: Collection[str]) -> dict[str, Any]:
    """A context without its text and without these memories."""
    opened = dict(data.get("opened") or {})
    if opened:
        opened["recalled"] = [id_ for id_ in opened.get("recalled", []) if id_ not in ids]
        opened["slots"] = [s for s in opened.get("slots", []) if s.get("trace") not in ids]
        if opened.get("involuntary") in ids:
            opened["involuntary"] = None
        # An attempt that shows the emptied text tells of no reminder.
        opened["reminded"] = []
    kept = {
        **data,
        "text": "",
        "recalled": [item for item in data.get("recalled", []) if item.get("id") not in ids],
        "erased": True,
    }
    for name in ("shown", "hinted"):
        if name in data:
            kept[name] = [id_ for id_ in data[name] if id_ not in ids]
    if "suppressed" in data:
        kept["suppressed"] = {i: lost for i, lost in data["suppressed"].items() if i not in ids}
    if "opened" in data:
        kept["opened"] = opened
    return kept


def _note(conn: Connection, shows_: Mapping[Place, Collection[str]]) -> None:
    rows = [
        {"trace": id_, "session": session, "turn": turn}
        for (session, turn), ids in shows_.items()
        for id_ in sorted(ids)
    ]
    if rows:
        conn.execute(insert(shown), rows)
