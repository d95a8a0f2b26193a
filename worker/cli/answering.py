"""Who answers a session that names neither a persona nor a model."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from ...activities.gateway.failures import ProviderFailure
from ...activities.gateway.hops import chain, persona_model
from ...activities.gateway.registry import ProviderRegistry
from ...personas.errors import GMIError
from ...personas.loader import PersonaCatalog
from ..settings import Settings

NO_KEY = (
    "No key is set, so the offline stand-in answers: it understands nothing. For a real model set "
    "OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_BASE_URL."
)


@dataclass(frozen=True, slots=True)
class Answering:
    """The default persona and its model.

    Attributes:
        persona: The persona's id.
        name: The persona's name; ``""`` when there is no such persona.
        model: ``provider:model``; ``""`` when none is known.
        offline: Whether that is the stand-in that understands nothing.
        problem: Why its turns will fail, or ``None``.
    """

    persona: str
    name: str
    model: str
    offline: bool
    problem: str | None


async def answering(settings: Settings, catalog: PersonaCatalog) -> Answering:
    """Who answers, as a worker of these settings sees it; no provider is asked."""
    try:
        persona = catalog.get()
    except GMIError as error:
        return Answering(catalog.default_id, "", "", offline=False, problem=error.message)
    async with httpx.AsyncClient() as http:
        registry = ProviderRegistry(http, settings.providers, credentials=settings.credentials)
        model, offline, problem = persona_model(persona) or "", False, None
        try:
            first = chain(registry, settings.providers, persona, None, None)[0]
            model, offline = f"{first.provider}:{first.model}", first.provider == "offline"
            registry.get(first.provider)
        except (ProviderFailure, GMIError) as error:
            problem = error.message
    return Answering(persona.id, persona.name, model, offline, problem)
