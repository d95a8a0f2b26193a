"""Real servers for every test: Temporal, a scripted model, worker processes that can be killed."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gmi.worker import Client, GMIPlugin, Session, Settings
from gmi.workflows import SessionConfig

from .support.databases import Databases, postgresql
from .support.scripted_model import ScriptedModel
from .support.temporal_server import TemporalServer
from .support.worker_process import WorkerProcess

_names = itertools.count(1)

TROUBLE = (
    "Failed activation",
    "Failed handling activation",
    "Failing workflow task",
    "TMPRL1100",
    "ondeterminis",
    "never retrieved",
    "never awaited",
    "Unfinished",
    "exception in event loop",
)
"""What no worker may say, whatever is done to it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=("sqlite", "postgresql"),
        default="sqlite",
        help="where the workers of the durability and session tests keep their store",
    )


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a real PostgreSQL server."""
    with postgresql() as url:
        yield url


@pytest.fixture(scope="session")
def new_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], str]:
    """Makes an empty store for a test's workers, of the kind that the command line says."""
    server = None
    if request.config.getoption("--database") == "postgresql":
        server = request.getfixturevalue("postgresql_server")
    return Databases(tmp_path_factory.mktemp("stores"), server).new


@pytest.fixture(scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    """One server for all tests that do not kill it."""
    server = TemporalServer(tmp_path_factory.mktemp("temporal"))
    await server.start()
    yield server
    server.kill()


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    """A scripted model of the test's own."""
    server = ScriptedModel()
    await server.start()
    yield server
    await server.close()


@dataclass
class Stage:
    """A store, a task queue, and the workers and sessions of one test.

    Attributes:
        client: A client of the queue.
        model: The scripted model that the workers talk to.
        directory: Where the store and the logs are.
    """

    address: str
    client: Client
    model: ScriptedModel
    directory: Path
    environ: dict[str, str]
    workers: list[WorkerProcess]

    async def worker(self, **environ: str) -> WorkerProcess:
        """Start another worker process."""
        log = self.directory / f"worker-{len(self.workers)}.log"
        process = WorkerProcess(self.address, {**self.environ, **environ}, log)
        self.workers.append(process)
        await process.start()
        return process

    def session(
        self, name: str = "", *, user_id: str = "kim", persona: str | None = None, **config: object
    ) -> Session:
        """A session that talks to the scripted model."""
        settings = {"model": "openai:scripted", "fallback": [], **config}
        return self.client.session(
            name or f"test-{next(_names)}",
            persona=persona,
            user_id=user_id,
            config=SessionConfig.model_validate(settings),
        )

    @property
    def database_url(self) -> str:
        """The store of the stage's workers."""
        return self.environ["GMI_DATABASE_URL"]

    async def reconnect(self) -> Client:
        """A fresh client, as another process would have it."""
        return await Client.connect(
            address=self.address, task_queue=self.client.task_queue, plugin=GMIPlugin(Settings())
        )


MakeStage = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def make_stage(
    temporal: TemporalServer,
    model: ScriptedModel,
    new_database: Callable[[], str],
    tmp_path: Path,
) -> AsyncIterator[MakeStage]:
    """Sets a stage with so many workers."""
    stages: list[Stage] = []

    async def make(
        workers: int = 1,
        *,
        database_url: str | None = None,
        address: str | None = None,
        **settings: str,
    ) -> Stage:
        queue = f"gmi-{tmp_path.name}-{next(_names)}"
        where = address or temporal.address
        environ = {
            "GMI_TASK_QUEUE": queue,
            "GMI_DATABASE_URL": database_url or new_database(),
            "GMI_TOOLS": "served_tools",
            "GMI_SHUTDOWN_TIMEOUT": "2",
            "OPENAI_API_KEY": "test-key-not-secret",
            "OPENAI_BASE_URL": model.url,
            "TEST_MODEL": model.url.removesuffix("/v1"),
            "PYTHONPATH": str(Path(__file__).parent / "support"),
            **settings,
        }
        client = await Client.connect(address=where, task_queue=queue, plugin=GMIPlugin(Settings()))
        stage = Stage(where, client, model, tmp_path, environ, [])
        stages.append(stage)
        for _ in range(workers):
            await stage.worker()
        return stage

    yield make
    for stage in stages:
        for worker in stage.workers:
            worker.thaw()
            worker.kill()
    said = [
        line
        for stage in stages
        for worker in stage.workers
        for line in worker.output.splitlines()
        if any(word in line for word in TROUBLE)
    ]
    assert not said, "\n".join(line[:2000] for line in said)


@pytest.fixture
async def stage(make_stage: MakeStage) -> Stage:
    """A stage with one worker."""
    return await make_stage()
