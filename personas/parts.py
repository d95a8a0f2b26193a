"""The parts that a persona is made of."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel


class PersonaModel(BaseModel):
    """Base of a persona's parts: immutable, in ``camelCase`` or ``snake_case``.

    Unknown keys are legal and kept, since a persona file may serve other programs as well. A field
    that is given under both of its names counts under its ``camelCase`` name.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        populate_by_name=True,
        alias_generator=to_camel,
        # Kept as they are when dumped, so that writing the JSON can refuse them.
        ser_json_inf_nan="constants",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_name_per_field(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        named = dict(data)
        for name, field in cls.model_fields.items():
            if field.alias and field.alias != name and name in named:
                value = named.pop(name)
                named.setdefault(field.alias, value)
        return named


class PromptTemplate(PersonaModel):
    """A base prompt given as a template; its text is sent as it stands."""

    template: str


class PromptPart(PersonaModel):
    """One piece of a base prompt with a place of its own among the sections.

    Attributes:
        content: The text.
        priority: Sections are sent in ascending priority; without one it is 0, so first.
    """

    content: str
    priority: float = 0


class FallbackHop(PersonaModel):
    """A model that answers when those before it cannot.

    Attributes:
        model: ``provider:model``.
        effort: Replaces the call's reasoning effort on this hop.
        cache: Replaces the call's cache setting on this hop.
        max_tokens_headroom: Added to the call's output limit where it sets one; in tokens.
    """

    model: str
    effort: Literal["minimal", "low", "medium", "high"] | None = None
    cache: bool | None = None
    max_tokens_headroom: int = Field(default=0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _from_string(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"model": data}
        if isinstance(data, dict) and isinstance(data.get("provider"), str) and "model" in data:
            rest = {key: value for key, value in data.items() if key != "provider"}
            rest["model"] = f"{data['provider']}:{data['model']}"
            return rest
        return data


class ElementCriteria(PersonaModel):
    """When a contextual element applies: every criterion that is set must match.

    Attributes:
        mood: The mood's name.
        user_skill_level: The user's skill level.
        task_complexity: The task's complexity.
        language: The conversation's language tag.
        task_hint: Contained in the task's hint, whatever the case; of a list, any one.
        conversation_signals: All of them must be present.
    """

    mood: str | None = None
    user_skill_level: str | None = None
    task_complexity: str | None = None
    language: str | None = None
    task_hint: str | list[str] | None = None
    conversation_signals: list[str] = Field(default_factory=list)


class ContextualElement(PersonaModel):
    """A piece of prompt that applies in some situations only.

    Attributes:
        id: Names the element in a trace.
        type: ``user_prompt_augmentation`` is appended to the user's message; ``few_shot_example``
            is kept and not sent; every other type is a section of the system message.
        content: The text.
        criteria: When it applies; without any, always.
        priority: Its place among the sections, 100 without one; of more than ten that apply, the
            ten of the highest priority are sent.
    """

    id: str | None = None
    type: Literal[
        "system_instruction_addon",
        "behavioral_guidance",
        "task_specific_instruction",
        "error_handling_guidance",
        "ethical_guideline",
        "output_format_spec",
        "reasoning_protocol",
        "few_shot_example",
        "user_prompt_augmentation",
    ] = "system_instruction_addon"
    content: str
    criteria: ElementCriteria = Field(default_factory=ElementCriteria)
    priority: float | None = None


class ConversationContextConfig(PersonaModel):
    """How much of the conversation a prompt shows; ``max_messages`` counts messages."""

    max_messages: int | None = Field(default=None, ge=0)


class SentimentTracking(PersonaModel):
    """How the user's sentiment is followed.

    Attributes:
        enabled: Whether it is.
        method: How a message is scored.
        history_window: Turns that the trend keeps.
        frustration_threshold: Scores below it count as frustration.
        satisfaction_threshold: Scores above it count as satisfaction.
        consecutive_turns_for_trigger: Turns in a row that raise an event.
        presets: The metaprompt presets that the events run, by name, or ``all``.
    """

    enabled: bool = False
    method: Literal["lexicon_based", "llm", "trained_classifier"] | None = None
    model_id: str | None = None
    provider_id: str | None = None
    history_window: int = Field(default=10, ge=1)
    frustration_threshold: float = -0.3
    satisfaction_threshold: float = 0.3
    consecutive_turns_for_trigger: int = Field(default=2, ge=1)
    presets: list[str] | Literal["all"] = Field(default_factory=list)


class MoodAdaptation(PersonaModel):
    """The mood that a session starts in, and those that it may take (all, when none are named)."""

    enabled: bool = False
    default_mood: str | None = None
    allowed_moods: list[str] | None = None
    sensitivity_factor: float | None = None


class EmotionConfig(PersonaModel):
    """Whether the persona feels.

    Attributes:
        enabled: It has emotions, which events change and time calms.
        appraise: A model is asked what an event means that comes without an appraisal and
            without a stimulus.
    """

    enabled: bool = False
    appraise: bool = False


class MetaPromptTrigger(PersonaModel):
    """What makes a metaprompt fire.

    Attributes:
        type: ``turn_interval``, ``event_based`` or ``manual``; any other type never fires.
        interval_turns: User turns between two runs; one below 1 never fires.
        event_name: The event, for ``event_based``.
    """

    type: str
    interval_turns: Any = None
    event_name: str | None = None

    @field_validator("interval_turns", mode="after")
    @classmethod
    def _finite(cls, value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value


class MetaPrompt(PersonaModel):
    """A prompt that the mind runs about itself after a turn.

    Attributes:
        id: Replaces the preset of the same id.
        prompt_template: The text, with ``{{name}}`` where a variable goes.
        trigger: When it fires.
        model_id: The model; the persona's without one.
        temperature: Sampling temperature.
        max_output_tokens: Output limit in tokens.
    """

    id: str
    description: str | None = None
    prompt_template: str | PromptTemplate = ""
    trigger: MetaPromptTrigger
    model_id: str | None = None
    provider_id: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    output_schema: dict[str, Any] | None = None


class MemoryImprint(PersonaModel):
    """Something that a session's working memory holds from its start."""

    key: str
    value: Any = None
    description: str | None = None
