"""What is to be remembered in months is remembered, whatever happens to the workers meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from gmi.worker import Client, GMIPlugin, Session, Settings
from gmi.workflows import SessionConfig
from gmi.workflows.turns import TurnCard

from ..conftest import Stage
from ..support.scripted_model import Text
from ..support.worker_process import WorkerProcess
from .test_release import ended
from .test_time import server_program

DAY = timedelta(days=1)

# Without a memory: this server skips no more time once a run has ended beside a running activity.
PERSONA = {
    "id": "plain",
    "name": "Plain",
    "description": "For tests.",
    "version": "1.0.0",
    "baseSystemPrompt": "BASE",
}


class Months:
    """A server whose time is skipped, and worker processes on it."""

    def __init__(self, environment: WorkflowEnvironment, directory: Path) -> None:
        self.environment = environment
        self.client = Client(environment.client, task_queue="months")
        self._directory = directory
        (directory / "personas").mkdir()
        (directory / "personas" / "plain.json").write_text(json.dumps(PERSONA))
        self.workers: list[WorkerProcess] = []

    async def worker(self) -> WorkerProcess:
        environ = {
            "GMI_TASK_QUEUE": "months",
            "GMI_DATABASE_URL": f"sqlite:///{self._directory / 'gmi.db'}",
            "GMI_PERSONAS": str(self._directory / "personas"),
            "DEFAULT_PERSONA_ID": "plain",
        }
        address = self.environment.client.service_client.config.target_host
        log = self._directory / f"worker-{len(self.workers)}.log"
        process = WorkerProcess(address, environ, log)
        self.workers.append(process)
        await process.start()
        return process

    async def pass_by(self, duration: timedelta) -> None:
        await self.environment.sleep(duration)


@pytest.fixture
async def months(tmp_path: Path) -> AsyncIterator[Months]:
    environment = await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=server_program(), plugins=[GMIPlugin(Settings())]
    )
    async with environment:
        stage = Months(environment, tmp_path)
        await stage.worker()
        yield stage
        for worker in stage.workers:
            worker.kill()


async def own_turns(session: Session, count: int) -> list[TurnCard]:
    """The turns that the session started by itself, once so many have ended."""
    async with asyncio.timeout(60):
        while True:
            turns = (await session.list_turns()).turns
            own = [turn for turn in turns if turn.kind == "system" and turn.ended_at is not None]
            if len(own) >= count:
                return own
            await asyncio.sleep(0.05)


async def test_an_intention_in_ninety_days_starts_one_turn(months: Months) -> None:
    # Each run continues as new as soon as it has done anything.
    session = months.client.session("patient", config=SessionConfig(roll_events=1))
    assert (await asyncio.wait_for(session.send("good morning"), 60)).status == "done"
    began = await months.environment.get_current_time()
    at = began + 90 * DAY
    await session.intend("renew the passport", at=at, then="turn", id="passport")
    await session.intend("not yet", event="never")
    await months.pass_by(89 * DAY)
    assert len((await session.list_turns()).turns) == 1
    await months.pass_by(2 * DAY)
    [turn] = await own_turns(session, 1)
    assert turn.status == "done"
    assert timedelta(0) <= turn.created_at - at < timedelta(minutes=1)
    await months.pass_by(400 * DAY)
    assert len((await session.list_turns()).turns) == 2
    assert (await session.state()).run > 2
    assert [item.content for item in await session.intentions()] == ["not yet"]
    # Read last: whoever waits for a workflow's result makes this server skip time.
    said = [m.text for m in await session.get_conversation_history() if m.role == "system"]
    assert len(said) == 1
    assert said[0].endswith("renew the passport")


async def test_a_time_whose_worker_was_killed_before_it_starts_one_turn_on_another(
    stage: Stage,
) -> None:
    stage.model.on("tick", Text("tack"))
    session = stage.session(roll_events=1)
    await session.send("tick")
    await session.settle()
    at = datetime.now(UTC) + timedelta(seconds=4)
    await session.intend("ring the bell", at=at, then="turn")
    stage.workers[0].kill()
    assert datetime.now(UTC) < at
    await stage.worker()
    [turn] = await own_turns(session, 1)
    assert turn.status == "done"
    assert turn.created_at >= at
    assert [row["kind"] for row in await session.turns()] == ["text", "system"]
    assert await session.intentions() == []


async def test_a_weekly_intention_comes_four_times_in_twenty_eight_days(months: Months) -> None:
    session = months.client.session("weekly", config=SessionConfig(roll_events=1))
    began = await months.environment.get_current_time()
    await session.intend(
        "ask how the week was",
        at=began + 7 * DAY,
        then="turn",
        recurring=True,
        every=7 * DAY.total_seconds(),
    )
    turns: list[TurnCard] = []
    for week in range(1, 5):
        await months.pass_by(7 * DAY)
        turns = await own_turns(session, week)
        assert len(turns) == week
    [item] = await session.intentions()
    assert item.fired == 4
    assert item.at == began + 35 * DAY
    assert (await session.state()).run > 4
    for number, turn in enumerate(turns):
        assert turn.created_at - began >= (number + 1) * 7 * DAY


async def test_an_intention_that_starts_a_turn_keeps_its_session_and_a_reminder_does_not(
    stage: Stage,
) -> None:
    stage.model.on("good night", Text("and to you"))
    session = stage.session(idle_timeout=0.5)
    await session.send("good night")
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    later = (await session.created_at()) + timedelta(days=1)
    await session.intend("wake me", at=later, then="turn", id="wake")
    await session.intend("I was tired", at=later - timedelta(days=1), id="tired")
    run = (await handle.describe()).run_id
    # More than the idle time, by which any session would be released.
    await asyncio.sleep(1.5)
    assert (await handle.describe()).status is not None
    assert (await handle.describe()).close_time is None
    assert (await handle.describe()).run_id == run
    assert await session.cancel_intention("wake")
    await ended(stage, session)
    stage.model.on("I am back", Text("so I see"))
    await session.send("I am back")
    assert "I was tired" in str(stage.model.requests[-1]["messages"])
    assert await session.intentions() == []


async def test_a_turn_of_an_intention_is_made_once_though_its_worker_is_killed(
    stage: Stage,
) -> None:
    stage.model.on("tick", Text("tack"))
    session = stage.session()
    await session.send("tick")
    await session.intend("ring the bell", event="noon", then="turn")
    noticed = asyncio.create_task(session.notice("noon"))
    await stage.worker()
    stage.workers[0].kill()
    await noticed
    [turn] = await own_turns(session, 1)
    assert turn.status == "done"
    assert [row["kind"] for row in await session.turns()] == ["text", "system"]
