"""How a persona feels: a deterministic model of emotion, without clock or randomness."""

from .activations import activations, dominant, relevance
from .appraisal import AppraisalVector, Relationship
from .baseline import baseline
from .constants import EMOTIONS, MEMORABLE_ABOVE, MODEL
from .impact import Impact, impact, inertia
from .interlocutor import DEFAULT_NAME, Interlocutor
from .labels import Label, label
from .perceive import Event, Perceived, perceived
from .state import EmotionState, Needs, felt, initial
from .stimulus import NeedsChange, Stimulus, VadChange, VadTarget
from .time import advanced
from .traits import Traits

__all__ = [
    "DEFAULT_NAME",
    "EMOTIONS",
    "MEMORABLE_ABOVE",
    "MODEL",
    "AppraisalVector",
    "EmotionState",
    "Event",
    "Impact",
    "Interlocutor",
    "Label",
    "Needs",
    "NeedsChange",
    "Perceived",
    "Relationship",
    "Stimulus",
    "Traits",
    "VadChange",
    "VadTarget",
    "activations",
    "advanced",
    "baseline",
    "dominant",
    "felt",
    "impact",
    "inertia",
    "initial",
    "label",
    "perceived",
    "relevance",
]
