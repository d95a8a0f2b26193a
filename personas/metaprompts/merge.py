"""Which metaprompts a persona has: the presets that it chose, and its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..checks import METAPROMPT_EVENTS, METAPROMPT_TRIGGERS
from ..parts import MetaPrompt
from ..schema import Persona
from .presets import PRESETS_BY_ID, SHORT_NAMES, chosen_presets
from .reflection import SELF_REFLECTION, completed_reflection
from .triggers import interval_of
from .variables import template_of

MAX_METAPROMPTS = 32
"""Metaprompts of a persona; what it has beyond them is passed over, with a warning."""

MAX_ID = 80
"""Characters of a metaprompt's id."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A persona's metaprompts.

    Attributes:
        prompts: In the order in which they look at an event.
        warnings: What in them never runs, and why; one for each id.
    """

    prompts: tuple[MetaPrompt, ...] = ()
    warnings: tuple[str, ...] = ()


def merged(persona: Persona) -> Merged:
    """The persona's metaprompts: the chosen presets first, then its own.

    Presets are there only when the persona follows the user's sentiment and chooses some. An own
    metaprompt stands in the place of the preset that has its id; of two with one id the last
    counts. One without words of its own keeps the words and the answer's form of the preset, or of
    the self-reflection, whose id it has; any other one without words is passed over.
    """
    warnings: list[str] = []
    found: dict[str, MetaPrompt] = {}
    tracking = persona.sentiment_tracking
    if tracking is not None and tracking.enabled and tracking.presets:
        presets, unknown = chosen_presets(tracking.presets)
        found = {preset.id: preset for preset in presets}
        warnings += [
            f"There is no metaprompt preset {name!r}; there are {', '.join(SHORT_NAMES)} and all."
            for name in unknown
        ]
    for own in persona.meta_prompts:
        if not own.id or len(own.id) > MAX_ID:
            warnings.append(
                f"The metaprompt {own.id[:MAX_ID]!r} never runs: an id has from 1 to {MAX_ID} "
                "characters."
            )
            continue
        whole = _with_words(own)
        if whole is None:
            warnings.append(f"The metaprompt {own.id!r} never runs: it has no promptTemplate.")
        else:
            found[own.id] = whole
    prompts = list(found.values())
    if len(prompts) > MAX_METAPROMPTS:
        left = ", ".join(repr(prompt.id) for prompt in prompts[MAX_METAPROMPTS:][:5])
        warnings.append(
            f"The persona has {len(prompts)} metaprompts and the limit is {MAX_METAPROMPTS}; "
            f"those after it never run, beginning with {left}."
        )
        prompts = prompts[:MAX_METAPROMPTS]
    for prompt in prompts:
        warnings += _never_fires(prompt)
    return Merged(tuple(prompts), tuple(dict.fromkeys(warnings)))


def find(persona: Persona, prompt_id: str) -> MetaPrompt | None:
    """The persona's metaprompt of this id, or ``None``."""
    return next((prompt for prompt in merged(persona).prompts if prompt.id == prompt_id), None)


def _with_words(own: MetaPrompt) -> MetaPrompt | None:
    if template_of(own).strip():
        return own
    if own.id == SELF_REFLECTION:
        return completed_reflection(own)
    preset = PRESETS_BY_ID.get(own.id)
    if preset is None:
        return None
    return own.model_copy(
        update={
            "prompt_template": preset.prompt_template,
            "output_schema": own.output_schema or preset.output_schema,
            "temperature": preset.temperature if own.temperature is None else own.temperature,
            "max_output_tokens": own.max_output_tokens or preset.max_output_tokens,
        }
    )


def _never_fires(prompt: MetaPrompt) -> Iterator[str]:
    trigger = prompt.trigger
    if trigger.type not in METAPROMPT_TRIGGERS:
        yield (
            f"The metaprompt {prompt.id!r} never fires: no trigger is of type {trigger.type!r}; "
            f"use {', '.join(METAPROMPT_TRIGGERS)}."
        )
    elif trigger.type == "turn_interval" and interval_of(trigger.interval_turns) is None:
        yield (
            f"The metaprompt {prompt.id!r} never fires: its interval is "
            f"{trigger.interval_turns!r}; use a number of turns from 1."
        )
    elif trigger.type == "event_based" and trigger.event_name not in METAPROMPT_EVENTS:
        yield (
            f"The metaprompt {prompt.id!r} never fires: no event is called "
            f"{trigger.event_name!r}; use one of {', '.join(METAPROMPT_EVENTS)}."
        )
