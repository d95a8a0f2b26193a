"""What a session is doing, with the waits that only Temporal knows of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import temporalio.client
from pydantic import Field
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import WorkflowExecutionDescription

from ..personas.messages import Wire
from ..workflows.turns import StateView

_NEWEST_EVENTS = 50
_OTHER_ENDS = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
    }
)


class PendingActivity(Wire):
    """A piece of work that is under way, or waits to be tried again.

    Attributes:
        activity: Its type: ``gmi.model.run_step``, or a tool's name.
        attempt: The attempt that runs or comes next, from 1.
        waiting_until: When the next attempt begins; ``None`` while one runs.
        failure: What the last attempt failed with; empty on the first.
        worker: Identity of the worker that runs it, or ran it last.
    """

    activity: str
    attempt: int
    waiting_until: datetime | None = None
    failure: str = ""
    worker: str = ""


class SessionStatus(Wire):
    """A session's state joined with its pending work.

    Attributes:
        state: The session's own view.
        activities: What is under way; a back-off is invisible to the session itself.
    """

    state: StateView
    activities: list[PendingActivity] = Field(default_factory=list)

    @property
    def waiting_until(self) -> datetime | None:
        """When the soonest wait ends, or ``None`` while nothing waits."""
        times = [a.waiting_until for a in self.activities if a.waiting_until is not None]
        return min(times, default=None)


class FailingTask(Wire):
    """A workflow task that fails again and again: the workers' code cannot run the session.

    Attributes:
        attempt: The attempt that runs or comes next.
        failure: What an earlier one failed with.
    """

    attempt: int
    failure: str


async def failing_task(client: temporalio.client.Client, workflow_id: str) -> FailingTask | None:
    """The failing task of a session that stands still; ``None`` for one that does not.

    Raises:
        RPCError: There is no such workflow, or no server answers.
    """
    description = (await client.get_workflow_handle(workflow_id).describe()).raw_description
    attempt = description.pending_workflow_task.attempt
    if attempt < 2:
        return None
    found = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=workflow_id),
            maximum_page_size=_NEWEST_EVENTS,
        )
    )
    for event in found.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            return FailingTask(attempt=attempt, failure=failed.failure.message)
        if event.event_type in _OTHER_ENDS:
            # Its worker was lost or is slow: the next attempt may well do.
            return None
    return None


def pending_activities(description: WorkflowExecutionDescription) -> list[PendingActivity]:
    """The pending work of a workflow."""
    return [_pending(found) for found in description.raw_description.pending_activities]


def _pending(found: Any) -> PendingActivity:
    until = None
    if found.HasField("next_attempt_schedule_time"):
        time = found.next_attempt_schedule_time.ToDatetime(tzinfo=UTC)
        until = time if time.timestamp() > 0 else None
    return PendingActivity(
        activity=found.activity_type.name,
        attempt=found.attempt,
        waiting_until=until,
        failure=found.last_failure.message if found.HasField("last_failure") else "",
        worker=found.last_worker_identity,
    )
