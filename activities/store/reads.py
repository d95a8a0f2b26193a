"""What can be read: pages of a session's rows."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import Connection, Row, select, tuple_

from ...personas.errors import SessionNotFoundError, TurnNotFoundError
from ...personas.messages import Message
from ...workflows.pages import Page, Read
from ...workflows.turns import TurnOutput
from .conversation import conversation_rows
from .engine import Database
from .minds import mind_of
from .pages import Item, cursor, fill, read_cursor, read_time
from .pieces import blob_page, message_page, text_page
from .tables import messages, minds, sessions, trace, turns, usage

POLL_SECONDS = 0.02
"""Pause between two looks at the session's write counter."""

Found = list[tuple[str, Item]]


async def read(database: Database, request: Read) -> Page:
    """A page of what the request names; waits for its write counter first."""
    if request.what == "blob":
        return await database.read(lambda conn: blob_page(conn, request))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + max(request.wait, 0.0)
    while True:
        session = await database.read(lambda conn: _session(conn, request))
        behind = session.counter < request.min_counter
        if not behind or loop.time() >= deadline:
            break
        await asyncio.sleep(POLL_SECONDS)
    page = await database.read(lambda conn: _page(conn, request, session))
    return page.model_copy(update={"counter": session.counter, "behind": behind})


def _session(conn: Connection, request: Read) -> Row[Any]:
    query = select(sessions)
    if request.session_key is not None:
        query = query.where(sessions.c.session == request.session_key)
    else:
        query = query.where(sessions.c.session_id == request.session_id).order_by(
            sessions.c.created_at.desc(), sessions.c.session.desc()
        )
    row = conn.execute(query.limit(1)).first()
    if row is None or row.session_id != request.session_id:
        raise SessionNotFoundError(
            f"the store has no session {request.session_id!r}"
            + (f" with the key {request.session_key!r}" if request.session_key else "")
            + "; check the id, and that the worker uses the database it was opened with",
            details={"session_id": request.session_id},
        )
    return row


def _page(conn: Connection, request: Read, session: Row[Any]) -> Page:
    if request.what == "session":
        return Page(items=[_session_item(session)])
    if request.what == "mind" and request.turn is not None:
        turn = _turn(conn, session.session, request.turn)
        kept = mind_of(conn, session.session, turn.turn)
        return Page(items=[] if kept is None else [{"turn": turn.turn, "mind": kept}])
    if request.what == "text":
        return text_page(conn, request, _turn(conn, session.session, request.turn))
    if request.what == "message":
        return message_page(conn, request, _turn(conn, session.session, request.turn))
    if request.what == "turn":
        turn = _turn(conn, session.session, request.turn)
        output = turn.output and TurnOutput.model_validate(turn.output).model_dump(mode="json")
        item = _turn_item(turn) | {"output": output}
        items, _ = fill([("", item)], 1)
        return Page(items=items)
    lists = {
        "turns": _turns,
        "messages": _messages,
        "mind": _minds,
        "trace": _trace,
        "usage": _usage,
    }
    found = lists[request.what](conn, request, session)
    items, following = fill(found, request.limit)
    return Page(items=items, next=following)


def _session_item(row: Row[Any]) -> Item:
    return {
        "session": row.session,
        "session_id": row.session_id,
        "user_id": row.user_id,
        "org": row.org,
        "persona_digest": row.persona_digest,
        "toolset_digest": row.toolset_digest,
        "config": row.config,
        "epoch": row.epoch,
        "counter": row.counter,
        "head": row.head,
        "created_at": row.created_at.isoformat(),
        "closed_at": row.closed_at.isoformat() if row.closed_at else None,
    }


def _turn_item(row: Row[Any]) -> Item:
    output = row.output or {}
    return {
        "turn": row.turn,
        "seq": row.seq,
        "request_id": row.request_id,
        "kind": row.kind,
        "status": row.status,
        "parent": row.parent,
        "branch": row.branch,
        "depth": row.depth,
        "sender": row.sender,
        "created_at": row.created_at.isoformat(),
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
        "messages": row.messages,
        "steps": row.steps,
        "usage": row.usage or {},
        "model": output.get("model"),
        "error": output.get("error"),
        "preview": "" if row.hidden else row.preview,
        "hidden": bool(row.hidden),
    }


def _turn(conn: Connection, session: str, turn: str | None) -> Row[Any]:
    query = select(turns).where(turns.c.session == session, turns.c.turn == turn)
    row = conn.execute(query).first()
    if row is None:
        raise TurnNotFoundError(
            f"session {session} has no turn {turn!r} in the store; a turn is there once its first "
            "step began",
            details={"session": session, "turn": turn},
        )
    return row


