"""What a session is doing, with the waits that only Temporal knows of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import Field
from temporalio.client import WorkflowExecutionDescription

from ..personas.messages import Wire
from ..workflows.turns import StateView


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
