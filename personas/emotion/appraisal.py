"""What an event means to the persona, and what whoever it comes from is to it."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from .inputs import Amount, Balance, Input


class _Neutral(Input):
    """What is left out, or ``None``, is neutral."""

    @model_validator(mode="before")
    @classmethod
    def _without_gaps(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None}
        return data


class AppraisalVector(_Neutral):
    """What an event means, by nine of the checks of Scherer's component process model (2001, 2009).

    What is left out, or ``None``, is neutral.

    Attributes:
        goal_relevance: How much is at stake, in [-1, 1]; -1 is nothing at all.
        goal_congruence: Whether it helps (1) or hinders (-1) what the persona wants.
        expectedness: In [0, 1]; 0 is a surprise.
        controllability: How far the persona can do something about it, in [0, 1].
        agency: Whose doing it is: 1 the other's on purpose, 0 shared or open, -1 nobody's: chance,
            fate, the way of things.
        norm_compatibility: Whether it was right (1) or wrong (-1) to do.
        internal_standards: Whether the persona lived up to its own standards, in [-1, 1].
        adjustment_potential: How well it can live with what comes of it, in [0, 1].
        urgency: In [0, 1].
    """

    goal_relevance: Balance = 0.0
    goal_congruence: Balance = 0.0
    expectedness: Amount = 0.5
    controllability: Amount = 0.5
    agency: Balance = 0.0
    norm_compatibility: Balance = 0.0
    internal_standards: Balance = 0.0
    adjustment_potential: Amount = 0.5
    urgency: Amount = 0.5


class Relationship(_Neutral):
    """What the persona has with whoever an event comes from.

    Trust gives the benefit of the doubt, familiarity makes matters more relevant (Rempel, Holmes &
    Zanna 1985; Simpson 2007).

    Attributes:
        trust: In [0, 1]; 0.5 neither trusts nor distrusts.
        familiarity: In [0, 1]; 0 is a stranger.
    """

    trust: Amount = 0.5
    familiarity: Amount = 0.0
