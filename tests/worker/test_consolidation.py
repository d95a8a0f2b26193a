"""Schedules of consolidations where the worker may not make them."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest
import temporalio.client
from temporalio.client import (
    CreateScheduleInput,
    DescribeScheduleInput,
    Interceptor,
    OutboundInterceptor,
    ScheduleDescription,
    ScheduleHandle,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, RPCStatusCode

from gmi.personas.loader import PersonaCatalog
from gmi.personas.schema import Persona
from gmi.worker.consolidation import keep_schedules, schedule_of

from ..support.temporal_server import TemporalServer


class Forbidding(Interceptor):
    """A namespace whose schedules this client may not touch."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Forbidden(next)


class _Forbidden(OutboundInterceptor):
    async def create_schedule(self, input: CreateScheduleInput) -> ScheduleHandle:
        raise RPCError("not allowed", RPCStatusCode.PERMISSION_DENIED, b"")

    async def describe_schedule(self, input: DescribeScheduleInput) -> ScheduleDescription:
        raise RPCError("not allowed", RPCStatusCode.PERMISSION_DENIED, b"")


def persona(**memory: Any) -> Persona:
    return Persona(
        id=f"keeper-{uuid.uuid4().hex[:8]}",
        name="Keeper",
        description="Keeps memories.",
        version="1.0.0",
        base_system_prompt="You keep memories.",
        memory_config=memory,
    )


async def test_a_worker_that_may_make_no_schedules_says_so_once_and_goes_on(
    temporal: TemporalServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = await temporalio.client.Client.connect(
        temporal.address,
        data_converter=pydantic_data_converter,
        interceptors=[Forbidding()],
    )
    first, second, off = persona(mechanisms={}), persona(mechanisms={}), persona(enabled=False)
    with caplog.at_level(logging.WARNING):
        await keep_schedules(client, PersonaCatalog([first, second, off]), task_queue="gmi")
    [record] = caplog.records
    said = record.getMessage()
    assert record.levelname == "WARNING"
    assert "PERMISSION_DENIED" in said
    assert first.id in said
    assert second.id in said
    assert off.id not in said


def test_personas_with_one_interval_begin_at_different_times_within_it() -> None:
    offsets = set()
    for _ in range(20):
        [interval] = schedule_of(persona(mechanisms={}), "gmi").spec.intervals
        assert interval.offset is not None
        assert 0 <= interval.offset.total_seconds() < interval.every.total_seconds() == 3600
        offsets.add(interval.offset)
    assert len(offsets) > 10
