"""Finding the JSON object in what a model wrote."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, NoReturn

MAX_ANSWER = 16_000
"""Characters of an answer that is looked at; a longer one is refused."""

_BEGIN = re.compile(r'\{\s*["}]')
_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n(.*?)```", re.DOTALL)


class NoObjectError(Exception):
    """A text does not hold one JSON object; the message says how."""


def object_in(text: str) -> dict[str, Any]:
    """The one JSON object that a model's text holds.

    It may stand alone, in a code fence, or between words; thinking ahead of it is passed over.

    Raises:
        NoObjectError: There is none, or more than one, or it holds what JSON in UTF-8 cannot: a
            number that is not finite, half a character.
    """
    if len(text) > MAX_ANSWER:
        raise NoObjectError(f"it has {len(text)} characters and the limit is {MAX_ANSWER}")
    said = _THOUGHT.sub("", text, count=1).strip()
    if not said:
        raise NoObjectError("it is empty")
    try:
        for whole in (said, *_only(_FENCE.findall(said))):
            with suppress(ValueError):
                return _clean(_DECODER.decode(whole.strip()))
        return _clean(_object_between(said))
    except RecursionError:
        raise NoObjectError("it is nested too deep") from None


def _only(fenced: list[str]) -> list[str]:
    return fenced if len(fenced) == 1 else []


def _object_between(text: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    begins = _BEGIN.search(text)
    while begins is not None and len(found) < 2:
        try:
            value, end = _DECODER.raw_decode(text, begins.start())
        except ValueError:
            # Never an object inside it: that would be half of what was said.
            raise NoObjectError("it holds a JSON object that is broken or cut off") from None
        found.append(value)
        begins = _BEGIN.search(text, end)
    if not found:
        raise NoObjectError("it holds no JSON object")
    if len(found) > 1:
        raise NoObjectError("it holds more than one JSON object")
    return found[0]


def _clean(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NoObjectError(f"it is {_kind(value)} and no object")
    try:
        # A number such as 1e999 becomes infinite, and an escape may leave half a character.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise NoObjectError("it holds half a character") from None
    except ValueError:
        raise NoObjectError("it holds a number that is not finite") from None
    return value


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
