"""Which messages of the conversation a prompt shows, and in a form that providers accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .messages import Message, ToolCall

NOT_RUN_TEXT = "TOOL_NOT_RUN: this call was not run, so there is no result."
SUMMARY_PREFIX = "Summary of the earlier conversation:\n"


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What a cut left.

    Attributes:
        kept: The messages that stay, in order.
        dropped_count: How many were dropped, all of them older than those kept.
    """

    kept: list[Message]
    dropped_count: int


def trim_history(messages: Sequence[Message], max_messages: int, current_turn: int = 0) -> Trimmed:
    """Keep the newest messages; a tool round is never cut apart.

    A cut inside a tool round removes the round's leftover results too. The current turn stays
    whole and counts as one message, its input, however long it has grown: so the window stands
    still while a turn works, and the prompt's beginning stays the same from step to step.

    Args:
        messages: The conversation, the current turn's messages last.
        max_messages: How many to keep at most, the current turn's input counted.
        current_turn: How many of the last messages belong to the current turn.
    """
    turn_start = len(messages) - min(current_turn, len(messages))
    room = max(0, max_messages - (1 if turn_start < len(messages) else 0))
    start = max(0, turn_start - room)
    if start > 0:
        while start < turn_start and messages[start].role == "tool":
            start += 1
    return Trimmed(list(messages[start:]), start)


def rounds(messages: Sequence[Message]) -> list[list[Message]]:
    """The messages in atoms: an assistant's message with the results that follow it, or one alone.

    Results that follow no call are an atom of their own.
    """
    atoms: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and atoms and (atoms[-1][0].calls or atoms[-1][0].role == "tool"):
            atoms[-1].append(message)
        else:
            atoms.append([message])
    return atoms


def sanitize(messages: Sequence[Message], *, keep_partial_text: bool = False) -> list[Message]:
    """The messages in a form that every provider accepts.

    Every call is answered exactly once, directly behind the message that asks for it and in the
    order of the calls: results that came between other messages of the round are moved there, of
    several answers the first counts, and a call without one is answered with an error. Results
    of no call are dropped, as are errors, thoughts and messages without content. A summary becomes
    a system message, unless it is empty.

    Args:
        messages: Any sequence of messages.
        keep_partial_text: Whether the text of a cut reply is sent, without its calls; otherwise
            the reply is dropped.
    """
    clean: list[Message] = []
    calls: list[ToolCall] = []
    answers: dict[str, Message] = {}
    between: list[Message] = []

    def close_round() -> None:
        for call in calls:
            clean.append(answers.get(call.id) or _not_run(call))
        clean.extend(between)
        calls.clear()
        answers.clear()
        between.clear()

    for message in messages:
        if message.role in ("error", "thought"):
            continue
        if message.role == "tool":
            if any(call.id == message.call_id for call in calls):
                answers.setdefault(message.call_id or "", message)
            continue
        if message.role == "assistant":
            close_round()
            reply = _reply(message, keep_partial_text)
            if reply is not None:
                clean.append(reply)
                calls.extend(reply.calls)
            continue
        said = _said(message)
        if said is not None:
            between.append(said)
    close_round()
    return clean


def told_summary(message: Message) -> Message | None:
    """A summary as the system message that tells it, or ``None`` when it says nothing."""
    if not message.text.strip():
        return None
    return Message(role="system", content=SUMMARY_PREFIX + message.text, name=message.name)


def _not_run(call: ToolCall) -> Message:
    return Message(
        role="tool", content=NOT_RUN_TEXT, name=call.name, call_id=call.id, is_error=True
    )


def _reply(message: Message, keep_partial_text: bool) -> Message | None:
    if message.partial:
        if not keep_partial_text or not message.text.strip():
            return None
        return Message(role="assistant", content=message.text, name=message.name)
    if not message.content and not message.calls:
        return None
    unique = list({call.id: call for call in reversed(message.calls)}.values())[::-1]
    if len(unique) == len(message.calls):
        return message
    return message.model_copy(update={"calls": unique})


def _said(message: Message) -> Message | None:
    if not message.content:
        return None
    if message.role == "summary":
        return told_summary(message)
    return message.model_copy(update={"partial": False}) if message.partial else message
