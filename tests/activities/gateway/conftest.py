"""Model servers for the adapters' tests: a scripted one over HTTP, and recorded streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

import httpx
import pytest
import pytest_asyncio

from gmi.activities.gateway import Provider, ProviderEvent
from gmi.activities.gateway.provider import ModelRequest

from ...support.llmock_server import ModelServer
from ...support.llmock_server import model_server as running_model_server

Collect = Callable[[Provider, ModelRequest], Any]


@pytest_asyncio.fixture(scope="session")
async def running_server() -> AsyncIterator[ModelServer]:
    async with running_model_server() as server:
        yield server


@pytest_asyncio.fixture
async def model_server(running_server: ModelServer) -> AsyncIterator[ModelServer]:
    await running_server.reset()
    yield running_server
    await running_server.reset()


async def _collect(provider: Provider, request: ModelRequest) -> list[ProviderEvent]:
    stream: Any = provider.stream(request)
    async with aclosing(stream):
        return [event async for event in stream]


@pytest.fixture
def collect() -> Collect:
    """Reads a provider's whole stream into a list."""
    return _collect


class Recorded:
    """An HTTP client that answers every request with one recorded response."""

    def __init__(self, status: int, headers: dict[str, str], pieces: Iterable[bytes]) -> None:
        self.requests: list[httpx.Request] = []
        self._status = status
        self._headers = headers
        self._pieces = list(pieces)
        self.client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)

        async def pieces() -> AsyncIterator[bytes]:
            for piece in self._pieces:
                yield piece

        return httpx.Response(self._status, headers=self._headers, content=pieces())

    @property
    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.requests[-1].content))


@pytest_asyncio.fixture
async def recorded() -> AsyncIterator[Callable[..., Recorded]]:
    """Makes clients that answer with the given events, objects as JSON and text as it is."""
    made: list[Recorded] = []

    def make(
        *events: dict[str, Any] | str,
        status: int = 200,
        headers: dict[str, str] | None = None,
        json_body: object = None,
        split: int | None = None,
    ) -> Recorded:
        if json_body is not None:
            raw = json.dumps(json_body).encode()
            kind = "application/json"
        else:
            raw = b"".join(
                f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n".encode() for e in events
            )
            kind = "text/event-stream"
        size = split or max(1, len(raw))
        pieces = [raw[i : i + size] for i in range(0, len(raw), size)]
        answer = Recorded(status, {"content-type": kind, **(headers or {})}, pieces)
        made.append(answer)
        return answer

    yield make
    for answer in made:
        await answer.client.aclose()
