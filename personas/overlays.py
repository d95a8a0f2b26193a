"""Per-session changes of a persona that depend on what is going on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from .parts import PersonaModel
from .schema import Persona
from .traits import AUTHORED_TRAITS, normalize_traits


class OverlayPatch(PersonaModel):
    """What a rule changes."""

    persona_traits: dict[str, Any] = Field(default_factory=dict)
    mood: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class OverlayRule(PersonaModel):
    """A change and when it applies.

    Attributes:
        id: Names the rule in a trace.
        trigger: A word or an object. ``always``, ``first_activation``, ``task_completed`` and
            ``error`` (also ``on_error``) are understood; any other word is compared with the last
            event, the state and the role. An object applies when all of its keys are equal in the
            situation's facts.
        patch: The change.
    """

    id: str
    trigger: str | dict[str, Any]
    patch: OverlayPatch = Field(default_factory=OverlayPatch)


@dataclass(frozen=True, slots=True)
class OverlayContext:
    """The situation that rules are compared with.

    Attributes:
        first_activation: Whether the persona has not answered in this session yet.
        last_event: The name of what happened last.
        state: The session's state.
        role_id: The role that the persona plays here.
        facts: Anything else, for object triggers; the fields above are facts too, under their
            ``camelCase`` names.
    """

    first_activation: bool = False
    last_event: str | None = None
    state: str | None = None
    role_id: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A persona with the rules that apply.

    Attributes:
        persona: The persona with changed traits; the one given where none changed.
        mood: The mood that the last applying rule sets, or ``None``.
        metadata: The rules' metadata, later rules over earlier ones.
        applied: The ids of the rules that apply, in order.
        warnings: What a rule may not change and asked for.
    """

    persona: Persona
    mood: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    applied: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def apply_overlays(
    persona: Persona, rules: Sequence[OverlayRule], context: OverlayContext
) -> Overlaid:
    """Apply every rule that fits the situation, in order; each builds on those before it.

    Honesty and emotionality stay as the author wrote them: a rule's value for one of them is left
    out with a warning that names the persona and the trait.
    """
    traits = dict(persona.personality_traits)
    mood: str | None = None
    metadata: dict[str, Any] = {}
    applied: list[str] = []
    warnings: list[str] = []
    for rule in rules:
        if not _applies(rule.trigger, context):
            continue
        applied.append(rule.id)
        for trait, value in normalize_traits(rule.patch.persona_traits).items():
            if trait in AUTHORED_TRAITS:
                warnings.append(
                    f"Overlay rule {rule.id!r} sets {trait} of persona {persona.id!r}; "
                    "only the persona's definition may, so the value is left out."
                )
            else:
                traits[trait] = value
        mood = rule.patch.mood or mood
        metadata.update(rule.patch.metadata)
    if traits != persona.personality_traits:
        persona = persona.model_copy(update={"personality_traits": traits})
    return Overlaid(persona, mood, metadata, applied, warnings)


def _applies(trigger: str | Mapping[str, Any], context: OverlayContext) -> bool:
    if not isinstance(trigger, str):
        facts = {
            "firstActivation": context.first_activation,
            "lastEvent": context.last_event,
            "state": context.state,
            "roleId": context.role_id,
            **context.facts,
        }
        return all(name in facts and facts[name] == value for name, value in trigger.items())
    if trigger == "always":
        return True
    if trigger == "first_activation":
        return context.first_activation
    if trigger in ("error", "on_error"):
        return context.last_event in ("error", "on_error") or context.state in ("error", "errored")
    return trigger in (context.last_event, context.state, context.role_id)
