"""The five metaprompts that answer to the user's mood and to errors.

They run when a persona follows the user's sentiment and names them in its ``presets``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..mood import MOODS
from ..parts import MetaPrompt, MetaPromptTrigger
from .fields import (
    CHANGES,
    COMPLEXITIES,
    RATIONALE,
    SKILL_LEVELS,
    Change,
)

PRESET_TOKENS = 512


def answer_schema(
    changes: Sequence[Change], moods: Sequence[str], strategy: str | None
) -> dict[str, Any]:
    """JSON Schema of a metaprompt's answer.

    Args:
        changes: What the answer may change.
        moods: The moods that it may name.
        strategy: The field in which it has to say what to do now; ``None`` for none.
    """
    forms: dict[Change, dict[str, Any]] = {
        "mood": {"type": "string", "enum": list(moods)},
        "skill_level": {"type": "string", "enum": list(SKILL_LEVELS)},
        "complexity": {"type": "string", "enum": list(COMPLEXITIES)},
        "imprints": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string"},
                    "value": {},
                    "description": {"type": "string"},
                },
                "required": ["key", "value"],
            },
        },
    }
    told = [RATIONALE, *([strategy] if strategy else [])]
    properties = {CHANGES[change]: forms[change] for change in changes}
    properties |= {name: {"type": "string"} for name in told}
    return {"type": "object", "properties": properties, "required": told}


def _preset(
    name: str,
    event: str,
    text: str,
    *,
    changes: Sequence[Change],
    moods: Sequence[str],
    strategy: str,
    temperature: float = 0.3,
) -> MetaPrompt:
    return MetaPrompt(
        id=f"gmi_{name}",
        prompt_template=text,
        trigger=MetaPromptTrigger(type="event_based", event_name=event),
        temperature=temperature,
        max_output_tokens=PRESET_TOKENS,
        output_schema=answer_schema(changes, moods, strategy),
    )


_STANDING = """\
Your mood is {{current_mood}}. You hold the user's skill to be {{user_skill}} and the task to be
{{task_complexity}}.
"""

_LAST_WORDS = """\
The last messages, oldest first:
{{recent_conversation}}
"""

_FRUSTRATION = f"""\
The user has become frustrated: sentiment {{{{current_sentiment}}}} ({{{{sentiment_score}}}} from -1
to 1), {{{{consecutive_frustration}}}} such turns in a row.
{_STANDING}
{_LAST_WORDS}
Errors of late: {{{{recent_errors}}}}

Find out what annoys the user: a wrong answer, too much text, the wrong level, a tool that failed.
Then decide in which mood you meet it best, whether you have misjudged the skill or the task, and
what to remember so that it does not happen again. Change only what the messages give a reason for.
Say in recoveryStrategy what you will do differently in your next answer."""

_CONFUSION = f"""\
The user does not follow: sentiment {{{{current_sentiment}}}}, {{{{consecutive_confusion}}}} turns
without a clear sign of understanding, and words that tell of it: {{{{confusion_keywords}}}}.
{_STANDING}
{_LAST_WORDS}
Find the place where the thread was lost, and whether the task is harder or easier than you took it
for. Choose a mood in which you explain patiently, and keep what helps you to explain to this user.
Say in clarificationStrategy how you will explain it next: an example, smaller steps, new words."""

_SATISFACTION = f"""\
The user is content: sentiment {{{{current_sentiment}}}} ({{{{sentiment_score}}}} from -1 to 1),
{{{{consecutive_satisfaction}}}} such turns in a row.
{_STANDING}
{_LAST_WORDS}
Find out what worked, and keep it as something to remember. See whether the user has shown more
skill than you assumed, and whether the task has become another one. Leave your mood as it is unless
another one would carry this further.
Say in engagementStrategy how you will build on it."""

_ERRORS = f"""\
Several things have failed of late: {{{{recent_errors}}}}
{_STANDING}
{_LAST_WORDS}
Tell apart what you can avoid from what lies outside. See whether the task is more complex than you
took it for, choose a mood in which you work carefully, and keep what you must not try again.
Say in mitigationStrategy how you will go on despite the errors."""

_ENGAGEMENT = f"""\
The user hardly takes part any more: {{{{consecutive_neutral}}}} turns in a row without colour, and
short ones.
{_STANDING}
{_LAST_WORDS}
Consider why: the user may be busy, bored, or done. Choose a mood that invites without pressing,
see whether the task is too easy or too hard, and keep what the user seems to care about.
Say in engagementStrategy what you will offer next: a question, a choice, a next step."""

PRESETS: tuple[MetaPrompt, ...] = (
    _preset(
        "frustration_recovery",
        "user_frustrated",
        _FRUSTRATION,
        changes=("mood", "skill_level", "complexity", "imprints"),
        moods=MOODS,
        strategy="recoveryStrategy",
    ),
    _preset(
        "confusion_clarification",
        "user_confused",
        _CONFUSION,
        changes=("mood", "complexity", "imprints"),
        moods=[mood for mood in MOODS if mood != "frustrated"],
        strategy="clarificationStrategy",
    ),
    _preset(
        "satisfaction_reinforcement",
        "user_satisfied",
        _SATISFACTION,
        changes=("mood", "skill_level", "complexity", "imprints"),
        moods=[mood for mood in MOODS if mood != "frustrated"],
        strategy="engagementStrategy",
    ),
    _preset(
        "error_recovery",
        "error_threshold_exceeded",
        _ERRORS,
        changes=("mood", "complexity", "imprints"),
        moods=("neutral", "focused", "analytical"),
        strategy="mitigationStrategy",
    ),
    _preset(
        "engagement_boost",
        "low_engagement",
        _ENGAGEMENT,
        changes=("mood", "complexity", "imprints"),
        moods=("neutral", "curious", "creative"),
        strategy="engagementStrategy",
        temperature=0.5,
    ),
)
"""The presets, in the order in which they look at an event."""

PRESETS_BY_ID = {preset.id: preset for preset in PRESETS}

SHORT_NAMES = {preset.id.removeprefix("gmi_"): preset.id for preset in PRESETS}
"""Short names of the presets, such as ``error_recovery``, and their ids."""


def chosen_presets(names: Sequence[str] | str) -> tuple[tuple[MetaPrompt, ...], tuple[str, ...]]:
    """The presets of these names, in their own order, and the names that are no preset's.

    Args:
        names: Ids or short names, or ``all`` for all of them, also as an entry of a list.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    if "all" in wanted:
        ids = set(PRESETS_BY_ID)
    else:
        ids = {SHORT_NAMES.get(name, name) for name in wanted}
    unknown = [
        name
        for name in dict.fromkeys(wanted)
        if name != "all" and SHORT_NAMES.get(name, name) not in PRESETS_BY_ID
    ]
    return tuple(preset for preset in PRESETS if preset.id in ids), tuple(unknown)
