"""Content that a message refers to: large text and images from the store."""

from __future__ import annotations

import base64

from ..personas.messages import ImagePart, Message, Part
from ..workflows.steps import StoredMessage
from .blobs import load_value
from .store.protocol import Store


class ContentLoader:
    """Puts referenced content in its place.

    Args:
        store: Holds the content.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def message(self, stored: StoredMessage) -> Message:
        """The whole message."""
        if stored.content_ref is None:
            return stored.message
        content = load_value(await self._store.get_blob(stored.content_ref))
        return Message.model_validate(
            {**stored.message.model_dump(exclude={"content"}), "content": content}
        )

    async def with_images(self, messages: list[Message]) -> list[Message]:
        """Messages whose images can be sent: stored ones as ``data:`` URLs."""
        return [await self._with_images(message) for message in messages]

    async def _with_images(self, message: Message) -> Message:
        if not isinstance(message.content, list):
            return message
        parts: list[Part] = []
        for part in message.content:
            if isinstance(part, ImagePart) and part.blob is not None:
                data = base64.b64encode(await self._store.get_blob(part.blob)).decode()
                url = f"data:{part.media_type or 'image/png'};base64,{data}"
                part = part.model_copy(update={"blob": None, "url": url})
            parts.append(part)
        return message.model_copy(update={"content": parts})
