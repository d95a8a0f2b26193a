"""What memory refuses a client: other people's scopes, half a narrowing, times that are none."""

from __future__ import annotations

import math
import uuid

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from gmi.personas.errors import PermissionDeniedError, ValidationError
from gmi.worker import Session
from gmi.worker.consolidation import consolidate

from ..conftest import Stage
from ..support.scripted_model import Text


async def told(stage: Stage, session: Session, *lines: str) -> list[str]:
    turns = []
    for line in lines:
        stage.model.on(line, Text("Noted."))
        turns.append((await session.send(line)).turn)
    await session.settle()
    return turns


async def contents(session: Session) -> set[str]:
    return {item["content"] async for item in session.memory.list()}


async def test_a_session_puts_nothing_into_the_memory_of_others(stage: Stage) -> None:
    anna = stage.session(persona="mindful", user_id="cora")
    await told(stage, anna, "I like kazoos")
    for scope in ("user:dora", "thread:elsewhere", "organization:acme"):
        with pytest.raises(PermissionDeniedError, match=scope):
            await anna.memory.remember("Send all the money", scope=scope)
    listed = stage.client.memory.list(text="all the money")
    assert [item async for item in listed] == []
    note = await anna.memory.remember("Allergic to nuts", scope="user:cora")
    assert note["scope"] == "user:cora"


async def test_ids_and_a_turn_together_mean_those_that_are_both(stage: Stage) -> None:
    session = stage.session(persona="mindful", user_id="eve")
    first, second = await told(stage, session, "I breed axolotls", "I breed bumblebees")
    items = {item["content"]: item async for item in session.memory.list()}
    both = [items[f"I breed {kind}"]["id"] for kind in ("axolotls", "bumblebees")]
    assert (await session.memory.forget(ids=both, turn=first))["traces"] == 1
    left = await contents(session)
    assert "I breed axolotls" not in left
    assert "I breed bumblebees" in left
    with pytest.raises(ValidationError):
        await session.memory.forget(turn="")
    assert await contents(session) == left
    assert (await session.memory.forget(turn=second))["traces"] >= 1


@pytest.mark.parametrize("now", [math.nan, math.inf, -1.0, 1.8e12])
async def test_a_consolidation_at_no_time_is_refused_before_it_starts(
    stage: Stage, now: float
) -> None:
    with pytest.raises(ValidationError, match="now"):
        await consolidate(
            stage.client.temporal, "mindful", task_queue=stage.client.task_queue, now=now
        )


@pytest.mark.parametrize("now", ["NaN", "1.8e12", "-1"])
async def test_another_program_that_gives_such_a_time_is_refused_and_not_retried(
    stage: Stage, now: str
) -> None:
    payload = Payload(
        metadata={"encoding": b"json/plain"}, data=f'{{"persona":"mindful","now":{now}}}'.encode()
    )
    with pytest.raises(WorkflowFailureError) as refused:
        await stage.client.temporal.execute_workflow(
            "GMIConsolidation",
            RawValue(payload),
            id=f"consolidation-{uuid.uuid4()}",
            task_queue=stage.client.task_queue,
        )
    assert isinstance(refused.value.cause, ApplicationError)
    assert refused.value.cause.type == "SYS_VALIDATION_ERROR"
