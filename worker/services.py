"""What a worker needs to serve activities: put together once, opened and closed around its run."""

from __future__ import annotations

import importlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from ..activities.catalog import Catalog
from ..activities.gateway.circuits import CircuitRegistry
from ..activities.gateway.registry import ProviderRegistry
from ..activities.model_steps import ModelActivities
from ..activities.store import SQLStore
from ..activities.store_port import StoreActivities
from ..activities.tools import BUILT_IN_TOOLS, Tool, ToolRegistry, tool_activities, tool_of
from ..personas.errors import ConfigurationError
from ..personas.loader import PersonaCatalog, PersonaLoader, load_catalog
from ..personas.schema import Persona
from .settings import Settings


class Services:
    """A worker's parts.

    Args:
        settings: The worker's settings.
        tools: Tools, or functions decorated as such, beside those that the settings name.
        personas: Personas in place of the settings' directory.
        loader: A source of personas of the host's own, in place of both.
        http: Sends the requests to the providers; made, and closed, here when not given.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        tools: Iterable[Any] = (),
        personas: Sequence[Persona | Mapping[str, Any]] | None = None,
        loader: PersonaLoader | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self.settings = settings
        self.store = SQLStore.connect(settings.database_url)
        self._own_http = http is None
        self.http = http or httpx.AsyncClient()
        self.tools = ToolRegistry([*_tools(settings), *tools])
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
        self.catalog = Catalog(self._load_personas, self.tools, self.store)

    def activities(self) -> list[Callable[..., Any]]:
        """Every activity that the worker serves."""
        model = ModelActivities(
            self.store, self.catalog, self.providers, self.circuits, self.settings.providers
        )
        store = StoreActivities(self.store, self.catalog, self.providers)
        return [
            model.run_step,
            store.open_session,
            store.refresh_persona,
            store.close_turn,
            store.import_history,
            store.put_blobs,
            store.save_session,
            store.read,
            *tool_activities(self.tools, self.store),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the store and check the personas; everything is closed at the end.

        Raises:
            ConfigurationError: The store or the personas are not usable.
            PersonaInvalidError: A persona has errors.
        """
        try:
            await self.store.prepare()
            await self.catalog.personas()
            yield
        finally:
            if self._own_http:
                await self.http.aclose()
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


def _tools(settings: Settings) -> list[Tool]:
    found = list(BUILT_IN_TOOLS) if settings.builtin_tools else []
    for name in settings.tools:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            raise ConfigurationError(
                f"GMI_TOOLS names the module {name!r}, which cannot be imported: {error}"
            ) from error
        tools = [_as_tool(value) for value in vars(module).values()]
        if not any(tools):
            raise ConfigurationError(
                f"The module {name!r} has no tools; decorate functions with @tool."
            )
        found.extend(tool for tool in tools if tool is not None)
    return found


def _as_tool(value: object) -> Tool | None:
    if isinstance(value, Tool):
        return value
    try:
        return tool_of(value) if callable(value) else None
    except ConfigurationError:
        return None
