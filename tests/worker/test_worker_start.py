"""A worker that cannot serve says why and ends; it never claims to serve."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from gmi.worker import GMIPlugin, Settings, connect
from gmi.worker.run import run_worker
from gmi.worker.services import Services

from ..support.temporal_server import TemporalServer


async def started(server: TemporalServer, directory: Path, **environ: str) -> tuple[int, str]:
    """Exit code and output of ``gmi worker``, which has to end by itself."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gmi.worker", "--address", server.address, "worker"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "GMI_TASK_QUEUE": directory.name, **environ},
        cwd=directory,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 40)
    return process.returncode or 0, output.decode()


@pytest.mark.parametrize("broken", ["missing", "persona", "store"])
async def test_what_is_wrong_ends_the_worker_with_the_reason(
    temporal: TemporalServer, tmp_path: Path, broken: str
) -> None:
    if broken == "store":
        environ = {"GMI_DATABASE_URL": "mysql://db/x"}
        reason = "sqlite:///"
    elif broken == "missing":
        environ = {"GMI_PERSONAS": str(tmp_path / "nowhere")}
        reason = "nowhere"
    else:
        (tmp_path / "bad.json").write_text(json.dumps({"id": "bad", "version": "one"}))
        environ = {"GMI_PERSONAS": str(tmp_path)}
        reason = "bad.json"
    code, output = await started(temporal, tmp_path, **environ)
    assert code != 0
    assert reason in output
    assert "Traceback" not in output
    assert "Serving" not in output


async def test_a_host_that_cancels_its_worker_leaves_none_running(
    temporal: TemporalServer, tmp_path: Path
) -> None:
    settings = Settings(task_queue=tmp_path.name, database_url=f"sqlite:///{tmp_path / 'gmi.db'}")
    client = await connect(address=temporal.address, plugin=GMIPlugin(settings))
    before = asyncio.all_tasks()
    serves = asyncio.Event()
    task = asyncio.create_task(run_worker(client, settings, ready=serves.set))
    await asyncio.wait_for(serves.wait(), 40)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() <= before


async def test_the_likely_mistakes_of_a_persona_are_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = {"name": "n", "description": "d", "version": "1.0.0", "baseSystemPrompt": "You help."}
    odd = {**base, "id": "odd", "streng": [], "emotionConfig": {"enabld": True}}
    services = Services(
        Settings(database_url=f"sqlite:///{tmp_path / 'gmi.db'}", default_persona="fine"),
        personas=[{**base, "id": "fine"}, odd],
    )
    async with services.running():
        pass
    assert [(r.levelname, r.getMessage()) for r in caplog.records if "odd" in r.getMessage()] == [
        (
            "WARNING",
            "Persona 'odd': streng is not known and does nothing; did you mean strengths? "
            "emotionConfig.enabld is not known and does nothing; did you mean enabled?",
        )
    ]
    assert not [r for r in caplog.records if "fine" in r.getMessage()]
