"""Which workers serve the task queue, and whether one of them answers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import TimeoutError as WorkflowTimeoutError

from ...workflows.memory import Care, CareAnswer
from ..client import Client

ROUND_TRIP_SECONDS = 10.0
"""Seconds that a worker has to answer a question that costs it nothing."""

# A worker's poll lasts a minute; the server remembers it for longer than the worker may live.
_POLLED_SECONDS = 90.0


async def polling_workers(client: Client) -> dict[str, float]:
    """The workers that serve the task queue, as the server has seen them lately.

    One that ended stays listed for up to 90 seconds: see :func:`round_trip`.

    Returns:
        By identity: seconds since the worker was last heard of. One that lives is heard of at
        least once a minute.
    """
    temporal = client.temporal
    now = datetime.now(UTC)
    polling: list[dict[str, float]] = []
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        found = await temporal.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=temporal.namespace,
                task_queue=TaskQueue(name=client.task_queue),
                task_queue_type=kind,
            )
        )
        ages = {
            poller.identity: (now - poller.last_access_time.ToDatetime(UTC)).total_seconds()
            for poller in found.pollers
        }
        polling.append({name: age for name, age in ages.items() if age < _POLLED_SECONDS})
    workflows, activities = polling
    return {
        name: max(0.0, min(workflows[name], activities[name]))
        for name in sorted(workflows.keys() & activities.keys())
    }


async def round_trip(client: Client, seconds: float = ROUND_TRIP_SECONDS) -> float | None:
    """Ask the workers for a memory that there is not: through the queue, and to their store.

    Args:
        client: The client.
        seconds: How long to wait.

    Returns:
        Seconds until a worker answered; ``None`` when none did in time.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    try:
        async with asyncio.timeout(seconds):
            await client.temporal.execute_workflow(
                "GMIMemory",
                Care(kind="list", ids=["gmi-doctor"], limit=1),
                id=f"gmi-doctor-{uuid.uuid4()}",
                task_queue=client.task_queue,
                result_type=CareAnswer,
                # Nobody wants its answer later.
                execution_timeout=timedelta(seconds=seconds),
            )
    except TimeoutError:
        return None
    except WorkflowFailureError as error:
        if isinstance(error.cause, WorkflowTimeoutError):
            return None
        # A worker that refuses has answered.
    return loop.time() - begun


def heard_of(workers: Mapping[str, float]) -> str:
    """The workers with when each was last heard of."""
    return ", ".join(
        f"{name} (last heard of {seconds:.0f} s ago)" for name, seconds in workers.items()
    )
