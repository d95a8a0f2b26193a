"""Changes that an agent made to itself, and what they come to together.

Every change is a value of its own with an id, so that it is made once, fades by itself, and can be
undone without touching the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .learning import LearnerKey

ChangeKind = Literal["trait", "skill", "param", "workflow", "run", "tool", "evaluation"]

DAY = 86400.0
FADED_AT = 0.1
"""A change of this strength or less counts no more."""

PLACES = 9


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose changes: a learner's, and a session's own where nobody is learned about.

    Attributes:
        session: The session's key.
        learner: The learner of the turn; ``None`` where there is none.
    """

    session: str
    learner: LearnerKey | None = None


@dataclass(frozen=True, slots=True)
class SelfChange:
    """One change.

    Attributes:
        id: Names it, for undoing.
        kind: What it changes.
        name: Which trait, skill, setting, workflow or tool; the number of an evaluation.
        data: What was asked for and why, and what it came to under ``result``.
        learner: Whose it is; ``None`` when it belongs to its session alone.
        session: The session that made it.
        turn: The turn that made it.
        step: The model step whose call made it.
        at: When, in seconds since the epoch.
        delta: For a trait: how far it was moved.
        rate: Strength that it loses with every day in UTC; 0 for one that stays.
        undone_at: When it was undone, or ``None``.
    """

    id: str
    kind: ChangeKind
    name: str
    data: dict[str, Any] = field(default_factory=dict)
    learner: LearnerKey | None = None
    session: str = ""
    turn: str = ""
    step: int = 0
    at: float = 0.0
    delta: float = 0.0
    rate: float = 0.0
    undone_at: float | None = None

    @property
    def result(self) -> dict[str, Any]:
        """What the agent was told when it made the change."""
        found: dict[str, Any] = self.data.get("result", {})
        return found


def day_of(seconds: float) -> int:
    """The number of the day in UTC."""
    return int(seconds // DAY)


def strength(change: SelfChange, now: float) -> float:
    """How much of a change is left, from 1 down to 0; it fades at midnight, not by the minute."""
    if change.undone_at is not None:
        return 0.0
    days = max(0, day_of(now) - day_of(change.at))
    left = round(1 - change.rate * days, PLACES)
    return left if left > FADED_AT else 0.0


def learned_traits(changes: Iterable[SelfChange], now: float) -> dict[str, float]:
    """What the changes of each trait add to it now; a trait whose sum is 0 is left out."""
    sums: dict[str, float] = {}
    for change in changes:
        if change.kind == "trait":
            sums[change.name] = sums.get(change.name, 0.0) + change.delta * strength(change, now)
    return {name: value for name, sum_ in sorted(sums.items()) if (value := round(sum_, PLACES))}


def latest(changes: Iterable[SelfChange], kind: ChangeKind) -> dict[str, SelfChange]:
    """The newest standing change of each name."""
    found: dict[str, SelfChange] = {}
    for change in in_order(changes):
        if change.kind == kind and change.undone_at is None:
            found[change.name] = change
    return found


def in_order(changes: Iterable[SelfChange]) -> Sequence[SelfChange]:
    """The changes from the oldest to the newest."""
    return sorted(changes, key=lambda change: (change.at, change.step, change.id))
