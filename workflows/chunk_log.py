"""The session's chunk stream: fences what running steps send, and publishes it.

Steps send their chunks by a signal of our own, not by the stream library's publisher: only the
workflow knows whether a step still counts, so late and superseded chunks are dropped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.contrib.workflow_streams import WorkflowStream, WorkflowStreamState

from ..personas.messages import Usage
from .chunks import CHUNK_TOPIC, Chunk, ChunkBatch, ChunkItem, ChunkType, bill_item
from .steps import HopFailure

MAX_CARRIED_BYTES = 32 * 1024

KEPT_TURNS = 4
"""Short turns end faster than a reader asks, so the log keeps more than the last one."""


def first_stream_state() -> WorkflowStreamState:
    """An empty stream whose offsets lie past those of every earlier run of the session.

    A session that was released or ended goes on in another run, and a reader may hold an offset
    of the run before; so offsets begin at the run's start in milliseconds.
    """
    started = workflow.info().workflow_start_time
    return WorkflowStreamState(base_offset=int(started.timestamp() * 1000))


class ChunkLog:
    """Publishes a session's chunks in order, and knows what the live step has said so far.

    Args:
        stream: The stream, made in the workflow's ``__init__`` as the library demands.
        marks: Offsets at which the newest turns begin, when the stream was carried.
    """

    def __init__(self, stream: WorkflowStream, marks: Sequence[int] = ()) -> None:
        self._stream = stream
        self._topic = stream.topic(CHUNK_TOPIC)
        self._turn: str | None = None
        self._step = 0
        self._attempt = 0
        self._next_seq = 0
        self._text: list[str] = []
        self._called = False
        self._bills: set[tuple[int, int]] = set()
        self.marks = list(marks)

    @property
    def offset(self) -> int:
        """Offset of the next chunk."""
        # The library has no public name for it, and its whole state would be a copy of the log.
        return self._stream._on_offset()

    @property
    def live_text(self) -> str:
        """Text that the live step's newest attempt has sent."""
        return "".join(self._text)

    def begin_turn(self) -> None:
        """A turn takes the lane: chunks of turns before the newest few are dropped from the log."""
        self.marks = [*self.marks, self.offset][-KEPT_TURNS:]
        self._stream.truncate(self.marks[0])

    def begin_step(self, turn: str, step: int) -> None:
        """A step becomes live: only its chunks are accepted from now on."""
        self._turn = turn
        self._step = step
        self._attempt = 0
        self._next_seq = 0
        self._text = []
        self._called = False
        self._bills = set()

    def end_step(self) -> None:
        """No step is live any more: whatever still arrives is dropped."""
        self._turn = None

    def receive(self, batch: ChunkBatch) -> bool:
        """Publish a batch of the live step; returns whether it was accepted."""
        if batch.turn != self._turn or batch.step != self._step or batch.attempt < self._attempt:
            return False
        if batch.attempt > self._attempt:
            if batch.first_seq != 0:
                return False
            self._supersede(batch.attempt)
        if batch.first_seq != self._next_seq:
            return False
        for item in batch.items:
            self._publish_item(item)
        return True

    def finish_step(
        self, attempt: int, sent: int, items: list[ChunkItem], text: str | None
    ) -> bool:
        """Publish what the live step's result holds beyond what was streamed.

        Args:
            attempt: The attempt whose result counts.
            sent: Items that this attempt sent.
            items: Its calls and usage; published when not everything arrived.
            text: The step's whole text, or ``None`` when it is only in the store.

        Returns:
            Whether the step's text is now whole in the stream; a long one that did not arrive
            has to be read from the store.
        """
        if attempt != self._attempt:
            self._supersede(attempt)
        if sent and self._next_seq == sent:
            return True
        if text is not None and self.live_text != text:
            if text.startswith(self.live_text):
                rest = text[len(self.live_text) :]
            else:
                self._restart("gap")
                rest = text
            self._publish_item(ChunkItem(type="text_delta", content=rest))
        for item in items:
            self._publish_item(item)
        return text is not None

    def say(
        self,
        type: ChunkType,
        *,
        turn: str,
        step: int = 0,
        content: Any = None,
        is_final: bool = False,
        usage: Usage | None = None,
        finish_reason: str | None = None,
        metadata: dict[str, Any] | None = None,
        error_details: dict[str, Any] | None = None,
    ) -> None:
        """Publish a chunk of the session's own."""
        self._publish(
            Chunk(
                type=type,
                turn=turn,
                step=step,
                attempt=0,
                # Its place in the log: unique among what the session says, also in the next run.
                seq=self.offset,
                timestamp=workflow.now(),
                content=content,
                is_final=is_final,
                usage=usage,
                finish_reason=finish_reason,
                metadata=metadata or {},
                error_details=error_details,
            )
        )

    def say_bill(self, failure: HopFailure, turn: str, step: int) -> None:
        """Publish what a failed attempt was billed, unless the serving attempt has said so."""
        item = bill_item(failure)
        if item is not None and self._is_new(item):
            self.say(
                item.type,
                turn=turn,
                step=step,
                content=item.content,
                usage=item.usage,
                metadata=item.metadata,
            )

    def detach(self) -> None:
        """Release waiting readers before the run ends."""
        self._stream.detach_pollers()

    def carry(self) -> WorkflowStreamState:
        """The stream for the next run; the oldest chunks go first when it is over its bound."""
        state = self._stream.get_state()
        size = sum(len(item.data) for item in state.log)
        drop = 0
        while drop < len(state.log) and size > MAX_CARRIED_BYTES:
            size -= len(state.log[drop].data)
            drop += 1
        state.base_offset += drop
        del state.log[:drop]
        return state

    def _supersede(self, attempt: int) -> None:
        said = bool(self._text) or self._called
        before = self._attempt
        self._attempt = attempt
        self._next_seq = 0
        if said:
            self._restart("attempt", before)

    def _restart(self, reason: str, before: int | None = None) -> None:
        self._text = []
        self._called = False
        self.say(
            "step_restarted",
            turn=self._turn or "",
            step=self._step,
            content={
                "superseded_attempt": self._attempt if before is None else before,
                "reason": reason,
            },
        )

    def _is_new(self, item: ChunkItem) -> bool:
        """Whether a failed attempt's bill was not published yet; other items always are new."""
        if "failed_attempt" not in item.metadata:
            return True
        bill = (item.metadata["failed_attempt"], item.metadata["hop"])
        known = bill in self._bills
        self._bills.add(bill)
        return not known

    def _publish_item(self, item: ChunkItem) -> None:
        if not self._is_new(item):
            self._next_seq += 1
            return
        if item.type == "text_delta":
            self._text.append(item.content)
        elif item.type == "tool_call_request":
            self._called = True
        self._publish(
            Chunk(
                type=item.type,
                turn=self._turn or "",
                step=self._step,
                attempt=self._attempt,
                seq=self._next_seq,
                timestamp=workflow.now(),
                content=item.content,
                usage=item.usage,
                metadata=item.metadata,
            )
        )
        self._next_seq += 1

    def _publish(self, chunk: Chunk) -> None:
        # Without the fields that say nothing: a chunk is a third as large, so that readers who
        # lag behind find more of it in the log.
        self._topic.publish(chunk.model_dump(mode="json", exclude_defaults=True))
