"""Care for memories: look at them, put one in, correct or erase some."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from ...personas.errors import (
    NotFoundError,
    PermissionDeniedError,
    SessionNotFoundError,
    ValidationError,
)
from ...personas.memory import MemorySettings
from ...personas.schema import Persona
from ...workflows.memory import Care, CareAnswer, user_scope_id
from ..store.pages import Item, cursor, fill, read_cursor
from ..store.protocol import SessionRow
from .decay import strengths
from .health import health
from .index import SearchFilter
from .memories import Memories, scopes_read, settings_of
from .recall import RecallQuery
from .revision import correct, remember
from .store import Find
from .traces import DERIVED_ROLES, Scope, Trace
from .view import item_of, parse_scope, preview, scope_name

HISTOGRAM_STEPS = 10
MAX_LINKS = 100
MAX_DERIVED = 20

MAX_SESSIONS_TOLD, MAX_TURNS_TOLD = 50, 100
"""Sessions that run which are told what was forgotten, and turns of each; the others find out when
they next keep their minds."""


class Sessions(Protocol):
    """Where sessions are looked up."""

    async def find_session(self, session_id: str) -> SessionRow | None:
        """The newest session of an id."""
        ...


class Personas(Protocol):
    """Where personas are looked up."""

    async def persona(self, digest: str) -> Persona:
        """A frozen persona."""
        ...

    async def known(self, persona_id: str) -> Persona | None:
        """A persona that new sessions may name."""
        ...


class MemoryCare:
    """Answers what ``GMIMemory`` is asked.

    Args:
        memories: The worker's long-term memory.
        sessions: The sessions.
        personas: Their personas.
    """

    def __init__(self, memories: Memories, sessions: Sessions, personas: Personas) -> None:
        self._memories = memories
        self._store = memories.store
        self._sessions = sessions
        self._personas = personas

    async def serve(self, request: Care) -> CareAnswer:
        """Do what is asked.

        Args:
            request: With ``now`` and ``request_id`` set.

        Raises:
            ValidationError: It names too little, too much, or nothing that can be.
            NotFoundError: A memory or a session that it names does not exist.
            PermissionDeniedError: A session remembers in a scope that it does not read.
            StoreError: The store does not answer.
        """
        if request.text is not None and not request.text.strip():
            raise ValidationError(
                f"The text of {request.kind} is blank; it needs words, or leave it out."
            )
        match request.kind:
            case "list":
                return await self._list(request)
            case "search":
                return await self._search(request)
            case "show":
                return await self._show(request)
            case "stats":
                return await self._stats(request)
            case "clusters":
                return await self._clusters(request)
            case "remember":
                return await self._remember(request)
            case "correct":
                return await self._correct(request)
            case "forget":
                return await self._forget(request)
            case "health":
                return await self._health(request)

    async def _list(self, request: Care) -> CareAnswer:
        wanted = replace(
            await self._wanted(request, reading=True),
            faded=request.faded,
            before=_place(request.after),
            limit=request.limit + 1,
        )
        found = await self._store.find(wanted)
        items, following = fill(
            ((cursor(repr(t.created_at), t.id), item_of(t, _now(request))) for t in found),
            request.limit,
        )
        return CareAnswer(items=items, next=following)

    async def _search(self, request: Care) -> CareAnswer:
        text = (request.text or "").strip()
        if not text:
            raise ValidationError("A search needs text; say what to look for.")
        settings = await self._settings(request)
        query = RecallQuery(
            text=text,
            scopes=await self._readable(request),
            now=_now(request),
            settings=settings.model_copy(
                update={"hyde": False, "mechanisms": None, "top_k": request.limit}
            ),
            where=SearchFilter(types=request.types),
        )
        found = await self._memories.engine(settings).recaller.recall(query)
        scored: list[tuple[str, Item]] = [
            (
                "",
                item_of(item.trace, _now(request))
                | {
                    "score": round(item.score, 6),
                    "relevance": round(item.relevance, 6),
                    "activation": round(item.activation, 6),
                },
            )
            for item in found.items
        ]
        items, _ = fill(scored, request.limit)
        return CareAnswer(items=items, warnings=found.warnings)

    async def _show(self, request: Care) -> CareAnswer:
        trace = await self._one(request)
        now = _now(request)
        links = await self._store.links([trace.id])
        links = sorted(links, key=lambda link: (-link.weight, link.a, link.b))[:MAX_LINKS]
        others = [link.b if link.a == trace.id else link.a for link in links]
        linked = {t.id: t for t in await self._store.find(Find(ids=others, faded=True, limit=500))}
        derived = [item_of(t, now) for t in (await self._derived(trace))[:MAX_DERIVED]]
        details = {
            "links": [
                {
                    "id": other,
                    "kind": link.kind,
                    "weight": round(link.weight, 6),
                    "content": preview(linked[other]),
                }
                for other, link in zip(others, links, strict=True)
                if other in linked
            ],
            "vectors": await self._store.vectors_by_model(Find(ids=[trace.id], faded=True)),
            "derived": derived,
            "mechanisms": trace.mechanisms,
            "intensity": trace.intensity,
            "dominance": trace.affect.dominance,
        }
        return CareAnswer(items=[item_of(trace, now)], details=details)

    async def _derived(self, trace: Trace) -> list[Trace]:
        """What a consolidation made of a memory."""
        made = await self._store.find(
            Find(scopes=[trace.scope], roles=DERIVED_ROLES, faded=True, limit=1000)
        )
        return [other for other in made if trace.id in other.mechanisms.get("derived_from", ())]

    async def _stats(self, request: Care) -> CareAnswer:
        wanted = await self._wanted(request, reading=True)
        settings = await self._settings(request)
        embedder = self._memories.engine(settings).embedder
        counts = await self._store.count(replace(wanted, faded=True))
        by_model = await self._store.vectors_by_model(wanted)
        if embedder is not None:
            counts["waiting_for_vectors"] = counts["active"] - by_model.get(embedder.model, 0)
        details = {
            "strength": await self._histogram(wanted, _now(request)),
            "vectors": by_model,
            "embedding": embedder.model if embedder is not None else None,
        }
        return CareAnswer(counts=counts, details=details)

    async def _histogram(self, wanted: Find, now: float) -> list[int]:
        """How many memories are how strong now: from 0 to 1 in ten equal steps."""
        rows = await self._store.strengths(wanted)
        return await self._memories.cache.run(lambda: histogram(rows, now))

    async def _clusters(self, request: Care) -> CareAnswer:
        persona = request.persona
        if persona is None:
            raise ValidationError("Clusters belong to a persona; name it.")
        scopes = _scopes(request) or await self._store.scopes_of(persona)
        items: list[Item] = []
        for scope in scopes:
            kept = await self._store.consolidated(persona, scope)
            for cluster in (kept or {}).get("clusters", []):
                shown = {key: part for key, part in cluster.items() if key != "centroid"}
                items.append({"scope": scope_name(scope), **shown})
        page, _ = fill((("", item) for item in items), 1000)
        return CareAnswer(items=page)

    async def _remember(self, request: Care) -> CareAnswer:
        session = await self._session(request)
        scopes = _scopes(request) or []
        if request.user_id is not None:
            scopes = [*scopes, _user_scope(request.user_id, request.org)]
        if not scopes and session is not None:
            scopes = [_user_scope(session.user_id or session.session, session.org)]
        if len(scopes) != 1:
            raise ValidationError(
                f"A memory to remember needs one scope, and {len(scopes)} are named; name one, "
                "such as user:anna."
            )
        if session is not None and request.readable:
            await self._check_reads(session, scopes[0])
        persona_id = request.persona or ""
        if session is not None and not persona_id:
            persona_id = (await self._personas.persona(session.persona_digest)).id
        settings = await self._settings(request)
        if request.source != "human_approval" and not settings.enabled:
            # What comes up in a session goes where its turns go: no memory of ours keeps them.
            return CareAnswer()
        embedder = self._memories.engine(settings).embedder
        trace, warnings = await remember(
            self._store,
            embedder,
            request,
            scopes[0],
            persona_id=persona_id,
            session=session.session if session is not None else "",
        )
        return CareAnswer(items=[item_of(trace, _now(request))], warnings=warnings)

    async def _correct(self, request: Care) -> CareAnswer:
        _narrowed(request)
        words = (request.text or "").strip()
        if not words:
            raise ValidationError("A correction needs text; give the right words.")
        wanted = await self._wanted(request.model_copy(update={"text": None}), reading=False)
        trace = await self._only(wanted)
        embedder = self._memories.engine(await self._settings(request)).embedder
        derived = [other.id for other in await self._derived(trace)]
        changed, warnings = await correct(
            self._store, embedder, trace, words, derived, _now(request)
        )
        return CareAnswer(
            items=[item_of(changed, _now(request))],
            counts={"derived": len(derived)},
            warnings=warnings,
        )

    async def _forget(self, request: Care) -> CareAnswer:
        _narrowed(request)
        wanted = replace(await self._wanted(request, reading=False), faded=True)
        erased = await self._store.erase(wanted, _now(request))
        return CareAnswer(
            counts={
                "traces": erased.traces,
                "derived": erased.derived,
                "vectors": erased.vectors,
                "links": erased.links,
                "contexts": erased.contexts,
            },
            forgotten={
                key: list(erased.minds[key])[-MAX_TURNS_TOLD:]
                for key in sorted(erased.minds)[:MAX_SESSIONS_TOLD]
            },
        )

    async def _health(self, request: Care) -> CareAnswer:
        report = await health(
            self._store,
            self._memories.engine,
            await self._settings(request),
            request.persona,
            await self._wanted(request, reading=True),
            _now(request),
        )
        return CareAnswer(details=report.model_dump(mode="json"))

    async def _one(self, request: Care) -> Trace:
        if len(request.ids or ()) != 1:
            raise ValidationError(f"Name one memory by its id; {len(request.ids or ())} are named.")
        return await self._only(await self._wanted(request, reading=True))

    async def _only(self, wanted: Find) -> Trace:
        found = await self._store.find(replace(wanted, faded=True, limit=2))
        if not found:
            raise NotFoundError(
                "There is no such memory; it was erased, belongs to another scope, or never was.",
                details={"ids": list(wanted.ids or ())},
            )
        if len(found) > 1:
            raise ValidationError("More than one memory is meant; name one by its id.")
        return found[0]

    async def _wanted(self, request: Care, *, reading: bool) -> Find:
        """What the request narrows to."""
        scopes = _scopes(request)
        session = await self._session(request)
        key = session.session if session is not None else None
        if session is not None and request.readable:
            if not reading:
                raise ValidationError(
                    "What a session can read is not its own to change; leave out readable."
                )
            read = await self._read_by(session)
            scopes = read if scopes is None else [scope for scope in scopes if scope in read]
            key = None
        return Find(
            scopes=scopes,
            user_id=request.user_id,
            org=request.org,
            persona_id=request.persona,
            session=key,
            turn=request.turn,
            ids=request.ids,
            types=request.types,
            text=request.text,
        )

    async def _readable(self, request: Care) -> list[Scope]:
        """The scopes that a search reads."""
        scopes = _scopes(request)
        session = await self._session(request)
        if session is not None:
            read = await self._read_by(session)
            return read if scopes is None else [scope for scope in scopes if scope in read]
        if scopes is not None:
            return scopes
        if request.user_id is not None:
            return [_user_scope(request.user_id, request.org)]
        if request.persona is not None:
            return await self._store.scopes_of(request.persona)
        raise ValidationError(
            "A search needs a place; name scopes, a user, a session or a persona."
        )

    async def _read_by(self, session: SessionRow) -> list[Scope]:
        persona = await self._personas.persona(session.persona_digest)
        return scopes_read(
            persona.memory, session.session, session.user_id, session.org, persona.id
        )

    async def _check_reads(self, session: SessionRow, scope: Scope) -> None:
        """Refuse a scope that is no concern of the session."""
        own = _user_scope(session.user_id or session.session, session.org)
        if scope != own and scope not in await self._read_by(session):
            raise PermissionDeniedError(
                f"The session does not read {scope_name(scope)[:200]!r}; remember it in a scope "
                f"that it reads, such as {scope_name(own)[:200]!r}."
            )

    async def _session(self, request: Care) -> SessionRow | None:
        if request.session_id is None:
            return None
        row = await self._sessions.find_session(request.session_id)
        if row is None:
            raise SessionNotFoundError(
                f"The store has no session {request.session_id!r}. One that was never used has no "
                "memory yet: send a message or call initialize() first. Else check the id.",
                details={"session_id": request.session_id},
            )
        return row

    async def _settings(self, request: Care) -> MemorySettings:
        """The settings of the persona that is named, or the defaults."""
        session = await self._session(request)
        if session is not None:
            return settings_of(await self._personas.persona(session.persona_digest))
        if request.persona is not None:
            persona = await self._personas.known(request.persona)
            if persona is not None:
                return settings_of(persona)
        return MemorySettings()


def histogram(rows: list[tuple[float, float, float]], now: float) -> list[int]:
    """How many memories are how strong: from 0 to 1 in ten equal steps.

    Args:
        rows: Strength, stability and last access of each.
        now: Seconds since the epoch.
    """
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    values = strengths(table[:, 0], table[:, 1], table[:, 2], now)
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), bins=HISTOGRAM_STEPS, range=(0.0, 1.0))
    return [int(count) for count in counts]


def _narrowed(request: Care) -> None:
    """Refuse a change of everything.

    Raises:
        ValidationError: Nothing says which memories are meant, or a list of names is empty.
    """
    named = (
        request.scopes,
        request.ids,
        request.user_id,
        request.session_id,
        request.turn,
        request.persona,
    )
    if all(part is None for part in named):
        raise ValidationError(
            f"{request.kind} does not say which memories; name ids, a turn, a session, a user, "
            "scopes or a persona."
        )
    if request.scopes == [] or request.ids == [] or request.types == []:
        raise ValidationError(f"{request.kind} names an empty list of memories; leave it out.")


def _user_scope(user: str, org: str) -> Scope:
    return Scope("user", user_scope_id(user, org))


def _scopes(request: Care) -> list[Scope] | None:
    return None if request.scopes is None else [parse_scope(name) for name in request.scopes]


def _now(request: Care) -> float:
    if request.now is None:
        raise ValidationError("The request has no time; send it through GMIMemory.")
    return request.now


def _place(after: str | None) -> tuple[float, str] | None:
    """The time and the id in a list's cursor.

    Raises:
        ValidationError: It is not a cursor of this list.
    """
    parts = read_cursor(after, str, str)
    if parts is None:
        return None
    try:
        time = float(parts[0])
    except ValueError:
        time = math.nan
    if not math.isfinite(time):
        raise ValidationError(
            f"{str(after)[:100]!r} is not a cursor of this list; pass the `next` of the page "
            "before, as it is."
        )
    return time, parts[1]
