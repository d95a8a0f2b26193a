"""What an agent may change about itself, how far, and what it is told when it may not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import Field

from .affect import limited
from .errors import SelfChangeRefusedError
from .learning import REFUSAL_TEXT, Refusal
from .parts import PersonaModel
from .preferences import normalize_verbosity
from .self_changes import PLACES, SelfChange, latest
from .traits import AUTHORED_TRAITS, is_number

STEP_BOUND = 0.02
"""Largest single change of a trait on a host with a learning layer."""

CALL_LIMIT = 3
"""Accepted changes of traits in a session on a host with a learning layer."""

MISSING_TRAIT = 0.5
MAX_TEMPERATURE = 2.0

Param = Literal["temperature", "verbosity", "personality"]
"""What ``self_evaluate`` may adjust."""


class PersonalityRules(PersonaModel):
    """How far traits may move.

    Attributes:
        max_delta_per_session: Sum of all movements of one trait, whichever way, in a session.
        persist_with_decay: Keep a change for the learner's later sessions, fading; without it a
            change stays in its session and does not fade.
        decay_rate: Strength that a kept change loses each day.
    """

    max_delta_per_session: float = Field(default=0.15, ge=0, allow_inf_nan=False)
    persist_with_decay: bool = True
    decay_rate: float = Field(default=0.05, ge=0, le=1, allow_inf_nan=False)


class SkillRules(PersonaModel):
    """Which skills an agent may switch.

    Attributes:
        allowlist: Ids, also with ``*``; a skill that none matches is refused.
        require_approval_for_new_categories: A skill of a category in which none is on is not
            switched on, but asked for.
    """

    allowlist: tuple[str, ...] = ("*",)
    require_approval_for_new_categories: bool = True


class WorkflowRules(PersonaModel):
    """Bounds of the workflows and tools that an agent composes."""

    max_steps: int = Field(default=10, ge=1, le=50)


class EvaluationRules(PersonaModel):
    """How an agent judges its answers.

    Attributes:
        auto_adjust: Whether it may adjust settings by itself.
        adjustable_params: Those that it may adjust.
        max_evaluations_per_session: Evaluations of a session.
        model: ``provider:model`` that judges; the persona's without it.
    """

    auto_adjust: bool = True
    adjustable_params: tuple[Param, ...] = ("temperature", "verbosity", "personality")
    max_evaluations_per_session: int = Field(default=10, ge=0)
    model: str | None = None


class SelfImprovementSettings(PersonaModel):
    """What a persona may change about itself; nothing, unless it is enabled."""

    enabled: bool = False
    personality: PersonalityRules = PersonalityRules()
    skills: SkillRules = SkillRules()
    workflows: WorkflowRules = WorkflowRules()
    self_eval: EvaluationRules = EvaluationRules()


class Skill(PersonaModel):
    """Something that a persona can do when it is told how.

    Attributes:
        instructions: What the prompt says while it is on.
        locked: Only the persona's author switches it.
        enabled: Whether it is on from the start.
    """

    id: str = Field(min_length=1, max_length=100)
    name: str
    description: str = ""
    category: str = "general"
    instructions: str = Field(default="", max_length=2000)
    locked: bool = False
    enabled: bool = False


class EmergentConfig(PersonaModel):
    """What a persona may become by itself."""

    self_improvement: SelfImprovementSettings = SelfImprovementSettings()
    skills: tuple[Skill, ...] = Field(default=(), max_length=100)


@dataclass(frozen=True, slots=True)
class TraitChange:
    """An accepted change of a trait.

    Attributes:
        delta: How far it moves, which may be less than was asked for.
        clamped: Whether it is less.
        session_total: Sum of all movements of this trait in the session, this one included.
        remaining: What is left of the session's budget.
    """

    previous: float
    new: float
    delta: float
    clamped: bool
    session_total: float
    remaining: float


def refused(tool: str, reason: str, why: str) -> SelfChangeRefusedError:
    """The error for a change that is not made."""
    return SelfChangeRefusedError(
        f"{tool} refused ({reason}): {why}; nothing was changed.",
        details={"status": "rejected", "reason": reason},
    )


def gated(tool: str, reason: Refusal) -> SelfChangeRefusedError:
    """The error for a change that :func:`~.learning.refusal` forbids."""
    return refused(tool, reason, REFUSAL_TEXT[reason])


def change_trait(
    tool: str,
    trait: str,
    delta: float,
    *,
    current: float | None,
    session: Iterable[SelfChange],
    rules: PersonalityRules,
    layer: bool,
) -> TraitChange:
    """Decide on a change of a trait.

    Args:
        tool: Who asks, for the refusal.
        trait: Its canonical name.
        delta: How far it shall move.
        current: Its value now; 0.5 where it has none.
        session: The changes of traits that this session made, undone ones included.
        rules: The persona's.
        layer: The host has a learning layer, whose own bounds hold as well.

    Raises:
        SelfChangeRefusedError: The trait is the author's, a bound or the budget is exceeded, or
            the trait cannot move that way.
    """
    made = [change for change in session if change.kind == "trait"]
    if trait in AUTHORED_TRAITS:
        raise refused(tool, "operator_only", f"only the persona's definition sets {trait}")
    if layer and abs(delta) > STEP_BOUND + 1e-12:
        raise refused(tool, "step_bound", f"a delta of {delta:g} is over {STEP_BOUND:g} either way")
    if layer and len(made) >= CALL_LIMIT:
        raise refused(tool, "call_limit", f"this session has made its {CALL_LIMIT} changes")
    spent = round(sum(abs(change.delta) for change in made if change.name == trait), PLACES)
    left = max(0.0, round(rules.max_delta_per_session - spent, PLACES))
    if left == 0:
        raise refused(
            tool,
            "budget_spent",
            f"{trait} may move by {rules.max_delta_per_session:g} in a session and has",
        )
    previous = MISSING_TRAIT if current is None else current
    within = math.copysign(min(abs(delta), left), delta)
    new = round(moved(previous, within), PLACES)
    applied = round(new - previous, PLACES)
    if applied == 0 and delta != 0:
        raise refused(tool, "at_bound", f"{trait} is {previous:g} and goes no further that way")
    total = round(spent + abs(applied), PLACES)
    return TraitChange(
        previous=round(previous, PLACES),
        new=new,
        delta=applied,
        clamped=applied != round(delta, PLACES),
        session_total=total,
        remaining=max(0.0, round(rules.max_delta_per_session - total, PLACES)),
    )


def moved(value: float, delta: float) -> float:
    """A trait moved within 0 to 1; one that was written outside may stay there."""
    return limited(value + delta, min(0.0, value), max(1.0, value))


def with_learned(traits: Mapping[str, Any], learned: Mapping[str, float]) -> dict[str, Any]:
    """Traits with what was learned; one that has no number counts as 0.5."""
    changed = dict(traits)
    for name, delta in learned.items():
        value = traits.get(name)
        base = float(value) if is_number(value) else MISSING_TRAIT  # type: ignore[arg-type]
        changed[name] = round(moved(base, delta), PLACES)
    return changed


def skills_on(skills: Iterable[Skill], changes: Iterable[SelfChange]) -> dict[str, bool]:
    """Which skills are on: as the author set them, or as they were switched last."""
    switched = latest(changes, "skill")
    return {
        skill.id: bool(switched[skill.id].data.get("on"))
        if skill.id in switched and not skill.locked
        else skill.enabled
        for skill in skills
    }


def check_skill(tool: str, skill: Skill, rules: SkillRules) -> None:
    """Refuse a skill that the agent may not switch.

    Raises:
        SelfChangeRefusedError: It is locked, or not on the allowlist.
    """
    if skill.locked:
        raise refused(tool, "locked", f"only the persona's definition switches {skill.id!r}")
    if not any(fnmatchcase(skill.id, pattern) for pattern in rules.allowlist):
        raise refused(tool, "not_allowed", f"{skill.id!r} is not on the persona's allowlist")


def needs_approval(
    skill: Skill, skills: Iterable[Skill], on: Mapping[str, bool], rules: SkillRules
) -> bool:
    """Whether switching a skill on is for somebody else to decide: its category is a new one."""
    if not rules.require_approval_for_new_categories:
        return False
    return skill.category not in {other.category for other in skills if on.get(other.id)}


def check_param(tool: str, param: Param, value: Any, rules: EvaluationRules) -> Any:
    """The value that a setting takes.

    Returns:
        For ``temperature`` the number, for ``verbosity`` the length that the word means.

    Raises:
        SelfChangeRefusedError: The persona does not allow it, or the value cannot be taken.
    """
    if not rules.auto_adjust or param not in rules.adjustable_params:
        raise refused(tool, "not_allowed", f"the persona does not let itself adjust {param}")
    if param == "temperature":
        if not is_number(value) or not 0 <= value <= MAX_TEMPERATURE:
            raise refused(tool, "invalid_value", f"temperature {value!r} is no number from 0 to 2")
        return round(float(value), PLACES)
    length = normalize_verbosity(value)
    if length is None:
        raise refused(
            tool, "invalid_value", f"verbosity {value!r} is none of concise, balanced, detailed"
        )
    return length
