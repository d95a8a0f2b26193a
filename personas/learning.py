"""Who a session learns about, and whether it may: keys of learners, modes, and the gate.

A learner is one agent with one user in one namespace. What an agent changes about itself belongs
to its learner, so that it comes back in the next session and reaches nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic import ValidationError as PydanticValidationError
from pydantic.alias_generators import to_camel

from .errors import ConfigurationError

Mode = Literal["on", "frozen", "off"]
Learner = Literal["bound", "none"]
Refusal = Literal["frozen", "off", "no_learner"]
NoLearner = Literal[
    "anonymous", "no_agent", "workflow_seat", "other_user", "other_namespace", "ended", "failed"
]
"""Why a turn has no learner; ``failed``: nothing was prepared in time."""


ANONYMOUS_IDS = frozenset({"", "anonymous_user", "anonymous", "system", "guest"})
PREPARE_TIMEOUT = 2.0
"""Seconds that a turn waits for its learner; then it goes without."""

REFUSAL_TEXT: Mapping[Refusal, str] = {
    "frozen": "learning is frozen here",
    "off": "learning is switched off here",
    "no_learner": "this turn belongs to no learner, so there is nobody to keep a change for",
}


class LearningModel(BaseModel):
    """Base of the values of this module: immutable, in ``camelCase`` or ``snake_case``."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_camel
    )


class LearningSettings(LearningModel):
    """How an agent learns.

    Attributes:
        mode: ``on``; ``frozen`` keeps what was learned and learns nothing new; ``off`` puts what
            was learned aside as well.
        agent_key: Names the agent that learners belong to; the persona's id without it.
        namespace: Namespace of every learner; the session's organization without it.
        anonymous_user_ids: User ids that stand for nobody, beside the usual ones.
        traits: Show learned traits in the prompt. Without it the prompt always shows the traits
            that the persona's author wrote.
        lessons: Asks for lessons; none are drawn yet, as the manifest says.
        skills: Asks for a library of learned skills; there is none yet, as the manifest says.
    """

    mode: Mode = "on"
    agent_key: str | None = None
    namespace: str | None = None
    anonymous_user_ids: tuple[str, ...] = ()
    traits: bool = False
    lessons: bool = False
    skills: bool = False

    @field_validator("agent_key")
    @classmethod
    def _not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("is blank; give the agent a name, or leave the key out")
        return value

    @classmethod
    def read(cls, value: Any) -> Self | None:
        """The settings that a host or a persona gives; ``None`` for no learning layer.

        Args:
            value: ``True`` for the defaults, ``False`` or ``None`` for no layer, or the fields.

        Raises:
            ConfigurationError: A field is unknown or has a value that it does not take.
        """
        if value is None or value is False:
            return None
        if value is True:
            return cls()
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ConfigurationError(
                f"learning is {value!r}; set true, false, or an object with the fields "
                f"{', '.join(cls.model_fields)}"
            )
        try:
            return cls.model_validate(dict(value))
        except PydanticValidationError as error:
            problem = error.errors(include_url=False, include_context=False)[0]
            field = ".".join(str(part) for part in problem["loc"])
            raise ConfigurationError(
                f"learning.{field} is {problem['input']!r}: {problem['msg']}",
                details={"field": f"learning.{field}"},
            ) from error


class LearnerKey(LearningModel):
    """One agent with one user in one namespace.

    Attributes:
        namespace: An organization, or ``""``.
        agent: The agent's key.
        user: The user's id.
    """

    namespace: str = ""
    agent: str
    user: str


class Switches(LearningModel):
    """What the process is told about every layer in it.

    Attributes:
        off_by: The variable that switches learning off, or ``None``.
        frozen_by: The variable that freezes it, or ``None``.
    """

    off_by: str | None = None
    frozen_by: str | None = None

    @property
    def frozen(self) -> bool:
        """Whether the self-modification tools refuse, whatever the layer says."""
        return self.frozen_by is not None


class ModeInForce(LearningModel):
    """The mode that a turn has, and what set it: ``config`` or the name of a variable."""

    mode: Mode
    set_by: str = "config"


class Binding(LearningModel):
    """Whom a session learns about; carried from turn to turn.

    Attributes:
        key: The learner, or ``None``.
        reason: Why there is none.
        user: Who the session was opened for; its learner ends when somebody else speaks.
        namespace: The namespace that it was opened in.
    """

    key: LearnerKey | None = None
    reason: NoLearner | None = None
    user: str = ""
    namespace: str = ""


class TurnLearner(LearningModel):
    """Whom one turn learns about, and what the session is bound to after it."""

    binding: Binding
    key: LearnerKey | None = None
    reason: NoLearner | None = None


class PromptPiece(LearningModel):
    """A piece of the system message that learning contributes.

    Attributes:
        name: ``personality``, ``skills`` or ``forged_tools``.
        priority: Its place among the sections.
    """

    name: str
    priority: float
    text: str


