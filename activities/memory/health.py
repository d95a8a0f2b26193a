"""How the long-term memory fares: its store, its embedding model, its consolidation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from ...personas.errors import GMIError, StoreError
from ...personas.memory import MemorySettings
from ...personas.memory_health import (
    HealthIssue,
    MemoryHealth,
    PartHealth,
    Severity,
    overall_status,
)
from ..embedders.embedder import Embedder
from .ago import ago
from .store import Find, MemoryStore
from .view import scope_name

EMBEDDER_SECONDS = 5.0
MANY_WAITING = 100
LATE_AFTER = 3.0
"""Intervals without a consolidation after which it counts as late."""


class HasEmbedder(Protocol):
    """What makes vectors for a persona."""

    @property
    def embedder(self) -> Embedder | None:
        """The model, or ``None``."""
        ...


async def health(
    store: MemoryStore,
    engine: Callable[[MemorySettings], HasEmbedder],
    settings: MemorySettings,
    persona_id: str | None,
    wanted: Find,
    now: float,
) -> MemoryHealth:
    """Look whether memories can be kept, found and tidied.

    Args:
        store: The memories.
        engine: Gives the embedding model for the settings.
        settings: The persona's.
        persona_id: The persona whose consolidation is looked at; without one it is not.
        wanted: Which memories are counted.
        now: Seconds since the epoch.
    """
    issues: list[HealthIssue] = []
    found: dict[str, Any] = {}
    try:
        counts = await store.count(replace(wanted, faded=True))
        found |= {name: counts[name] for name in ("traces", "active", "vectors", "links")}
        by_model = await store.vectors_by_model(wanted)
    except StoreError as error:
        counts, by_model = {"active": 0}, {}
        issues.append(
            HealthIssue(
                severity="critical",
                component="store",
                description=f"The store does not answer: {error.message}",
            )
        )
    found |= await _embedding(engine, settings, counts, by_model, issues)
    lifecycle = await _consolidation(store, settings, persona_id, now, issues)
    serious = {issue.component for issue in issues if issue.severity != "info"}
    return MemoryHealth(
        overall_status=overall_status(issues),
        rag_system_stats=PartHealth(is_healthy=not serious & {"store", "embedding"}, details=found),
        lifecycle_manager_stats=PartHealth(
            is_healthy="consolidation" not in serious, details=lifecycle
        ),
        issues=issues,
    )


async def _embedding(
    engine: Callable[[MemorySettings], HasEmbedder],
    settings: MemorySettings,
    counts: dict[str, int],
    by_model: dict[str, int],
    issues: list[HealthIssue],
) -> dict[str, Any]:
    try:
        embedder = engine(settings).embedder
    except GMIError as error:
        issues.append(_issue("warning", f"The embedding model cannot be used: {error.message}"))
        return {"embedding": settings.embedding}
    if embedder is None:
        issues.append(
            _issue("info", "There is no embedding model; memories are found by words alone.")
        )
        return {"embedding": None}
    waiting = max(0, counts["active"] - by_model.get(embedder.model, 0))
    found: dict[str, Any] = {"embedding": embedder.model, "waiting_for_vectors": waiting}
    began = time.monotonic()
    try:
        async with asyncio.timeout(EMBEDDER_SECONDS):
            await embedder.embed(["Is anybody there?"], "query")
        found["embedding_seconds"] = round(time.monotonic() - began, 3)
    except (GMIError, TimeoutError) as error:
        why = str(error) or f"no answer within {EMBEDDER_SECONDS:.0f} s"
        issues.append(
            _issue("warning", f"The embedding model {embedder.model} does not answer: {why}")
        )
    if waiting > MANY_WAITING:
        issues.append(
            _issue(
                "warning",
                f"{waiting} memories have no vector of {embedder.model}; a consolidation makes "
                "them.",
            )
        )
    return found


async def _consolidation(
    store: MemoryStore,
    settings: MemorySettings,
    persona_id: str | None,
    now: float,
    issues: list[HealthIssue],
) -> dict[str, Any]:
    if persona_id is None:
        return {}
    rule = settings.consolidation
    found: dict[str, Any] = {"enabled": rule.enabled, "interval": rule.interval}
    try:
        last: dict[str, float | None] = {}
        for scope in (await store.scopes_of(persona_id))[:100]:
            kept = await store.consolidated(persona_id, scope)
            last[scope_name(scope)] = None if kept is None else float(kept["at"])
    except StoreError:
        return found
    times = [at for at in last.values() if at is not None]
    found |= {"scopes": len(last), "never": len(last) - len(times)}
    if times:
        found["last"] = max(times)
        if rule.enabled and now - max(times) > LATE_AFTER * rule.interval:
            issues.append(
                HealthIssue(
                    severity="warning",
                    component="consolidation",
                    description=f"The persona's memories were last tidied {ago(now - max(times))}; "
                    "look whether its schedule runs.",
                )
            )
    elif last and rule.enabled:
        issues.append(
            HealthIssue(
                severity="info",
                component="consolidation",
                description="The persona's memories were never tidied yet.",
            )
        )
    return found


def _issue(severity: Severity, description: str) -> HealthIssue:
    return HealthIssue(severity=severity, component="embedding", description=description)
