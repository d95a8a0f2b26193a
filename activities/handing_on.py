"""Handing a running activity on to another worker when this one shuts down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from ..workflows.failures import WORKER_SHUTDOWN


@contextmanager
def handing_on() -> Iterator[None]:
    """Turn the cancel of a worker's shutdown into a failure that is retried at once.

    A shutdown is never a stop: the SDK's own path would take a second longer, and a cancelled
    activity would look as if somebody had asked for it.
    """
    try:
        yield
    except asyncio.CancelledError:
        if worker_stops():
            raise shutdown_failure("The worker is shutting down; another one goes on.") from None
        raise


def worker_stops() -> bool:
    """Whether the activity was cancelled because its worker shuts down."""
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown


def shutdown_failure(message: str) -> ApplicationError:
    """The failure by which a worker that shuts down hands an activity on."""
    return ApplicationError(
        message,
        type=WORKER_SHUTDOWN,
        # 0 counts as unset.
        next_retry_delay=timedelta(milliseconds=1),
    )
