from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gmi.worker.dev_server import DevServer, free_port, start_dev_server

from .command_line import CommandLine, clean_environment

_ids = itertools.count(1)


@pytest.fixture(scope="session")
async def dev_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """One server of the project's own for all tests of the command line."""
    server = await start_dev_server(tmp_path_factory.mktemp("dev") / ".gmi", port=free_port())
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def gmi(
    dev_server: DevServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[CommandLine]:
    """The command line, with a server and a worker running."""
    directory = tmp_path_factory.mktemp("cli")
    environ = clean_environment(directory, TEMPORAL_ADDRESS=dev_server.place.address)
    command_line = CommandLine(directory, environ)
    worker = await command_line.start("worker", "--json")
    assert worker.stdout is not None
    assert b'"ready"' in await worker.stdout.readline()
    yield command_line
    worker.terminate()
    assert await worker.wait() == 0


@pytest.fixture
def session_id() -> str:
    """A session of the test's own."""
    return f"s{next(_ids)}"


@pytest.fixture
def alone(tmp_path: Path) -> Callable[..., CommandLine]:
    """The command line in an empty directory, with no server anywhere."""
    port = str(free_port())

    def make(**variables: str) -> CommandLine:
        environ = clean_environment(tmp_path, GMI_DEV_PORT=port, **variables)
        return CommandLine(tmp_path, environ)

    return make
