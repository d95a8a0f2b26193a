"""Metaprompts: what the mind asks itself after a turn, and what it may change by the answer."""

from .answers import (
    Answer,
    AnswerForm,
    Imprint,
    MindPatch,
    answer_form,
    read_answer,
    reserved_key,
)
from .fields import COMPLEXITIES, SKILL_LEVELS
from .merge import MAX_METAPROMPTS, Merged, find, merged
from .presets import PRESETS, SHORT_NAMES
from .reflection import SELF_REFLECTION
from .triggers import Due, Firings, TriggerRule, due, manual_flag, trigger_rules
from .variables import MindView, TraceLine, evidence, filled, template_of, variables

__all__ = [
    "COMPLEXITIES",
    "MAX_METAPROMPTS",
    "PRESETS",
    "SELF_REFLECTION",
    "SHORT_NAMES",
    "SKILL_LEVELS",
    "Answer",
    "AnswerForm",
    "Due",
    "Firings",
    "Imprint",
    "Merged",
    "MindPatch",
    "MindView",
    "TraceLine",
    "TriggerRule",
    "answer_form",
    "due",
    "evidence",
    "filled",
    "find",
    "manual_flag",
    "merged",
    "read_answer",
    "reserved_key",
    "template_of",
    "trigger_rules",
    "variables",
]
