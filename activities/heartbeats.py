"""Heartbeats from beside an activity's work, and what they hand on to its next attempt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

from pydantic import BaseModel, ValidationError
from temporalio import activity

BEAT_SECONDS = 1.0
"""A killed worker's step goes on elsewhere after three missed beats."""


class Resumable(BaseModel):
    """How far an activity has come; kept in heartbeat details, so its next attempt goes on."""

    @classmethod
    def resume(cls, details: Sequence[Any], **start: Any) -> Self:
        """The progress in an activity's heartbeat details, or else one that starts so."""
        with suppress(ValidationError, IndexError, TypeError):
            return cls.model_validate(details[0])
        return cls(**start)

    def beat(self) -> None:
        """Record the progress with the server."""
        activity.heartbeat(self.model_dump(mode="json"))


@asynccontextmanager
async def beating(
    beat: Callable[[], None] = activity.heartbeat, *, every: float = BEAT_SECONDS
) -> AsyncIterator[None]:
    """Heartbeat in the background while the body runs.

    Args:
        beat: Sends one heartbeat; without it a beat only says that the worker lives.
        every: Seconds between two beats.
    """

    async def keep_beating() -> None:
        # The details of the attempt before stay with the server until the first beat.
        while True:
            await asyncio.sleep(every)
            beat()

    task = asyncio.create_task(keep_beating())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
