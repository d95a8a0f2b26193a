"""Which metaprompts are due after a turn."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ..parts import MetaPrompt
from ..traits import is_number

FLAG_PREFIX = "manual_trigger_"
"""Beginning of the working memory's key that makes a manual metaprompt due, before its id."""

NEVER = 10**9
"""No session has so many turns: an interval beyond it never fires."""

DueKind = Literal["event", "interval", "manual"]


class TriggerRule(BaseModel):
    """What a session needs to know of a metaprompt: when it fires.

    Attributes:
        id: The metaprompt.
        type: ``turn_interval``, ``event_based`` or ``manual``; any other type never fires.
        interval_turns: User turns from one run to the next; ``None`` never fires.
        event_name: The event, for ``event_based``.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    type: str
    interval_turns: int | None = None
    event_name: str | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A metaprompt that has to run.

    Attributes:
        id: The metaprompt.
        kind: What made it due. An answer to an event is worth nothing once a newer turn came.
        event: The event, for that kind.
    """

    id: str
    kind: DueKind
    event: str | None = None


@dataclass(frozen=True, slots=True)
class Firings:
    """What is due after a turn, and what that leaves.

    Attributes:
        due: In the order of the metaprompts.
        consumed_events: Events that are pending no longer.
        counters: User turns since each interval metaprompt ran last, by its id.
        consumed_flags: Keys of working memory to take away.
    """

    due: tuple[Due, ...] = ()
    consumed_events: tuple[str, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)
    consumed_flags: tuple[str, ...] = ()


def manual_flag(prompt_id: str) -> str:
    """The key of working memory that makes a manual metaprompt due."""
    return f"{FLAG_PREFIX}{prompt_id}"


def interval_of(value: Any) -> int | None:
    """Whole turns of an interval, rounded down; ``None`` when it never fires."""
    # The size first: whether a huge whole number is finite cannot be asked.
    if isinstance(value, int | float) and value > NEVER:
        return None
    if not is_number(value) or value < 1:
        return None
    whole: int = math.floor(value)
    return whole


def trigger_rules(prompts: Iterable[MetaPrompt]) -> tuple[TriggerRule, ...]:
    """When each of these metaprompts fires, in their order."""
    return tuple(
        TriggerRule(
            id=prompt.id,
            type=prompt.trigger.type,
            interval_turns=interval_of(prompt.trigger.interval_turns),
            event_name=prompt.trigger.event_name,
        )
        for prompt in prompts
    )


def due(
    rules: Sequence[TriggerRule],
    *,
    events: Sequence[str],
    counters: Mapping[str, int],
    flags: Collection[str],
    counts_user_turn: bool,
) -> Firings:
    """The metaprompts that are due after a turn.

    An event goes to the first metaprompt that waits for it; an event that none waits for stays
    pending. An interval of N fires on the user turns N, 2N and so on; other turns do not count. A
    manual one fires when its flag is set.

    Args:
        rules: The persona's metaprompts, in their order.
        events: Events that are pending.
        counters: :attr:`Firings.counters` of the turn before.
        flags: Keys of working memory that are set to something true.
        counts_user_turn: Whether the turn was a user's message.
    """
    pending = list(dict.fromkeys(events))
    found: list[Due] = []
    consumed: list[str] = []
    lowered: list[str] = []
    counted: dict[str, int] = {}
    for rule in rules:
        if rule.type == "event_based" and rule.event_name in pending:
            pending.remove(rule.event_name)
            consumed.append(rule.event_name)
            found.append(Due(rule.id, "event", rule.event_name))
        elif rule.type == "turn_interval" and rule.interval_turns is not None:
            count = counters.get(rule.id, 0) + counts_user_turn
            if counts_user_turn and count >= rule.interval_turns:
                found.append(Due(rule.id, "interval"))
                count = 0
            counted[rule.id] = count
        elif rule.type == "manual" and manual_flag(rule.id) in flags:
            found.append(Due(rule.id, "manual"))
            lowered.append(manual_flag(rule.id))
    return Firings(tuple(found), tuple(consumed), counted, tuple(lowered))
