"""Who speaks: the persona's form, as it is written in a file and frozen in a session."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, field_validator

from .errors import PermissionDeniedError
from .learning import LearningSettings
from .memory import MemorySettings
from .options import CompletionOptions
from .parts import (
    ContextualElement,
    ConversationContextConfig,
    EmotionConfig,
    FallbackHop,
    MemoryImprint,
    MetaPrompt,
    MoodAdaptation,
    PersonaModel,
    PromptPart,
    PromptTemplate,
    SentimentTracking,
)
from .self_improvement import EmergentConfig, SelfImprovementSettings
from .traits import HEXACO, is_number, normalize_traits

DEFAULT_MAX_MESSAGES = 20


class Persona(PersonaModel):
    """A character: its words, its traits, its models, and how its sessions behave.

    The whole form is read, checked and frozen when a session opens.

    Attributes:
        id: Names the persona in every call.
        version: ``x.y.z`` with an optional pre-release.
        base_system_prompt: A text, a template, or pieces with priorities of their own.
        personality_traits: HEXACO values from 0 to 1 under their canonical names, and anything
            else that describes the character.
        default_provider_id: The provider of the sessions' model.
        default_model_id: The sessions' model, ``provider:model`` or the bare name.
        fallback: Models that answer when the first cannot; ``None`` leaves the choice to the
            worker, an empty list means none.
        allowed_capabilities: ``None`` allows every capability.
        allowed_user_ids: Who may open a session; ``None`` allows everybody.
        min_subscription_tier: Kept for hosts that sell access; not enforced here.
        hard_limits: Rules that always stand last in the system message.
        emotion_config: Whether the persona feels, by a model of its own.
        learning: How the persona learns about its users; ``True`` for the defaults, ``None`` for
            what the worker says.
        emergent: What the persona may change about itself.
        initial_memory_imprints: What a new session's working memory holds.
        custom_fields: Anything; ``initialUserContext`` and ``initialTaskContext`` are what the mind
            of a new session is told.
    """

    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    version: str
    base_system_prompt: str | PromptTemplate | list[PromptPart]
    personality_traits: dict[str, Any] = Field(default_factory=dict)

    default_provider_id: str | None = None
    default_model_id: str | None = None
    fallback: list[FallbackHop] | None = None
    default_model_completion_options: CompletionOptions = Field(default_factory=CompletionOptions)
    model_target_preferences: list[dict[str, Any]] = Field(default_factory=list)
    cost_saving_strategy: Any = None

    tool_ids: list[str] = Field(default_factory=list)
    allowed_capabilities: list[str] | None = None
    allowed_user_ids: list[str] | None = None
    min_subscription_tier: str | None = None

    default_language: str | None = None
    allowed_input_modalities: list[str] | None = None
    allowed_output_modalities: list[str] | None = None
    voice_config: dict[str, Any] | None = None
    activation_keywords: list[str] = Field(default_factory=list)
    strengths: list[str] = Field(default_factory=list)

    mood_adaptation: MoodAdaptation | None = None
    sentiment_tracking: SentimentTracking | None = None
    meta_prompts: list[MetaPrompt] = Field(default_factory=list)
    memory_config: dict[str, Any] | None = None
    emotion_config: EmotionConfig | None = None
    conversation_context_config: ConversationContextConfig | None = None
    contextual_prompt_elements: list[ContextualElement] = Field(default_factory=list)
    hard_limits: list[str] = Field(default_factory=list)
    reasoning_trace_config: dict[str, Any] | None = None
    initial_memory_imprints: list[MemoryImprint] = Field(default_factory=list)
    learning: LearningSettings | Literal[False] | None = None
    emergent: EmergentConfig | None = None
    custom_fields: dict[str, Any] = Field(default_factory=dict)

    @field_validator("personality_traits", mode="before")
    @classmethod
    def _canonical_traits(cls, value: Any) -> Any:
        if value is None:
            return {}
        return normalize_traits(value) if isinstance(value, dict) else value

    @field_validator("learning", mode="before")
    @classmethod
    def _learning_by_default(cls, value: Any) -> Any:
        return LearningSettings() if value is True else value

    @field_validator("memory_config")
    @classmethod
    def _readable_memory(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        MemorySettings.from_config(value)
        return value

    @cached_property
    def memory(self) -> MemorySettings:
        """How the persona remembers beyond the conversation; off where it says nothing."""
        return MemorySettings.from_config(self.memory_config)

    @property
    def self_improvement(self) -> SelfImprovementSettings:
        """What the persona may change about itself; nothing where it says nothing."""
        emergent = self.emergent or EmergentConfig()
        return emergent.self_improvement

    @property
    def hexaco(self) -> dict[str, float]:
        """The HEXACO traits that are numbers, in the model's order."""
        traits = self.personality_traits
        return {name: float(traits[name]) for name in HEXACO if is_number(traits.get(name))}

    @property
    def max_messages(self) -> int:
        """Messages of the conversation that a prompt shows; 20 unless the persona says more."""
        own = self.conversation_context_config
        if own is not None and own.max_messages:
            return own.max_messages
        memory = self.memory_config or {}
        nested = memory.get("conversationContext", memory.get("conversation_context"))
        if isinstance(nested, dict):
            value = nested.get("maxMessages", nested.get("max_messages"))
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return DEFAULT_MAX_MESSAGES

    def to_json(self) -> str:
        """The persona as canonical JSON: sorted keys, no white space, the same bytes every time.

        Raises:
            ValueError: A field that takes anything holds a number that is not finite, or
                something that JSON cannot hold.
        """
        data = self.model_dump(mode="json", by_alias=True)
        given = {key: value for key, value in data.items() if value is not None}
        return json.dumps(
            given, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what :meth:`to_json` wrote; the result writes the same bytes again."""
        return cls.model_validate(json.loads(text))

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hex: the name of this exact persona."""
        return hashlib.sha256(self.to_json().encode("utf-8")).hexdigest()


def check_access(persona: Persona, user_id: str | None) -> None:
    """Refuse a user who may not speak with the persona.

    Raises:
        PermissionDeniedError: The persona names its users and this one is not among them.
    """
    allowed = persona.allowed_user_ids
    if allowed is not None and (user_id is None or user_id not in allowed):
        raise PermissionDeniedError(
            f"User {user_id!r} may not use persona {persona.id!r}; "
            "add the id to the persona's allowedUserIds or choose another persona.",
            details={"persona_id": persona.id, "user_id": user_id},
        )
