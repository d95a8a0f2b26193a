"""Reading a streamed answer, the same for every wire format."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Protocol

import httpx

from ...personas.messages import Usage
from .failures import ProviderFailure
from .http import Endpoint, decode_event, post_events
from .provider import Finished, ModelRequest, ProviderEvent


class Answer(Protocol):
    """An answer as far as it has been read."""

    @property
    def usage(self) -> Usage | None:
        """The newest usage report."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the answer is whole: what breaks from here on takes nothing from it."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing worth waiting for follows."""
        ...

    def read(self, event: Mapping[str, Any], /) -> list[ProviderEvent]:
        """The events of one wire event.

        Raises:
            ProviderFailure: The event is an error.
        """
        ...

    def finished(self) -> Finished:
        """The terminal event.

        Raises:
            ProviderFailure: The answer is not complete, or was refused before any output.
        """
        ...


async def read_answer(
    client: httpx.AsyncClient,
    endpoint: Endpoint,
    path: str,
    body: Mapping[str, object],
    request: ModelRequest,
    answer: Answer,
) -> AsyncGenerator[ProviderEvent, None]:
    """Call a model and yield what it answers, the terminal event last.

    Args:
        client: Sends the request.
        endpoint: The provider's server.
        path: Where under its base URL.
        body: The request in the provider's format.
        request: The request in the neutral one.
        answer: Reads the provider's format.

    Raises:
        ProviderFailure: The call failed, or was refused before any output; with the usage that
            had been reported by then.
    """
    wire = post_events(
        client, endpoint, path, body, request_timeout=request.options.request_timeout
    )
    try:
        async with aclosing(wire):
            async for event in wire:
                # Chat Completions says in plain text that nothing follows.
                if event.data.strip() == "[DONE]":
                    break
                if not event.data:
                    continue
                for item in answer.read(decode_event(endpoint, event)):
                    yield item
                if answer.over:
                    break
    except ProviderFailure as failure:
        if not (answer.complete and failure.broke_off):
            failure.with_usage(answer.usage)
            raise
    yield answer.finished()
