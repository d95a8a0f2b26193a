"""Whether what was found in a persona keeps it from being used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from .issues import Issue, Severity, ValidationReport


@dataclass(frozen=True, slots=True)
class StrictConfig:
    """How strictly a worker takes the validation of personas.

    Attributes:
        enabled: Without it every persona counts as valid.
        shadow_mode: Nothing is blocked; for trying the settings out.
        allowlist_persona_ids: Personas that are never blocked.
        block_on_codes: If any are named, these codes block and nothing else does.
        treat_warnings_as_errors: Codes of warnings that block too.
        mode: Whether a blocked persona stops the loading or only its own activation.
    """

    enabled: bool = False
    shadow_mode: bool = False
    allowlist_persona_ids: Collection[str] = ()
    block_on_codes: Collection[str] = ()
    treat_warnings_as_errors: Collection[str] = ()
    mode: Literal["activation_block", "load_block"] = "activation_block"


@dataclass(frozen=True, slots=True)
class StrictResult:
    """What strict validation makes of a persona.

    Attributes:
        status: ``invalid`` is blocked; ``degraded`` has warnings and works.
        blocked_reasons: The codes that block it, in the order they were found.
    """

    status: Literal["valid", "degraded", "invalid"]
    blocked_reasons: tuple[str, ...] = ()


def classify_strict(report: ValidationReport, config: StrictConfig) -> StrictResult:
    """Decide what a report means under the given settings."""
    if (
        not config.enabled
        or config.shadow_mode
        or report.persona_id in config.allowlist_persona_ids
    ):
        return StrictResult("valid")

    def blocks(issue: Issue) -> bool:
        if config.block_on_codes:
            return issue.code in config.block_on_codes
        return issue.severity == "error" or (
            issue.severity == "warning" and issue.code in config.treat_warnings_as_errors
        )

    reasons = tuple(dict.fromkeys(issue.code for issue in report.issues if blocks(issue)))
    if reasons:
        return StrictResult("invalid", reasons)
    minor: Severity = "suggestion"
    if any(issue.severity != minor for issue in report.issues):
        return StrictResult("degraded")
    return StrictResult("valid")
