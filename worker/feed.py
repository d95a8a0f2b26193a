"""Reading a session's chunk stream: one poll for all readers of a process."""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import temporalio.client
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.contrib.workflow_streams import PollInput, PollResult
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from ..workflows.chunks import CHUNK_TOPIC, Chunk
from .calls import passing

_POLL = "__temporal_workflow_stream_poll"
_OFFSET = "__temporal_workflow_stream_offset"
_TRUNCATED = "TruncatedOffset"
_DRAINING = "StreamDraining"

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0

KEPT_CHUNKS = 4096
"""Newest chunks of a session that its readers share; a slower one sees a gap."""


@dataclass(frozen=True, slots=True)
class Item:
    """A chunk with its place in the session's log.

    Attributes:
        offset: Its place; places grow over the session's whole life.
        gap: Chunks before it were dropped from the log and cannot be read any more.
    """

    offset: int
    chunk: Chunk
    gap: bool = False


class Feed:
    """Polls one session's stream while somebody reads it.

    Args:
        client: The Temporal client.
        workflow_id: The session's workflow.
    """

    def __init__(self, client: temporalio.client.Client, workflow_id: str) -> None:
        self._client = client
        self._workflow_id = workflow_id
        self._kept: deque[tuple[int, Chunk]] = deque(maxlen=KEPT_CHUNKS)
        self._readers = 0
        self._next = 0
        self._grown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    async def offset(self) -> int:
        """Offset of the next chunk; 0 when the session never ran."""
        try:
            return int(await self._handle().query(_OFFSET, result_type=int))
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return 0
            raise

    async def read(self, start: int) -> AsyncIterator[Item]:
        """Chunks from ``start`` on, for as long as the caller reads."""
        async with aclosing(self.listen(start)) as items:
            async for item in items:
                if item is not None:
                    yield item

    async def listen(
        self, start: int, *, quiet: float | None = None
    ) -> AsyncGenerator[Item | None, None]:
        """Chunks from ``start`` on, and ``None`` whenever none came for a while.

        Close the iterator when it is not read to its end: the poll goes on as long as somebody
        reads.

        Args:
            start: The first offset that is wanted.
            quiet: Seconds without a chunk after which ``None`` is given; never without.
        """
        self._readers += 1
        place, skipped = start, False
        try:
            if self._task is None or self._task.done() or start < self._first():
                self._restart(start)
            while True:
                ready = [kept for kept in self._kept if kept[0] >= place]
                for offset, chunk in ready:
                    gap, skipped = skipped or offset > place, False
                    place = offset + 1
                    yield Item(offset, chunk, gap)
                if ready:
                    continue
                if self._next > place:
                    place, skipped = self._next, True
                if self._error is not None:
                    raise self._error
                try:
                    await asyncio.wait_for(self._grown.wait(), quiet)
                except TimeoutError:
                    yield None
        finally:
            self._readers -= 1
            if self._readers == 0 and self._task is not None:
                self._task.cancel()
                self._task = None

    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._client.get_workflow_handle(self._workflow_id)

    def _first(self) -> int:
        return self._kept[0][0] if self._kept else self._next

    def _restart(self, start: int) -> None:
        if self._task is not None:
            self._task.cancel()
        self._kept.clear()
        self._error = None
        self._next = start
        self._task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        # A poll that was replaced says nothing any more, however it ends: the client may answer
        # a cancel with an error of its own.
        me = asyncio.current_task()
        pause = _FIRST_PAUSE
        while self._task is me:
            try:
                started = await self._handle().start_update(
                    _POLL,
                    self._wanted(),
                    wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                    result_type=PollResult,
                )
                result = await started.result()
            except Exception as error:
                if self._task is not me:
                    return
                if _kind(error) == _TRUNCATED:
                    # Reading from 0 gives what is still there; the gap shows in the offsets.
                    self._next = 0
                    continue
                gone = isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND
                if gone:
                    await self._take_rest(me)
                elif _kind(error) == _DRAINING:
                    # The session continues as new, which takes moments.
                    pause = _FIRST_PAUSE
                elif not passing(error):
                    self._error = error
                    self._wake()
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            if self._task is me:
                self._take(result)

    async def _take_rest(self, me: asyncio.Task[None] | None) -> None:
        """Read what a session that ended, or was released, had said last."""
        with suppress(RPCError, WorkflowQueryFailedError):
            result = await self._handle().query(_POLL, self._wanted(), result_type=PollResult)
            if self._task is me and result.items:
                self._take(result)

    def _wanted(self) -> PollInput:
        return PollInput(topics=[CHUNK_TOPIC], from_offset=self._next)

    def _take(self, result: PollResult) -> None:
        converter = self._client.data_converter.payload_converter
        expected = self._kept[-1][0] + 1 if self._kept else self._next
        for wire in result.items:
            if wire.offset < expected:
                continue
            payload = Payload()
            payload.ParseFromString(base64.b64decode(wire.data))
            self._kept.append((wire.offset, converter.from_payload(payload, Chunk)))
            expected = wire.offset + 1
        self._next = max(self._next, result.next_offset)
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


class Feeds:
    """The feeds of a client, one a session.

    Args:
        client: The Temporal client.
    """

    def __init__(self, client: temporalio.client.Client) -> None:
        self._client = client
        # Let go as soon as nobody reads: a client may speak to very many sessions.
        self._feeds: WeakValueDictionary[str, Feed] = WeakValueDictionary()

    def of(self, workflow_id: str) -> Feed:
        """The feed of a session; the same one for all who read at the same time."""
        feed = self._feeds.get(workflow_id)
        if feed is None:
            feed = self._feeds[workflow_id] = Feed(self._client, workflow_id)
        return feed


def _kind(error: BaseException) -> str | None:
    if isinstance(error, WorkflowUpdateFailedError) and isinstance(error.cause, ApplicationError):
        return error.cause.type
    return None
