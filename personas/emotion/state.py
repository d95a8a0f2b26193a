"""What a persona's emotions are at a moment, and what it feels of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..affect import Share, Vad, rounded
from . import constants as k
from .baseline import baseline
from .traits import Traits


class Needs(BaseModel):
    """How far the three needs of self-determination theory (Deci & Ryan 2000) are met, in [0, 1].

    Attributes:
        autonomy: To have a say.
        competence: To be able.
        relatedness: To belong.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    autonomy: Share = k.NEED_SET_POINT
    competence: Share = k.NEED_SET_POINT
    relatedness: Share = k.NEED_SET_POINT


class EmotionState(BaseModel):
    """Emotions at a moment, kept with a turn. Its numbers have nine decimals.

    Attributes:
        core: The emotion; it settles within minutes.
        mood: Its slow companion, which takes hours.
        body: The body budget, in [0, 1]: what there is to spend (Barrett 2017). Low makes
            unpleasant things weigh more.
        needs: How far the needs are met.
        at: When that was, in seconds.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    core: Vad = Vad()
    mood: Vad = Vad()
    body: Share = k.BODY_SET_POINT
    needs: Needs = Needs()
    at: Annotated[float, Field(allow_inf_nan=False), AfterValidator(rounded)] = 0.0


def initial(traits: Traits, at: float) -> EmotionState:
    """The state of somebody to whom nothing has happened yet.

    Args:
        traits: Who it is.
        at: When that is, in seconds.
    """
    rest = Vad.at(baseline(traits))
    return EmotionState(core=rest, mood=rest, at=at)


def felt(state: EmotionState) -> Vad:
    """What is felt: the core, coloured by the body and the needs.

    A spent body makes things look worse and the mind slower; unmet needs sadden, and without
    autonomy and competence nothing seems in hand. The weights are conventions.
    """
    needs = state.needs
    gap = k.BODY_SET_POINT - state.body
    met = (needs.autonomy + needs.competence + needs.relatedness) / 3.0 - k.NEED_SET_POINT
    able = (needs.autonomy + needs.competence) / 2.0 - k.NEED_SET_POINT
    valence, arousal, dominance = state.core.point
    return Vad.at(
        (
            valence - k.FELT_VALENCE_BY_BODY * gap + k.FELT_VALENCE_BY_NEEDS * met,
            arousal - k.FELT_AROUSAL_BY_BODY * gap,
            dominance + k.FELT_DOMINANCE_BY_NEEDS * able,
        )
    )
