"""Where personas come from: a directory of JSON files, a list, or a loader of the host's own."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from .builtin import BUILT_IN_PERSONAS, DEFAULT_PERSONA_ID
from .errors import (
    ConfigurationError,
    PermissionDeniedError,
    PersonaInvalidError,
    PersonaNotFoundError,
)
from .issues import Issue, ValidationReport
from .remarks import remarks
from .schema import Persona
from .strict import StrictConfig, classify_strict
from .validation import RESERVED_IDS, validate_persona, validate_personas


@runtime_checkable
class PersonaLoader(Protocol):
    """A source of personas that a host brings itself."""

    async def load(self) -> Sequence[Persona | Mapping[str, Any]]:
        """Return every persona of the source."""
        ...


@dataclass(frozen=True, slots=True)
class _Candidate:
    source: str
    raw: Persona | Mapping[str, Any] | None
    problem: Issue | None = None


class PersonaCatalog:
    """The personas that a worker serves.

    Args:
        personas: The personas, each id once.
        default_id: The persona of a session that names none.
        reports: What validation found, by persona id.
        blocked: Ids that may not be activated, with the codes that block them.
        remarks: Likely mistakes that stop nothing, by persona id.

    Attributes:
        default_id: The persona of a session that names none.
        reports: What validation found, by persona id.
        remarks: Likely mistakes that stop nothing, by the id of each persona that has some.
    """

    def __init__(
        self,
        personas: Sequence[Persona],
        *,
        default_id: str = DEFAULT_PERSONA_ID,
        reports: Mapping[str, ValidationReport] | None = None,
        blocked: Mapping[str, Sequence[str]] | None = None,
        remarks: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._personas = {persona.id: persona for persona in personas}
        self._blocked = dict(blocked or {})
        self.default_id = default_id
        self.reports = dict(reports or {})
        self.remarks = {name: list(found) for name, found in (remarks or {}).items() if found}

    @property
    def ids(self) -> list[str]:
        """The ids that the catalog knows, sorted."""
        return sorted(self._personas)

    def __contains__(self, persona_id: object) -> bool:
        return persona_id in self._personas

    def __len__(self) -> int:
        return len(self._personas)

    def get(self, persona_id: str | None = None) -> Persona:
        """The persona of this id; the default one when no id is given.

        Raises:
            PersonaNotFoundError: No source provides it; ``details["known"]`` lists what there is.
            PermissionDeniedError: Strict validation blocks it.
        """
        wanted = self.default_id if persona_id is None else persona_id
        persona = self._personas.get(wanted)
        if persona is None:
            what = f"No persona is called {wanted!r}"
            if persona_id is None:
                what = f"The default persona {wanted!r} is not among the loaded ones"
            known = self.ids
            raise PersonaNotFoundError(
                f"{what}. Known personas: {', '.join(known) or 'none'}.",
                details={"persona_id": wanted, "known": known},
            )
        if wanted in self._blocked:
            reasons = list(self._blocked[wanted])
            raise PermissionDeniedError(
                f"Strict validation blocks persona {wanted!r}: {', '.join(reasons)}. "
                "Repair the persona or put it on the allow-list.",
                details={"persona_id": wanted, "reasons": reasons},
            )
        return persona


async def load_catalog(
    *,
    directory: Path | str | None = None,
    personas: Sequence[Persona | Mapping[str, Any]] | None = None,
    loader: PersonaLoader | None = None,
    default_id: str = DEFAULT_PERSONA_ID,
    known_tools: Collection[str] | None = None,
    reserved_ids: Collection[str] = RESERVED_IDS,
    strict: StrictConfig | None = None,
) -> PersonaCatalog:
    """Load the personas of one source and check them; the built-in ones when no source is given.

    Args:
        directory: A directory whose ``*.json`` files hold one persona each.
        personas: Personas, or the raw data of some.
        loader: A source of the host's own.
        default_id: The persona of a session that names none.
        known_tools: Tool names that exist; ``None`` checks no names.
        reserved_ids: Ids that no persona may have.
        strict: How strictly warnings are taken.

    Raises:
        ConfigurationError: Several sources are given, or the directory does not exist.
        PersonaInvalidError: A persona has errors; the message names its file or place, and
            ``details["issues"]`` lists everything found in all of them.
    """
    given = {
        "directory": directory is not None,
        "personas": personas is not None,
        "loader": loader is not None,
    }
    if sum(given.values()) > 1:
        names = [name for name, is_given in given.items() if is_given]
        raise ConfigurationError(
            f"Personas come from one source, but {' and '.join(names)} are given; keep one.",
            details={"given": names},
        )
    if directory is not None:
        candidates = _read_directory(Path(directory))
    elif loader is not None:
        candidates = _place(await loader.load(), "persona of the loader")
    else:
        listed = BUILT_IN_PERSONAS if personas is None else personas
        candidates = _place(listed, "persona of the list")
    return _build(candidates, default_id, known_tools, reserved_ids, strict or StrictConfig())


def load_persona(
    raw: Persona | Mapping[str, Any],
    *,
    source: str = "persona",
    known_tools: Collection[str] | None = None,
) -> Persona:
    """Check one persona's data and build it.

    Raises:
        PersonaInvalidError: It has errors; the message names ``source`` and every error.
    """
    report = validate_persona(raw, known_tools=known_tools)
    if not report.valid:
        raise _invalid([(source, issue) for issue in report.issues if issue.severity == "error"])
    return raw if isinstance(raw, Persona) else Persona.model_validate(dict(raw))


def _place(listed: Sequence[Persona | Mapping[str, Any]], label: str) -> list[_Candidate]:
    return [_Candidate(f"{label} at index {index}", raw) for index, raw in enumerate(listed)]


def _read_directory(directory: Path) -> list[_Candidate]:
    if not directory.is_dir():
        raise ConfigurationError(
            f"The personas directory {str(directory)!r} does not exist; "
            "create it, or leave the setting out to use the built-in personas.",
            details={"directory": str(directory)},
        )
    return [_read_file(path) for path in sorted(directory.glob("*.json"))]


def _read_file(path: Path) -> _Candidate:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return _Candidate(
            str(path), None, Issue("error", "invalid_json", f"No JSON could be read: {error}", "")
        )
    if not isinstance(raw, dict):
        message = f"The file holds a {type(raw).__name__}, not one JSON object."
        return _Candidate(str(path), None, Issue("error", "invalid_json", message, ""))
    return _Candidate(str(path), raw)


def _build(
    candidates: Sequence[_Candidate],
    default_id: str,
    known_tools: Collection[str] | None,
    reserved_ids: Collection[str],
    strict: StrictConfig,
) -> PersonaCatalog:
    problems = [(item.source, item.problem) for item in candidates if item.problem is not None]
    readable = [(item.source, item.raw) for item in candidates if item.raw is not None]
    checked = validate_personas(
        [raw for _, raw in readable], known_tools=known_tools, reserved_ids=reserved_ids
    )
    first_source: dict[str, str] = {}
    blocked: dict[str, tuple[str, ...]] = {}
    for (source, _), report in zip(readable, checked.reports, strict=True):
        result = classify_strict(report, strict)
        stops = result.blocked_reasons if strict.mode == "load_block" else ()
        problems += [
            (source, issue)
            for issue in report.issues
            if issue.severity == "error" or issue.code in stops
        ]
        persona_id = report.persona_id
        if persona_id is None:
            continue
        if persona_id in first_source:
            message = f"The id {persona_id!r} is also that of {first_source[persona_id]}."
            issue = Issue("error", "duplicate_persona_id", message, "id", persona_id)
            problems.append((source, issue))
        first_source.setdefault(persona_id, source)
        if result.blocked_reasons:
            blocked[persona_id] = result.blocked_reasons
    if problems:
        raise _invalid(problems)
    loaded = [
        raw if isinstance(raw, Persona) else Persona.model_validate(dict(raw))
        for _, raw in readable
    ]
    reports = {report.persona_id: report for report in checked.reports if report.persona_id}
    return PersonaCatalog(
        loaded,
        default_id=default_id,
        reports=reports,
        blocked=blocked,
        # Of the data as they were written: the persona's form has dropped some of them.
        remarks={
            persona.id: remarks(raw) for persona, (_, raw) in zip(loaded, readable, strict=True)
        },
    )


def _invalid(problems: Sequence[tuple[str, Issue]]) -> PersonaInvalidError:
    by_source: dict[str, list[Issue]] = {}
    for source, issue in problems:
        by_source.setdefault(source, []).append(issue)
    lines = [
        f"{source}: " + "; ".join(f"{issue.code} ({issue.message})" for issue in issues)
        for source, issues in by_source.items()
    ]
    return PersonaInvalidError(
        "Personas are invalid. " + " | ".join(lines),
        details={
            "issues": [{"source": source, **issue.as_dict()} for source, issue in problems],
            "sources": list(by_source),
        },
    )
