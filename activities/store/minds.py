"""The mind that each turn left."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from sqlalchemy import Connection, insert, select, update

from ...personas.mind import Mind
from ...workflows.steps import At
from .fences import advance, fence, lock_session, resolve_epoch
from .memory.marks import forgotten_turns, has_forgotten
from .tables import minds, sessions


def keep_mind(conn: Connection, at: At, mind: dict[str, Any]) -> set[str]:
    """Keep the mind of a turn; that of an abandoned run never replaces a newer one.

    Returns:
        The turns whose words it held though they are forgotten.
    """
    stamp = fence(resolve_epoch(conn, at), at.counter)
    # Whoever waits for this write's counter finds it.
    advance(conn, at, stamp)
    gone = forgotten_turns(conn, at.session, {at.turn, *_told_of(mind)})
    mind = wordless(conn, at.session, mind, gone)
    mine = (minds.c.session == at.session) & (minds.c.turn == at.turn)
    standing = conn.execute(select(minds.c.fence).where(mine)).scalar()
    if standing is None:
        row = {"session": at.session, "turn": at.turn, "data": mind, "fence": stamp}
        conn.execute(insert(minds), row)
    elif standing <= stamp:
        conn.execute(update(minds).where(mine).values(data=mind, fence=stamp))
    return gone


def forget_words(conn: Connection, session: str, turns: Set[str]) -> None:
    """Take what was said in forgotten turns out of the minds that turns have left."""
    # No turn keeps a mind meanwhile: one that is kept later knows what was forgotten.
    lock_session(conn, session)
    mine = minds.c.session == session
    for row in conn.execute(select(minds.c.turn, minds.c.data).where(mine)).all():
        data = _without(row.data, turns)
        if data != row.data:
            conn.execute(update(minds).where(mine, minds.c.turn == row.turn).values(data=data))
    released = sessions.c.session == session
    state = conn.execute(select(sessions.c.state).where(released)).scalar()
    if state is not None and state.get("mind"):
        mind = _without(state["mind"], turns)
        if mind != state["mind"]:
            conn.execute(update(sessions).where(released).values(state={**state, "mind": mind}))


def _without(data: dict[str, Any], turns: Set[str]) -> dict[str, Any]:
    mind = Mind.model_validate(data)
    rest = mind.without_words_of(turns)
    if rest == mind:
        return data
    wordy = {"sentiment", "happened", "source", "working", "noted_in"}
    return data | rest.model_dump(mode="json", include=wordy)


def wordless(
    conn: Connection, session: str, data: dict[str, Any], gone: Set[str] = frozenset()
) -> dict[str, Any]:
    """A mind without the words of turns that were forgotten while its session had it at hand.

    Args:
        conn: The connection.
        session: The session's key.
        data: The mind.
        gone: Turns that are known to be forgotten.
    """
    gone = gone | forgotten_turns(conn, session, _told_of(data))
    # What happened does not say in which turns, so it goes where any of the session's is forgotten.
    if gone or (data.get("happened") and has_forgotten(conn, session)):
        return _without(data, gone)
    return data


def _told_of(data: dict[str, Any]) -> set[str]:
    """The turns that a mind's sentiment and notes tell of."""
    trends = (data.get("sentiment") or {}).get("trends", [])
    quoted = {trend["turn"] for trend in trends if trend.get("excerpt")}
    return quoted | set((data.get("noted_in") or {}).values())


def mind_of(conn: Connection, session: str, turn: str) -> dict[str, Any] | None:
    """The mind that a turn left; ``None`` where it left none of its own."""
    found = conn.execute(
        select(minds.c.data).where(minds.c.session == session, minds.c.turn == turn)
    ).first()
    return None if found is None else found.data
