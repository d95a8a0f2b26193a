"""A session whose workflow task fails on the workers' code: whoever waits is told so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.common import RawValue
from temporalio.worker import Worker, WorkerConfig

from gmi.personas.errors import SessionStuckError
from gmi.worker import Client, GMIPlugin, Session, Settings
from gmi.worker.calls import calling
from gmi.worker.status import failing_task
from gmi.workflows import GMISession
from gmi.workflows.decode import MISSING

from ..support.temporal_server import TemporalServer
from .command_line import CommandLine, clean_environment


@workflow.defn(name="GMISession", sandboxed=False)
class Changed(GMISession):
    """A session of a release that does not fit the sessions of before."""

    @workflow.init
    def __init__(self, raw: RawValue = MISSING) -> None:
        super().__init__(raw)

    @workflow.run
    async def run(self, raw: RawValue = MISSING) -> None:
        await workflow.sleep(timedelta(hours=1))


class ChangedPlugin(GMIPlugin):
    """A plugin of that release."""

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        config = super().configure_worker(config)
        config["workflows"] = [Changed]
        return config


@pytest.fixture(scope="module")
async def stuck(
    temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Session]:
    """A session that runs on code that does not fit it."""
    directory = tmp_path_factory.mktemp("stuck")
    settings = Settings(database_url=f"sqlite:///{directory / 'gmi.db'}", task_queue=directory.name)
    client = await Client.connect(
        address=temporal.address, task_queue=directory.name, plugin=GMIPlugin(settings)
    )
    session = client.session(directory.name)
    async with Worker(client.temporal, task_queue=directory.name):
        await session.send("Hello")
        assert await failing_task(client.temporal, session.workflow_id) is None
    changed = await Client.connect(
        address=temporal.address, task_queue=directory.name, plugin=ChangedPlugin(settings)
    )
    async with Worker(
        changed.temporal,
        task_queue=directory.name,
        graceful_shutdown_timeout=timedelta(milliseconds=100),
    ):
        # A signal gives it a workflow task, which fails.
        handle = client.temporal.get_workflow_handle(session.workflow_id)
        await handle.signal("stop_turn", {})
        async with asyncio.timeout(60):
            # Up to the third attempt the server lets a query wait, as for a worker that is away.
            while True:
                task = await failing_task(client.temporal, session.workflow_id)
                if task is not None and task.attempt > 3:
                    break
                await asyncio.sleep(0.1)
        yield session


async def test_the_client_says_that_the_session_stands_still(stuck: Session) -> None:
    async def ask() -> str:
        handle = stuck._workers.temporal.get_workflow_handle(stuck.workflow_id)
        answer: str = await handle.query("get_state")
        return answer

    with pytest.raises(SessionStuckError, match="gmi replay --session") as raised:
        await calling(ask, retry_for=1)
    assert raised.value.code == "SESSION_STUCK"
    assert raised.value.retryable is True


async def test_the_failing_task_tells_its_failure(stuck: Session) -> None:
    task = await failing_task(stuck._workers.temporal, stuck.workflow_id)
    assert task is not None
    assert task.attempt >= 2
    assert "ondeterminis" in task.failure


@pytest.mark.prove
async def test_the_command_line_names_replay_while_it_waits_and_ends_with_1(
    stuck: Session, temporal: TemporalServer, tmp_path: Path
) -> None:
    gmi = CommandLine(
        tmp_path,
        clean_environment(
            tmp_path, TEMPORAL_ADDRESS=temporal.address, GMI_TASK_QUEUE=stuck._workers.task_queue
        ),
    )
    result = await gmi("send", stuck.id, "again")
    assert result.code == 1
    told, error = result.err.split("error: SESSION_STUCK: ")
    assert "ondeterminis" in told
    assert f"gmi replay --session {stuck.id}" in told
    assert "gmi replay" in error
    assert result.out == ""
