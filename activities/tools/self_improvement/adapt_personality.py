"""The tool that moves a trait a little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ....personas.self_changes import SelfChange
from ....personas.self_improvement import MISSING_TRAIT, change_trait, moved
from ....workflows.steps import ToolOutcome
from ...learning.store import Draft
from ..context import ToolContext
from .asking import Asking, Parts, asking
from .names import ADAPT_PERSONALITY

Trait = Literal[
    "openness",
    "conscientiousness",
    "emotionality",
    "extraversion",
    "agreeableness",
    "honesty",
]
Delta = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Reasoning = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]


class AdaptPersonality:
    """Serves :data:`~.names.ADAPT_PERSONALITY`.

    Args:
        parts: What the tools share.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(
        self, trait: Trait, delta: Delta, reasoning: Reasoning, context: ToolContext
    ) -> ToolOutcome:
        """Move one of your personality traits a little, when experience gives a lasting reason.

        Changes are small, limited for each session, and fade with the days unless they are made
        again.

        Args:
            trait: The trait.
            delta: How far, up or down; traits lie between 0 and 1.
            reasoning: Why.
            context: Where the call stands.
        """
        ask = await asking(ADAPT_PERSONALITY, self._parts, context)
        return await ask.made() or await adapt(ask, trait, delta, reasoning)


async def adapt(ask: Asking, trait: str, delta: float, reasoning: str) -> ToolOutcome:
    """Move a trait for a call that has not done so yet.

    Raises:
        SelfChangeRefusedError: It may not.
    """
    ask.gate()
    outcome = await ask.make(
        lambda changes: trait_draft(ask, changes, trait, delta, reasoning), ["trait"]
    )
    assert outcome is not None  # the decision is a draft or an error
    return outcome


def trait_draft(
    ask: Asking, changes: Sequence[SelfChange], trait: str, delta: float, reasoning: str
) -> Draft:
    """The change of a trait, decided from the changes that stand.

    Raises:
        SelfChangeRefusedError: It may not be made.
    """
    mine = [change for change in changes if change.session == ask.mind.session]
    rules = ask.rules.personality
    change = change_trait(
        ask.tool,
        trait,
        delta,
        current=_current(ask, mine, trait),
        session=mine,
        rules=rules,
        layer=ask.layer,
    )
    result = {
        "trait": trait,
        "previousValue": change.previous,
        "newValue": change.new,
        "delta": change.delta,
        "clamped": change.clamped,
        "sessionTotal": change.session_total,
        "remainingBudget": change.remaining,
    }
    data = {"reasoning": reasoning, "requested": delta, "result": result}
    if change.delta:
        data["patch"] = {"traits": {trait: change.delta}}
    kept = rules.persist_with_decay
    return Draft(
        "trait",
        trait,
        data,
        kept=kept,
        delta=change.delta,
        rate=rules.decay_rate if kept else 0.0,
    )


def _current(ask: Asking, mine: Sequence[SelfChange], trait: str) -> float | None:
    """The trait as it is now: what the round began with, and what its other calls changed."""
    value = ask.mind.traits.get(trait)
    for change in mine:
        beside = (change.turn, change.step) == (ask.context.turn, ask.context.step)
        if beside and change.name == trait and change.undone_at is None:
            value = moved(MISSING_TRAIT if value is None else value, change.delta)
    return value
