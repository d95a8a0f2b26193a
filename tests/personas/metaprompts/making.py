"""Personas and metaprompts for these tests."""

from __future__ import annotations

from typing import Any

from gmi.personas.parts import MetaPrompt
from gmi.personas.schema import Persona


def persona(*own: dict[str, Any], **fields: Any) -> Persona:
    return Persona.model_validate(
        {
            "id": "ada",
            "name": "Ada",
            "description": "a mathematician",
            "version": "1.0.0",
            "baseSystemPrompt": "You are Ada.",
            "metaPrompts": list(own),
            **fields,
        }
    )


def following(presets: list[str] | str, *own: dict[str, Any], enabled: bool = True) -> Persona:
    """A persona that follows the user's sentiment."""
    return persona(*own, sentimentTracking={"enabled": enabled, "presets": presets})


def own(prompt_id: str, text: str = "look", **trigger: Any) -> dict[str, Any]:
    """A metaprompt of the persona's own, in the form of its file."""
    return {
        "id": prompt_id,
        "promptTemplate": text,
        "trigger": {"type": "manual", **trigger},
    }


def prompt(**fields: Any) -> MetaPrompt:
    return MetaPrompt.model_validate({**own("own"), **fields})
