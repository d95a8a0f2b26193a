"""How a session's client calls it: updates, signals, queries, and reads of the store."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel
from temporalio.client import WithStartWorkflowOperation, WorkflowHandle
from temporalio.common import QueryRejectCondition, WorkflowIDConflictPolicy

from ..personas.errors import (
    MessageTooLargeError,
    SessionClosedError,
    SessionNotFoundError,
    StoreBehindError,
    ValidationError,
)
from ..workflows.decode import MAX_INPUT_BYTES, encoded_size, parse
from ..workflows.pages import Page, Read, ReadKind
from ..workflows.requests import check_credentials
from ..workflows.session import GMISession
from ..workflows.session_records import SessionConfig
from ..workflows.state import WORKFLOW_PREFIX, SessionStart
from .calls import calling
from .endpoint import Endpoint
from .feed import Feed

T = TypeVar("T")

TASK_TIMEOUT = timedelta(seconds=5)
"""A worker killed in the middle of a workflow task holds its session up for this long."""

CATCH_UP_SECONDS = 30
"""Seconds that a read waits for the writes that its client knows of."""


_NARROWING = ("turn", "step", "index", "digest", "limit")


class SessionCalls:
    """The calls that every operation of a session is made of.

    Args:
        workers: The workers that serve it.
        session_id: The session's id.
        user_id: The user it serves.
        persona: The persona of a new session; the worker's default without.
        org: The user's organization.
        config: Settings of a new session.
    """

    def __init__(
        self,
        workers: Endpoint,
        session_id: str,
        *,
        user_id: str,
        persona: str | None,
        org: str,
        config: SessionConfig,
    ) -> None:
        check_credentials(config.credentials)
        self._workers = workers
        self.id = session_id
        self.user_id = user_id
        self._persona = persona
        self._org = org
        self._config = config
        self.key: str | None = None
        self._counter = 0
        self._closed = False

    @property
    def workflow_id(self) -> str:
        """Id of the session's workflow."""
        return WORKFLOW_PREFIX + self.id

    @property
    def feed(self) -> Feed:
        """The session's chunk stream, shared by all readers of this client."""
        return self._workers.feeds.of(self.workflow_id)

    def _check_open(self) -> None:
        """Refuse what would start the session again after it was closed here."""
        if self._closed:
            raise SessionClosedError(
                f"The session {self.id!r} is closed; open it again with client.session()."
            )

    async def read(self, what: ReadKind, **where: Any) -> AsyncIterator[dict[str, Any]]:
        """Everything of a kind that the store holds about the session, page by page.

        Any user's: who may read is for the program to decide.

        Args:
            what: The kind.
            where: Fields of :class:`~gmi.workflows.pages.Read` that narrow it: ``turn``, ``step``,
                ``index``, ``digest``, and the ``limit`` of a page.

        Raises:
            ValidationError: There is no such kind, or a field does not fit.
        """
        kinds = get_args(ReadKind)
        if what not in kinds:
            near = get_close_matches(str(what), kinds, n=1)
            raise ValidationError(
                f"There is nothing called {what!r} to read"
                f"{f'; did you mean {near[0]!r}?' if near else '.'} "
                f"There are {', '.join(kinds)}.",
                details={"what": str(what), "known": list(kinds)},
            )
        unknown = [name for name in where if name not in _NARROWING]
        if unknown:
            raise ValidationError(
                f"{unknown[0]!r} does not narrow what is read; there are {', '.join(_NARROWING)}.",
                details={"unknown": unknown, "known": list(_NARROWING)},
            )
        after: str | None = None
        while True:
            page = await self._read(what, after=after, **where)
            for item in page.items:
                yield item
            if page.next is None:
                return
            after = page.next

    async def _read(self, what: ReadKind, **where: Any) -> Page:
        """A page that holds everything that this client knows to be written.

        Raises:
            StoreBehindError: The store did not catch up in time.
        """
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while True:
            page = await self._workers.read(
                parse(
                    {
                        "what": what,
                        "session_id": self.id,
                        "session_key": self.key,
                        "min_counter": self._counter,
                        **where,
                    },
                    Read,
                )
            )
            if not page.behind:
                return page
            if time.monotonic() > deadline:
                raise StoreBehindError(
                    f"The store holds the session up to write {page.counter}, and write "
                    f"{self._counter} was announced {CATCH_UP_SECONDS} s ago; a worker is behind "
                    "with its writes. Read again later.",
                    details={"counter": page.counter, "wanted": self._counter},
                )

    async def _update(self, name: str, payload: BaseModel | None, result: type[T]) -> T:
        """Call an update; the session is started when it does not run."""
        check_size(payload)
        # One id for all attempts: a repeat of a call that landed gets that call's answer.
        call_id = str(uuid.uuid4())

        async def call() -> T:
            start = self._start()
            try:
                answer: T = await self._workers.temporal.execute_update_with_start_workflow(
                    name,
                    args=[] if payload is None else [payload],
                    start_workflow_operation=start,
                    id=call_id,
                    result_type=result,
                )
            except Exception:
                # The operation keeps the error too, and would complain that nobody asked for it.
                # Not by `wait_for`, which gives up before the task that it makes has asked.
                with suppress(Exception):
                    async with asyncio.timeout(0):
                        await start.workflow_handle()
                raise
            return answer

        return await calling(call)

    async def _ask(self, name: str, result: type[T]) -> T:
        """Call an update of a session that runs; none is started for it."""

        async def call() -> T:
            answer: T = await self._handle().execute_update(name, result_type=result)
            return answer

        return await calling(call)

    def _start(self) -> WithStartWorkflowOperation[GMISession, None]:
        return WithStartWorkflowOperation(
            "GMISession",
            self._start_input(),
            **self._start_options(),
        )

    def _start_options(self) -> dict[str, Any]:
        return {
            "id": self.workflow_id,
            "task_queue": self._workers.task_queue,
            "id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING,
            "task_timeout": TASK_TIMEOUT,
            "static_summary": f"GMI session {self.id}",
        }

    def _start_input(self) -> SessionStart:
        return SessionStart(
            session_id=self.id,
            user_id=self.user_id,
            org=self._org,
            persona=self._persona,
            expect_key=self.key,
            config=self._config,
            search_attributes=self._workers.search_attributes,
        )

    async def _start_with_signal(self, name: str, payload: BaseModel) -> WorkflowHandle[Any, Any]:
        """Send a signal to a session that may have to be started for it."""

        async def call() -> WorkflowHandle[Any, Any]:
            return await self._workers.temporal.start_workflow(
                "GMISession",
                self._start_input(),
                **self._start_options(),
                start_signal=name,
                start_signal_args=[payload],
            )

        return await calling(call)

    async def _is_released(self) -> bool:
        """Whether the session, which does not run, would go on where it was."""
        try:
            page = await self._read("session")
        except SessionNotFoundError:
            return False
        return page.items[0]["closed_at"] is None

    async def _signal(self, name: str, payload: BaseModel) -> None:
        check_size(payload)

        async def call() -> None:
            await self._handle().signal(name, payload)

        await calling(call)

    async def _query(
        self, name: str, payload: BaseModel | None, result: type[T], *, running: bool = False
    ) -> T:
        """Ask a query; with ``running`` a session that does not run is not asked."""
        check_size(payload)
        condition = QueryRejectCondition.NOT_OPEN if running else None

        async def call() -> T:
            handle = self._handle()
            args = [] if payload is None else [payload]
            answer: T = await handle.query(
                name, args=args, result_type=result, reject_condition=condition
            )
            return answer

        return await calling(call)

    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._workers.temporal.get_workflow_handle(self.workflow_id)


def check_size(payload: BaseModel | None) -> None:
    """Refuse an input that the session would refuse, before it is sent.

    Raises:
        MessageTooLargeError: It is over 1 MB; the details name its size and the limit.
        ValidationError: JSON cannot hold it.
    """
    if payload is None:
        return
    try:
        size = encoded_size(payload)
    except (ValueError, TypeError) as error:
        raise ValidationError(
            f"The input cannot be written as JSON: {error}. Send text without half characters, "
            "and values of JSON's own kinds."
        ) from error
    if size > MAX_INPUT_BYTES:
        raise MessageTooLargeError(
            f"The input has {size} bytes and the limit is {MAX_INPUT_BYTES}; keep large content "
            "elsewhere and send a reference.",
            details={"bytes": size, "limit": MAX_INPUT_BYTES},
        )
