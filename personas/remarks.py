"""What looks like a mistake in a persona although its form allows it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from .checks import camel_case_data
from .metaprompts.merge import merged
from .mood import MoodSettings
from .schema import Persona
from .traits import HEXACO, TRAIT_ALIASES

_OPEN = frozenset({"memoryConfig"})
"""Fields of a form of their own that is checked whole when the persona is loaded."""

_TRAIT_LIKENESS = 0.75


def remarks(persona: Persona | Mapping[str, Any]) -> list[str]:
    """Likely mistakes of a persona, each a sentence; none of them stops it.

    These are keys that its form does not know, at every level, with the nearest one that it
    knows; HEXACO traits out of range or misspelt; metaprompts that never run; moods that there
    are not. Keys that begin with ``$`` or ``_`` are taken for notes.

    Args:
        persona: A persona, or the raw data of one. What cannot be built into a persona gets the
            remarks that the data alone allow; the rest is for ``validate_persona``.
    """
    try:
        raw = camel_case_data(persona)
    except ValueError:
        # It holds what JSON cannot hold, which validation reports.
        return []
    found = [*_unknown_keys(Persona, raw, ""), *_traits(raw.get("personalityTraits"))]
    try:
        built = persona if isinstance(persona, Persona) else Persona.model_validate(dict(persona))
    except ValueError:
        return found
    found += merged(built).warnings
    found += MoodSettings.from_adaptation(built.mood_adaptation)[1]
    return list(dict.fromkeys(found))


def _unknown_keys(form: type[BaseModel], data: Mapping[str, Any], place: str) -> Iterator[str]:
    fields = {info.alias or name: info for name, info in form.model_fields.items()}
    camel_of = {name: info.alias or name for name, info in form.model_fields.items()}
    for key, value in data.items():
        name = camel_of.get(key, key)
        path = f"{place}.{key}" if place else str(key)
        if name in fields:
            if name not in _OPEN:
                yield from _below(fields[name].annotation, value, path)
        elif not str(key).startswith(("$", "_")):
            yield f"{path} is not known and does nothing{_meant(str(key), fields)}"


def _below(annotation: Any, value: Any, path: str) -> Iterator[str]:
    """The unknown keys in a field's value."""
    if isinstance(value, Mapping):
        form = next(iter(_forms(annotation)), None)
        if form is not None:
            yield from _unknown_keys(form, value, path)
    elif isinstance(value, list):
        form = next(iter(_forms(annotation, listed=True)), None)
        for index, item in enumerate(value):
            if form is not None and isinstance(item, Mapping):
                yield from _unknown_keys(form, item, f"{path}[{index}]")


def _forms(annotation: Any, *, listed: bool = False) -> Iterator[type[BaseModel]]:
    """The models that an annotation allows: as the value itself, or as a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not listed:
            yield annotation
        return
    inner = get_args(annotation)
    if get_origin(annotation) in (list, tuple):
        if listed:
            for each in inner:
                yield from _forms(each)
    elif get_origin(annotation) is not dict:
        for each in inner:
            yield from _forms(each, listed=listed)


def _meant(key: str, known: Collection[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(key.lower().replace("_", ""), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]}?" if near else "."


def _traits(traits: Any) -> Iterator[str]:
    if not isinstance(traits, Mapping):
        return
    known = {name.lower(): name for name in (*HEXACO, *TRAIT_ALIASES)}
    for name, value in traits.items():
        # A character may be described in words too; only numbers are taken for traits.
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        place = f"personalityTraits.{name}"
        if name in known.values():
            if not math.isfinite(value):
                yield f"{place} is {value}, which is no number; it is left out."
            elif not 0 <= value <= 1:
                yield f"{place} is {value:g}; a HEXACO trait lies in [0, 1]."
            continue
        near = get_close_matches(str(name).lower(), known, n=1, cutoff=_TRAIT_LIKENESS)
        if near:
            meant = known[near[0]]
            yield (
                f"{place} is no HEXACO trait and shows in no prompt; "
                f"did you mean {TRAIT_ALIASES.get(meant, meant)}?"
            )
