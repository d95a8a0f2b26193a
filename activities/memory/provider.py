"""The seams to a memory of the host's own: context, an observer of turns, an order of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a turn asks a memory provider for.

    Attributes:
        text: What the user says.
        token_budget: Tokens that the answer should not exceed.
    """

    session_id: str
    user_id: str
    persona_id: str
    turn: str
    text: str
    token_budget: int


@dataclass(frozen=True, slots=True)
class Observation:
    """A turn that ended without an error.

    Attributes:
        key: The same whenever this turn is told again, which a crash can make happen.
        said: What the user said.
        answered: What the assistant answered.
        ended_at: Seconds since the epoch.
    """

    key: str
    session_id: str
    user_id: str
    persona_id: str
    turn: str
    said: str
    answered: str
    ended_at: float


class MemoryProvider(Protocol):
    """A memory that the host brings along, in place of the project's own."""

    async def get_context(self, request: ContextRequest) -> str | None:
        """What to show the model ahead of the user's message; ``None`` for nothing.

        Called once a turn; what it answers is kept with the turn and shown in each of its steps.
        An error, or an answer that is late, leaves the turn without it and a warning in the trace.
        """
        ...

    async def observe(self, observation: Observation) -> None:
        """Take a turn that is done. Called again when it raises, at most five times."""
        ...


class Reranker(Protocol):
    """A model that says how well each text answers a query."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One number in [0, 1] for each text."""
        ...
