"""What is wrong with a persona, said with stable codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .checks import camel_case_data, field_checks, prompt_text, strings, type_errors
from .issues import Issue, SetReport, Severity, ValidationReport
from .schema import Persona

RESERVED_IDS = frozenset({"system_admin", "internal_default"})
MAX_PROMPT_CHARS = 2_000

_REQUIRED = ("id", "name", "description", "version", "baseSystemPrompt")
_SEMVER = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")


def validate_persona(
    persona: Persona | Mapping[str, Any],
    *,
    known_tools: Collection[str] | None = None,
    reserved_ids: Collection[str] = RESERVED_IDS,
    max_prompt_chars: int = MAX_PROMPT_CHARS,
    max_prompt_tokens: int | None = None,
    token_estimator: Callable[[str], float] | None = None,
) -> ValidationReport:
    """Look at a persona, or at what should become one, and report what is wrong.

    Args:
        persona: A persona, or the raw data of one; the data may lack required fields.
        known_tools: Tool names that exist; ``None`` checks no names.
        reserved_ids: Ids that no persona may have.
        max_prompt_chars: Length of the base prompt above which a warning is given.
        max_prompt_tokens: The same in tokens; needs ``token_estimator``.
        token_estimator: Tokens of a text; one that raises is reported as a warning.
    """
    raw = camel_case_data(persona)
    persona_id = raw.get("id") if isinstance(raw.get("id"), str) and raw.get("id") else None
    issues: list[Issue] = []

    def add(severity: Severity, code: str, name: str, message: str) -> None:
        issues.append(Issue(severity, code, message, name, persona_id))

    for name in _REQUIRED:
        if not raw.get(name):
            add("error", "missing_required_field", name, f"{name} is missing or empty.")
    if persona_id in reserved_ids:
        add("error", "reserved_persona_id", "id", f"The id {persona_id!r} is reserved.")
    version = raw.get("version")
    if isinstance(version, str) and version and not _SEMVER.fullmatch(version):
        add(
            "error",
            "invalid_semver",
            "version",
            f"version {version!r} is not of the form x.y.z or x.y.z-pre.",
        )
    prompt = prompt_text(raw.get("baseSystemPrompt"))
    if len(prompt) > max_prompt_chars:
        add(
            "warning",
            "system_prompt_too_long",
            "baseSystemPrompt",
            f"The base prompt has {len(prompt)} characters, more than {max_prompt_chars}.",
        )
    if max_prompt_tokens is not None and token_estimator is not None:
        try:
            tokens = token_estimator(prompt)
        except Exception as error:  # an estimator is the caller's code and may fail in any way
            add(
                "warning",
                "token_estimation_failed",
                "baseSystemPrompt",
                f"The base prompt's tokens could not be estimated: {error}",
            )
        else:
            if tokens > max_prompt_tokens:
                add(
                    "warning",
                    "system_prompt_too_many_tokens",
                    "baseSystemPrompt",
                    f"The base prompt has {tokens} tokens, more than {max_prompt_tokens}.",
                )
    for severity, code, name, message in field_checks(raw, known_tools):
        add(severity, code, name, message)
    for name, message in type_errors(raw):
        if not any(issue.severity == "error" and issue.field == name for issue in issues):
            add("error", "invalid_field_type", name, message)
    return ValidationReport(persona_id, tuple(issues))


def validate_personas(
    personas: Sequence[Persona | Mapping[str, Any]],
    *,
    known_tools: Collection[str] | None = None,
    reserved_ids: Collection[str] = RESERVED_IDS,
    max_prompt_chars: int = MAX_PROMPT_CHARS,
    max_prompt_tokens: int | None = None,
    token_estimator: Callable[[str], float] | None = None,
) -> SetReport:
    """Look at several personas at once; also finds activation keywords that they share.

    Keywords are compared exactly, capital letters included. The arguments are those of
    :func:`validate_persona`.
    """
    reports: list[ValidationReport] = []
    owners: dict[str, list[int]] = {}
    for index, persona in enumerate(personas):
        reports.append(
            validate_persona(
                persona,
                known_tools=known_tools,
                reserved_ids=reserved_ids,
                max_prompt_chars=max_prompt_chars,
                max_prompt_tokens=max_prompt_tokens,
                token_estimator=token_estimator,
            )
        )
        for keyword in dict.fromkeys(strings(camel_case_data(persona).get("activationKeywords"))):
            owners.setdefault(keyword, []).append(index)
    shared = {keyword: found for keyword, found in owners.items() if len(found) > 1}
    conflicts: dict[str, list[str]] = {}
    for keyword, found in shared.items():
        conflicts[keyword] = [reports[index].persona_id or "" for index in found]
        for index in found:
            report = reports[index]
            others = [reports[other].persona_id for other in found if other != index]
            issue = Issue(
                "warning",
                "activation_keyword_conflict",
                f"The keyword {keyword!r} also activates {others}.",
                "activationKeywords",
                report.persona_id,
            )
            reports[index] = ValidationReport(report.persona_id, (*report.issues, issue))
    return SetReport(tuple(reports), conflicts)
