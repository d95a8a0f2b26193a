"""Frozen personas and tool sets: kept under their digests, loaded once per process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic.alias_generators import to_snake

from ..personas.emotion import Traits
from ..personas.errors import PermissionDeniedError, PersonaInvalidError, PersonaNotFoundError
from ..personas.loader import PersonaCatalog
from ..personas.memory_lifecycle import negotiates
from ..personas.messages import ToolDefinition
from ..personas.metaprompts.merge import merged
from ..personas.metaprompts.reflection import SELF_REFLECTION
from ..personas.metaprompts.triggers import trigger_rules
from ..personas.mind import TaskContext, UserContext
from ..personas.mood import MoodSettings
from ..personas.overlays import OverlayRule, overlay_warnings
from ..personas.schema import Persona, check_access
from ..personas.sentiment import SentimentSettings
from ..personas.trace_limits import trace_limits
from ..workflows.decode import encoded_size
from ..workflows.session_records import Frozen, MindRules, SessionConfig, SessionRules
from ..workflows.steps import Route
from .blobs import dump_value
from .store.protocol import Store
from .tools.registry import ToolRegistry
from .tools.self_improvement import offered

CACHE_SIZE = 256

MAX_IMPRINT_BYTES = 8 * 1024
"""Bytes of what a new session's working memory holds."""

T = TypeVar("T")
C = TypeVar("C", UserContext, TaskContext)


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
        observed: The host's own memory takes every turn, whatever the persona remembers.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[PersonaCatalog]],
        tools: ToolRegistry,
        store: Store,
        *,
        observed: bool = False,
    ) -> None:
        self._load = load
        self._observed = observed
        self._personas: PersonaCatalog | None = None
        self._tools = tools
        self._store = store
        self._cache: OrderedDict[str, Persona | Toolset] = OrderedDict()

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
        warnings = [
            *overlay_warnings(persona, rules),
            *merged(persona).warnings,
            *MoodSettings.from_adaptation(persona.mood_adaptation)[1],
        ]
        limits = trace_limits(persona)
        if limits.warning is not None:
            warnings.append(limits.warning)
        names = config.tools if config.tools is not None else persona.tool_ids or None
        toolset = self._toolset(offered(persona, names, self._tools))
        persona_bytes = persona.to_json().encode()
        toolset_bytes = dump_value(toolset.model_dump(mode="json", exclude_defaults=True))
        [persona_digest] = await self._store.put_blobs("persona", [persona_bytes])
        [toolset_digest] = await self._store.put_blobs("toolset", [toolset_bytes])
        return Frozen(
            persona_digest=persona_digest,
            toolset_digest=toolset_digest,
            rules=self.rules(persona),
            warnings=warnings,
        )

    async def known(self, persona_id: str) -> Persona | None:
        """A persona that new sessions may name; ``None`` when there is none of this id."""
        try:
            return (await self.personas()).get(persona_id)
        except (PersonaNotFoundError, PermissionDeniedError):
            return None

    def rules(self, persona: Persona) -> SessionRules:
        """What a session's workflow needs of its persona."""
        limits = trace_limits(persona)
        return SessionRules(
            persona=persona.id,
            persona_name=persona.name,
            memory=persona.memory.enabled or self._observed,
            mind=mind_rules(persona),
            traits=persona.hexaco,
            negotiates=negotiates(persona.memory_config),
            imprints=imprints(persona),
            trace_max_entries=limits.max_entries,
            trace_max_message=limits.max_message_length,
        )

    async def persona(self, digest: str) -> Persona:
        """A frozen persona."""
        found = self._cached(digest, Persona)
        if found is None:
            found = Persona.from_json(await self._store.get_blob(digest))
            self._keep(digest, found)
        return found

    async def toolset(self, digest: str) -> Toolset:
        """A frozen set of tools."""
        found = self._cached(digest, Toolset)
        if found is None:
            found = Toolset.model_validate_json(await self._store.get_blob(digest))
            self._keep(digest, found)
        return found

    def _toolset(self, names: list[str]) -> Toolset:
        tools = [self._tools.get(name) for name in names]
        return Toolset(
            definitions=[tool.definition for tool in tools],
            routes={tool.name: tool.route for tool in tools},
        )

    def _cached(self, digest: str, kind: type[T]) -> T | None:
        found = self._cache.get(digest)
        if not isinstance(found, kind):
            return None
        self._cache.move_to_end(digest)
        return found

    def _keep(self, digest: str, value: Persona | Toolset) -> None:
        self._cache[digest] = value
        while len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)


def mind_rules(persona: Persona) -> MindRules:
    """What a session's workflow needs to keep the mind of its persona."""
    prompts = merged(persona).prompts
    emotion = persona.emotion_config
    feels = emotion is not None and emotion.enabled
    return MindRules(
        mood=MoodSettings.from_adaptation(persona.mood_adaptation)[0],
        sentiment=SentimentSettings.from_tracking(persona.sentiment_tracking),
        triggers=trigger_rules(prompts),
        reflects=any(prompt.id == SELF_REFLECTION for prompt in prompts),
        emotion=Traits.of(persona.personality_traits) if feels else None,
        appraises=emotion is not None and emotion.enabled and emotion.appraise,
        user=_initial(persona, "initialUserContext", UserContext()),
        task=_initial(
            persona,
            "initialTaskContext",
            TaskContext(domain=persona.strengths[0] if persona.strengths else "general"),
        ),
    )


def _initial(persona: Persona, name: str, usual: C) -> C:
    """A context as the persona starts it; what does not fit is left as usual."""
    given = persona.custom_fields.get(name)
    if not isinstance(given, Mapping):
        return usual
    named = {to_snake(key): value for key, value in given.items()}
    try:
        return type(usual).model_validate({**usual.model_dump(), **named})
    except ValidationError:
        return usual


def imprints(persona: Persona) -> dict[str, Any]:
    """What a new session's working memory holds: each key once, without those that say nothing.

    Raises:
        PersonaInvalidError: Together they are too large for a session to carry.
    """
    found = {
        imprint.key: imprint.value
        for imprint in persona.initial_memory_imprints
        if imprint.key and imprint.value is not None
    }
    size = encoded_size(found)
    if size > MAX_IMPRINT_BYTES:
        raise PersonaInvalidError(
            f"The initialMemoryImprints of persona {persona.id!r} have {size} bytes and the limit "
            f"is {MAX_IMPRINT_BYTES}; put long texts into its memory instead."
        )
    return found
