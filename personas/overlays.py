"""Per-session changes of a persona that depend on what is going on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from .mood import mood_word
from .parts import PersonaModel
from .schema import Persona
from .traits import AUTHORED_TRAITS, HEXACO, is_number, normalize_traits


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
        state: The session's state; a session says ``errored`` after a turn that failed, else
            ``ready``.
        role_id: The role that the persona plays here.
        task_completed: Whether the task is done.
        facts: Anything else, for object triggers; the fields above are facts too, under their
            ``camelCase`` names.
    """

    first_activation: bool = False
    last_event: str | None = None
    state: str | None = None
    role_id: str | None = None
    task_completed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OverlayEffect:
    """What the rules that apply change together.

    Attributes:
        traits: Traits under their canonical names; never honesty or emotionality.
        mood: The mood that the last applying rule sets, or ``None``.
        metadata: The rules' metadata, later rules over earlier ones.
        applied: The ids of the rules that apply, in order.
    """

    traits: dict[str, Any] = field(default_factory=dict)
    mood: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    applied: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> dict[str, float]:
        """The traits with a value in [0, 1]; the others say nothing to a prompt."""
        return {
            name: float(value)
            for name, value in self.traits.items()
            if name in HEXACO and is_number(value) and 0 <= value <= 1
        }


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


def overlay_effect(rules: Sequence[OverlayRule], context: OverlayContext) -> OverlayEffect:
    """What the rules that fit the situation change together, in order.

    A later rule adds to what the earlier ones change, and has the last word on a trait that
    several set. What a rule says of honesty or emotionality is left out.
    """
    traits: dict[str, Any] = {}
    mood: str | None = None
    metadata: dict[str, Any] = {}
    applied: list[str] = []
    for rule in rules:
        if not _applies(rule.trigger, context):
            continue
        applied.append(rule.id)
        traits |= {
            trait: value
            for trait, value in normalize_traits(rule.patch.persona_traits).items()
            if trait not in AUTHORED_TRAITS
        }
        mood = rule.patch.mood or mood
        metadata.update(rule.patch.metadata)
    return OverlayEffect(traits, mood, metadata, applied)


def overlay_warnings(persona: Persona, rules: Sequence[OverlayRule]) -> list[str]:
    """What rules ask for and will not get, whether or not they ever apply."""
    warnings: list[str] = []
    for rule in rules:
        warnings += _authored(persona, rule)
        for trait, value in normalize_traits(rule.patch.persona_traits).items():
            if trait in AUTHORED_TRAITS:
                continue
            if trait not in HEXACO:
                why = f"which is no trait; the traits are {', '.join(HEXACO)}"
            elif not is_number(value) or not 0 <= value <= 1:
                why = "to what is no number in [0, 1]"
            else:
                continue
            warnings.append(f"Overlay rule {rule.id!r} sets {trait}, {why}; it is left out.")
        mood = rule.patch.mood
        if mood is not None and mood_word(mood) is None:
            warnings.append(
                f"Overlay rule {rule.id!r} sets the mood {mood!r}, which is none; it stays."
            )
    return warnings


def apply_overlays(
    persona: Persona, rules: Sequence[OverlayRule], context: OverlayContext
) -> Overlaid:
    """Apply every rule that fits the situation, in order; each builds on those before it.

    Honesty and emotionality stay as the author wrote them: a rule's value for one of them is left
    out with a warning that names the persona and the trait.
    """
    effect = overlay_effect(rules, context)
    fitting = [rule for rule in rules if _applies(rule.trigger, context)]
    warnings = [text for rule in fitting for text in _authored(persona, rule)]
    traits = {**persona.personality_traits, **effect.traits}
    if traits != persona.personality_traits:
        persona = persona.model_copy(update={"personality_traits": traits})
    return Overlaid(persona, effect.mood, effect.metadata, effect.applied, warnings)


def _authored(persona: Persona, rule: OverlayRule) -> list[str]:
    """Warnings of the traits that only the persona's author sets."""
    return [
        f"Overlay rule {rule.id!r} sets {trait} of persona {persona.id!r}; "
        "only the persona's definition may, so the value is left out."
        for trait in normalize_traits(rule.patch.persona_traits)
        if trait in AUTHORED_TRAITS
    ]


def _applies(trigger: str | Mapping[str, Any], context: OverlayContext) -> bool:
    if not isinstance(trigger, str):
        facts = {
            "firstActivation": context.first_activation,
            "lastEvent": context.last_event,
            "state": context.state,
            "roleId": context.role_id,
            "taskCompleted": context.task_completed,
            **context.facts,
        }
        return all(name in facts and facts[name] == value for name, value in trigger.items())
    if trigger == "always":
        return True
    if trigger == "first_activation":
        return context.first_activation
    if trigger == "task_completed" and context.task_completed:
        return True
    if trigger in ("error", "on_error"):
        return context.last_event in ("error", "on_error") or context.state in ("error", "errored")
    return trigger in (context.last_event, context.state, context.role_id)
