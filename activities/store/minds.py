"""The mind that each turn left."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from sqlalchemy import Connection, insert, select, update

from ...personas.mind import Mind
from ...workflows.steps import At
from .fences import fence, resolve_epoch
from .tables import minds


def keep_mind(conn: Connection, at: At, mind: dict[str, Any]) -> None:
    """Keep the mind of a turn; that of an abandoned run never replaces a newer one."""
    stamp = fence(resolve_epoch(conn, at), at.counter)
    mine = (minds.c.session == at.session) & (minds.c.turn == at.turn)
    standing = conn.execute(select(minds.c.fence).where(mine)).scalar()
    if standing is None:
        row = {"session": at.session, "turn": at.turn, "data": mind, "fence": stamp}
        conn.execute(insert(minds), row)
    elif standing <= stamp:
        conn.execute(update(minds).where(mine).values(data=mind, fence=stamp))


def forget_words(conn: Connection, session: str, turns: Set[str]) -> None:
    """Take what was said in forgotten turns out of the minds that turns have left."""
    mine = minds.c.session == session
    for row in conn.execute(select(minds.c.turn, minds.c.data).where(mine)).all():
        mind = Mind.model_validate(row.data)
        wordless = mind.without_words_of(turns)
        if wordless != mind:
            changed = wordless.model_dump(mode="json", include={"sentiment", "happened", "source"})
            data = {**row.data, **changed}
            conn.execute(update(minds).where(mine, minds.c.turn == row.turn).values(data=data))


def mind_of(conn: Connection, session: str, turn: str) -> dict[str, Any] | None:
    """The mind that a turn left; ``None`` where it left none of its own."""
    found = conn.execute(
        select(minds.c.data).where(minds.c.session == session, minds.c.turn == turn)
    ).first()
    return None if found is None else found.data
