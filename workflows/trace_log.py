"""Writing the reasoning trace: the tail in the state, the whole in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

from .decode import encoded_size
from .state import SessionState
from .trace import TraceEntry, TraceTail, TraceType

MAX_DETAILS_BYTES = 2048
MAX_PENDING_BYTES = 32 * 1024
"""Bytes of entries that wait for the store; beyond it entries are cut short."""


def bounded(value: Any, limit: int = 400) -> Any:
    """``value`` with long strings cut to ``limit`` characters."""
    if isinstance(value, str):
        return value if len(value) <= limit else value[: limit - 1] + "…"
    if isinstance(value, dict):
        return {str(key): bounded(item, limit) for key, item in list(value.items())[:40]}
    if isinstance(value, list | tuple):
        return [bounded(item, limit) for item in list(value)[:40]]
    return value


class TraceLog:
    """Adds entries to a session's trace.

    Args:
        state: The session's state; its ``trace`` holds the entries that are not yet in the
            store and the newest of those that are.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def add(
        self,
        type: TraceType,
        message: str,
        turn: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """Add an entry; its message is cut at the persona's limit, its details at 2 KB."""
        state = self._state
        limit = state.rules.trace_max_message
        waiting = sum(len(e.message) + encoded_size(e.details) for e in self.pending())
        if waiting > MAX_PENDING_BYTES:
            # The store takes them with the next step; until then the state has to stay small.
            limit, details = min(limit, 100), {"cut": True}
        safe: dict[str, Any] = bounded(details or {})
        if encoded_size(safe) > MAX_DETAILS_BYTES:
            safe = bounded(safe, 60)
            if encoded_size(safe) > MAX_DETAILS_BYTES:
                safe = {"cut": True, "keys": list(safe)[:20]}
        state.trace_seq += 1
        state.trace.append(
            TraceEntry(
                seq=state.trace_seq,
                at=workflow.now(),
                type=type,
                message=message if len(message) <= limit else message[: limit - 1] + "…",
                turn=turn,
                details=safe,
            )
        )

    def pending(self) -> list[TraceEntry]:
        """Entries that the store does not hold yet."""
        return [entry for entry in self._state.trace if entry.seq > self._state.trace_flushed]

    def flushed(self, entries: Sequence[TraceEntry]) -> None:
        """The store holds these entries, which :meth:`pending` gave."""
        if entries:
            self._state.trace_flushed = max(self._state.trace_flushed, entries[-1].seq)

    def tail(self) -> TraceTail:
        """The newest entries."""
        entries = list(self._state.trace)
        return TraceTail(
            entries=entries,
            first_seq=entries[0].seq if entries else 0,
            last_seq=self._state.trace_seq,
        )
