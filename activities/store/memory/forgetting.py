"""Keeping what is erased from coming back: turns that are never encoded, memories never remade."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, and_, exists, false, literal, or_, select

from ....personas.errors import GMIError
from ....personas.schema import Persona
from ....workflows.memory import scope_owner, user_scope_id
from ...memory.store import Find
from ...memory.traces import Scope, TraceType, trace_id
from ..fences import lock_session
from ..learning.changes import forget_judged
from ..rows import add, insert_into
from ..tables import blobs, minds, sessions, turns
from .finding import sessions_of
from .marks import FORGOTTEN
from .rows import folded, parts
from .tables import applied, forgotten
from .turns import words_of


def keep_from_encoding(conn: Connection, wanted: Find, now: float) -> dict[str, list[str]]:
    """Let no turn that the search names become memories that it would erase.

    A search by what a memory is or says leaves a turn its other memories. What a turn that runs
    has not said yet is not known; only what it has said so far is looked at.

    Returns:
        The turns that are forgotten as a whole, by session, where their minds are kept; the oldest
        first.
    """
    named = _named(conn, wanted)
    if not named:
        return {}
    # An encoding under way locks its session; it is waited for, and what it wrote is found.
    touched = sorted(conn.execute(select(turns.c.session).where(*named).distinct()).scalars())
    for key in touched:
        lock_session(conn, key)
    if wanted.types is not None or wanted.text is not None:
        bury(conn, _waiting(conn, wanted, named), now)
        return {}
    marks = select(
        turns.c.session, turns.c.turn, literal("encode"), literal(FORGOTTEN), literal(now)
    ).where(*named)
    conn.execute(
        insert_into(conn.dialect.name, applied)
        .from_select(["session", "turn", "what", "epoch", "at"], marks)
        .on_conflict_do_update(
            index_elements=[applied.c.session, applied.c.turn, applied.c.what],
            set_={"epoch": FORGOTTEN},
        )
    )
    for key in touched:
        forget_judged(conn, key, select(turns.c.turn).where(*named, turns.c.session == key))
    felt = or_(
        exists().where(minds.c.session == turns.c.session),
        exists().where(sessions.c.session == turns.c.session, sessions.c.state.is_not(None)),
    )
    found: dict[str, list[str]] = {}
    theirs = select(turns.c.session, turns.c.turn).where(*named, felt).order_by(turns.c.seq)
    for row in conn.execute(theirs):
        found.setdefault(row.session, []).append(row.turn)
    return found


def bury(conn: Connection, ids: Iterable[str], now: float) -> None:
    """Remember that these memories were erased: a reset or a retry does not bring them back."""
    rows = [{"trace": id_, "at": now} for id_ in sorted(set(ids))]
    if rows:
        conn.execute(add(conn.dialect.name, forgotten), rows)


def buried(conn: Connection, ids: Sequence[str]) -> set[str]:
    """Which of these memories were erased."""
    found: set[str] = set()
    for part in parts(ids):
        query = select(forgotten.c.trace).where(forgotten.c.trace.in_(part))
        found |= set(conn.execute(query).scalars())
    return found


def _named(conn: Connection, wanted: Find) -> list[ColumnElement[bool]]:
    """The conditions of the turns that a search names; none when it names memories."""
    if wanted.ids is not None or wanted.roles is not None:
        return []
    named: list[ColumnElement[bool]] = []
    if wanted.session is not None:
        named.append(turns.c.session == wanted.session)
    if wanted.turn is not None:
        named.append(turns.c.turn == wanted.turn)
    if wanted.user_id is not None:
        named.append(turns.c.session.in_(sessions_of(wanted.user_id, wanted.org)))
    if wanted.scopes is not None:
        named.append(or_(false(), *(_spoken_in(scope) for scope in wanted.scopes)))
    if wanted.persona_id is not None:
        digests = conn.execute(select(turns.c.persona_digest).where(*named).distinct()).scalars()
        own = [digest for digest in digests if _persona(conn, digest) == wanted.persona_id]
        named.append(turns.c.persona_digest.in_(own))
    return named


def _spoken_in(scope: Scope) -> ColumnElement[bool]:
    """Whether a turn leaves memories in a scope."""
    if scope.kind == "thread":
        return turns.c.session == scope.id
    if scope.kind == "user":
        user, org = scope_owner(scope.id)
        # Without a user id a session's key stands for the user.
        alone = select(sessions.c.session).where(
            sessions.c.session == user, sessions.c.org == org, sessions.c.user_id == ""
        )
        return or_(
            turns.c.session.in_(sessions_of(user, org)) if user else false(),
            turns.c.session.in_(alone),
        )
    return false()


def _persona(conn: Connection, digest: str) -> str | None:
    """The id of a frozen persona."""
    data = conn.execute(select(blobs.c.data).where(blobs.c.digest == digest)).scalar()
    if data is None:
        return None
    try:
        return Persona.from_json(bytes(data)).id
    except (GMIError, ValueError):
        return None


def _waiting(conn: Connection, wanted: Find, named: Sequence[ColumnElement[bool]]) -> Iterator[str]:
    """Ids of the memories that would be found if all turns were encoded."""
    encoded = and_(
        applied.c.session == turns.c.session,
        applied.c.turn == turns.c.turn,
        applied.c.what == "encode",
    )
    query = (
        select(turns.c.session, turns.c.turn, turns.c.output, sessions.c.user_id, sessions.c.org)
        .join(sessions, sessions.c.session == turns.c.session)
        .where(*named, ~exists().where(encoded))
    )
    for row in conn.execute(query).all():
        said, answered = words_of(conn, row.session, row.turn) if wanted.text else ("", "")
        happened = str(((row.output or {}).get("event") or {}).get("message", said))
        user = Scope("user", user_scope_id(row.user_id or row.session, row.org))
        memories: tuple[tuple[str, TraceType, Scope, str], ...] = (
            ("user", "episodic", user, said),
            ("event", "episodic", user, happened),
            ("assistant", "semantic", Scope("thread", row.session), answered),
        )
        for role, type_, scope, words in memories:
            if (
                (wanted.types is None or type_ in wanted.types)
                and (wanted.scopes is None or scope in wanted.scopes)
                and (wanted.text is None or folded(wanted.text) in folded(words))
            ):
                yield trace_id(row.session, row.turn, role)
