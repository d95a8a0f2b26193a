"""Worker processes that are really killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

READY = "worker is ready"

_MAIN = f"""
import asyncio, os
from gmi.worker import GMIPlugin, Settings, connect
from gmi.worker.run import run_worker

async def main():
    settings = Settings.from_environment()
    client = await connect(address=os.environ["TEST_TEMPORAL"], plugin=GMIPlugin(settings))
    await run_worker(client, settings, ready=lambda: print({READY!r}, flush=True))

asyncio.run(main())
os._exit(0)
"""


class WorkerProcess:
    """One worker in a process of its own.

    Args:
        address: The Temporal server.
        environ: Further variables; the environment's own provider keys are left out.
        log: File that takes its output.
    """

    def __init__(self, address: str, environ: dict[str, str], log: Path) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
        self._environ = {**clean, "TEST_TEMPORAL": address, **environ}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    async def start(self) -> None:
        """Start it and wait until it polls."""
        seen = self.output.count(READY)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN],
                stdout=log,
                stderr=log,
                env=self._environ,
                cwd=self._log.parent,
            )
        async with asyncio.timeout(60):
            while self.output.count(READY) == seen:
                assert self.running, f"the worker ended at once:\n{self.output}"
                await asyncio.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL."""
        self._send(signal.SIGKILL)
        self.join()

    def terminate(self) -> None:
        """SIGTERM, as a deploy sends it."""
        self._send(signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._send(signal.SIGCONT)

    def join(self, timeout: float = 40) -> int:
        """Wait for its end."""
        assert self._process is not None
        return self._process.wait(timeout)

    def _send(self, number: signal.Signals) -> None:
        if self.running:
            os.kill(self.pid, number)
