"""What a worker needs to serve activities: put together once, opened and closed around its run."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx

from ..activities.asking import Asker
from ..activities.catalog import Catalog
from ..activities.embedders.embedder import Embedder
from ..activities.embedders.registry import EmbedderRegistry
from ..activities.gateway.circuits import CircuitRegistry
from ..activities.gateway.models import load_prices
from ..activities.gateway.registry import ProviderRegistry
from ..activities.judging import ModelJudge
from ..activities.learning import Learning
from ..activities.memory import MemoryProvider, Reranker
from ..activities.memory.memories import Memories
from ..activities.memory_port import MemoryActivities
from ..activities.model_steps import ModelActivities
from ..activities.sentiment import SentimentScorer, SentimentScorers
from ..activities.store import SQLStore
from ..activities.store.learning.sql import SQLLearningStore
from ..activities.store.memory.sql import SQLMemoryStore
from ..activities.store_port import StoreActivities
from ..activities.tools import BUILT_IN_TOOLS, Tool, ToolRegistry, tool_activities, tool_of
from ..activities.tools.self_improvement import (
    SELF_IMPROVEMENT_TOOLS,
    Asking,
    Judged,
    Parts,
    self_improvement_tools,
)
from ..personas.errors import ConfigurationError
from ..personas.loader import PersonaCatalog, PersonaLoader, load_catalog
from ..personas.schema import Persona
from .settings import Settings

_log = logging.getLogger(__name__)


class Services:
    """A worker's parts.

    Args:
        settings: The worker's settings.
        tools: Tools, or functions decorated as such, beside those that the settings name.
        personas: Personas in place of the settings' directory.
        loader: A source of personas of the host's own, in place of both.
        memory_provider: A memory of the host's own, for personas whose memory is off.
        memory_provider_timeout: Seconds that its context is waited for.
        reranker: Has a say in the order of recalled memories, where a persona wants it.
        scorers: Score how words feel, by language.
        embedders: Embedding models of the host's own, by the name that the settings and personas
            use; it has to be the embedder's ``model``.
        http: Sends the requests to the providers; made, and closed, here when not given.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        tools: Iterable[Any] = (),
        personas: Sequence[Persona | Mapping[str, Any]] | None = None,
        loader: PersonaLoader | None = None,
        memory_provider: MemoryProvider | None = None,
        memory_provider_timeout: float = 2.0,
        reranker: Reranker | None = None,
        scorers: Mapping[str, SentimentScorer] | None = None,
        embedders: Mapping[str, Embedder] | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self.settings = settings
        self.store = SQLStore.connect(settings.database_url)
        self._own_http = http is None
        self.http = http or httpx.AsyncClient()
        self.learning = Learning(
            SQLLearningStore(self.store.database), settings.switches, settings.learning
        )
        self.tools = ToolRegistry([*_tools(settings), *tools, *self._self_improvement()])
        self.providers = ProviderRegistry(
            self.http,
            settings.providers,
            credentials=settings.credentials,
            idle_timeout=settings.idle_timeout,
            offline_delay=settings.offline_delay,
        )
        self.circuits = CircuitRegistry(time.monotonic)
        self._personas = personas
        self._loader = loader
        self.catalog = Catalog(
            self._load_personas,
            self.tools,
            self.store,
            observed=memory_provider is not None,
        )
        self._asker = Asker(self.providers, self.circuits, settings.providers)
        self.embedders = EmbedderRegistry(
            self.http, self.providers, settings.providers, settings.embedding_model
        )
        for name, embedder in (embedders or {}).items():
            if embedder.model != name:
                raise ConfigurationError(
                    f"The embedder {name!r} calls its model {embedder.model!r}; give it under "
                    "that name, which is kept beside each vector."
                )
            self.embedders.register(embedder)
        self.scorers = SentimentScorers()
        for language, scorer in (scorers or {}).items():
            self.scorers.register(language, scorer)
        self.memories = Memories(
            SQLMemoryStore(self.store.database),
            self.embedders.get,
            asker=self._asker,
            reranker=reranker,
            provider=memory_provider,
            provider_timeout=memory_provider_timeout,
        )

    def _self_improvement(self) -> list[Tool]:
        """The tools with which personas change themselves; few are offered them."""

        # Made last, and these tools are of the registry that it is made with.
        async def judge(ask: Asking, query: str, response: str) -> Judged:
            return await ModelJudge(self._asker, self.store)(ask, query, response)

        return self_improvement_tools(
            Parts(
                store=self.learning.store,
                persona=lambda digest: self.catalog.persona(digest),
                toolset=lambda digest: self.catalog.toolset(digest),
                tools=lambda: self.tools,
                switches=self.settings.switches,
                judge=judge,
            )
        )

    def activities(self) -> list[Callable[..., Any]]:
        """Every activity that the worker serves."""
        model = ModelActivities(
            self.store,
            self.catalog,
            self.providers,
            self.circuits,
            self.settings.providers,
            memories=self.memories,
            scorers=self.scorers,
            learning=self.learning,
        )
        memory = MemoryActivities(
            self.memories, self.catalog, self.store, self._asker, self.learning.store
        )
        store = StoreActivities(self.store, self.catalog, self.providers)
        return [
            model.run_step,
            model.call,
            store.open_session,
            store.refresh_persona,
            store.close_turn,
            store.import_history,
            store.put_blobs,
            store.save_session,
            store.read,
            store.keep_mind,
            store.keep_intentions,
            store.known_turn,
            memory.encode,
            memory.maintain,
            memory.care,
            *tool_activities(self.tools, self.store),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the store, check the personas, load the prices; all is closed at the end.

        Raises:
            ConfigurationError: The store, the personas or the embedding model are not usable.
            PersonaInvalidError: A persona has errors.
        """
        try:
            await self.store.prepare()
            warn_of_remarks(await self.catalog.personas())
            # The worker's own embedding model is checked now, not in somebody's turn.
            self.embedders.get(None)
            # In a thread: on the loop it would hold up whatever else the worker's host runs there.
            await asyncio.to_thread(load_prices)
            yield
        finally:
            if self._own_http:
                await self.http.aclose()
            self.memories.close()
            await self.store.close()

    async def _load_personas(self) -> PersonaCatalog:
        given = self._personas is not None or self._loader is not None
        return await load_catalog(
            directory=None if given else self.settings.personas,
            personas=self._personas,
            loader=self._loader,
            default_id=self.settings.default_persona,
            known_tools=self.tools.names(),
        )


async def load_personas(settings: Settings) -> PersonaCatalog:
    """The personas that a worker of these settings serves, checked against its tools.

    Raises:
        ConfigurationError: The directory, or a module of tools, cannot be read.
        PersonaInvalidError: A persona has errors; ``details["issues"]`` lists them.
    """
    return await load_catalog(
        directory=settings.personas,
        default_id=settings.default_persona,
        known_tools=[*ToolRegistry(_tools(settings)).names(), *sorted(SELF_IMPROVEMENT_TOOLS)],
    )


def warn_of_remarks(catalog: PersonaCatalog) -> None:
    """Log the likely mistakes of each persona, in one warning a persona."""
    for persona_id, found in sorted(catalog.remarks.items()):
        _log.warning("Persona %r: %s", persona_id, " ".join(found))


def _tools(settings: Settings) -> list[Tool]:
    seen = list(BUILT_IN_TOOLS) if settings.builtin_tools else []
    found = list(seen)
    for name in settings.tools:
        try:
            module = importlib.import_module(name)
        # Whatever a module raises while it is imported, its name is what the reader needs.
        except Exception as error:
            raise ConfigurationError(
                f"GMI_TOOLS names the module {name!r}, which cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error
        tools = [tool for value in vars(module).values() if (tool := _as_tool(value)) is not None]
        if not tools:
            raise ConfigurationError(
                f"The module {name!r} has no tools; decorate functions with @tool."
            )
        for tool in tools:
            # A module may import another one's tool, or give its own a second name.
            if not any(tool is known for known in seen):
                seen.append(tool)
                found.append(tool if tool.module else replace(tool, module=name))
    return found


def _as_tool(value: object) -> Tool | None:
    if isinstance(value, Tool):
        return value
    try:
        return tool_of(value) if callable(value) else None
    except ConfigurationError:
        return None
