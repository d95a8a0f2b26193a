"""A server and a worker of one's own: what `gmi dev` and `gmi chat` start and end."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...personas.errors import GMIError
from ..dev_server import DevServer, end_child, start_dev_server
from ..settings import DATA_DIRECTORY, Settings

WORKER_LOG = "worker.log"

MAX_LOG_BYTES = 5_000_000
"""A larger log becomes ``worker.log.1``, in place of that one, when a worker starts."""

_END_SECONDS = 40.0


class Local:
    """This directory's server, and a worker in a child process that is started again when lost.

    Both end with this process, however it ends. Made by :meth:`start`.

    Attributes:
        server: The server.
        log: Takes what the worker logs and what its tools print.
        failed: Set, with the error, when the server or the worker ends for good.
    """

    def __init__(
        self, server: DevServer, command: list[str], log: Path, told: Callable[[str], None]
    ) -> None:
        self.server = server
        self.log = log
        self.failed: asyncio.Future[GMIError] = asyncio.get_running_loop().create_future()
        self._command = command
        self._told = told
        self._process: asyncio.subprocess.Process | None = None
        self._ending = False
        self._ready = asyncio.Event()
        self._tasks = [
            asyncio.create_task(self._keep_worker()),
            asyncio.create_task(self._see_server()),
        ]

    @classmethod
    async def start(
        cls,
        settings: Settings,
        *,
        namespace: str,
        told: Callable[[str], None],
        port: int | None = None,
        directory: Path = DATA_DIRECTORY,
    ) -> Local:
        """Start what does not run yet; the server answers then, the worker soon.

        Args:
            settings: The task queue.
            namespace: The namespace.
            told: Called with a line whenever the worker is lost.
            port: The port to prefer; see :func:`~gmi.worker.dev_server.start_dev_server`.
            directory: Where the data are.

        Raises:
            ConfigurationError: The server does not start.
        """
        server = await start_dev_server(directory, port=port, namespace=namespace)
        command = [
            # Unbuffered, so that what tools print is in the log at once.
            *(sys.executable, "-u", "-m", "gmi.worker", "worker", "--json", "--with-owner"),
            *("--address", server.place.address, "--namespace", namespace),
            *("--task-queue", settings.task_queue),
        ]
        return cls(server, command, directory / WORKER_LOG, told)

    @property
    def worker_pid(self) -> int | None:
        """The worker's process, once it was started."""
        return None if self._process is None else self._process.pid

    async def ready(self) -> None:
        """Return once the worker serves.

        Raises:
            GMIError: It does not start.
        """
        ready = asyncio.create_task(self._ready.wait())
        waited: set[asyncio.Future[Any]] = {ready, self.failed}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self.failed.done():
            raise self.failed.result()

    async def stop(self) -> None:
        """End the worker, then the server; the data stay."""
        self._ending = True
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        if self._process is not None:
            await end_child(self._process, _END_SECONDS)
        await self.server.stop()

    async def _keep_worker(self) -> None:
        while True:
            make_room(self.log)
            said_before = self.log.stat().st_size if self.log.exists() else 0
            self._process, ready = await self._spawn()
            if await _line(ready):
                self._ready.set()
            code = await self._process.wait()
            # A worker that ended by itself has said why; one that was killed is replaced.
            if code >= 0 or not self._ready.is_set():
                self._fail(f"The worker ended: {_last_error(self.log, said_before)}")
                return
            self._ready.clear()
            self._told("the worker was lost; starting another")

    async def _spawn(self) -> tuple[asyncio.subprocess.Process, int]:
        """Start a worker; returns it and the pipe by which it says that it serves."""
        reading, writing = os.pipe()
        try:
            # Both streams are the tools' too: what a tool prints must neither be lost, nor be
            # taken for the worker's word, nor stop the worker when nobody reads.
            with self.log.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *(*self._command, "--ready-fd", str(writing)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=(writing,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return process, reading

    async def _see_server(self) -> None:
        await self.server.ended()
        self._fail("The Temporal server ended; .gmi/temporal.log may say why.")

    def _fail(self, message: str) -> None:
        if not self.failed.done() and not self._ending:
            self.failed.set_result(GMIError(message, code="LOCAL_FAILED"))


def make_room(log: Path) -> None:
    """Move a log aside that is over :data:`MAX_LOG_BYTES`."""
    with suppress(FileNotFoundError):
        if log.stat().st_size > MAX_LOG_BYTES:
            log.replace(log.with_name(f"{log.name}.1"))


async def _line(descriptor: int) -> bytes:
    """The line that comes through a pipe; empty when its other end closes without one."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    try:
        return await reader.readline()
    finally:
        transport.close()


def _last_error(log: Path, start: int) -> str:
    """The error that a worker ended with, in what it logged from ``start`` on."""
    said = log.read_bytes()[start:].decode(errors="replace").strip().splitlines()
    for line in reversed(said):
        told = _object(line.encode()).get("error")
        if isinstance(told, dict) and {"code", "message"} <= told.keys():
            return f"{told['code']}: {told['message']}"
    return said[-1] if said else "it said nothing"


def _object(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
