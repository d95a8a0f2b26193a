"""The Temporal plugin: adds sessions to a user's own client, worker and replayer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import temporalio.client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkerConfig, WorkerDeploymentConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from ..personas.loader import PersonaLoader
from ..personas.schema import Persona
from ..workflows import GMIConsolidation, GMIKeep, GMIMemory, GMIRead, GMISession
from .consolidation import keep_schedules
from .converter import converter_for
from .settings import Settings

if TYPE_CHECKING:
    from ..activities.embedders import Embedder
    from ..activities.memory import MemoryProvider, Reranker
    from ..activities.sentiment import SentimentScorer
    from .services import Services

_log = logging.getLogger(__name__)

PASSED_THROUGH = ("gmi.personas", "gmi.workflows")
"""Pure modules, which a user's own sandboxed workflows need not import anew: that costs each of
them 30 ms of CPU."""


class GMIPlugin(SimplePlugin):
    """Everything that durable sessions need, as one object.

    Put it on the client; the worker inherits it. A worker that is given it serves sessions; a
    payload converter, codec or external storage of the user's own is kept.

    Args:
        settings: The worker's settings; read from the environment without.
        tools: Tools, or functions decorated with ``@tool``.
        personas: Personas, in place of the settings' directory.
        loader: A source of personas of the host's own.
        memory_provider: A memory of the host's own, for personas whose memory is off.
        memory_provider_timeout: Seconds that its context is waited for.
        reranker: Has a say in the order of recalled memories, where a persona wants it.
        scorers: Score how words feel, by language.
        embedders: Embedding models of the host's own, by the name that the settings and personas
            use; it has to be the embedder's ``model``.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        tools: Iterable[Any] = (),
        personas: Sequence[Persona | Mapping[str, Any]] | None = None,
        loader: PersonaLoader | None = None,
        memory_provider: MemoryProvider | None = None,
        memory_provider_timeout: float = 2.0,
        reranker: Reranker | None = None,
        scorers: Mapping[str, SentimentScorer] | None = None,
        embedders: Mapping[str, Embedder] | None = None,
    ) -> None:
        self._settings = settings
        self._parts: dict[str, Any] = {
            "tools": list(tools),
            "personas": personas,
            "loader": loader,
            "memory_provider": memory_provider,
            "memory_provider_timeout": memory_provider_timeout,
            "reranker": reranker,
            "scorers": scorers,
            "embedders": embedders,
        }
        self._services: Services | None = None
        self._served: tuple[temporalio.client.Client, str] | None = None
        super().__init__(
            "durable-gmi.GMIPlugin",
            data_converter=converter_for,
            workflows=[GMISession, GMIRead, GMIKeep, GMIMemory, GMIConsolidation],
            workflow_runner=_runner,
            run_context=self._running,
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Add the sessions' workflows and activities, and the settings that they rely on."""
        # Here, since a client needs no database library: it costs each command half a second.
        from .services import Services

        config = super().configure_worker(config)
        settings = self._settings or Settings.from_environment()
        self._services = Services(settings, **self._parts)
        config["activities"] = [*config.get("activities", []), *self._services.activities()]
        client, task_queue = config.get("client"), config.get("task_queue")
        if client is not None and task_queue is not None:
            self._served = (client, task_queue)
        return tuned(config, settings)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        if self._services is None:
            yield
            return
        async with self._services.running():
            # Beside the work: no session waits for a schedule.
            keeping = asyncio.create_task(self._keep_schedules(self._services))
            try:
                yield
            finally:
                keeping.cancel()
                with suppress(asyncio.CancelledError):
                    await keeping

    async def _keep_schedules(self, services: Services) -> None:
        if self._served is None:
            return
        client, task_queue = self._served
        try:
            catalog = await services.catalog.personas()
            await keep_schedules(client, catalog, task_queue=task_queue)
        except Exception:
            # The worker serves sessions all the same.
            _log.warning("The schedules of the personas could not be kept.", exc_info=True)


def tuned(config: WorkerConfig, settings: Settings) -> WorkerConfig:
    """The worker settings without which the sessions' promises do not hold."""
    # A running step beats every second; with a slower throttle a stop reaches it late, and what
    # a killed worker knew of its hops is lost.
    config["max_heartbeat_throttle_interval"] = timedelta(seconds=1)
    config["default_heartbeat_throttle_interval"] = timedelta(seconds=1)
    # A killed worker's sessions wait for its sticky queue this long before another takes them.
    config["sticky_queue_schedule_to_start_timeout"] = timedelta(seconds=1)
    # Without a grace period every deploy would lose the running tools that may run only once.
    if not config.get("graceful_shutdown_timeout"):
        config["graceful_shutdown_timeout"] = timedelta(seconds=settings.shutdown_timeout)
    config["max_cached_workflows"] = settings.cached_sessions
    if settings.deployment is not None and config.get("deployment_config") is None:
        name, build = settings.deployment
        config["deployment_config"] = WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(deployment_name=name, build_id=build),
            use_worker_versioning=True,
            # A session lives for months: it moves on with the code instead of pinning it.
            default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
        )
    return config


def _runner(existing: WorkflowRunner | None) -> WorkflowRunner:
    if existing is None:
        existing = SandboxedWorkflowRunner()
    if not isinstance(existing, SandboxedWorkflowRunner):
        return existing
    return replace(
        existing, restrictions=existing.restrictions.with_passthrough_modules(*PASSED_THROUGH)
    )
