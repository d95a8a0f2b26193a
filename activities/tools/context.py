"""What a tool may know of the call that it serves."""

from __future__ import annotations

from dataclasses import dataclass

from ...personas.learning import TurnLearning
from ...workflows.steps import MindFacts


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a call stands; a tool that has a parameter of this type receives it.

    The model neither sees nor sets it.

    Attributes:
        session_id: The session that asks.
        user_id: The user whom the session belongs to.
        turn: The turn's id.
        step: The model step whose call this is, from 0.
        call_id: The model's id of the call.
        key: Idempotency key: the same for every attempt of this call, and of no other call.
        attempt: This attempt, from 1.
        learning: The turn's learner and mode; ``None`` where there is no learning layer.
        mind: What a tool is told that changes the mind; ``None`` for every other tool.
    """

    session_id: str
    user_id: str
    turn: str
    step: int
    call_id: str
    key: str
    attempt: int
    learning: TurnLearning | None = None
    mind: MindFacts | None = None
