"""Long-term memory as a client sees it: of everybody, and narrowed to a session."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from ..personas.memory_health import MemoryHealth
from ..workflows.decode import parse
from ..workflows.memory import Care, CareAnswer, CareKind, MaintenanceReport, MemoryType
from .calls import calling
from .consolidation import consolidate
from .endpoint import Endpoint
from .session_calls import SessionCalls, check_size

Item = dict[str, Any]
Items = list[Item]
"""Memories as JSON; ``docs/memory.md`` lists their keys."""


class MemoryClient:
    """Looks at memories, puts some in, corrects and erases them, for whoever runs the workers.

    Which memories is said by the same arguments everywhere, all of which must hold: ``scopes``
    (``kind:id``, such as ``user:anna``), ``user_id`` and the ``org`` that the user belongs to (what
    is in the user's scope and what was made in the user's sessions), ``persona``, ``session_id``
    (what was made in the session), ``turn``, ``ids``, ``types``. Works without a session that runs.

    Args:
        workers: The workers, which read and write the store.
    """

    def __init__(self, workers: Endpoint) -> None:
        self._workers = workers

    async def list(
        self,
        *,
        scopes: Sequence[str] | None = None,
        user_id: str | None = None,
        org: str = "",
        persona: str | None = None,
        session_id: str | None = None,
        readable: bool = False,
        turn: str | None = None,
        ids: Sequence[str] | None = None,
        types: Sequence[MemoryType] | None = None,
        text: str | None = None,
        faded: bool = False,
    ) -> AsyncIterator[Item]:
        """Memories, the newest first, page by page.

        Args:
            scopes: See :class:`MemoryClient`, as for the others that are not said here.
            user_id: A user.
            org: The user's organization.
            persona: A persona's id.
            session_id: A session.
            readable: With ``session_id``: everything that the session's recall reads.
            turn: A turn.
            ids: Memories.
            types: Kinds of memories.
            text: Words that they contain.
            faded: Also those that are no longer recalled.
        """
        after: str | None = None
        while True:
            answer = await self.care(
                "list",
                scopes=scopes,
                user_id=user_id,
                org=org,
                persona=persona,
                session_id=session_id,
                readable=readable,
                turn=turn,
                ids=ids,
                types=types,
                text=text,
                faded=faded,
                after=after,
                limit=100,
            )
            for item in answer.items:
                yield item
            if answer.next is None:
                return
            after = answer.next

    async def search(
        self,
        text: str,
        *,
        scopes: Sequence[str] | None = None,
        user_id: str | None = None,
        org: str = "",
        persona: str | None = None,
        session_id: str | None = None,
        types: Sequence[MemoryType] | None = None,
        limit: int = 20,
    ) -> Items:
        """What a recall would bring up, the best first, with ``score``; nothing changes by it.

        Args:
            text: What to look for.
            scopes: Where: scopes,
            user_id: a user's scope,
            org: the organization of that user,
            persona: all scopes in which a persona has memories,
            session_id: or what a session reads; one of them is needed.
            types: Kinds of memories.
            limit: Most memories, at most 200.

        Raises:
            ValidationError: No place is named, or there is no text.
        """
        answer = await self.care(
            "search",
            text=text,
            scopes=scopes,
            user_id=user_id,
            org=org,
            persona=persona,
            session_id=session_id,
            types=types,
            limit=limit,
        )
        return answer.items

    async def show(self, id: str) -> Item:
        """One memory, with its ``links``, ``vectors``, ``mechanisms``, and what was ``derived``.

        Raises:
            NotFoundError: There is no such memory.
        """
        return shown(await self.care("show", ids=[id]))

    async def stats(
        self,
        *,
        scopes: Sequence[str] | None = None,
        user_id: str | None = None,
        org: str = "",
        persona: str | None = None,
        session_id: str | None = None,
        types: Sequence[MemoryType] | None = None,
    ) -> CareAnswer:
        """How many memories there are.

        Returns:
            ``counts``: ``traces``, ``active``, ``vectors``, ``links``, ``waiting_for_vectors``,
            and by kind (``type:semantic``) and scope (``scope:user``). ``details``: the
            ``strength`` of the active ones from 0 to 1 in ten steps, ``vectors`` by model, the
            ``embedding`` model.
        """
        return await self.care(
            "stats",
            scopes=scopes,
            user_id=user_id,
            org=org,
            persona=persona,
            session_id=session_id,
            types=types,
        )

    async def clusters(self, persona: str, *, scopes: Sequence[str] | None = None) -> Items:
        """What a persona's memories are often about, as its last consolidation found it."""
        return (await self.care("clusters", persona=persona, scopes=scopes)).items

    async def remember(
        self,
        text: str,
        *,
        scope: str,
        persona: str = "",
        type: MemoryType = "semantic",
        importance: float | None = None,
        tags: Sequence[str] = (),
        request_id: str | None = None,
    ) -> Item:
        """Put a memory in by hand.

        Args:
            text: What to remember, at most 4,000 characters.
            scope: Whose memory it is, such as ``user:anna``, ``user:acme/anna`` for a user of
                the organization acme, or ``organization:acme``.
            persona: The persona that it is meant for.
            type: Its kind.
            importance: In [0, 1]; 0.8 without.
            tags: Any words.
            request_id: Repeating a call with the same id makes no second memory.

        Returns:
            The memory.

        Raises:
            ValidationError: There is no text, or the scope is none.
        """
        answer = await self.care(
            "remember",
            text=text,
            scopes=[scope],
            persona=persona or None,
            type=type,
            importance=importance,
            tags=tags,
            request_id=request_id,
        )
        return answer.items[0]

    async def correct(self, id: str, text: str) -> Item:
        """Give a memory the right words; what was made of the wrong ones goes.

        Returns:
            The memory as it is now: vouched for by a person, and fresh.

        Raises:
            NotFoundError: There is no such memory.
        """
        return (await self.care("correct", ids=[id], text=text)).items[0]

    async def forget(
        self,
        *,
        ids: Sequence[str] | None = None,
        turn: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        org: str = "",
        scopes: Sequence[str] | None = None,
        persona: str | None = None,
        types: Sequence[MemoryType] | None = None,
        text: str | None = None,
    ) -> dict[str, int]:
        """Erase memories, with what was made of them, their vectors and links, for good.

        What a turn's prompt showed of them is erased as well, and turns that are named by turn,
        session, user or scope are not remembered later either. The conversation itself stays.

        Returns:
            How many ``traces``, ``derived`` ones, ``vectors``, ``links`` and ``contexts``.

        Raises:
            ValidationError: Nothing says which memories are meant, or something that does is empty.
        """
        answer = await self.care(
            "forget",
            ids=ids,
            turn=turn,
            session_id=session_id,
            user_id=user_id,
            org=org,
            scopes=scopes,
            persona=persona,
            types=types,
            text=text,
        )
        return answer.counts

    async def consolidate(self, persona: str) -> MaintenanceReport:
        """Tidy a persona's memories now, whatever its schedule says, and wait for the end."""
        workers = self._workers
        return await consolidate(workers.temporal, persona, task_queue=workers.task_queue)

    async def health(self, persona: str | None = None) -> MemoryHealth:
        """How the long-term memory fares: its store, its embedding model, its consolidation.

        Args:
            persona: The persona whose embedding model and consolidation are looked at; the
                worker's own model without.
        """
        return MemoryHealth.model_validate((await self.care("health", persona=persona)).details)

    async def care(self, kind: CareKind, **asked: Any) -> CareAnswer:
        """Ask ``GMIMemory``; the other methods are made of this.

        Args:
            kind: What is asked.
            asked: Fields of :class:`~gmi.workflows.memory.Care`.
        """
        given = {name: value for name, value in asked.items() if value is not None}
        request = parse({"kind": kind, **given}, Care)
        check_size(request)
        # One id for all attempts: a repeat of a call that landed gets that call's answer.
        workflow_id = f"gmi-memory-{uuid.uuid4()}"

        async def call() -> CareAnswer:
            temporal = self._workers.temporal
            try:
                handle = await temporal.start_workflow(
                    "GMIMemory",
                    request,
                    id=workflow_id,
                    task_queue=self._workers.task_queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    result_type=CareAnswer,
                )
            except WorkflowAlreadyStartedError:
                handle = temporal.get_workflow_handle(workflow_id, result_type=CareAnswer)
            answer: CareAnswer = await handle.result()
            return answer

        return await calling(call)


