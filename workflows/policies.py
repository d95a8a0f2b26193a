"""How activities are retried and timed: one place for all numbers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy

from .steps import Route

STORE: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=30),
    # Without beats a killed worker's write would be waited for until the time above is over.
    "heartbeat_timeout": timedelta(seconds=5),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(milliseconds=200),
        backoff_coefficient=2,
        maximum_interval=timedelta(seconds=15),
    ),
}
"""A store that is down is waited for: the write is retried for ever, with capped back-off."""

STEP: dict[str, Any] = {
    "start_to_close_timeout": timedelta(minutes=10),
    # A killed worker's step goes on elsewhere after this; the worker beats every second.
    "heartbeat_timeout": timedelta(seconds=3),
    "retry_policy": RetryPolicy(
        # A lost worker's step is tried again at once; a failed hop says its own delay.
        initial_interval=timedelta(milliseconds=100),
        backoff_coefficient=2,
        maximum_interval=timedelta(seconds=30),
    ),
}
"""A model step: its attempts walk the fallback hops, and end by a non-retryable error."""

AFTER_TURN: dict[str, Any] = {
    "start_to_close_timeout": timedelta(minutes=5),
    "heartbeat_timeout": timedelta(seconds=10),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(milliseconds=500),
        backoff_coefficient=2,
        maximum_interval=timedelta(minutes=1),
    ),
}
"""What follows a turn has time: a store or an embedding model that is down is waited for."""


def model_call_options(deadline: float) -> dict[str, Any]:
    """Activity options of a call beside the turns.

    Args:
        deadline: Seconds after which its answer is worth nothing, its retries included.
    """
    return {
        # A little longer than the call takes by itself: then its bill comes back with its end.
        "schedule_to_close_timeout": timedelta(seconds=deadline + 5),
        "heartbeat_timeout": timedelta(seconds=3),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(milliseconds=500),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=10),
        ),
    }


CONSOLIDATION: dict[str, Any] = {
    "start_to_close_timeout": timedelta(hours=2),
    "heartbeat_timeout": timedelta(seconds=10),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(seconds=1),
        backoff_coefficient=2,
        maximum_interval=timedelta(minutes=1),
    ),
}
"""A consolidation goes on after the scope that its last heartbeat named."""

READ: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=75),
    "heartbeat_timeout": timedelta(seconds=5),
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=10),
}

NOT_REGISTERED = "NotFoundError"
"""Failure type of an activity that a worker polls for but does not know."""


def tool_attempts(route: Route) -> int:
    """Attempts of a tool call at most."""
    return 1 if route.effect == "once" else route.max_attempts


def tool_options(route: Route) -> dict[str, Any]:
    """Activity options of a tool call.

    A ``once`` tool is attempted once, whatever happens. A queue that nobody serves is given up
    after ``schedule_timeout``; a type that nobody knows is not retried.
    """
    options: dict[str, Any] = {
        "start_to_close_timeout": timedelta(seconds=route.timeout),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(milliseconds=500),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=10),
            maximum_attempts=tool_attempts(route),
            non_retryable_error_types=[NOT_REGISTERED],
        ),
    }
    if route.task_queue is not None:
        options["task_queue"] = route.task_queue
    if route.heartbeat is not None:
        options["heartbeat_timeout"] = timedelta(seconds=route.heartbeat)
    if route.schedule_timeout is not None:
        options["schedule_to_start_timeout"] = timedelta(seconds=route.schedule_timeout)
    return options
