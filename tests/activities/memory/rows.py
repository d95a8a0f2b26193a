"""Tables of inputs and results that the tests read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def table(file: str) -> dict[str, Any]:
    """Everything in one file."""
    found: dict[str, Any] = json.loads((DATA / f"{file}.json").read_text())
    return found


def rows(file: str, name: str) -> list[dict[str, Any]]:
    """The rows of one table, each as a dictionary by its columns."""
    found = table(file)[name]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
