"""Schedules that tidy the personas' memories, and tidying at once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from contextlib import suppress
from datetime import timedelta

import temporalio.client
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from ..personas.errors import PermissionDeniedError
from ..personas.loader import PersonaCatalog
from ..personas.schema import Persona
from ..workflows.decode import parse
from ..workflows.memory import Consolidate, MaintenanceReport
from .calls import calling

SCHEDULE_PREFIX = "gmi-consolidation-"

CATCHUP = timedelta(seconds=60)
"""A run that was due while no server ran is made up for only this long: the next one does the
same work."""

_AT_ONCE = 8

_log = logging.getLogger(__name__)


async def consolidate(
    client: temporalio.client.Client, persona: str, *, task_queue: str, now: float | None = None
) -> MaintenanceReport:
    """Tidy a persona's memories now, and wait for the report.

    Whoever asks while such a run goes on waits for the same one.

    Args:
        client: A client that carries the plugin.
        persona: The persona's id.
        task_queue: The queue of the workers that serve it.
        now: Seconds since the epoch to tidy at; the server's clock without it.

    Raises:
        ValidationError: The persona has no name, or the time is none of the years 1970 to 2286.
        PersonaNotFoundError: No worker knows the persona.
        ConfigurationError: Its settings name an embedding model that the worker does not know.
    """
    request = parse({"persona": persona, "now": now}, Consolidate)
    return await calling(
        lambda: client.execute_workflow(
            "GMIConsolidation",
            request,
            id=f"{SCHEDULE_PREFIX}{persona}-now",
            task_queue=task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            result_type=MaintenanceReport,
            static_summary=f"tidy the memories of {persona}",
        )
    )


async def keep_schedules(
    client: temporalio.client.Client, catalog: PersonaCatalog, *, task_queue: str
) -> None:
    """Make, change or remove the personas' schedules, as their settings want it.

    Any number of workers may do it at once. What cannot be done is a WARNING: a worker without
    the permission serves sessions all the same. A schedule that was paused stays paused, and one
    that another queue's workers made is left alone.

    Args:
        client: Of the namespace that the worker serves.
        catalog: The worker's personas; those that strict validation blocks are passed over.
        task_queue: The worker's queue.
    """
    gate = asyncio.Semaphore(_AT_ONCE)
    problems: dict[str, RPCError] = {}

    async def keep(persona: Persona) -> None:
        async with gate:
            try:
                await _keep(client, persona, task_queue)
            except RPCError as error:
                problems[persona.id] = error

    personas = _served(catalog)
    await asyncio.gather(*(keep(persona) for persona in personas))
    missing = [persona.id for persona in personas if wanted(persona) and persona.id in problems]
    if missing:
        error = problems[missing[0]]
        _log.warning(
            "The schedules of %d personas could not be kept (%s: %s); their memories are tidied "
            "only when somebody asks for it: %s",
            len(missing),
            error.status.name,
            error.message,
            ", ".join(missing),
        )


def schedule_id(persona: str) -> str:
    """The id of a persona's schedule."""
    return f"{SCHEDULE_PREFIX}{persona}"


def wanted(persona: Persona) -> bool:
    """Whether the persona's settings want its memories tidied by themselves."""
    settings = persona.memory
    return settings.enabled and settings.consolidation.enabled


def schedule_of(persona: Persona, task_queue: str) -> Schedule:
    """The schedule that a persona's settings want."""
    interval = persona.memory.consolidation.interval
    return Schedule(
        action=ScheduleActionStartWorkflow(
            "GMIConsolidation",
            Consolidate(persona=persona.id),
            # The server adds the time.
            id=schedule_id(persona.id),
            task_queue=task_queue,
            static_summary=f"tidy the memories of {persona.name}",
        ),
        spec=ScheduleSpec(
            intervals=[
                ScheduleIntervalSpec(
                    every=timedelta(seconds=interval), offset=_offset(persona.id, interval)
                )
            ]
        ),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCHUP),
        state=ScheduleState(note=f"Tidies the long-term memories of the persona {persona.id}."),
    )


def _served(catalog: PersonaCatalog) -> list[Persona]:
    found = []
    for persona_id in catalog.ids:
        with suppress(PermissionDeniedError):
            found.append(catalog.get(persona_id))
    return found


async def _keep(client: temporalio.client.Client, persona: Persona, task_queue: str) -> None:
    handle = client.get_schedule_handle(schedule_id(persona.id))
    if not wanted(persona):
        standing = await _standing(handle)
        if standing is not None and _queue(standing) == task_queue:
            await _remove(handle)
        return
    schedule = schedule_of(persona, task_queue)
    try:
        await client.create_schedule(handle.id, schedule, memo={"persona": persona.id})
        return
    except ScheduleAlreadyRunningError:
        standing = await _standing(handle)
    if standing is None:
        # Another worker, of other settings, removed it in between.
        return
    if _queue(standing) != task_queue:
        _log.warning(
            "The schedule %s belongs to the workers of the queue %r and is left to them; the "
            "memories of %s on the queue %r are tidied only when somebody asks for it.",
            handle.id,
            _queue(standing),
            persona.id,
            task_queue,
        )
    elif not _same(standing.schedule, schedule):
        await handle.update(lambda known: _changed(known, schedule))


def _queue(standing: ScheduleDescription) -> str | None:
    action = standing.schedule.action
    return action.task_queue if isinstance(action, ScheduleActionStartWorkflow) else None


async def _standing(handle: temporalio.client.ScheduleHandle) -> ScheduleDescription | None:
    try:
        return await handle.describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def _remove(handle: temporalio.client.ScheduleHandle) -> None:
    try:
        await handle.delete()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


def _changed(known: ScheduleUpdateInput, schedule: Schedule) -> ScheduleUpdate:
    # Whether it is paused is the operator's to say.
    schedule.state = known.description.schedule.state
    return ScheduleUpdate(schedule=schedule)


def _same(standing: Schedule, schedule: Schedule) -> bool:
    return standing.spec.intervals == schedule.spec.intervals and standing.policy == schedule.policy


def _offset(persona: str, interval: float) -> timedelta:
    """Where in the interval a persona's runs begin, so that not all begin at once."""
    digest = hashlib.sha256(persona.encode()).digest()
    share = int.from_bytes(digest[:4], "big") / 2**32
    return timedelta(seconds=int(share * interval))
