"""What a host tells a mind of the user and of the task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic.alias_generators import to_snake

from .errors import MessageTooLargeError, ValidationError
from .metaprompts.fields import COMPLEXITIES, SKILL_LEVELS
from .mind import TaskContext, UserContext

MAX_CONTEXT_BYTES = 2048
"""Bytes of a context as JSON: of what a turn brings along, and of what the mind holds."""

C = TypeVar("C", UserContext, TaskContext)

_WORDS = {"skill_level": SKILL_LEVELS, "complexity": COMPLEXITIES}
_TEXTS = ("domain", "status")


def check_context(given: Mapping[str, Any] | None, kind: type[UserContext | TaskContext]) -> None:
    """Refuse a context that a mind cannot take.

    Args:
        given: What a turn brings along.
        kind: The context that it is for.

    Raises:
        MessageTooLargeError: It is over 2 KB.
        ValidationError: A skill level, a complexity or the preferences do not fit, or a value is
            no JSON.
    """
    if given is None:
        return
    name = "user_context" if kind is UserContext else "task_context"
    try:
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ValidationError(f"The {name} cannot be written as JSON: {error}.") from None
    size = _bytes(given)
    if size > MAX_CONTEXT_BYTES:
        raise MessageTooLargeError(
            f"The {name} has {size} bytes and the limit is {MAX_CONTEXT_BYTES}; put what is long "
            "into the message or into memory.",
            details={"bytes": size, "limit": MAX_CONTEXT_BYTES},
        )
    for field, value in _named(given, kind).items():
        if value is None or field not in kind.model_fields:
            continue
        words = _WORDS.get(field)
        if words is not None and value not in words:
            raise ValidationError(
                f"The {field} {_shown(value)} of the {name} is unknown; use one of "
                f"{', '.join(words)}.",
                details={"field": field, "known": list(words)},
            )
        if field in _TEXTS and (not isinstance(value, str) or not value.strip()):
            raise ValidationError(f"The {field} of the {name} is {_shown(value)}; send a word.")
        if field == "preferences" and not isinstance(value, Mapping):
            raise ValidationError(f"The preferences are {_shown(value)}; send an object.")


def told(context: C, given: Mapping[str, Any], usual: C) -> tuple[C, dict[str, Any]]:
    """A context after what a turn brings along, and what is another than before, by name.

    Preferences are merged one by one, everything else is replaced; ``None`` takes a value back to
    the usual one. Beyond 2 KB the oldest of what the mind does not know itself gives way, then
    the oldest preferences.

    Args:
        context: What the mind holds.
        given: What a turn brings along, as :func:`check_context` lets it pass.
        usual: What the persona starts with.
    """
    kind = type(context)
    before: dict[str, Any] = context.model_dump()
    after: dict[str, Any] = context.model_dump()
    start: dict[str, Any] = usual.model_dump()
    for field, value in _named(given, kind).items():
        after.pop(field, None)
        if value is None:
            if field in start:
                after[field] = start[field]
        elif field == "preferences":
            after[field] = _merged(before[field], value)
        else:
            after[field] = value
    for field in [field for field in after if field not in kind.model_fields]:
        if _bytes(after) > MAX_CONTEXT_BYTES:
            del after[field]
    for key in list(after.get("preferences", {})):
        if _bytes(after) > MAX_CONTEXT_BYTES:
            del after["preferences"][key]
    names = dict.fromkeys([*before, *after])
    changed = {name: after.get(name) for name in names if after.get(name) != before.get(name)}
    return kind.model_validate(after), changed


def _merged(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in before.items() if key not in given}
    return {**kept, **{key: value for key, value in given.items() if value is not None}}


def _named(given: Mapping[str, Any], kind: type[UserContext | TaskContext]) -> dict[str, Any]:
    """What is given, with the fields that the mind knows under their own names."""
    named: dict[str, Any] = {}
    for key, value in given.items():
        field = to_snake(key)
        named[field if field in kind.model_fields else key] = value
    return named


def _bytes(value: Mapping[str, Any]) -> int:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode(errors="surrogatepass"))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"
