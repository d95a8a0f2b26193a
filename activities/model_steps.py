"""The model port: one execution of a step is one model step, its attempts walk the hops."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio import activity
from temporalio.exceptions import ApplicationError

from ..personas.errors import GMIError, ProcessingError
from ..workflows.model_calls import CallResult, ModelCall
from ..workflows.ports import ModelPort, implements
from ..workflows.steps import RunStep, StepResult
from .asking import Asker
from .beside import write
from .catalog import Catalog
from .chunk_sender import Send, send_to_session
from .content import ContentLoader
from .feelings import Feelings
from .gateway.circuits import CircuitRegistry
from .gateway.registry import ProviderRegistry
from .handing_on import handing_on
from .heartbeats import beating
from .learning import Learning
from .memory.memories import Memories
from .model_calls import ModelCalls
from .progress import Progress
from .sentiment import SentimentScorers
from .step_attempt import StepAttempt, StepParts
from .store.protocol import Store

MAX_CRASHES = 5


@implements(ModelPort)
class ModelActivities(ModelPort):
    """Runs model steps, and asks beside them.

    Args:
        store: The store.
        catalog: Frozen personas and tools.
        providers: The providers.
        circuits: Their circuit breakers, one set for the process.
        settings: The worker's settings, by the names of their variables.
        send: Delivers a batch of chunks to the session whose step runs.
        memories: Long-term memory; without it a turn brings nothing to mind.
        scorers: Score how words feel, by language; English is there without them.
        learning: What personas learn about their users; without it nothing is learned.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        providers: ProviderRegistry,
        circuits: CircuitRegistry,
        settings: Mapping[str, str],
        send: Send = send_to_session,
        memories: Memories | None = None,
        scorers: SentimentScorers | None = None,
        learning: Learning | None = None,
    ) -> None:
        content = ContentLoader(store)
        asker = Asker(providers, circuits, settings)
        feelings = Feelings(scorers or SentimentScorers(), asker)
        self._parts = StepParts(
            store,
            catalog,
            providers,
            circuits,
            settings,
            send,
            content,
            feelings,
            memories,
            learning,
        )
        self._calls = ModelCalls(store, catalog, asker)

    async def run_step(self, request: RunStep) -> StepResult:
        """Record what is new, ask the model once, record its reply."""
        info = activity.info()
        progress = Progress.resume(info.heartbeat_details, hop=request.start_hop)
        with handing_on():
            async with beating(progress.beat):
                attempt = StepAttempt(self._parts, request, progress, info.attempt)
                try:
                    await write(self._parts.store, request, progress)
                    return await attempt.run()
                except GMIError as error:
                    attempt.refuse(error)
                except ApplicationError:
                    raise
                except Exception as error:
                    # A mistake of ours, or something that passes: tried again, but not for ever,
                    # since each attempt may ask the model.
                    progress.crashes += 1
                    progress.beat()
                    if progress.crashes < MAX_CRASHES:
                        raise
                    attempt.refuse(
                        ProcessingError(
                            f"The step failed {MAX_CRASHES} times: {type(error).__name__}: {error}"
                        )
                    )

    async def call(self, request: ModelCall) -> CallResult:
        """Ask a model something beside the turns, and read its answer."""
        return await self._calls.serve(request)
