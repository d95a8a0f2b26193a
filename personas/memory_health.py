"""How a memory fares: what a health report says, and what that amounts to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from .messages import Told

Severity = Literal["info", "warning", "critical"]
Component = Literal["working_memory", "store", "embedding", "consolidation"]
OverallStatus = Literal["OPERATIONAL", "LIMITED", "DEGRADED", "ERROR"]


class HealthIssue(Told):
    """Something that a report found.

    Attributes:
        description: What it is, and what to do about it.
    """

    severity: Severity
    component: Component
    description: str
    details: dict[str, Any] = Field(default_factory=dict)


class PartHealth(Told):
    """How a part of the memory fares."""

    is_healthy: bool
    details: dict[str, Any] = Field(default_factory=dict)


class MemoryHealth(Told):
    """A health report.

    Attributes:
        overall_status: See :func:`overall_status`.
        working_memory_stats: ``item_count``, and how many memories are held ready.
        rag_system_stats: The store and the embedding model: whether memories can be found.
        lifecycle_manager_stats: The consolidation: whether memories are tidied.
    """

    overall_status: OverallStatus
    working_memory_stats: dict[str, int] = Field(default_factory=dict)
    rag_system_stats: PartHealth = PartHealth(is_healthy=True)
    lifecycle_manager_stats: PartHealth = PartHealth(is_healthy=True)
    issues: list[HealthIssue] = Field(default_factory=list)


def overall_status(issues: Sequence[HealthIssue]) -> OverallStatus:
    """What the issues amount to; those that are only information count for nothing.

    ``ERROR``: something is critical, such as a store that does not answer. ``DEGRADED``: memories
    are found less well. ``LIMITED``: they are found, but not tidied. ``OPERATIONAL``: all is well.
    """
    serious = [issue for issue in issues if issue.severity != "info"]
    if any(issue.severity == "critical" for issue in serious):
        return "ERROR"
    if any(issue.component != "consolidation" for issue in serious):
        return "DEGRADED"
    return "LIMITED" if serious else "OPERATIONAL"
