"""The memory port: encoding, tidying and care as activities."""

from __future__ import annotations

from temporalio import activity

from ..personas.errors import GMIError
from ..workflows.memory import Care, CareAnswer, Encode, Encoded, Maintain, MaintenanceReport
from ..workflows.ports import MemoryPort, implements
from .asking import Asker
from .catalog import Catalog
from .heartbeats import Resumable
from .learning.store import LearningStore
from .memory.care import MemoryCare
from .memory.consolidation import Consolidation, TidyProgress
from .memory.memories import Memories
from .store.protocol import Store
from .store_port import serving

MAX_CRASHES = 5


class EncodeProgress(Resumable):
    """What earlier attempts to encode a turn have come to.

    Attributes:
        crashes: Attempts that ended by an error that nobody foresaw; waiting for a store or an
            embedding model that is down is none.
    """

    crashes: int = 0


@implements(MemoryPort)
class MemoryActivities(MemoryPort):
    """Keeps memories.

    Args:
        memories: The worker's long-term memory.
        catalog: Frozen personas.
        store: The sessions.
        asker: Writes gists and schemas for the personas that name a model for them.
        learned: What was learned of users; it is forgotten with them.
    """

    def __init__(
        self,
        memories: Memories,
        catalog: Catalog,
        store: Store,
        asker: Asker | None = None,
        learned: LearningStore | None = None,
    ) -> None:
        self._learned = learned
        self._memories = memories
        self._catalog = catalog
        self._care = MemoryCare(memories, store, catalog)
        self._consolidation = Consolidation(memories, catalog, asker)

    async def encode(self, request: Encode) -> Encoded:
        """Make a done turn into memories, and apply what its recall changes; once."""
        info = activity.info()
        progress = EncodeProgress.resume(info.heartbeat_details)
        async with serving(progress.beat):
            try:
                persona = await self._catalog.persona(request.persona_digest)
                return await self._memories.encode(request, persona, info.attempt)
            except GMIError:
                raise
            except Exception as error:
                # A host's own embedder, or a mistake of ours: the turns behind it, and the
                # session's end, do not wait for ever.
                progress.crashes += 1
                progress.beat()
                if progress.crashes < MAX_CRASHES:
                    raise
                why = f"{type(error).__name__}: {error}"
                return Encoded(
                    warnings=[
                        f"ENCODING_FAILED: the turn was not remembered; {MAX_CRASHES} attempts "
                        f"failed: {why}"
                    ]
                )

    async def maintain(self, request: Maintain) -> MaintenanceReport:
        """Tidy a persona's memories: prune, shrink, calm, cluster, link, embed."""
        progress = TidyProgress.resume(activity.info().heartbeat_details)
        async with serving(progress.beat):
            return await self._consolidation.maintain(request, progress, progress.beat)

    async def care(self, request: Care) -> CareAnswer:
        """Look at memories, put one in, correct or erase some."""
        async with serving():
            answer = await self._care.serve(request)
            user = request.user_id
            if request.kind == "forget" and user and self._learned is not None and whole(request):
                # What was learned of somebody is forgotten with what was said.
                learned = await self._learned.forget(user, request.org)
                answer = answer.model_copy(update={"counts": {**answer.counts, "learned": learned}})
            return answer


def whole(request: Care) -> bool:
    """Whether a request means all of a user, and not a part of what is kept of them."""
    narrower = (
        request.scopes,
        request.persona,
        request.session_id,
        request.turn,
        request.ids,
        request.types,
        request.text,
    )
    return all(value is None for value in narrower)
