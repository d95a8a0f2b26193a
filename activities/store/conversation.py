"""The conversation as it stands: the messages on the path that ends at the session's head."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, and_, false, or_, select, tuple_

from ...workflows.pages import Read
from ...workflows.steps import Segment
from .pages import read_cursor
from .tables import branches, messages, turns


def conversation_rows(
    conn: Connection, request: Read, session: Row[Any]
) -> list[tuple[int, int, Row[Any]]]:
    """Depth and sequence of the turn, and the message's row, oldest first; one over the limit."""
    if session.head is None:
        return []
    head_of = select(turns.c.branch, turns.c.depth, turns.c.root_depth).where(
        turns.c.session == session.session, turns.c.turn == session.head
    )
    head = conn.execute(head_of).first()
    if head is None:
        return []
    path = path_to(conn, session.session, head.branch, head.depth)
    on_path = [and_(turns.c.branch == part.branch, turns.c.depth <= part.depth) for part in path]
    query = (
        select(turns.c.depth, turns.c.seq, messages)
        .join(
            messages,
            and_(messages.c.session == turns.c.session, messages.c.turn == turns.c.turn),
        )
        .where(
            turns.c.session == session.session,
            turns.c.status == "done",
            turns.c.hidden == 0,
            turns.c.depth >= head.root_depth,
            or_(false(), *on_path),
        )
    )
    order = (turns.c.depth, turns.c.seq, messages.c.step, messages.c.idx)
    if place := read_cursor(request.after, int, int, int, int):
        # The first condition can use the index, the second is the exact one.
        query = query.where(turns.c.depth >= place[0], tuple_(*order) > tuple_(*place))
    rows = conn.execute(query.order_by(*order).limit(request.limit + 1))
    return [(row.depth, row.seq, row) for row in rows]


def path_to(conn: Connection, session: str, branch: str, depth: int) -> list[Segment]:
    """The stretches of the path that ends on a branch at a depth, root first."""
    path = [Segment(branch=branch, depth=depth)]
    while True:
        query = select(branches.c.parent_branch, branches.c.fork_depth).where(
            branches.c.session == session, branches.c.branch == path[0].branch
        )
        fork = conn.execute(query).first()
        if fork is None or fork.parent_branch is None:
            return path
        path.insert(0, Segment(branch=fork.parent_branch, depth=fork.fork_depth))
