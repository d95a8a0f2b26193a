"""One turn of a chat: shown while it is made, stopped by Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ...workflows.turns import HostResult, TurnOutput, TurnTicket
from ..calls import calling
from ..session import Session
from ..turn_stream import TurnStream
from .painter import Painter


class Left(Exception):
    """The person pressed Ctrl-C again while the turn was being stopped."""


class ChatTurn:
    """Follows one turn.

    The first Ctrl-C stops the turn and not the session; a second one leaves.

    Args:
        session: The session.
        painter: Shows the turn.
    """

    def __init__(self, session: Session, painter: Painter) -> None:
        self._session = session
        self._painter = painter
        self._turn: str | None = None
        self._interrupted = False
        self._stopping: asyncio.Task[None] | None = None

    async def say(self, text: str, model: str | None) -> TurnOutput:
        """Say something and show the turn.

        Raises:
            Left: Ctrl-C was pressed twice.
        """
        with self._interruptible():
            stream = await self._session.stream(text, model=model)
            return await self._show(stream)

    async def answer(self, paused: TurnOutput, results: list[HostResult]) -> TurnOutput:
        """Answer what a turn waits for and show how it goes on.

        Raises:
            Left: Ctrl-C was pressed twice.
        """
        with self._interruptible():
            start = await calling(self._session.feed.offset)
            await self._session.answer(results, turn=paused.turn)
            ticket = TurnTicket(
                session_key=paused.session_key,
                turn=paused.turn,
                request_id=paused.request_id,
                # At the front of the queue: what it said before the pause is not shown again.
                status="queued",
            )
            return await self._show(TurnStream(self._session, ticket, start))

    async def _show(self, stream: TurnStream) -> TurnOutput:
        self._turn = stream.turn
        if self._interrupted:
            self._stop(stream.turn)
        async for chunk in stream:
            self._painter.take(chunk)
        output = await stream.result()
        self._painter.finish(output)
        if self._stopping is not None:
            await self._stopping
        return output

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        left = False

        def interrupted() -> None:
            nonlocal left
            if self._interrupted:
                left = True
                if task is not None:
                    task.cancel()
            elif self._turn is not None:
                self._stop(self._turn)
            else:
                self._painter.aside("stopping as soon as the turn is accepted")
            self._interrupted = True

        loop.add_signal_handler(signal.SIGINT, interrupted)
        try:
            yield
        except asyncio.CancelledError:
            if left:
                raise Left from None
            raise
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _stop(self, turn: str) -> None:
        self._painter.aside("stopping")
        self._stopping = asyncio.create_task(self._session.stop(turn))
