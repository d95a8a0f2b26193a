"""What a mind holds in view: a few slots that must be kept warm.

Between five and nine things fit (Miller 1956); what is not rehearsed drops out. How fast is a
convention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ...personas.errors import ValidationError
from .ranges import finite, trait, within

BASE_CAPACITY = 7
MIN_CAPACITY = 5
MAX_CAPACITY = 9
START = 0.8
REFOCUS = 0.2
REHEARSAL = 0.15
FADING = 0.1
LOST_BELOW = 0.15
VIVID = 0.7
PRESENT = 0.4


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing in view.

    Attributes:
        key: Of what it holds: a memory's id, or any name.
        content: What it shows.
        activation: In [0, 1].
        rehearsals: How often it was kept warm.
        attention: Its share of the activation when a slot was last filled or emptied.
    """

    key: str
    content: str
    activation: float
    rehearsals: int = 0
    attention: float = 0.0

    @property
    def vividness(self) -> Literal["vivid", "present", "fading"]:
        """How clearly it stands there."""
        if self.activation > VIVID:
            return "vivid"
        return "present" if self.activation > PRESENT else "fading"


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """The slots, in the order in which they were filled, and how many there can be."""

    capacity: int = BASE_CAPACITY
    slots: tuple[Slot, ...] = ()

    @property
    def utilization(self) -> float:
        """The share of slots in use, in [0, 1]."""
        return len(self.slots) / self.capacity


def capacity(traits: Mapping[str, float] | None, base: int = BASE_CAPACITY) -> int:
    """How many slots a character has: one more when open, one less when conscientious.

    Raises:
        ValidationError: A trait is no finite number.
    """
    found = base + (trait(traits, "openness") > 0.6) - (trait(traits, "conscientiousness") > 0.6)
    return min(MAX_CAPACITY, max(MIN_CAPACITY, found))


def focus(
    memory: WorkingMemory, key: str, content: str, activation: float = START
) -> WorkingMemory:
    """Turn to something: a slot that holds it is warmed up, else it takes one.

    Where all are taken, the least active one gives way; the oldest of equals.

    Raises:
        ValidationError: The activation is no finite number, or the content is empty.
    """
    if not content.strip():
        raise ValidationError(f"Slot {key!r} would show nothing; give a content.")
    activation = within("activation", activation, 0.0, 1.0)
    if any(slot.key == key for slot in memory.slots):
        return _warmed(memory, key, REFOCUS, content)
    kept = list(memory.slots)
    while kept and len(kept) >= memory.capacity:
        kept.remove(min(kept, key=lambda slot: slot.activation))
    return _balanced(memory, [*kept, Slot(key, content, activation)])


def rehearse(memory: WorkingMemory, key: str, amount: float = REHEARSAL) -> WorkingMemory:
    """Keep something warm; what is not in view stays out of it.

    Raises:
        ValidationError: The amount is no finite number.
    """
    return _warmed(memory, key, finite("amount", amount), None)


def decayed(
    memory: WorkingMemory, amount: float = FADING
) -> tuple[WorkingMemory, tuple[Slot, ...]]:
    """Let all slots fade, and what they lost.

    Args:
        memory: The slots.
        amount: Activation that each loses.

    Returns:
        The slots that stay, and those that faded out.

    Raises:
        ValidationError: The amount is no finite number.
    """
    amount = finite("amount", amount)
    faded = [
        replace(slot, activation=min(1.0, max(0.0, slot.activation - amount)))
        for slot in memory.slots
    ]
    kept = [slot for slot in faded if slot.activation >= LOST_BELOW]
    lost = tuple(slot for slot in faded if slot.activation < LOST_BELOW)
    if not lost:
        return replace(memory, slots=tuple(kept)), ()
    return _balanced(memory, kept), lost


def _warmed(memory: WorkingMemory, key: str, amount: float, content: str | None) -> WorkingMemory:
    return replace(
        memory,
        slots=tuple(
            replace(
                slot,
                content=slot.content if content is None else content,
                activation=min(1.0, max(0.0, slot.activation + amount)),
                rehearsals=slot.rehearsals + 1,
            )
            if slot.key == key
            else slot
            for slot in memory.slots
        ),
    )


def _balanced(memory: WorkingMemory, slots: list[Slot]) -> WorkingMemory:
    total = math.fsum(slot.activation for slot in slots)
    return replace(
        memory,
        slots=tuple(
            replace(slot, attention=slot.activation / total if total > 0 else 0.0) for slot in slots
        ),
    )
