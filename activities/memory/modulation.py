"""How a character changes the memory's mechanisms.

The HEXACO traits (Ashton & Lee 2007) scale what the settings say: an emotional character's
memories drift more, a conscientious one suppresses more, an open one is visited by old memories
more often. Directions follow the traits' descriptions; the gains are conventions.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...personas.memory import MechanismSettings
from .ranges import trait

INFERENCE_FLOOR = 0.5
REFLECTION_FLOOR = 0.4


def modulated(settings: MechanismSettings, traits: Mapping[str, float] | None) -> MechanismSettings:
    """The mechanisms' settings as this character has them.

    A trait that is missing is average. Rates, probabilities and thresholds stay in [0, 1].
    The gist and the persona's drift do not depend on the character.

    Args:
        settings: What the persona's file says.
        traits: HEXACO traits in [0, 1]; ``None`` for a persona without a character, which
            changes nothing.

    Raises:
        ValidationError: A trait is no finite number.
    """
    if traits is None:
        return settings
    emotionality = trait(traits, "emotionality")
    conscientiousness = trait(traits, "conscientiousness")
    openness = trait(traits, "openness")
    extraversion = trait(traits, "extraversion")
    honesty = trait(traits, "honesty")
    agreeableness = trait(traits, "agreeableness")

    drift = settings.reconsolidation
    forgetting = settings.retrieval_induced_forgetting
    involuntary = settings.involuntary_recall
    knowing = settings.feeling_of_knowing
    schema = settings.schema_encoding
    sources = settings.source_confidence_decay
    regulation = settings.emotion_regulation

    multipliers = dict(sources.decay_multipliers)
    for source, floor in (("agent_inference", INFERENCE_FLOOR), ("reflection", REFLECTION_FLOOR)):
        multipliers[source] = max(floor, multipliers[source] - 0.15 * honesty)
    return settings.model_copy(
        update={
            "reconsolidation": drift.model_copy(
                update={"drift_rate": min(1.0, drift.drift_rate * (0.5 + emotionality))}
            ),
            "retrieval_induced_forgetting": forgetting.model_copy(
                update={
                    "suppression_factor": min(
                        1.0, forgetting.suppression_factor * (0.7 + 0.6 * conscientiousness)
                    )
                }
            ),
            "involuntary_recall": involuntary.model_copy(
                update={"probability": min(1.0, involuntary.probability * (0.5 + openness))}
            ),
            "feeling_of_knowing": knowing.model_copy(
                update={
                    "partial_activation_threshold": min(
                        1.0, knowing.partial_activation_threshold * (1.3 - 0.6 * extraversion)
                    )
                }
            ),
            "schema_encoding": schema.model_copy(
                update={"novelty_boost": schema.novelty_boost * (0.8 + 0.4 * openness)}
            ),
            "source_confidence_decay": sources.model_copy(
                update={"decay_multipliers": multipliers}
            ),
            "emotion_regulation": regulation.model_copy(
                update={
                    "reappraisal_rate": min(
                        1.0, regulation.reappraisal_rate * (0.7 + 0.6 * agreeableness)
                    )
                }
            ),
        }
    )
