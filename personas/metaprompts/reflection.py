"""The mind's look at itself: mood, the user's skill and the task, judged anew from evidence.

It is no preset: it runs when the persona has a metaprompt of this id, by its trigger or when it is
asked for. It never changes a trait.
"""

from __future__ import annotations

from ..mood import MOODS
from ..parts import MetaPrompt
from .presets import PRESET_TOKENS, answer_schema

SELF_REFLECTION = "gmi_self_trait_adjustment"
"""Id of the metaprompt by which a mind looks at itself."""

REFLECTION_TEXT = """\
Look at yourself as you were in the last turns. This is the evidence, newest last:
{{evidence}}

Judge three things anew: whether your mood still fits the conversation, how skilled the user has
shown to be, and how complex the task really is. Name only what you would change, and keep what you
have learnt about the user or the task for later. Your character stays what it is.
Say in adjustmentRationale what in the evidence speaks for each change; without a good reason change
nothing."""

REFLECTION_SCHEMA = answer_schema(("mood", "skill_level", "complexity", "imprints"), MOODS, None)


def completed_reflection(prompt: MetaPrompt) -> MetaPrompt:
    """The persona's own reflection, with our words where it has none of its own."""
    return prompt.model_copy(
        update={
            "prompt_template": REFLECTION_TEXT,
            "output_schema": prompt.output_schema or REFLECTION_SCHEMA,
            "max_output_tokens": prompt.max_output_tokens or PRESET_TOKENS,
        }
    )
