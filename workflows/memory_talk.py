"""What a session says about its memory: how it fares, and what may happen to it."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from ..personas.memory_health import HealthIssue, MemoryHealth, overall_status
from ..personas.memory_lifecycle import (
    LifecycleActionResponse,
    MemoryLifecycleEvent,
    respond,
)
from .core import Core
from .failures import info_from_activity
from .memory import Care
from .policies import READ
from .ports import MemoryPort

HEALTH_SECONDS = 30
"""A report that takes longer says so."""


def respond_to(core: Core, event: MemoryLifecycleEvent) -> LifecycleActionResponse:
    """Answer an event, and say so in the trace."""
    about = {"event": event.event_id, "item": event.item_id}
    core.trace.add(
        "MEMORY_LIFECYCLE_EVENT_RECEIVED",
        f"{event.type}: {event.proposed_action} is proposed.",
        details=about | {"category": event.category, "negotiable": event.negotiable},
    )
    negotiation = core.state.rules.negotiates
    if negotiation and event.negotiable:
        core.trace.add(
            "MEMORY_LIFECYCLE_NEGOTIATION_START", "The proposal is considered.", details=about
        )
    answer = respond(event, negotiation=negotiation, gmi_id=f"gmi-{core.state.session}")
    core.trace.add(
        "MEMORY_LIFECYCLE_RESPONSE_SENT",
        f"Answered {answer.action_taken}.",
        details=about | {"rationale": answer.rationale},
    )
    return answer


async def check_health(core: Core) -> MemoryHealth:
    """Look how the long-term memory fares, and say so in the trace."""
    state = core.state
    core.trace.add("HEALTH_CHECK_REQUESTED", "The memory's health is looked at.")
    request = Care(
        kind="health",
        persona=state.rules.persona,
        session_id=core.start.session_id,
        readable=True,
        now=workflow.now().timestamp(),
    )
    held = {"item_count": len(state.mind.working), "slots": len(state.mind.slots)}
    try:
        answer = await workflow.execute_activity_method(
            MemoryPort.care,
            request,
            summary="memory health",
            schedule_to_close_timeout=timedelta(seconds=HEALTH_SECONDS),
            **READ,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        issue = HealthIssue(
            severity="critical",
            component="store",
            description=f"The memory does not answer: {info_from_activity(error).message}",
        )
        found = MemoryHealth(overall_status=overall_status([issue]), issues=[issue])
    else:
        found = MemoryHealth.model_validate(answer.details)
    report = found.model_copy(update={"working_memory_stats": held})
    core.trace.add(
        "HEALTH_CHECK_RESULT",
        f"The memory is {report.overall_status}.",
        details={"issues": [issue.description for issue in report.issues]},
    )
    return report
