"""What a metaprompt is told: the mind as a value, and the variables of its template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..messages import Message
from ..parts import MetaPrompt

EVIDENCE_CHARACTERS = 4000
"""The longest value of a variable."""

VIEW_BYTES = 4096
"""The largest :class:`MindView`, as JSON."""

CONVERSATION_MESSAGES = 5
EVIDENCE_MESSAGES = 10
REASONING_ENTRIES = 10
EVIDENCE_ENTRIES = 20

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}", re.ASCII)
_MESSAGE_CHARACTERS = 800
_CUT = "…"


class TraceLine(BaseModel):
    """An entry of the reasoning trace, as the mind looks back at it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str
    message: str
    details: dict[str, Any] = Field(default_factory=dict)


class MindView(BaseModel):
    """The mind as its metaprompts see it.

    Attributes:
        mood: The mood's word.
        skill_level: What the user is held to be.
        complexity: What the task is held to be.
        sentiment: ``positive``, ``negative`` or ``neutral``.
        sentiment_score: Of the last message, in [-1, 1].
        consecutive_frustration: Frustrated turns in a row; the others likewise.
        confusion_keywords: Words of the last message that tell of confusion.
        user_context: What is known of the user.
        task_context: What is known of the task.
        trace: The newest trace entries, oldest first.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    mood: str = "neutral"
    skill_level: str | None = None
    complexity: str | None = None
    sentiment: str = "neutral"
    sentiment_score: float = 0.0
    consecutive_frustration: int = 0
    consecutive_confusion: int = 0
    consecutive_satisfaction: int = 0
    consecutive_neutral: int = 0
    confusion_keywords: tuple[str, ...] = ()
    user_context: dict[str, Any] = Field(default_factory=dict)
    task_context: dict[str, Any] = Field(default_factory=dict)
    trace: tuple[TraceLine, ...] = ()

    def fitted(self, limit: int = VIEW_BYTES) -> MindView:
        """This view in at most ``limit`` bytes of JSON.

        The newest :data:`EVIDENCE_ENTRIES` trace entries are kept. What is too large loses, in
        this order and only as far as it has to: the details of the trace, its oldest entries, the
        task's and the user's context.
        """
        view = self.model_copy(update={"trace": self.trace[-EVIDENCE_ENTRIES:]})
        if view._bytes() <= limit:
            return view
        bare = tuple(line.model_copy(update={"details": {}}) for line in view.trace)
        view = view.model_copy(update={"trace": bare})
        while view.trace and view._bytes() > limit:
            view = view.model_copy(update={"trace": view.trace[1:]})
        for name in ("task_context", "user_context"):
            if view._bytes() > limit:
                view = view.model_copy(update={name: {}})
        if view._bytes() > limit:
            words = tuple(word[:40] for word in view.confusion_keywords[:10])
            short = {
                name: value[:40]
                for name in ("mood", "skill_level", "complexity", "sentiment")
                if (value := getattr(view, name)) is not None
            }
            view = view.model_copy(update={"confusion_keywords": words, **short})
        return view

    def _bytes(self) -> int:
        return len(self.model_dump_json().encode())


def template_of(prompt: MetaPrompt) -> str:
    """A metaprompt's words, in either of their forms."""
    template = prompt.prompt_template
    return template if isinstance(template, str) else template.template


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its variables in their places.

    A variable is ``{{name}}``, in any case and with spaces inside the braces or without; one that
    nobody knows stays as it stands. What a value says is never read as a variable.
    """

    def value(match: re.Match[str]) -> str:
        return values.get(match[1].lower(), match[0])

    return _VARIABLE.sub(value, template)


def variables(view: MindView, conversation: Sequence[Message]) -> dict[str, str]:
    """Every variable's value.

    Counts and scores are what they are: a score of 0 is not told as a sentiment of its own.

    Args:
        view: The mind.
        conversation: The newest messages, oldest first.
    """
    errors = [line for line in view.trace[-REASONING_ENTRIES:] if line.type == "ERROR"]
    return {
        "current_mood": view.mood,
        "user_skill": view.skill_level or "unknown",
        "task_complexity": view.complexity or "unknown",
        "current_sentiment": view.sentiment,
        "sentiment_score": f"{view.sentiment_score:.9g}",
        "consecutive_frustration": str(view.consecutive_frustration),
        "consecutive_confusion": str(view.consecutive_confusion),
        "consecutive_satisfaction": str(view.consecutive_satisfaction),
        "consecutive_neutral": str(view.consecutive_neutral),
        "confusion_keywords": ", ".join(view.confusion_keywords) or "none",
        "recent_conversation": shortened(_told(conversation[-CONVERSATION_MESSAGES:])),
        "recent_reasoning": shortened(_lines(view.trace[-REASONING_ENTRIES:])),
        "recent_errors": shortened([_without_type(line) for line in errors]),
        "user_context": shortened(view.user_context),
        "task_context": shortened(view.task_context),
        "evidence": shortened(evidence(view, conversation)),
    }


def evidence(view: MindView, conversation: Sequence[Message]) -> dict[str, Any]:
    """What a mind looks at when it looks at itself."""
    return {
        "currentMood": view.mood,
        "currentUserContext": _known(view.user_context, "skillLevel", view.skill_level),
        "currentTaskContext": _known(view.task_context, "complexity", view.complexity),
        "recentConversation": _told(conversation[-EVIDENCE_MESSAGES:]),
        "recentTraceEntries": _lines(view.trace[-EVIDENCE_ENTRIES:]),
    }


def shortened(value: Any, limit: int = EVIDENCE_CHARACTERS) -> str:
    """``value`` as JSON of at most ``limit`` characters.

    What is too long loses the oldest entries of its lists first, the longest list before the
    others, so that what is left is still JSON and tells what happened last. What has no lists to
    lose is cut at its end.
    """
    text = _json(value)
    if len(text) <= limit:
        return text
    value = json.loads(text)
    lists = [value] if isinstance(value, list) else []
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
    while len(text) > limit and any(lists):
        del max(lists, key=lambda entries: len(_json(entries)) if entries else 0)[0]
        text = _json(value)
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _told(messages: Sequence[Message]) -> list[dict[str, str]]:
    told = []
    for message in messages:
        text = message.text
        if not text and message.calls:
            text = f"(calls {', '.join(call.name for call in message.calls)})"
        if len(text) > _MESSAGE_CHARACTERS:
            text = text[:_MESSAGE_CHARACTERS] + _CUT
        told.append({"role": message.role, "content": text})
    return told


def _lines(lines: Sequence[TraceLine]) -> list[dict[str, Any]]:
    return [{"type": line.type, **_without_type(line)} for line in lines]


def _without_type(line: TraceLine) -> dict[str, Any]:
    return {"message": line.message, **({"details": line.details} if line.details else {})}


def _known(context: Mapping[str, Any], name: str, value: str | None) -> dict[str, Any]:
    return {**context, **({name: value} if value is not None else {})}
