"""Running a worker until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import temporalio.client
from temporalio.worker import Worker

from .settings import Settings

_LOOK_SECONDS = 0.02


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

    Raises:
        ConfigurationError: The store or the personas are not usable; nothing was served.
        PersonaInvalidError: A persona has errors.
    """
    ended = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        await _serve(Worker(client, task_queue=settings.task_queue), ended, ready)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _serve(worker: Worker, ended: asyncio.Event, ready: Callable[[], None] | None) -> None:
    # Not `async with worker`: what fails before it polls has to end the process, and the context
    # manager waits for ever for a worker that never began.
    running = asyncio.create_task(worker.run())
    told = asyncio.create_task(ended.wait())
    try:
        while not (worker.is_running or running.done() or told.done()):
            await asyncio.wait({running, told}, timeout=_LOOK_SECONDS)
        if worker.is_running and ready is not None:
            ready()
        await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done() and worker.is_running:
            await worker.shutdown()
        elif not running.done():
            running.cancel()
        await asyncio.wait({running})
    finally:
        told.cancel()
        if not running.done():
            # The caller was cancelled: nobody would end the worker.
            running.cancel()
            await asyncio.wait({running})
    if not running.cancelled():
        running.result()
