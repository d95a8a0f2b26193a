"""How strongly something is encoded, and for how long it holds.

Arousal helps memory up to a point and harms it beyond (Yerkes & Dodson 1908); feeling in tune
with one's mood is encoded better (Bower 1981); what shook somebody deeply stays (flashbulb
memories, Brown & Kulik 1977). Valence, arousal and dominance are Mehrabian & Russell's (1974).
The shapes come from there; the gains are conventions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .features import Features
from .ranges import affect_within, arousal_share, finite, intensity, trait, within
from .traces import HOUR, Affect

BASE_STRENGTH = 0.5
CONTENT_SHARE = 0.7
MOOD_SHARE = 0.3
FLASHBULB_INTENSITY = 0.8
FLASHBULB_STRENGTH = 2.0
FLASHBULB_STABILITY = 5.0


@dataclass(frozen=True, slots=True)
class EncodingWeights:
    """How much a character's attention goes to each kind of feature, each in [0.2, 1]."""

    novelty: float
    procedure: float
    emotion: float
    social: float
    cooperation: float
    ethics: float


@dataclass(frozen=True, slots=True)
class Encoding:
    """How something is encoded.

    Attributes:
        strength: In [0, 1].
        stability: Seconds in which the strength falls to 1/e.
        importance: In [0, 1].
        affect: The feeling that goes with it; arousal in [-1, 1].
        intensity: Of that feeling, in [0, 1].
        attention: That it was given, in [0.5, 1].
        flashbulb: Whether the feeling burnt it in.
    """

    strength: float
    stability: float
    importance: float
    affect: Affect
    intensity: float
    attention: float
    flashbulb: bool


def encoding_weights(traits: Mapping[str, float] | None) -> EncodingWeights:
    """What a character attends to; a trait that it does not have is average.

    Raises:
        ValidationError: A trait is no finite number.
    """
    return EncodingWeights(
        novelty=0.3 + 0.7 * trait(traits, "openness"),
        procedure=0.3 + 0.7 * trait(traits, "conscientiousness"),
        emotion=0.2 + 0.8 * trait(traits, "emotionality"),
        social=0.2 + 0.8 * trait(traits, "extraversion"),
        cooperation=0.2 + 0.8 * trait(traits, "agreeableness"),
        ethics=0.2 + 0.8 * trait(traits, "honesty"),
    )


def arousal_effect(arousal: float) -> float:
    """Factor by which arousal in [-1, 1] helps encoding: 1 in the middle, never below 0.3."""
    share = arousal_share(within("arousal", arousal, -1.0, 1.0))
    return max(0.3, 1.0 - 4.0 * (share - 0.5) ** 2)


def felt(mood: Affect, sentiment: float) -> Affect:
    """The feeling that goes with a content: mostly the content's, in part the mood's.

    Args:
        mood: The present mood.
        sentiment: Of the content, in [-1, 1].

    Raises:
        ValidationError: A number is not finite.
    """
    mood = affect_within(mood)
    sentiment = within("sentiment", sentiment, -1.0, 1.0)
    valence = CONTENT_SHARE * sentiment + MOOD_SHARE * mood.valence
    return Affect(max(-1.0, min(1.0, valence)), mood.arousal, mood.dominance)


def attention(features: Features, weights: EncodingWeights) -> float:
    """The attention that a content gets, in [0.5, 1]."""
    return min(
        1.0,
        0.5
        + 0.15 * features.novelty * weights.novelty
        + 0.15 * features.procedure * weights.procedure
        + 0.10 * features.emotion * weights.emotion
        + 0.10 * features.social * weights.social
        + 0.10 * features.cooperation * weights.cooperation
        + 0.10 * features.ethics * weights.ethics
        + 0.15 * features.contradiction
        + 0.15 * within("topic_relevance", features.topic_relevance, 0.0, 1.0),
    )


def encode(
    mood: Affect,
    sentiment: float,
    features: Features,
    traits: Mapping[str, float] | None = None,
    *,
    base_stability: float = HOUR,
) -> Encoding:
    """How something is encoded.

    Args:
        mood: The mood that it meets.
        sentiment: Of its content, in [-1, 1].
        features: What in it calls for attention.
        traits: The character's HEXACO traits in [0, 1].
        base_stability: Seconds that the stability starts from.

    Raises:
        ValidationError: A number is not finite.
    """
    mood = affect_within(mood)
    sentiment = within("sentiment", sentiment, -1.0, 1.0)
    weights = encoding_weights(traits)
    affect = felt(mood, sentiment)
    strong = intensity(affect)
    attended = attention(features, weights)
    congruence = 1.0 + max(0.0, mood.valence * sentiment) * weights.emotion * 0.3
    flashbulb = strong > FLASHBULB_INTENSITY
    strength = min(
        1.0,
        BASE_STRENGTH
        * arousal_effect(mood.arousal)
        * (1.0 + strong * weights.emotion * 0.5)
        * attended
        * congruence
        * (FLASHBULB_STRENGTH if flashbulb else 1.0),
    )
    stability = finite("base_stability", base_stability) * (1.0 + 6.0 * strength)
    return Encoding(
        strength=strength,
        stability=stability * FLASHBULB_STABILITY if flashbulb else stability,
        importance=min(1.0, 0.6 * strength + 0.4 * attended),
        affect=affect,
        intensity=strong,
        attention=attended,
        flashbulb=flashbulb,
    )
