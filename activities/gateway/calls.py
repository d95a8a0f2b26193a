"""Tool calls on their way in and out: assembled from pieces, parsed, and given usable ids."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from ...personas.messages import ToolCall


def dump_arguments(arguments: dict[str, object]) -> str:
    """The JSON text of a call's arguments, compact and in the order given."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def generated_id(turn_mark: int, index: int, name: str, arguments: str) -> str:
    """An id for a call that came without one; the same call at the same place has the same id.

    Args:
        turn_mark: Length of the prompt in messages: it tells the steps of a conversation apart.
        index: The call's position in the answer.
        name: The tool's name.
        arguments: The raw arguments.
    """
    digest = hashlib.sha256(f"{turn_mark}:{index}:{name}:{arguments}".encode()).hexdigest()
    return f"call_{digest[:24]}"


def wire_id(call_id: str, form: re.Pattern[str], length: int) -> str:
    """The id that a provider accepts for a call: its own where the form fits, else a digest.

    A conversation that changes its provider carries ids of another provider's making.

    Args:
        call_id: The call's id in the conversation.
        form: What the provider accepts, matched against the whole id.
        length: Length of the digest used instead; it consists of hexadecimal digits.
    """
    if form.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()[:length]


MAX_DEPTH = 100
"""Nesting of a call's arguments; serializers give up a little later."""


def finished_call(call_id: str, name: str, raw: str) -> ToolCall:
    """A call with parsed arguments, or with ``malformed`` where the text is no JSON object."""
    if not raw.strip():
        return ToolCall(id=call_id, name=name)
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return ToolCall(id=call_id, name=name, malformed=raw)
    if not isinstance(parsed, dict) or too_deep(parsed):
        return ToolCall(id=call_id, name=name, malformed=raw)
    return ToolCall(id=call_id, name=name, arguments=parsed)


def too_deep(value: object, limit: int = MAX_DEPTH) -> bool:
    """Whether a JSON value is nested more deeply than can be sent on."""
    if not isinstance(value, dict | list):
        return False
    if limit == 0:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(too_deep(item, limit - 1) for item in inner)


@dataclass(slots=True)
class PartialCall:
    """A call of which some pieces have arrived."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class CallAssembler:
    """Puts tool calls together that arrive in pieces, several at a time.

    Args:
        turn_mark: See :func:`generated_id`.
    """

    def __init__(self, turn_mark: int) -> None:
        self._turn_mark = turn_mark
        self._calls: list[PartialCall] = []
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(
        self, index: int | None, call_id: str | None, name: str | None, arguments: str
    ) -> int | None:
        """Take a piece; returns the position of the call that it begins, else ``None``.

        Some servers send no index, or the same one for every parallel call, and tell the calls
        apart by their ids alone; so a new id begins a new call wherever it says it belongs.
        """
        place = self._place.get(index) if index is not None else None
        if index is None and self._calls:
            known = [i for i, call in enumerate(self._calls) if call_id and call.id == call_id]
            place = known[0] if known else (None if call_id else len(self._calls) - 1)
        begins = place is None or bool(
            call_id and self._calls[place].id and self._calls[place].id != call_id
        )
        if begins or place is None:
            self._calls.append(PartialCall())
            place = len(self._calls) - 1
            if index is not None:
                self._place[index] = place
        call = self._calls[place]
        call.id = call.id or call_id or ""
        call.name = call.name or name or ""
        call.arguments += arguments
        return place if begins else None

    def finish(self) -> list[ToolCall]:
        """The calls in the order in which they began, each with an id of its own."""
        calls: list[ToolCall] = []
        for index, part in enumerate(self._calls):
            call_id = part.id or generated_id(self._turn_mark, index, part.name, part.arguments)
            if any(call.id == call_id for call in calls):
                call_id = generated_id(self._turn_mark, index, part.name, part.arguments)
            calls.append(finished_call(call_id, part.name, part.arguments))
        return calls
