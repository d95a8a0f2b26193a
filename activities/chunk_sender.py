"""Sending a step's chunks to its session: the first at once, then in batches.

Each batch costs the session history events, so the pause between batches grows with the length
of the answer. A send under way is awaited, never cancelled: a batch that is half sent would look
like a gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from temporalio import activity
from temporalio.service import RPCError, RPCStatusCode

from ..workflows.chunks import CHUNK_SIGNAL, ChunkBatch, ChunkItem

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 0.4
"""Seconds between two batches, at an answer's beginning and once it is long."""

LONG_REPLY_SECONDS = 20.0
SEND_ATTEMPTS = 5

logger = logging.getLogger("gmi.chunks")

Send = Callable[[ChunkBatch], Awaitable[None]]


async def send_to_session(batch: ChunkBatch) -> None:
    """Signal a batch to the session that the running activity belongs to.

    The signal names the run: after a reset, or when an ended session was opened again, the same
    turn may run once more, and must not be told what the run before was saying.
    """
    info = activity.info()
    assert info.workflow_id is not None  # a step always runs for a session
    session = activity.client().get_workflow_handle(info.workflow_id, run_id=info.workflow_run_id)
    await session.signal(CHUNK_SIGNAL, batch)


class ChunkSender:
    """Sends one attempt's chunks in order.

    Args:
        send: Delivers a batch to the session.
        turn: The turn.
        step: The step.
        attempt: The activity attempt.
        live: Whether chunks are sent at all; without, they are only counted.
    """

    def __init__(self, send: Send, turn: str, step: int, attempt: int, *, live: bool) -> None:
        self._send = send
        self._turn = turn
        self._step = step
        self._attempt = attempt
        self._live = live
        self._items: list[ChunkItem] = []
        self._sent = 0
        self._broken = False
        self._announcing = False
        self._started: float | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """Items sent so far; 0 when the session has to publish the step itself."""
        return 0 if self._broken else self._sent

    def put(self, item: ChunkItem) -> None:
        """Take an item; it is sent with the next batch."""
        if not self._live or self._broken:
            return
        last = self._items[-1] if self._items else None
        if last is not None and last.type == item.type == "text_delta":
            self._items[-1] = last.model_copy(update={"content": last.content + item.content})
        else:
            self._items.append(item)
        if self._task is None:
            self._begin()

    def announce(self) -> None:
        """Tell the session that a new attempt began, before the model says anything.

        Readers then drop a lost attempt's text at once, and the time that the session needs to
        move to another worker passes while the model thinks.
        """
        if self._live and self._attempt > 1 and self._task is None:
            self._announcing = True
            self._begin()

    async def finish(self) -> None:
        """Send what is left."""
        if self._task is not None:
            task, self._task = self._task, None
            if not task.done():
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._flush()

    async def drop(self) -> None:
        """Send nothing any more; a batch under way is awaited."""
        self._items = []
        self._announcing = False
        await self.finish()

    def _begin(self) -> None:
        self._started = asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await self._flush()
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        loop = asyncio.get_running_loop()
        elapsed = loop.time() - (self._started or loop.time())
        share = min(1.0, elapsed / LONG_REPLY_SECONDS)
        return FIRST_PAUSE + (LONGEST_PAUSE - FIRST_PAUSE) * share

    async def _flush(self) -> None:
        if self._broken or not (self._items or self._announcing):
            return
        self._announcing = False
        items, self._items = self._items, []
        batch = ChunkBatch(
            turn=self._turn,
            step=self._step,
            attempt=self._attempt,
            first_seq=self._sent,
            items=items,
        )
        self._sent += len(items)
        sending = asyncio.ensure_future(self._deliver(batch))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            await sending
            raise

    async def _deliver(self, batch: ChunkBatch) -> None:
        for attempt in range(SEND_ATTEMPTS):
            try:
                await self._send(batch)
                return
            except RPCError as error:
                if error.status == RPCStatusCode.NOT_FOUND:
                    break
                await asyncio.sleep(0.05 * 2**attempt)
        # The session publishes the whole step from its result instead.
        self._broken = True
        logger.warning("chunks of turn %s step %s were not delivered", self._turn, self._step)
