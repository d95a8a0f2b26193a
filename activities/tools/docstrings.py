"""What a Google-style docstring says of a function and of its parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SECTIONS = {
    "args",
    "arguments",
    "attributes",
    "example",
    "examples",
    "keyword args",
    "keyword arguments",
    "note",
    "notes",
    "other parameters",
    "parameters",
    "raises",
    "references",
    "return",
    "returns",
    "see also",
    "todo",
    "warning",
    "warnings",
    "warns",
    "yield",
    "yields",
}
_PARAMETERS = {"args", "arguments", "keyword args", "keyword arguments", "parameters"}
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring.

    Attributes:
        description: The text before the first section.
        parameters: What the ``Args:`` section says of each name, on one line.
    """

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(text: str) -> Docstring:
    """Read a docstring whose common indentation was removed."""
    description: list[str] = []
    sections: dict[str, list[str]] = {}
    section: list[str] | None = None
    for line in text.splitlines():
        title = line.rstrip().removesuffix(":").lower()
        if line.rstrip().endswith(":") and title in _SECTIONS:
            section = sections.setdefault(title, [])
        elif section is None:
            description.append(line.rstrip())
        else:
            section.append(line.rstrip())
    parameters: dict[str, str] = {}
    for title in _PARAMETERS & sections.keys():
        parameters.update(_entries(sections[title]))
    return Docstring("\n".join(description).strip(), parameters)


def _entries(lines: list[str]) -> dict[str, str]:
    filled = [line for line in lines if line.strip()]
    if not filled:
        return {}
    margin = len(filled[0]) - len(filled[0].lstrip())
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in filled:
        indent = len(line) - len(line.lstrip())
        entry = _ENTRY.fullmatch(line.strip()) if indent <= margin else None
        if entry is not None:
            current = found.setdefault(entry.group(1), [])
            current.append(entry.group(2))
        elif current is not None:
            current.append(line.strip())
    return {name: " ".join(parts).strip() for name, parts in found.items()}
