"""Running a worker until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import temporalio.client
from temporalio.worker import Worker

from .settings import Settings


async def run_worker(
    client: temporalio.client.Client,
    settings: Settings,
    *,
    stop: asyncio.Event | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve sessions until ``stop`` is set or the process is told to end.

    What runs then may finish for ``settings.shutdown_timeout`` seconds; model steps that do not
    are handed on to another worker.

    Args:
        client: A client that carries the plugin.
        settings: The worker's settings.
        stop: Ends the worker when set.
        ready: Called once the worker polls.
    """
    ended = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        async with Worker(client, task_queue=settings.task_queue):
            if ready is not None:
                ready()
            await ended.wait()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
