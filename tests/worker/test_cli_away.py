"""What the command line says when the server or the workers are away."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from gmi.worker.dev_server import free_port, start_dev_server

from .command_line import CommandLine, clean_environment

# The program, but for how long it goes on without a server.
IMPATIENT = """\
import sys
from gmi.worker import calls
from gmi.worker.cli import main

calls.calling.__kwdefaults__["retry_for"] = 1
main()
"""


async def running(address: str, session_id: str) -> None:
    """Wait until a session's workflow runs."""
    client = await Client.connect(address)
    async with asyncio.timeout(30):
        while True:
            try:
                found = await client.get_workflow_handle(f"gmi-session-{session_id}").describe()
                assert found.status == WorkflowExecutionStatus.RUNNING
                return
            except RPCError:
                await asyncio.sleep(0.05)


async def test_without_a_server_stdout_stays_empty_and_stderr_says_why_once(
    tmp_path: Path,
) -> None:
    server = await start_dev_server(tmp_path / ".gmi", port=free_port())
    address = server.place.address
    environ = clean_environment(tmp_path, TEMPORAL_ADDRESS=address)

    async def sending(*words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", IMPATIENT, "send", *words, "Hello"),
            cwd=tmp_path,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    person, program = await sending("person"), await sending("program", "--json")
    await asyncio.gather(running(address, "person"), running(address, "program"))
    await server.stop()
    (out, err), (json_out, json_err) = await asyncio.wait_for(
        asyncio.gather(person.communicate(), program.communicate()), 100
    )
    assert (person.returncode, program.returncode) == (3, 3)
    assert (out, json_out) == (b"", b"")
    [line] = json_err.decode().splitlines()
    assert json.loads(line)["error"]["code"] == "SERVER_UNREACHABLE"
    note, error = err.decode().splitlines()
    assert note in (
        f"The Temporal server at {address} does not answer; waiting for it.",
        "No worker polls the task queue 'gmi'; waiting for one. `gmi worker` starts it.",
    )
    assert error.startswith("error: SERVER_UNREACHABLE: ")


async def test_ctrl_c_ends_a_send_that_waits_with_130(gmi: CommandLine, session_id: str) -> None:
    sending = await gmi.start("send", session_id, "Hello", "--task-queue", "nobody")
    await running(gmi.environ["TEMPORAL_ADDRESS"], session_id)
    sending.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(sending.communicate(), 30)
    assert (sending.returncode, out, err) == (130, b"", b"")


@pytest.mark.prove
async def test_a_worker_that_was_killed_a_moment_ago_is_named_and_not_believed(
    gmi: CommandLine, session_id: str
) -> None:
    queue = ("--task-queue", f"queue-{session_id}")
    worker = await gmi.start("worker", "--json", *queue)
    assert worker.stdout is not None
    assert b'"ready"' in await worker.stdout.readline()
    assert (await gmi("send", session_id, "Hello", *queue)).code == 0
    healthy = await gmi("doctor", "--json", *queue)
    worker.kill()
    await worker.wait()

    sending = await gmi.start("send", session_id, "Hello", *queue)
    assert sending.stderr is not None
    told, ailing = await asyncio.gather(
        asyncio.wait_for(sending.stderr.readline(), 60), gmi("doctor", "--json", *queue)
    )
    assert told.decode().startswith(f"Nobody answers on the task queue {queue[1]!r}.")
    assert f" {worker.pid}@" in told.decode()
    assert "(last heard of " in told.decode()
    [before, after] = [
        next(row for row in result.json if row["name"] == "workers") for result in (healthy, ailing)
    ]
    assert (before["state"], after["state"]) == ("ok", "failed")
    assert f" {worker.pid}@" in before["found"]
    assert f" {worker.pid}@" in after["found"]
    assert ailing.code == 1
    sending.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(sending.wait(), 30) == 130
