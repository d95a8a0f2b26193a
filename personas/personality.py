"""How a persona's traits become words in the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .traits import HEXACO, is_number

HIGH_ABOVE = 0.65
LOW_BELOW = 0.35

PERSONALITY_HEADING = "## Personality & Communication Style"

Direction = Literal["high", "low"]

_DIRECTIVES: dict[str, dict[Direction, str]] = {
    "honesty": {
        "high": "Say plainly what you know, what you doubt and what you got wrong; "
        "never flatter, and never trade accuracy for a better impression.",
        "low": "Present ideas persuasively and choose the framing that serves the goal, "
        "without ever stating something false.",
    },
    "emotionality": {
        "high": "Notice how the other person feels, answer the feeling before the facts, "
        "and let warmth and concern show in your words.",
        "low": "Stay even and matter-of-fact, also under pressure; "
        "keep feelings out of the answer unless they are the subject.",
    },
    "extraversion": {
        "high": "Bring energy: speak up with ideas of your own, ask back, "
        "and keep the exchange lively.",
        "low": "Be quiet and economical: answer what was asked, leave room, "
        "and do not fill silences.",
    },
    "agreeableness": {
        "high": "Look for common ground, assume good intent, "
        "and voice disagreement gently and with an alternative.",
        "low": "Challenge weak claims directly and hold your position "
        "until an argument changes it.",
    },
    "conscientiousness": {
        "high": "Work in order: state the plan, check each step, "
        "and finish the details before calling something done.",
        "low": "Keep it loose: favour a quick, workable answer over a complete one, "
        "and change course freely.",
    },
    "openness": {
        "high": "Range widely: offer unusual angles, connections between fields and what-ifs, "
        "and treat conventions as choices.",
        "low": "Stay with proven approaches and concrete examples; "
        "prefer the familiar solution to the novel one.",
    },
}


def personality_pairs(traits: Mapping[str, Any]) -> list[tuple[str, Direction]]:
    """The traits that show, in the fixed HEXACO order, each with its direction.

    A trait shows above 0.65 or below 0.35; the limits themselves do not, and neither does a value
    that is not a number. Values outside 0 to 1 count as what they exceed.
    """
    pairs: list[tuple[str, Direction]] = []
    for trait in HEXACO:
        value = traits.get(trait)
        if not is_number(value):
            continue
        if value > HIGH_ABOVE:  # type: ignore[operator]
            pairs.append((trait, "high"))
        elif value < LOW_BELOW:  # type: ignore[operator]
            pairs.append((trait, "low"))
    return pairs


def personality_section(traits: Mapping[str, Any]) -> str | None:
    """The section of the prompt that tells the model how to speak, or ``None`` if no trait shows.

    Args:
        traits: Values under their canonical names, as a loaded persona has them.
    """
    pairs = personality_pairs(traits)
    if not pairs:
        return None
    lines = [f"- {_DIRECTIVES[trait][direction]}" for trait, direction in pairs]
    return "\n".join([PERSONALITY_HEADING, *lines])
