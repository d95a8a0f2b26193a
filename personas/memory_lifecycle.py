"""What a mind says when somebody wants to delete or change what it remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from .messages import Told, Wire

PREVENT = "PREVENT_ACTION"
DELETE = "DELETE"
USER_EXPLICIT_MEMORY = "user_explicit_memory"
_DEFENDED = frozenset({"DELETION_PROPOSED", "EVICTION_PROPOSED"})


class MemoryLifecycleEvent(Wire):
    """Something is about to happen, or has happened, to a memory.

    Attributes:
        event_id: Comes back in the answer.
        type: Such as ``DELETION_PROPOSED`` or ``EVICTION_PROPOSED``.
        item_id: The memory.
        item_summary: What it says, in a few words.
        proposed_action: Such as ``DELETE`` or ``ARCHIVE``.
        category: What kind of memory it is, such as ``user_explicit_memory``: what the user asked
            to be remembered.
        negotiable: Whether the answer can change anything.
        reason: Why it is proposed.
    """

    event_id: str = Field(max_length=200)
    type: str = Field(max_length=100)
    item_id: str = Field(max_length=500)
    item_summary: str = Field(default="", max_length=2000)
    proposed_action: str = Field(max_length=100)
    category: str | None = Field(default=None, max_length=100)
    negotiable: bool = False
    reason: str = Field(default="", max_length=2000)
    metadata: dict[str, Any] = Field(default_factory=dict)


class LifecycleActionResponse(Told):
    """The mind's answer to an event.

    Attributes:
        action_taken: The proposed action, or ``PREVENT_ACTION``.
        negotiated: Whether the mind considered it, rather than passing it on.
    """

    event_id: str
    gmi_id: str | None = None
    action_taken: str
    negotiated: bool = False
    rationale: str = ""


def negotiates(memory_config: Mapping[str, Any] | None) -> bool:
    """Whether a persona wants a say: ``lifecycleConfig.negotiationEnabled`` of its memory."""
    config = memory_config or {}
    lifecycle = config.get("lifecycleConfig", config.get("lifecycle_config"))
    if not isinstance(lifecycle, Mapping):
        return False
    enabled = lifecycle.get("negotiationEnabled", lifecycle.get("negotiation_enabled", False))
    return enabled is True


def respond(
    event: MemoryLifecycleEvent, *, negotiation: bool, gmi_id: str | None = None
) -> LifecycleActionResponse:
    """The answer to an event: the proposed action, but for what the user asked to be remembered.

    Args:
        event: What is proposed.
        negotiation: Whether the persona wants a say.
        gmi_id: Who answers.
    """
    if not (negotiation and event.negotiable):
        return LifecycleActionResponse(
            event_id=event.event_id, gmi_id=gmi_id, action_taken=event.proposed_action
        )
    explicit = (event.category or "").lower() == USER_EXPLICIT_MEMORY
    deletes = event.type in _DEFENDED and event.proposed_action == DELETE
    if explicit and deletes:
        return LifecycleActionResponse(
            event_id=event.event_id,
            gmi_id=gmi_id,
            action_taken=PREVENT,
            negotiated=True,
            rationale="The user asked for this to be remembered.",
        )
    return LifecycleActionResponse(
        event_id=event.event_id,
        gmi_id=gmi_id,
        action_taken=event.proposed_action,
        negotiated=True,
        rationale="Nothing speaks against it.",
    )
