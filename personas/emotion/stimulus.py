"""What acts on the state itself, past every appraisal: fatigue, rest, a shift of mood."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from .inputs import Balance, Change, Input


class VadChange(Input):
    """Some of the three dimensions, to add; ``V``, ``A`` and ``D`` name them too."""

    valence: Change | None = Field(None, validation_alias=AliasChoices("valence", "V"))
    arousal: Change | None = Field(None, validation_alias=AliasChoices("arousal", "A"))
    dominance: Change | None = Field(None, validation_alias=AliasChoices("dominance", "D"))


class VadTarget(Input):
    """Some of the three dimensions, to set; ``V``, ``A`` and ``D`` name them too."""

    valence: Balance | None = Field(None, validation_alias=AliasChoices("valence", "V"))
    arousal: Balance | None = Field(None, validation_alias=AliasChoices("arousal", "A"))
    dominance: Balance | None = Field(None, validation_alias=AliasChoices("dominance", "D"))


class NeedsChange(Input):
    """Some of the needs, to add, each in [-1, 1]."""

    autonomy: Balance | None = None
    competence: Balance | None = None
    relatedness: Balance | None = None


class Stimulus(Input):
    """Changes of the state that need no meaning; neither traits nor inertia lessen them.

    They come after the appraisal, in this order, each limited to the state's range.

    Attributes:
        vad_delta: Added to the feeling.
        vad_override: Set, and has the last word about the feeling.
        body_budget_delta: Added to the body budget: negative for fatigue, positive for rest.
        needs_delta: Added to the needs.
    """

    vad_delta: VadChange | None = None
    vad_override: VadTarget | None = None
    body_budget_delta: Balance | None = None
    needs_delta: NeedsChange | None = None
