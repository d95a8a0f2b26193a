"""Blocking work beside the event loop, without a promise to wait for its end."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str) -> T:
    """Run ``work`` in a thread of its own that sees this task's context variables.

    When the caller is cancelled the thread goes on, and what it returns is dropped. The thread
    keeps neither the event loop nor the process from ending. A pool would do both, and a few
    hung tools would fill the pool that others, such as name resolution, share.

    Args:
        work: Called once, without arguments.
        name: Shown in the thread's name.

    Returns:
        What ``work`` returned; what it raised is raised.
    """
    loop = asyncio.get_running_loop()
    # An outcome rather than an exception: a future refuses StopIteration and never ends.
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((value, error))

    def run() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(work)
        except BaseException as raised:
            error = raised
        # A closed loop means that nobody waits any longer.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name=f"gmi-tool-{name}", daemon=True).start()
    value, error = await outcome
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]  # the future holds what work returned
