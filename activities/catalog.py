"""Frozen personas and tool sets: kept under their digests, loaded once per process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, Field

from ..personas.loader import PersonaCatalog
from ..personas.messages import ToolDefinition
from ..personas.overlays import OverlayContext, OverlayRule, apply_overlays
from ..personas.schema import Persona, check_access
from ..personas.trace_limits import trace_limits
from ..workflows.session_records import Frozen, SessionConfig, SessionRules
from ..workflows.steps import Route
from .blobs import dump_value
from .store.protocol import Store
from .tools.registry import ToolRegistry

CACHE_SIZE = 256


class Toolset(BaseModel):
    """The tools of a session, as they were when it opened: definitions and routes by name."""

    definitions: list[ToolDefinition] = Field(default_factory=list)
    routes: dict[str, Route] = Field(default_factory=dict)


class Catalog:
    """Freezes and loads personas and tool sets.

    Args:
        load: Loads the personas that new sessions may name: at the start, and at each refresh.
        tools: The tools of this worker.
        store: Keeps what is frozen.
    """

    def __init__(
        self, load: Callable[[], Awaitable[PersonaCatalog]], tools: ToolRegistry, store: Store
    ) -> None:
        self._load = load
        self._personas: PersonaCatalog | None = None
        self._tools = tools
        self._store = store
        self._cache: OrderedDict[str, Any] = OrderedDict()

    async def personas(self) -> PersonaCatalog:
        """The personas that new sessions may name.

        Raises:
            PersonaInvalidError: A source holds a persona with errors.
        """
        if self._personas is None:
            self._personas = await self._load()
        return self._personas

    async def reload(self) -> None:
        """Load the personas again, so that a refresh finds their newest versions.

        Raises:
            PersonaInvalidError: A source holds a persona with errors; the known ones stay.
        """
        self._personas = await self._load()

    async def freeze(self, persona_id: str | None, user_id: str, config: SessionConfig) -> Frozen:
        """Resolve a persona and its tools, and keep both.

        Raises:
            PersonaNotFoundError: No source provides the persona.
            PermissionDeniedError: The user may not use it.
            ToolNotFoundError: The configuration or the persona names an unknown tool.
        """
        persona = (await self.personas()).get(persona_id)
        check_access(persona, user_id)
        rules = [OverlayRule.model_validate(rule) for rule in config.overlays]
        overlaid = apply_overlays(persona, rules, OverlayContext(first_activation=True))
        warnings = list(overlaid.warnings)
        persona = overlaid.persona
        limits = trace_limits(persona)
        if limits.warning is not None:
            warnings.append(limits.warning)
        names = config.tools if config.tools is not None else persona.tool_ids or None
        toolset = self._toolset(names)
        persona_bytes = persona.to_json().encode()
        toolset_bytes = dump_value(toolset.model_dump(mode="json", exclude_defaults=True))
        [persona_digest] = await self._store.put_blobs("persona", [persona_bytes])
        [toolset_digest] = await self._store.put_blobs("toolset", [toolset_bytes])
        return Frozen(
            persona_digest=persona_digest,
            toolset_digest=toolset_digest,
            rules=session_rules(persona),
            warnings=warnings,
        )

    async def persona(self, digest: str) -> Persona:
        """A frozen persona."""
        found = self._cached(digest)
        if found is None:
            found = Persona.from_json(await self._store.get_blob(digest))
            self._keep(digest, found)
        return found  # type: ignore[no-any-return]  # one cache for two types, keyed by content

    async def toolset(self, digest: str) -> Toolset:
        """A frozen set of tools."""
        found = self._cached(digest)
        if found is None:
            found = Toolset.model_validate_json(await self._store.get_blob(digest))
            self._keep(digest, found)
        return found  # type: ignore[no-any-return]  # one cache for two types, keyed by content

    def _toolset(self, names: list[str] | None) -> Toolset:
        tools = self._tools.all() if names is None else [self._tools.get(name) for name in names]
        return Toolset(
            definitions=[tool.definition for tool in tools],
            routes={tool.name: tool.route for tool in tools},
        )

    def _cached(self, digest: str) -> Any:
        if digest in self._cache:
            self._cache.move_to_end(digest)
        return self._cache.get(digest)

    def _keep(self, digest: str, value: Any) -> None:
        self._cache[digest] = value
        while len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)


def session_rules(persona: Persona) -> SessionRules:
    """What a session's workflow needs of its persona."""
    limits = trace_limits(persona)
    return SessionRules(
        persona=persona.id,
        persona_name=persona.name,
        trace_max_entries=limits.max_entries,
        trace_max_message=limits.max_message_length,
    )