class TurnLearning(LearningModel):
    """What learning prepared for a turn; the same for each of its steps and tool calls.

    Attributes:
        mode: ``None`` where there is no layer.
        learner: Whether the turn has one.
        reason: Why it has none.
        key: The learner.
        binding: What the session is bound to from now on.
        pieces: Pieces of the system message; the personality is among them where it shows.
        learned: Sum of the learned changes of each trait, with today's strength.
        params: Settings that the agent gave itself, by name.
        warnings: What the trace shall say.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, alias_generator=None
    )

    mode: Mode | None = None
    learner: Learner = "none"
    reason: NoLearner | None = None
    key: LearnerKey | None = None
    binding: Binding | None = None
    pieces: tuple[PromptPiece, ...] = ()
    learned: dict[str, float] = Field(default_factory=dict)
    params: dict[str, Any] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def told(self) -> TurnLearning:
        """The part that a tool call is told: its learner and mode, nothing of the prompt."""
        return TurnLearning(mode=self.mode, learner=self.learner, reason=self.reason, key=self.key)


def mode_in_force(settings: LearningSettings, switches: Switches) -> ModeInForce:
    """The mode of every turn of a layer; off counts more than frozen."""
    if switches.off_by is not None:
        return ModeInForce(mode="off", set_by=switches.off_by)
    if switches.frozen_by is not None and settings.mode == "on":
        return ModeInForce(mode="frozen", set_by=switches.frozen_by)
    return ModeInForce(mode=settings.mode)


def refusal(frozen: bool, mode: Mode | None, learner: Learner) -> Refusal | None:
    """Why a change of itself is refused, or ``None``: the freeze first, then mode, then learner.

    Args:
        frozen: The process is frozen; this holds without a layer too.
        mode: The turn's mode; ``None`` without a layer, where nothing else refuses.
        learner: Whether the turn has a learner.
    """
    if frozen or mode == "frozen":
        return "frozen"
    if mode == "off":
        return "off"
    if mode is not None and learner == "none":
        return "no_learner"
    return None


def is_anonymous(user: str, settings: LearningSettings) -> bool:
    """Whether a user id stands for nobody in particular."""
    plain = user.strip()
    return plain in ANONYMOUS_IDS or plain in settings.anonymous_user_ids


def bind(
    settings: LearningSettings,
    *,
    persona_id: str | None,
    user: str,
    namespace: str = "",
    seat: bool = False,
) -> Binding:
    """Bind a session to its learner.

    Args:
        settings: The layer's.
        persona_id: Id of a registered persona; ``None`` for an agent without a name.
        user: Who the session is opened for.
        namespace: The session's organization; the settings' own namespace counts more.
        seat: A workflow runs the session, as one of its seats.
    """
    place = settings.namespace if settings.namespace is not None else namespace
    agent = settings.agent_key or (persona_id or "").strip()
    reason: NoLearner | None = None
    if seat:
        reason = "workflow_seat"
    elif is_anonymous(user, settings):
        reason = "anonymous"
    elif not agent:
        reason = "no_agent"
    key = None if reason else LearnerKey(namespace=place, agent=agent, user=user)
    return Binding(key=key, reason=reason, user=user, namespace=place)


def bind_key(settings: LearningSettings, key: LearnerKey | None, reason: NoLearner) -> Binding:
    """Bind a session to a key that the host made; one without an agent or a user binds nobody.

    Args:
        settings: The layer's; its placeholders are no users.
        key: The learner, or ``None``.
        reason: Why the host passes none.
    """
    if key is None:
        return Binding(reason=reason)
    if is_anonymous(key.user, settings):
        return Binding(reason="anonymous", user=key.user, namespace=key.namespace)
    if not key.agent.strip():
        return Binding(reason="no_agent", user=key.user, namespace=key.namespace)
    return Binding(key=key, user=key.user, namespace=key.namespace)


def learner_of_turn(
    binding: Binding, *, user: str, namespace: str, seat: bool = False
) -> TurnLearner:
    """Whom a turn learns about.

    A turn of another user, or in another namespace, has no learner and ends the session's. A
    workflow's turn has none either, and leaves the session its own when the user is the same.

    Args:
        binding: What the session is bound to.
        user: Who speaks.
        namespace: Where; the namespace of the settings where they have one.
        seat: A workflow speaks.
    """
    if binding.key is None:
        return TurnLearner(binding=binding, reason=binding.reason)
    reason: NoLearner | None = None
    if user != binding.user:
        reason = "other_user"
    elif namespace != binding.namespace:
        reason = "other_namespace"
    if reason is not None:
        ended = binding.model_copy(update={"key": None, "reason": "ended"})
        return TurnLearner(binding=ended, reason=reason)
    if seat:
        return TurnLearner(binding=binding, reason="workflow_seat")
    return TurnLearner(binding=binding, key=binding.key)
