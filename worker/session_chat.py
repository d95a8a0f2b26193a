"""A conversation whose history the caller keeps: what goes in comes back one exchange longer."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..personas.errors import ValidationError
from ..personas.messages import Message
from ..workflows.decode import parse
from ..workflows.turns import TurnOutput
from .turn_stream import TurnStream

_log = logging.getLogger(__name__)

OnToolCall = Callable[[dict[str, Any]], Awaitable[None] | None]
"""Told of a call as ``{"name", "args", "result"}``."""


@dataclass(frozen=True, slots=True)
class ChatResult:
    """What a chat call came to.

    Attributes:
        text: The answer; empty when the turn failed, was stopped or waits for the host.
        response: The turn.
        updated_history: The history that was given, then the user's message and the answer. As it
            was given when there is no answer, so that the message may be sent again.
    """

    text: str
    response: TurnOutput
    updated_history: list[Message]


def given_history(history: Sequence[Message | Mapping[str, Any]] | None) -> list[Message] | None:
    """A caller's history as messages of its own; what was given is left as it is.

    Raises:
        ValidationError: An entry is no message.
    """
    if history is None:
        return None
    if isinstance(history, str) or not isinstance(history, Iterable):
        raise ValidationError(
            f"The history is of type {type(history).__name__}; give a list of messages."
        )
    return [item if isinstance(item, Message) else parse(item, Message) for item in history]


def result_of(message: str, output: TurnOutput, history: list[Message] | None) -> ChatResult:
    """The result of a turn that ended or waits."""
    before = list(history or [])
    if output.status != "done":
        return ChatResult(text="", response=output, updated_history=before)
    text = output.response_text or ""
    exchange = [Message(role="user", content=message), Message(role="assistant", content=text)]
    return ChatResult(text=text, response=output, updated_history=[*before, *exchange])


class ToolCallWatch:
    """Tells a caller of each tool call of a turn, once, when its result is known.

    Args:
        tell: The caller's function. What it raises is logged, and the turn goes on.
    """

    def __init__(self, tell: OnToolCall) -> None:
        self._tell = tell
        self._open: dict[str, tuple[str, dict[str, Any]]] = {}
        self._told: set[str] = set()

    async def follow(self, stream: TurnStream) -> None:
        """Tell of the calls of a turn while it is made."""
        async for chunk in stream:
            if chunk.type == "tool_call_request":
                for call in chunk.content:
                    self._open[call["id"]] = (call["name"], call["arguments"])
            elif chunk.type == "tool_result":
                content = chunk.content
                # A long result is not in the stream; it is told from the record afterwards.
                if "result_ref" not in content:
                    await self._say(content["tool_call_id"], content["name"], content["result"])

    async def catch_up(self, messages: Sequence[Message]) -> None:
        """Tell of what the stream did not show, from the turn's messages."""
        for message in messages:
            for call in message.calls:
                self._open[call.id] = (call.name, call.arguments)
            if message.role == "tool" and message.call_id is not None:
                await self._say(message.call_id, message.name or "", message.text)

    async def _say(self, call_id: str, name: str, result: Any) -> None:
        if call_id in self._told:
            return
        self._told.add(call_id)
        known, arguments = self._open.get(call_id, (name, {}))
        try:
            waits = self._tell({"name": known, "args": arguments, "result": result})
            if inspect.isawaitable(waits):
                await waits
        except Exception:
            _log.warning("on_tool_call failed for %s; the turn goes on.", known, exc_info=True)
