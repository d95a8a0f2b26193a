"""The seam to the store of what agents changed about themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...personas.learning import LearnerKey
from ...personas.self_changes import ChangeKind, Holder, SelfChange


@dataclass(frozen=True, slots=True)
class Draft:
    """A change that is decided on and not written yet.

    Attributes:
        kind: What it changes.
        name: Which one.
        data: What was asked for; under ``result`` what the agent is told.
        kept: It is the learner's; otherwise its session's alone.
        delta: For a trait: how far it moves.
        rate: Strength that it loses each day.
    """

    kind: ChangeKind
    name: str
    data: dict[str, Any] = field(default_factory=dict)
    kept: bool = True
    delta: float = 0.0
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that wants to change something.

    Attributes:
        key: The same for every attempt of the call, and of no other call.
        holder: Whose change it is.
        turn: The turn.
        step: The model step whose call it is.
        now: Seconds since the epoch.
    """

    key: str
    holder: Holder
    turn: str
    step: int
    now: float


Decide = Callable[[Sequence[SelfChange]], Draft | None]
"""Decides on a change from those there are; ``None`` for none, and raises what refuses it."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step of a run that may not be done twice.

    Attributes:
        done: It has ended, and ``result`` is what it gave.
    """

    done: bool
    result: Any = None


class LearningStore(Protocol):
    """Keeps changes."""

    async def changes(
        self, holder: Holder, kinds: Sequence[ChangeKind] | None = None
    ) -> list[SelfChange]:
        """The learner's changes and the session's own, undone ones included, oldest first."""
        ...

    async def made(self, key: str) -> SelfChange | None:
        """The change that a call has made."""
        ...

    async def make(
        self, call: Call, decide: Decide, kinds: Sequence[ChangeKind] | None = None
    ) -> SelfChange | None:
        """Make a change once, in one transaction; calls of one session never decide at once.

        Args:
            call: Whose change it is; one that was made before is given back as it stands.
            decide: Decides from the changes of ``kinds``.
            kinds: What the decision depends on; everything without.
        """
        ...

    async def undo(self, id_: str, now: float, key: LearnerKey | None = None) -> bool:
        """Undo a change; ``False`` when there is none, or it is undone, or another learner's."""
        ...

    async def forget(self, user_id: str, namespace: str | None = None) -> int:
        """Delete everything kept for a user, and what his sessions keep; returns how much."""
        ...

    async def begin_step(self, call: Call, step: int) -> StepRecord | None:
        """Claim a step of a run; ``None`` when nobody had, else how far it has come."""
        ...

    async def end_step(self, key: str, step: int, result: Any) -> None:
        """Record what a claimed step gave."""
        ...
