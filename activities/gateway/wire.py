"""Reading a provider's JSON, in which anything may be missing or of another kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def count(value: object) -> int:
    """A token count out of a usage report; 0 for whatever is no whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def section(value: object, name: str) -> Mapping[str, Any]:
    """A nested object of a wire message; an empty one where it is absent or no object."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def string(value: object) -> str:
    """A text; an empty one for whatever is none."""
    return value if isinstance(value, str) else ""