def _turns(conn: Connection, request: Read, session: Row[Any]) -> Found:
    query = select(turns).where(turns.c.session == session.session)
    if place := read_cursor(request.after, int, str):
        query = query.where(tuple_(turns.c.seq, turns.c.turn) > tuple_(*place))
    query = query.order_by(turns.c.seq, turns.c.turn).limit(request.limit + 1)
    rows = conn.execute(query)
    return [(cursor(row.seq, row.turn), _turn_item(row)) for row in rows]


def _minds(conn: Connection, request: Read, session: Row[Any]) -> Found:
    query = (
        select(turns.c.seq, turns.c.turn, turns.c.created_at, minds.c.data)
        .join(minds, (minds.c.session == turns.c.session) & (minds.c.turn == turns.c.turn))
        .where(turns.c.session == session.session)
    )
    if place := read_cursor(request.after, int, str):
        query = query.where(tuple_(turns.c.seq, turns.c.turn) > tuple_(*place))
    query = query.order_by(turns.c.seq, turns.c.turn).limit(request.limit + 1)
    return [
        (
            cursor(row.seq, row.turn),
            {
                "turn": row.turn,
                "seq": row.seq,
                "created_at": row.created_at.isoformat(),
                "mind": row.data,
            },
        )
        for row in conn.execute(query)
    ]


def _messages(conn: Connection, request: Read, session: Row[Any]) -> Found:
    if request.turn is None:
        rows = conversation_rows(conn, request, session)
    else:
        turn = _turn(conn, session.session, request.turn)
        query = select(messages).where(
            messages.c.session == session.session, messages.c.turn == turn.turn
        )
        if place := read_cursor(request.after, int, int, int, int):
            at = tuple_(messages.c.step, messages.c.idx)
            query = query.where(at > tuple_(*place[2:]))
        query = query.order_by(messages.c.step, messages.c.idx).limit(request.limit + 1)
        found = conn.execute(query)
        rows = [(turn.depth, turn.seq, row) for row in found]
    return [
        (cursor(depth, seq, row.step, row.idx), _message_item(row, seq)) for depth, seq, row in rows
    ]


def _message_item(row: Row[Any], seq: int) -> Item:
    message = Message.model_validate_json(row.body)
    return {
        "turn": row.turn,
        "seq": seq,
        "step": row.step,
        "index": row.idx,
        "bytes": row.bytes,
        "message": message.model_dump(mode="json", exclude_defaults=True),
    }


def _trace(conn: Connection, request: Read, session: Row[Any]) -> Found:
    query = select(trace).where(trace.c.session == session.session)
    if request.turn is not None:
        query = query.where(trace.c.turn == request.turn)
    if place := read_cursor(request.after, int):
        query = query.where(trace.c.seq > place[0])
    rows = conn.execute(query.order_by(trace.c.seq).limit(request.limit + 1))
    return [
        (
            cursor(row.seq),
            {
                "seq": row.seq,
                "at": row.at.isoformat(),
                "type": row.type,
                "message": row.message,
                "turn": row.turn,
                "details": row.details,
            },
        )
        for row in rows
    ]


_bill = (usage.c.turn, usage.c.step, usage.c.attempt, usage.c.hop, usage.c.purpose, usage.c.epoch)


def _usage(conn: Connection, request: Read, session: Row[Any]) -> Found:
    query = select(usage).where(usage.c.session == session.session)
    if request.turn is not None:
        query = query.where(usage.c.turn == request.turn)
    if place := read_cursor(request.after, str, str, int, int, int, str, int):
        at, *key = place
        since = read_time(at)
        query = query.where(
            (usage.c.at > since) | ((usage.c.at == since) & (tuple_(*_bill) > tuple_(*key)))
        )
    rows = conn.execute(query.order_by(usage.c.at, *_bill).limit(request.limit + 1))
    return [(cursor(row.at.isoformat(), *_key(row)), _usage_item(row)) for row in rows]


def _key(row: Row[Any]) -> tuple[str | int, ...]:
    return (row.turn, row.step, row.attempt, row.hop, row.purpose, row.epoch)


def _usage_item(row: Row[Any]) -> Item:
    return {
        "turn": row.turn,
        "step": row.step,
        "attempt": row.attempt,
        "hop": row.hop,
        "purpose": row.purpose,
        "epoch": row.epoch,
        "provider": row.provider,
        "model": row.model,
        "state": row.state,
        "usage": row.usage,
        "at": row.at.isoformat(),
    }
