"""What every adapter does alike when it turns a prompt into its provider's wire format."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from ...personas.messages import ImagePart, Message
from .failures import ProviderFailure

OPENING = "(The conversation continues.)"
"""What stands in for a user's message where a provider insists on one and there is none."""

_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)

_SENT_ROLES = frozenset({"system", "summary", "user", "assistant", "tool"})


def sendable(messages: list[Message]) -> list[Message]:
    """The messages that a provider gets to see.

    Notes of errors and thoughts are the project's own, and a partial message is shown only in
    the form that the prompt's assembly gives it.
    """
    return [m for m in messages if m.role in _SENT_ROLES and not m.partial]


def split_system(messages: list[Message]) -> tuple[str, list[Message]]:
    """The system text, and the conversation without it; for providers that keep them apart.

    Summaries of earlier turns count as system text.
    """
    kept = sendable(messages)
    system = [m.text for m in kept if m.role in ("system", "summary") and m.text]
    return "\n\n".join(system), [m for m in kept if m.role not in ("system", "summary")]


def image_url(part: ImagePart, provider: str) -> str:
    """The image's URL.

    Raises:
        ProviderFailure: The image is a stored blob that nobody made a ``data:`` URL of.
    """
    if part.url:
        return part.url
    raise ProviderFailure(
        f"{provider}: the image blob {part.blob!r} was not loaded; give it as a data: URL",
        kind="unsupported",
        provider=provider,
    )


def data_url(url: str, provider: str) -> tuple[str, str] | None:
    """Media type and base64 text of a ``data:`` URL, or ``None`` for another URL.

    Raises:
        ProviderFailure: It is a ``data:`` URL that is not base64.
    """
    if not url.startswith("data:"):
        return None
    match = _DATA_URL.fullmatch(url)
    if match is not None:
        try:
            base64.b64decode(match["data"], validate=True)
        except binascii.Error:
            match = None
    if match is None:
        raise ProviderFailure(
            f"{provider}: an image's data: URL is not of the form data:<type>;base64,<data>",
            kind="unsupported",
            provider=provider,
        )
    return match["type"], match["data"]


def tool_text(message: Message, provider: str) -> str:
    """A tool result's text.

    Raises:
        ProviderFailure: The result holds an image.
    """
    if isinstance(message.content, list) and any(
        isinstance(part, ImagePart) for part in message.content
    ):
        raise ProviderFailure(
            f"{provider}: the result of the tool call {message.call_id!r} holds an image; "
            "tool results are text",
            kind="unsupported",
            provider=provider,
        )
    return message.text


def unknown_format(wanted: Mapping[str, Any], provider: str) -> ProviderFailure:
    """The failure for a response format that has none of the known forms."""
    return ProviderFailure(
        f"{provider}: response_format {wanted.get('type')!r} is not known; use json_object, "
        "or json_schema with name and schema",
        kind="unsupported",
        provider=provider,
    )


def with_custom(body: dict[str, Any], custom: Mapping[str, Any] | None) -> dict[str, Any]:
    """The body with a caller's own parameters beside what the adapter sets itself.

    Objects are joined key by key; where both name a value, the adapter's stands.
    """
    joined = dict(body)
    for name, value in (custom or {}).items():
        own = joined.get(name)
        if name not in joined:
            joined[name] = value
        elif isinstance(own, dict) and isinstance(value, Mapping):
            joined[name] = with_custom(own, value)
    return joined


def replayable(message: Message, kind: str, model: str) -> list[dict[str, Any]]:
    """The blocks of a message that this provider's model made itself; no other's are ever sent.

    Args:
        message: The message.
        kind: The wire family of the provider that is called.
        model: The model that is called.
    """
    return [b.data for b in message.replay if b.provider == kind and b.model == model]
