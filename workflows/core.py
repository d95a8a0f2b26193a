"""What the parts of a running session share: its state, its streams, and how it calls out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from temporalio import workflow

from ..personas.errors import SessionClosedError
from ..personas.messages import Message
from .chunk_log import ChunkLog
from .decode import encoded_size
from .failures import let_go
from .policies import STORE
from .ports import StorePort
from .state import SessionStart, SessionState
from .steps import INLINE_TEXT_BYTES, At, StoredMessage
from .trace_log import TraceLog
from .writes import PutBlobs

T = TypeVar("T")

MAX_RUN_BYTES = 800_000
"""Bytes of history after which a run continues as new: what a worker replays stays small."""


class Core:
    """A session while it runs.

    Args:
        start: The run's input.
        state: The session's state.
        chunks: Its chunk stream.

    Attributes:
        rolling: The run is about to continue as new: nobody is held any longer.
        closing: The session was asked to close.
        closed: The session is closed, and the store has it.
        stopping: Turns that were asked to stop.
    """

    def __init__(self, start: SessionStart, state: SessionState, chunks: ChunkLog) -> None:
        self.start = start
        self.state = state
        self.chunks = chunks
        self.trace = TraceLog(state)
        self.rolling = False
        self.closing = False
        self.closed = False
        self.stopping: set[str] = set()
        self.after: asyncio.Task[None] | None = None
        self._first_event = workflow.info().get_current_history_length()

    def check_open(self) -> None:
        """Refuse what a session cannot take once it was asked to close.

        Raises:
            SessionClosedError: It was.
        """
        if self.closing:
            raise SessionClosedError("The session is closed; open it again to start anew.")

    def at(self, turn: str = "", counter: int | None = None) -> At:
        """Where a write made now belongs; takes the next write counter unless one is given."""
        info = workflow.info()
        return At(
            session=self.state.session,
            turn=turn,
            counter=self.state.next_counter() if counter is None else counter,
            now=workflow.now(),
            run=info.run_id,
            reset=info.run_id != info.original_execution_run_id,
        )

    def should_roll(self) -> bool:
        """Whether the run should continue as new at the next boundary."""
        info = workflow.info()
        # Counted from where this run began to work, so that each run gets something done.
        events = info.get_current_history_length() - self._first_event
        return events > 0 and (
            info.is_continue_as_new_suggested()
            or events > self.state.config.roll_events
            or info.get_current_history_size() > MAX_RUN_BYTES
        )

    async def put_blobs(self, values: list[Any]) -> list[str]:
        """Keep large values in the store; returns their digests."""
        refs = await workflow.execute_activity_method(
            StorePort.put_blobs, PutBlobs(values=values), summary="keep large content", **STORE
        )
        return list(refs.digests)

    async def stored(self, messages: list[Message]) -> list[StoredMessage]:
        """Messages with every content over 8 KB kept in the store."""
        large = [i for i, m in enumerate(messages) if encoded_size(m) > INLINE_TEXT_BYTES]
        digests = await self.put_blobs([dump_content(messages[i]) for i in large]) if large else []
        refs = dict(zip(large, digests, strict=True))
        return [
            StoredMessage(
                message=m.model_copy(update={"content": None}) if i in refs else m,
                content_ref=refs.get(i),
            )
            for i, m in enumerate(messages)
        ]

    def run_after(self, work: Callable[[], Any]) -> None:
        """Run a turn's closing beside whatever comes next; the one before it is awaited first."""
        before = self.after

        async def chained() -> None:
            if before is not None:
                await before
            await work()

        self.after = asyncio.create_task(chained())

    async def ends(self, handle: asyncio.Task[Any], turn: str) -> bool:
        """Wait for a turn's activity; one whose turn is stopped first is let go.

        Returns:
            Whether the activity has ended.
        """
        await workflow.wait_condition(lambda: handle.done() or turn in self.stopping)
        if not handle.done():
            let_go(handle)
            return False
        return True

    @property
    def quiet(self) -> bool:
        """Whether all closing work is done."""
        return self.after is None or self.after.done()

    async def settled(self) -> None:
        """Wait until all closing work is done."""
        while self.after is not None and not self.after.done():
            task = self.after
            await workflow.wait_condition(task.done)
        if self.after is not None:
            self.after.result()
            self.after = None


def dump_content(message: Message) -> Any:
    """A message's content as JSON."""
    if message.content is None or isinstance(message.content, str):
        return message.content
    return [part.model_dump(mode="json", exclude_none=True) for part in message.content]
