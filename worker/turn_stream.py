"""Following one turn: its chunks as they come, its text, its output."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Protocol

from ..workflows.chunks import Chunk
from ..workflows.turns import TurnOutput, TurnTicket
from .calls import calling
from .feed import Feed

QUIET_SECONDS = 5.0
"""After so long without a chunk a reader asks for the turn itself."""


class Transcript:
    """Puts a turn's text together from its chunks.

    What it holds at the turn's end equals the committed text, whatever was killed meanwhile: text
    of a superseded attempt is dropped when ``step_restarted`` says so.
    """

    def __init__(self) -> None:
        self._finished: list[str] = []
        self._step = -1
        self._live: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join((*self._finished, *self._live))

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk of the turn."""
        if chunk.type == "step_restarted":
            self._live = []
        elif chunk.type == "text_delta":
            if chunk.step != self._step:
                self._commit()
                self._step = chunk.step
            self._live.append(chunk.content)
        elif chunk.type == "step_finished":
            self._commit()
        elif chunk.type == "error":
            self._finished, self._live = [], []

    def replace(self, text: str) -> None:
        """Take the whole text from elsewhere, after chunks were lost."""
        self._finished, self._live = [text], []

    def _commit(self) -> None:
        self._finished.extend(self._live)
        self._live = []


class Turns(Protocol):
    """The session whose turns are watched."""

    @property
    def feed(self) -> Feed:
        """Its chunks."""
        ...

    async def get_turn(self, turn: str) -> TurnOutput | None:
        """A turn's output, or ``None`` while it runs."""
        ...

    async def wait(self, turn: str) -> TurnOutput:
        """Wait for a turn's end or its pause."""
        ...

    async def complete(self, output: TurnOutput) -> TurnOutput:
        """The output with the text that is too long to be carried."""
        ...

    async def stop(self, turn: str) -> None:
        """Stop a turn."""
        ...


class TurnStream:
    """One turn, watched while it is made.

    Iterate over its chunks, or await :meth:`result`. The turn goes on when nobody reads. At the
    end :attr:`text` is the turn's text also when some chunks could not be read any more.

    Args:
        session: The session.
        ticket: The turn as the session accepted it.
        start: Offset of the session's stream before the turn was sent.

    Attributes:
        ticket: The turn as the session accepted it.
    """

    def __init__(self, session: Turns, ticket: TurnTicket, start: int) -> None:
        self._session = session
        self.ticket = ticket
        # A turn that runs already was sent before: its first chunks lie before ``start``.
        self._start = 0 if ticket.status == "running" else start
        self._transcript = Transcript()
        self._whole = True
        self._missed: TurnOutput | None = None
        self._output: TurnOutput | None = None

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self.ticket.turn

    @property
    def text(self) -> str:
        """The text that has arrived so far."""
        return self._transcript.text

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        """The turn's chunks, up to its end or its pause."""
        if self.ticket.status not in ("queued", "running"):
            # The request was sent before, and what the turn said then is its record's now.
            self._whole = False
            await self._end(await self._session.get_turn(self.turn))
        while self._output is None:
            feed = self._session.feed
            async with aclosing(feed.listen(self._start, quiet=QUIET_SECONDS)) as items:
                async for item in items:
                    if item is None:
                        if await self._silence():
                            break
                        continue
                    self._start = item.offset + 1
                    if item.gap:
                        self._whole = False
                        self._missed = await self._session.get_turn(self.turn)
                    if item.chunk.turn == self.turn:
                        await self._take(item.chunk)
                        yield item.chunk
                    else:
                        # Another turn speaks: when ours is over, its end is among what we missed.
                        await self._end(self._missed)
                    if self._output is not None:
                        break

    async def text_deltas(self) -> AsyncIterator[str]:
        """The text as it grows; a superseded attempt's text is given again from its start."""
        async for chunk in self:
            if chunk.type == "text_delta":
                yield chunk.content

    async def result(self) -> TurnOutput:
        """The turn's output, when it ends or pauses."""
        async for _ in self:
            pass
        if self._output is None:
            self._output = await self._session.wait(self.turn)
        return await self._session.complete(self._output)

    async def stop(self) -> None:
        """Stop the turn."""
        await self._session.stop(self.turn)

    async def _take(self, chunk: Chunk) -> None:
        self._transcript.take(chunk)
        if chunk.type == "step_finished" and chunk.metadata.get("text_missing"):
            self._whole = False
        elif chunk.type == "final_response_marker":
            await self._end(TurnOutput.model_validate(chunk.content))

    async def _end(self, output: TurnOutput | None) -> None:
        if output is None:
            return
        if not self._whole:
            output = await self._session.complete(output)
            self._transcript.replace(output.response_text or "")
        self._output = output

    async def _silence(self) -> bool:
        """Nothing came for a while; returns whether to stop listening where we do."""
        if self._missed is not None:
            self._whole = False
            await self._end(self._missed)
            return True
        self._missed = await self._session.get_turn(self.turn)
        offset = await calling(self._session.feed.offset)
        if offset >= self._start:
            return False
        # The session was reset to an earlier point, and its stream with it.
        self._start, self._whole = offset, False
        return True
