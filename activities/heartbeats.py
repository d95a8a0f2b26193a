"""Heartbeats from beside an activity's work, whatever the work waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from temporalio import activity

BEAT_SECONDS = 1.0
"""A killed worker's step goes on elsewhere after three missed beats."""


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
