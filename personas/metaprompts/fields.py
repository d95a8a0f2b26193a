"""What a metaprompt's answer may say: the names of its fields, and the words that they take."""

from __future__ import annotations

from typing import Literal

SKILL_LEVELS = ("novice", "beginner", "intermediate", "advanced", "expert")
"""How skilled a user may be found, from the least."""

COMPLEXITIES = ("simple", "moderate", "complex", "advanced")
"""How complex a task may be found, from the least."""

_COMPLEXITY_WORDS = {"low": "simple", "medium": "moderate", "high": "complex"}

MOOD = "updatedGmiMood"
SKILL_LEVEL = "updatedUserSkillLevel"
COMPLEXITY = "updatedTaskComplexity"
IMPRINTS = "newMemoryImprints"
RATIONALE = "adjustmentRationale"

Change = Literal["mood", "skill_level", "complexity", "imprints"]

CHANGES: dict[Change, str] = {
    "mood": MOOD,
    "skill_level": SKILL_LEVEL,
    "complexity": COMPLEXITY,
    "imprints": IMPRINTS,
}
"""What an answer may change, and the field that says so."""

STRATEGIES = (
    "recoveryStrategy",
    "clarificationStrategy",
    "engagementStrategy",
    "mitigationStrategy",
)
"""Fields that say what to do now."""


def complexity_word(name: str) -> str | None:
    """The complexity that a name stands for; ``None`` for a name that is none.

    Case does not count; ``low``, ``medium`` and ``high`` stand for simple, moderate and complex.
    """
    word = name.strip().lower()
    word = _COMPLEXITY_WORDS.get(word, word)
    return word if word in COMPLEXITIES else None
