"""What perceiving an event makes of a state."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from ..affect import Point, Share, Vad, limited
from . import constants as k
from .activations import dominant, trusting
from .appraisal import AppraisalVector, Relationship
from .impact import Impact, impact, inertia
from .inputs import Input
from .labels import label
from .state import EmotionState, Needs, felt
from .stimulus import Stimulus
from .time import advanced
from .traits import Traits


class Event(Input):
    """Something to perceive; without an appraisal and a stimulus only time passes.

    Attributes:
        appraisal: What it means to the persona.
        stimulus: What acts on the state itself, after the appraisal.
        relationship: What the persona has with whoever it comes from; without one they are
            strangers whom it neither trusts nor distrusts.
    """

    appraisal: AppraisalVector | None = None
    stimulus: Stimulus | None = None
    relationship: Relationship | None = None


class Perceived(BaseModel):
    """What an event left.

    Attributes:
        state: The state after it.
        felt: What is felt now.
        label: The feeling's word.
        intensity: The feeling's length, as a share of the longest possible.
        dominant: The emotion that the event itself called up most; ``None`` without an appraisal
            or when it called up none. It can differ from the label, which names the whole feeling.
        importance: How much the event is worth a memory, in [0, 1]; 0 without an appraisal.
        event_intensity: How much the appraisal changed the feeling, in [0, 1].
        delta: That change, before the stimulus.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: EmotionState
    felt: Vad
    label: str
    intensity: Share
    dominant: str | None = None
    importance: Share = 0.0
    event_intensity: Share = 0.0
    delta: Vad = Vad()

    @property
    def memorable(self) -> bool:
        """Whether the event is worth a memory."""
        return self.importance > k.MEMORABLE_ABOVE


def perceived(state: EmotionState, event: Event, traits: Traits, now: float) -> Perceived:
    """What a persona feels after an event.

    Time passes first, then the appraisal acts, then the stimulus.

    Args:
        state: The state that was kept.
        event: What happens.
        traits: Who perceives it.
        now: When, in seconds; an event from before the state's own time happens at that time.

    Raises:
        gmi.personas.errors.ValidationError: ``now`` is not finite.
    """
    state = advanced(state, now, traits)
    change: Point = (0.0, 0.0, 0.0)
    called: str | None = None
    importance = 0.0
    if event.appraisal is not None:
        relationship = event.relationship or Relationship()
        made = impact(event.appraisal, relationship, traits, state.body)
        valence, arousal, dominance = ((1.0 - inertia(traits)) * value for value in made.change)
        change = (valence, arousal, dominance)
        state = _appraised(state, event.appraisal, relationship, made, change)
        called = dominant(made.activations) if made.relevance > 0 else None
        importance = _importance(made.relevance, change, event.appraisal.expectedness)
    if event.stimulus is not None:
        state = _stimulated(state, event.stimulus)
    feeling = felt(state)
    word = label(feeling)
    return Perceived(
        state=state,
        felt=feeling,
        label=word.primary,
        intensity=word.intensity,
        dominant=called,
        importance=importance,
        event_intensity=min(1.0, math.hypot(*change)),
        delta=Vad.at(change),
    )


def _appraised(
    state: EmotionState,
    appraisal: AppraisalVector,
    relationship: Relationship,
    made: Impact,
    change: Point,
) -> EmotionState:
    """The state after an appraisal.

    Excitement and what is unpleasant spend the body budget, what is pleasant restores it, the
    more in familiar company (Barrett & Simmons 2015). Control feeds autonomy; living up to one's
    standards, and success of one's own making, competence; what another does to one, relatedness
    (Deci & Ryan 2000). The weights are conventions.
    """
    company = 0.5 + 0.5 * relationship.familiarity
    body = (
        state.body
        - k.BODY_BY_AROUSAL * max(change[1], 0.0)
        - k.BODY_BY_UNPLEASANT * max(-change[0], 0.0)
        + k.BODY_BY_PLEASANT * max(change[0], 0.0) * company
    )
    congruence = trusting(appraisal.goal_congruence, relationship)
    norm = trusting(appraisal.norm_compatibility, relationship)
    control = appraisal.controllability
    concern = made.relevance
    success = (
        k.COMPETENCE_BY_STANDARDS * appraisal.internal_standards
        + k.COMPETENCE_BY_SUCCESS * congruence * control
    )
    treatment = max(appraisal.agency, 0.0) * (0.5 * norm + 0.5 * congruence) * company
    needs = state.needs
    return EmotionState(
        core=_stepped(state.core, change, 1.0),
        mood=_stepped(state.mood, change, k.MOOD_SHARE),
        body=limited(body, 0.0, 1.0),
        needs=_needs(
            needs.autonomy + k.AUTONOMY_BY_CONTROL * concern * (2.0 * control - 1.0),
            needs.competence + k.COMPETENCE_BY_EVENT * concern * success,
            needs.relatedness + k.RELATEDNESS_BY_EVENT * concern * treatment,
        ),
        at=state.at,
    )


def _stepped(vad: Vad, change: Point, share: float) -> Vad:
    """A feeling after a change: the nearer it is to an end, the less it still moves there."""
    valence, arousal, dominance = (
        value + share * step * (1.0 - value if step >= 0 else 1.0 + value)
        for value, step in zip(vad.point, change, strict=True)
    )
    return Vad.at((valence, arousal, dominance))


def _stimulated(state: EmotionState, stimulus: Stimulus) -> EmotionState:
    valence, arousal, dominance = state.core.point
    if (delta := stimulus.vad_delta) is not None:
        valence += delta.valence or 0.0
        arousal += delta.arousal or 0.0
        dominance += delta.dominance or 0.0
    if (override := stimulus.vad_override) is not None:
        valence = valence if override.valence is None else override.valence
        arousal = arousal if override.arousal is None else override.arousal
        dominance = dominance if override.dominance is None else override.dominance
    needs = state.needs
    if (change := stimulus.needs_delta) is not None:
        needs = _needs(
            needs.autonomy + (change.autonomy or 0.0),
            needs.competence + (change.competence or 0.0),
            needs.relatedness + (change.relatedness or 0.0),
        )
    return EmotionState(
        core=Vad.at((valence, arousal, dominance)),
        mood=state.mood,
        body=limited(state.body + (stimulus.body_budget_delta or 0.0), 0.0, 1.0),
        needs=needs,
        at=state.at,
    )


def _needs(autonomy: float, competence: float, relatedness: float) -> Needs:
    return Needs(
        autonomy=limited(autonomy, 0.0, 1.0),
        competence=limited(competence, 0.0, 1.0),
        relatedness=limited(relatedness, 0.0, 1.0),
    )


def _importance(concern: float, change: Point, expectedness: float) -> float:
    value = (
        k.IMPORTANCE_BY_RELEVANCE * concern
        + k.IMPORTANCE_BY_CHANGE * min(1.0, math.hypot(*change))
        + k.IMPORTANCE_BY_SURPRISE * (1.0 - expectedness)
    )
    return limited(value, 0.0, 1.0)
