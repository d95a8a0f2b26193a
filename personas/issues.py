"""What validation says about a persona."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "suggestion"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong.

    Attributes:
        severity: An error makes the persona invalid.
        code: Stable, for programs.
        message: What is wrong, for people.
        field: The persona's field, in ``camelCase``; nested ones with dots.
        persona_id: The persona's id where it has one.
    """

    severity: Severity
    code: str
    message: str
    field: str
    persona_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The issue as JSON-able data."""
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "field": self.field,
            "persona_id": self.persona_id,
        }


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Everything found in one persona."""

    persona_id: str | None
    issues: tuple[Issue, ...] = ()

    @property
    def summary(self) -> dict[Severity, int]:
        """How many issues there are of each severity."""
        counts = Counter(issue.severity for issue in self.issues)
        return {name: counts[name] for name in ("error", "warning", "suggestion")}

    @property
    def valid(self) -> bool:
        """Whether there are no errors."""
        return all(issue.severity != "error" for issue in self.issues)


@dataclass(frozen=True, slots=True)
class SetReport:
    """Everything found in a set of personas.

    Attributes:
        reports: One per persona, in the order given.
        conflicts: Activation keywords that several personas share, with those personas' ids.
    """

    reports: tuple[ValidationReport, ...]
    conflicts: dict[str, list[str]] = field(default_factory=dict)

    @property
    def totals(self) -> dict[Severity, int]:
        """How many issues there are of each severity, over all personas."""
        sums: Counter[Severity] = Counter()
        for report in self.reports:
            sums.update(report.summary)
        return {name: sums[name] for name in ("error", "warning", "suggestion")}
