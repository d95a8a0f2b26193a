"""The traits of a character: their names, and what counts as a value."""

from __future__ import annotations

import math
from typing import Any

HEXACO = (
    "honesty",
    "emotionality",
    "extraversion",
    "agreeableness",
    "conscientiousness",
    "openness",
)

# Only the persona's author sets these two: neither a situation nor the model itself may make it
# less honest.
AUTHORED_TRAITS = ("honesty", "emotionality")

TRAIT_ALIASES = {
    "honestyHumility": "honesty",
    "honesty_humility": "honesty",
    "opennessToExperience": "openness",
    "openness_to_experience": "openness",
}


def is_number(value: object) -> bool:
    """Whether the value is a finite number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def normalize_traits(traits: dict[str, Any]) -> dict[str, Any]:
    """Traits under their canonical names, without numbers that are not finite.

    Where a trait is given under an alias and under its canonical name, the canonical one counts.
    Values that are no numbers are kept: a persona may describe itself in words too.
    """
    kept = {
        name: value
        for name, value in traits.items()
        if not isinstance(value, float) or math.isfinite(value)
    }
    named = {name: value for name, value in kept.items() if name not in TRAIT_ALIASES}
    for alias, canonical in TRAIT_ALIASES.items():
        if alias in kept:
            named.setdefault(canonical, kept[alias])
    return named
