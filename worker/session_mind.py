"""What a session's client asks of the session's mind: its memory, held ready and long-term."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..personas.memory_health import MemoryHealth
from ..personas.memory_lifecycle import LifecycleActionResponse, MemoryLifecycleEvent
from ..workflows.turns import WorkingMemoryView
from .memory import MemoryClient, SessionMemory
from .session_reads import SessionReads


@dataclass(frozen=True, slots=True)
class HeldItem:
    """A memory that working memory holds ready.

    Attributes:
        id: The memory's id.
        content: What it says; ``None`` when it was erased.
        activation: In [0, 1].
        rehearsals: How often it was recalled while it was held.
    """

    id: str
    content: str | None
    activation: float
    rehearsals: int


@dataclass(frozen=True, slots=True)
class WorkingMemorySnapshot:
    """What a mind holds ready.

    Attributes:
        values: What it was given to start with and what it noted since, by key.
        slots: Memories, the most active first.
    """

    values: dict[str, Any] = field(default_factory=dict)
    slots: list[HeldItem] = field(default_factory=list)


class SessionMind(SessionReads):
    """Memory, beside what :class:`SessionReads` reads."""

    @property
    def memory(self) -> SessionMemory:
        """The session's long-term memory."""
        return SessionMemory(MemoryClient(self._workers), self)

    async def get_working_memory_snapshot(self) -> WorkingMemorySnapshot:
        """What the mind holds ready: its notes, and memories with their words."""
        view = await self._query("working_memory", None, WorkingMemoryView)
        if not view.slots:
            return WorkingMemorySnapshot(values=view.values)
        ids = [slot.trace for slot in view.slots]
        found = MemoryClient(self._workers).list(ids=ids, faded=True)
        words = {item["id"]: item["content"] async for item in found}
        slots = [
            HeldItem(slot.trace, words.get(slot.trace), slot.activation, slot.rehearsals)
            for slot in sorted(view.slots, key=lambda slot: -slot.activation)
        ]
        return WorkingMemorySnapshot(values=view.values, slots=slots)

    async def analyze_and_report_memory_health(self) -> MemoryHealth:
        """How the session's memory fares; the reasoning trace keeps that it was asked."""
        return await self._update("memory_health", None, MemoryHealth)

    async def on_memory_lifecycle_event(
        self, event: MemoryLifecycleEvent
    ) -> LifecycleActionResponse:
        """Ask the mind what may happen to a memory; nothing happens by it.

        The proposed action comes back, but for what the user asked to be remembered: where the
        persona's ``lifecycleConfig.negotiationEnabled`` is on and the event is negotiable, its
        deletion is answered ``PREVENT_ACTION``.
        """
        return await self._update("lifecycle_event", event, LifecycleActionResponse)
