"""Following one turn: its chunks as they come, its text, its output."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ..workflows.chunks import Chunk
from ..workflows.turns import TurnOutput, TurnTicket

if TYPE_CHECKING:
    from .session import Session


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


class TurnStream:
    """One turn, watched while it is made.

    Iterate over its chunks, or await :meth:`result`. The turn goes on when nobody reads.

    Attributes:
        ticket: The turn as the session accepted it.
    """

    def __init__(self, session: Session, ticket: TurnTicket, start: int) -> None:
        self._session = session
        self.ticket = ticket
        self._start = start
        self._transcript = Transcript()
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
        if self._output is not None:
            return
        async for item in self._session.feed.read(self._start):
            chunk = item.chunk
            self._start = item.offset + 1
            if item.gap:
                async for missed in self._resync():
                    yield missed
                if self._output is not None:
                    return
            if chunk.turn != self.turn:
                continue
            self._transcript.take(chunk)
            if chunk.type == "final_response_marker":
                self._output = TurnOutput.model_validate(chunk.content)
            yield chunk
            if self._output is not None:
                return

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

    async def _resync(self) -> AsyncIterator[Chunk]:
        """Chunks were dropped from the log before we read them: ask for the turn's record."""
        view = await self._session.get_turn(self.turn)
        if view is not None and view.is_final:
            self._output = await self._session.complete(view)
            self._transcript.replace(self._output.response_text or "")
        return
        yield
