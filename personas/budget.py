"""How much of a prompt fits a model's window."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from .history import rounds
from .messages import ImagePart, Message

HISTORY_SHARE = 0.35
RETRIEVED_SHARE = 0.20

TOKENS_PER_MESSAGE = 5
TOKENS_PER_IMAGE = 70
TOKENS_PER_DETAILED_IMAGE = 135
TOKENS_PER_TOOL = 50

OVER_BUDGET = "TOKEN_BUDGET_EXCEEDED_POST_OPT"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a prompt does not show.

    Attributes:
        messages_by_count: Messages older than the newest that the persona shows.
        messages_by_budget: Messages that did not fit the model's window.
        tokens_by_budget: Their estimated tokens.
        retrieved_chars: Characters cut from the retrieved context.
    """

    messages_by_count: int = 0
    messages_by_budget: int = 0
    tokens_by_budget: int = 0
    retrieved_chars: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits the window.

    Attributes:
        history: The earlier messages that stay.
        retrieved: The retrieved context, shortened where it had to be.
        estimated_tokens: Tokens of the whole prompt.
        left_out: What was dropped.
        warnings: Each begins with a stable code.
    """

    history: list[Message]
    retrieved: str
    estimated_tokens: int
    left_out: LeftOut = LeftOut()
    warnings: list[str] = field(default_factory=list)


def estimate_tokens(chars: int, model: str | None = None) -> int:
    """Tokens of a text of so many characters, by the model's usual ratio.

    Args:
        chars: Characters.
        model: The model's id; ids with ``gpt-4`` count 3.8 characters a token, with ``claude``
            4.2, all others 4.
    """
    ratio = 4.0
    if model is not None:
        if "gpt-4" in model:
            ratio = 3.8
        elif "claude" in model:
            ratio = 4.2
    return math.ceil(chars / ratio)


def content_tokens(message: Message, model: str | None = None) -> int:
    """Tokens of what a message says: its text, its images, its calls.

    Replay blocks count where the model's provider is the one that gets them back, which the
    prefix of ``provider:model`` tells.
    """
    chars = len(message.text)
    for call in message.calls:
        chars += len(call.name) + len(json.dumps(call.arguments, ensure_ascii=False))
    provider = model.partition(":")[0] if model and ":" in model else None
    for block in message.replay:
        if block.provider == provider:
            chars += len(json.dumps(block.data, ensure_ascii=False))
    tokens = estimate_tokens(chars, model)
    if isinstance(message.content, list):
        for part in message.content:
            if isinstance(part, ImagePart):
                detailed = part.detail == "high"
                tokens += TOKENS_PER_DETAILED_IMAGE if detailed else TOKENS_PER_IMAGE
    return tokens


def message_tokens(message: Message, model: str | None = None) -> int:
    """Tokens of a message in a prompt."""
    return content_tokens(message, model) + TOKENS_PER_MESSAGE


def fit(
    history: Sequence[Message],
    turn: Sequence[Message],
    *,
    window_tokens: int,
    model: str | None = None,
    system_chars: int = 0,
    input_chars: int = 0,
    retrieved: str = "",
    tools: int = 0,
) -> Fitted:
    """Drop the oldest messages and shorten the retrieved context until the prompt fits.

    The conversation may take 35 % of the window and the retrieved context 20 %. When the
    conversation is over its share, or the whole over the window, earlier messages go, oldest
    first and tool rounds whole, until the rest fits both. The current turn is never cut. A prompt
    that is over the window all the same is sent, with a warning.

    Args:
        history: The messages before the current turn.
        turn: The current turn's messages.
        window_tokens: The model's window in tokens.
        model: The model's id, for the estimate.
        system_chars: Characters of the system message.
        input_chars: Characters of an input that is not among ``turn``.
        retrieved: The retrieved context.
        tools: How many tool definitions are sent.
    """
    system_tokens = estimate_tokens(system_chars, model)
    input_tokens = estimate_tokens(input_chars, model)
    fixed = system_tokens + input_tokens + tools * TOKENS_PER_TOOL
    turn_tokens = sum(message_tokens(message, model) for message in turn)
    retrieved_tokens = estimate_tokens(len(retrieved), model)
    atoms = rounds(history)
    history_tokens = sum(message_tokens(message, model) for message in history)

    def total() -> int:
        return fixed + retrieved_tokens + turn_tokens + history_tokens

    share = HISTORY_SHARE * window_tokens
    dropped: list[Message] = []
    if history_tokens + turn_tokens > share or total() > window_tokens:
        room = window_tokens - fixed - retrieved_tokens - turn_tokens
        target = max(0.0, min(max(0.0, share - turn_tokens), room))
        min_kept = 0 if turn or input_chars else 1
        # What remains is measured by its content alone, which leaves the overhead of at most a
        # few messages above the target; the estimate itself is coarser than that.
        weights = [sum(content_tokens(message, model) for message in atom) for atom in atoms]
        start = 0
        remaining = sum(weights)
        while len(atoms) - start > min_kept and (remaining > target or target == 0):
            remaining -= weights[start]
            start += 1
        dropped = [message for atom in atoms[:start] for message in atom]
        history_tokens -= sum(message_tokens(message, model) for message in dropped)
        atoms = atoms[start:]

    kept_retrieved = retrieved
    retrieved_share = RETRIEVED_SHARE * window_tokens
    if retrieved_tokens > retrieved_share:
        kept_retrieved = retrieved[: int(len(retrieved) * retrieved_share / retrieved_tokens)]
        retrieved_tokens = estimate_tokens(len(kept_retrieved), model)

    warnings: list[str] = []
    if total() > window_tokens:
        warnings.append(
            f"{OVER_BUDGET}: the prompt is estimated at {total()} tokens and the window of "
            f"{model or 'the model'} has {window_tokens}; it is sent all the same."
        )
    return Fitted(
        history=[message for atom in atoms for message in atom],
        retrieved=kept_retrieved,
        estimated_tokens=total(),
        left_out=LeftOut(
            messages_by_budget=len(dropped),
            tokens_by_budget=sum(message_tokens(message, model) for message in dropped),
            retrieved_chars=len(retrieved) - len(kept_retrieved),
        ),
        warnings=warnings,
    )
