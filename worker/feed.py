"""Reading a session's chunk stream: one poll for all readers of a process."""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import temporalio.client
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.contrib.workflow_streams import PollInput, PollResult
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from ..workflows.chunks import CHUNK_TOPIC, Chunk
from .calls import passing

_POLL = "__temporal_workflow_stream_poll"
_OFFSET = "__temporal_workflow_stream_offset"
_TRUNCATED = "TruncatedOffset"
_DRAINING = "StreamDraining"

KEPT_CHUNKS = 4096


@dataclass(frozen=True, slots=True)
class Item:
    """A chunk with its place in the session's log.

    Attributes:
        offset: Its place.
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
        self._kept: deque[Item] = deque(maxlen=KEPT_CHUNKS)
        self._readers = 0
        self._next = 0
        self._grown = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    async def offset(self) -> int:
        """Offset of the next chunk; 0 when the session does not run."""
        handle = self._client.get_workflow_handle(self._workflow_id)
        try:
            return int(await handle.query(_OFFSET, result_type=int))
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return 0
            raise

    async def read(self, start: int) -> AsyncIterator[Item]:
        """Chunks from ``start`` on, for as long as the caller reads."""
        self._readers += 1
        try:
            if self._task is None or self._task.done() or start < self._first():
                await self._restart(start)
            place = start
            while True:
                ready = [item for item in self._kept if item.offset >= place]
                for item in ready:
                    place = item.offset + 1
                    yield item
                async with self._grown:
                    while self._next <= place and self._error is None:
                        await self._grown.wait()
                if self._error is not None and self._next <= place:
                    raise self._error
        finally:
            self._readers -= 1
            if self._readers == 0 and self._task is not None:
                self._task.cancel()
                self._task = None

    def _first(self) -> int:
        return self._kept[0].offset if self._kept else self._next

    async def _restart(self, start: int) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._kept.clear()
        self._error = None
        self._next = start
        self._task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        handle = self._client.get_workflow_handle(self._workflow_id)
        pause = 0.05
        while True:
            try:
                started = await handle.start_update(
                    _POLL,
                    PollInput(topics=[CHUNK_TOPIC], from_offset=self._next),
                    wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                    result_type=PollResult,
                )
                result = await started.result()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                kind = _kind(error)
                if kind == _TRUNCATED:
                    # Reading from 0 gives what is still there; the gap shows in the offsets.
                    self._next = 0
                    continue
                gone = isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND
                if not (kind == _DRAINING or gone or passing(error)):
                    await self._wake(error)
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
                continue
            pause = 0.05
            await self._take(result)

    async def _take(self, result: PollResult) -> None:
        converter = self._client.data_converter.payload_converter
        expected = self._kept[-1].offset + 1 if self._kept else self._next
        for wire in result.items:
            payload = Payload()
            payload.ParseFromString(base64.b64decode(wire.data))
            chunk = converter.from_payload(payload, Chunk)
            if wire.offset >= expected:
                self._kept.append(Item(wire.offset, chunk, gap=wire.offset > expected))
                expected = wire.offset + 1
        self._next = max(self._next, result.next_offset)
        await self._wake(None)

    async def _wake(self, error: BaseException | None) -> None:
        async with self._grown:
            self._error = error
            self._grown.notify_all()


class Feeds:
    """The feeds of a client, one a session.

    Args:
        client: The Temporal client.
    """

    def __init__(self, client: temporalio.client.Client) -> None:
        self._client = client
        self._feeds: dict[str, Feed] = {}

    def of(self, workflow_id: str) -> Feed:
        """The feed of a session."""
        if workflow_id not in self._feeds:
            self._feeds[workflow_id] = Feed(self._client, workflow_id)
        return self._feeds[workflow_id]


def _kind(error: BaseException) -> str | None:
    if isinstance(error, WorkflowUpdateFailedError) and isinstance(error.cause, ApplicationError):
        return error.cause.type
    return None