class SessionMemory:
    """A session's long-term memory: what its recall reads, and what was made in it.

    Looking shows what the session's recall reads: the user's memories, the session's own, the
    persona's and the organization's, as far as the persona's settings let it. What it reads can
    also be corrected, and erased by id, whoever shares it.

    Args:
        memory: The memory of everybody.
        session: The session.
    """

    def __init__(self, memory: MemoryClient, session: SessionCalls) -> None:
        self._memory = memory
        self._session = session

    def list(
        self,
        *,
        types: Sequence[MemoryType] | None = None,
        text: str | None = None,
        faded: bool = False,
    ) -> AsyncIterator[Item]:
        """What the session reads, the newest first; see :meth:`MemoryClient.list`."""
        return self._memory.list(
            session_id=self._session.id, readable=True, types=types, text=text, faded=faded
        )

    async def recall(self, text: str, *, limit: int = 20) -> Items:
        """What the text would bring to mind, the best first; nothing changes by it."""
        return await self._memory.search(text, session_id=self._session.id, limit=limit)

    async def search(self, text: str, *, limit: int = 20) -> Items:
        """The same as :meth:`recall`."""
        return await self.recall(text, limit=limit)

    async def show(self, id: str) -> Item:
        """One memory that the session reads; see :meth:`MemoryClient.show`."""
        return shown(
            await self._memory.care("show", ids=[id], session_id=self._session.id, readable=True)
        )

    async def stats(self) -> CareAnswer:
        """How many memories the session reads; see :meth:`MemoryClient.stats`."""
        return await self._memory.care("stats", session_id=self._session.id, readable=True)

    async def remember(
        self,
        text: str,
        *,
        scope: str | None = None,
        type: MemoryType = "semantic",
        importance: float | None = None,
        tags: Sequence[str] = (),
        request_id: str | None = None,
    ) -> Item:
        """Put a memory in by hand, for the session's persona.

        Args:
            text: What to remember.
            scope: Whose memory it is; the user's without.
            type: Its kind.
            importance: In [0, 1]; 0.8 without.
            tags: Any words.
            request_id: Repeating a call with the same id makes no second memory.

        Raises:
            ValidationError: There is no text, or the scope is none.
            PermissionDeniedError: The session does not read the scope.
        """
        answer = await self._memory.care(
            "remember",
            text=text,
            session_id=self._session.id,
            readable=True,
            scopes=None if scope is None else [scope],
            type=type,
            importance=importance,
            tags=tags,
            request_id=request_id,
        )
        return answer.items[0]

    async def correct(self, id: str, text: str) -> Item:
        """Give a memory that the session reads the right words.

        Raises:
            NotFoundError: The session reads no such memory.
        """
        await self.show(id)
        return await self._memory.correct(id, text)

    async def forget(
        self, *, ids: Sequence[str] | None = None, turn: str | None = None
    ) -> dict[str, int]:
        """Erase memories; see :meth:`MemoryClient.forget`.

        Args:
            ids: These memories, which the session must be able to read; with ``turn`` those of
                them that were made of it.
            turn: What was made of this turn. Without either, everything that was made in the
                session.

        Raises:
            NotFoundError: The session reads no such memory.
        """
        if ids is not None:
            for id_ in ids:
                await self.show(id_)
            return await self._memory.forget(ids=ids, turn=turn)
        return await self._memory.forget(session_id=self._session.id, turn=turn)


def shown(answer: CareAnswer) -> Item:
    """The memory that ``show`` answers with, and what is told beside it."""
    return {**answer.items[0], **answer.details}
