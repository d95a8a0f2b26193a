"""How feelings settle with time."""

from __future__ import annotations

import math

from ..affect import Point, Vad
from ..errors import ValidationError
from . import constants as k
from .baseline import baseline
from .state import EmotionState, Needs
from .traits import Traits


def advanced(state: EmotionState, now: float, traits: Traits) -> EmotionState:
    """The state at a later time, without anything having happened since.

    Everything halves its distance to where it rests in its half-life: the core and the mood to
    the character's baseline, body and needs to their set points. Feelings of emotional characters
    last longer. Going there in two steps is the same as going in one, so the state can be kept as
    it was at the last event and advanced whenever it is looked at: no timer is needed, and to
    keep what was only looked at would only add up roundings.

    Args:
        state: The state that was kept.
        now: The time, in seconds; one that is not after the state's own changes nothing.
        traits: Whose state it is.

    Raises:
        gmi.personas.errors.ValidationError: ``now`` is not finite.
    """
    if not math.isfinite(now):
        raise ValidationError(f"The time of an emotion must be finite, not {now}.")
    passed = now - state.at
    if passed <= 0:
        return state
    rest = baseline(traits)
    slower = 1.0 + k.EMOTIONALITY_ON_HALF_LIFE * traits.lean("emotionality")
    halves = (
        k.HALF_LIFE_VALENCE * slower,
        k.HALF_LIFE_AROUSAL * slower,
        k.HALF_LIFE_DOMINANCE * slower,
    )

    mood_halves = (k.HALF_LIFE_MOOD, k.HALF_LIFE_MOOD, k.HALF_LIFE_MOOD)

    def need(value: float) -> float:
        return _settled(value, k.NEED_SET_POINT, passed, k.HALF_LIFE_NEEDS)

    return EmotionState(
        core=_settled_point(state.core, rest, passed, halves),
        mood=_settled_point(state.mood, rest, passed, mood_halves),
        body=_settled(state.body, k.BODY_SET_POINT, passed, k.HALF_LIFE_BODY),
        needs=Needs(
            autonomy=need(state.needs.autonomy),
            competence=need(state.needs.competence),
            relatedness=need(state.needs.relatedness),
        ),
        at=now,
    )


def _settled(value: float, rest: float, passed: float, half: float) -> float:
    return rest + (value - rest) * math.pow(0.5, passed / half)


def _settled_point(vad: Vad, rest: Point, passed: float, halves: Point) -> Vad:
    valence, arousal, dominance = (
        _settled(value, end, passed, half)
        for value, end, half in zip(vad.point, rest, halves, strict=True)
    )
    return Vad.at((valence, arousal, dominance))
