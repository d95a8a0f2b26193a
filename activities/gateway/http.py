"""The part of a model call that every HTTP provider shares: post JSON, read events, fail typed.

Keys travel in headers alone. A failure is raised without the transport's exception attached,
because that one holds the request with its headers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import httpx
from httpx_sse import EventSource, ServerSentEvent

from .failures import ProviderFailure, classify

CONNECT_TIMEOUT = 10.0
"""Seconds to reach the provider."""

IDLE_TIMEOUT = 60.0
"""Seconds without a byte after which a call counts as stalled."""

_ERROR_BODY_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider is reached.

    Attributes:
        provider: The provider's name; errors carry it.
        base_url: URL without the method's path and without a trailing slash.
        headers: Sent with each request; never shown.
        secrets: Strings that must not appear in an error.
        idle_timeout: Seconds without a byte after which a call counts as stalled.
    """

    provider: str
    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    idle_timeout: float = IDLE_TIMEOUT


async def post_events(
    client: httpx.AsyncClient,
    endpoint: Endpoint,
    path: str,
    body: Mapping[str, object],
    *,
    request_timeout: float | None = None,
) -> AsyncGenerator[ServerSentEvent, None]:
    """Post a JSON body and yield the answer's server-sent events until the stream ends.

    Args:
        client: Sends the request.
        endpoint: Where to.
        path: The method's path, with a leading slash.
        body: The JSON body.
        request_timeout: Seconds that the whole call may take, or ``None`` for no such bound.

    Raises:
        ProviderFailure: The request could not be sent, was answered with an error, stalled,
            took too long, or the connection broke.
    """
    loop = asyncio.get_running_loop()
    deadline = None if request_timeout is None else loop.time() + request_timeout
    failure: ProviderFailure | None = None
    async with aclosing(_events(client, endpoint, path, body)) as events:
        while failure is None:
            try:
                # The bound covers only the waiting: a timeout held open across a yield would
                # cancel whoever reads this stream.
                async with asyncio.timeout_at(deadline):
                    event = await anext(events)
            except StopAsyncIteration:
                return
            except TimeoutError:
                failure = ProviderFailure(
                    f"{endpoint.provider}: no complete answer within the request timeout of "
                    f"{request_timeout} s",
                    kind="timeout",
                    provider=endpoint.provider,
                )
            else:
                yield event
    raise failure


async def _events(
    client: httpx.AsyncClient, endpoint: Endpoint, path: str, body: Mapping[str, object]
) -> AsyncGenerator[ServerSentEvent, None]:
    answered = False
    idle = endpoint.idle_timeout
    timeout = httpx.Timeout(idle, connect=CONNECT_TIMEOUT, pool=CONNECT_TIMEOUT)
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", **endpoint.headers}
    failure: ProviderFailure
    try:
        async with client.stream(
            "POST", endpoint.base_url + path, json=body, headers=headers, timeout=timeout
        ) as response:
            if response.is_success and _is_stream(response):
                answered = True
                async with aclosing(EventSource(response).aiter_sse()) as source:
                    async for event in source:
                        yield event
                return
            failure = await _refused(response, endpoint)
    except httpx.ReadTimeout:
        failure = ProviderFailure(
            f"{endpoint.provider}: the provider sent nothing for {idle} s",
            kind="stream" if answered else "timeout",
            provider=endpoint.provider,
        )
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        failure = classify(provider=endpoint.provider, error=error, secrets=endpoint.secrets)
    raise failure


def _is_stream(response: httpx.Response) -> bool:
    return "text/event-stream" in response.headers.get("content-type", "")


async def _refused(response: httpx.Response, endpoint: Endpoint) -> ProviderFailure:
    """The failure of a response that is no event stream."""
    raw = b""
    async for piece in response.aiter_bytes():
        raw += piece
        if len(raw) >= _ERROR_BODY_LIMIT:
            break
    text = raw[:_ERROR_BODY_LIMIT].decode("utf-8", "replace")
    try:
        body: object = json.loads(text)
    except ValueError:
        body = text
    if response.is_success and not (isinstance(body, dict) and "error" in body):
        kind = response.headers.get("content-type", "nothing")
        return ProviderFailure(
            f"{endpoint.provider}: answered {kind} where an event stream was asked for; "
            "check the base URL",
            kind="stream",
            provider=endpoint.provider,
        )
    return classify(
        provider=endpoint.provider,
        status=None if response.is_success else response.status_code,
        headers=response.headers,
        body=body,
        in_band=response.is_success,
        secrets=endpoint.secrets,
    )


def decode_event(endpoint: Endpoint, event: ServerSentEvent) -> dict[str, object]:
    """The JSON object that an event carries.

    Raises:
        ProviderFailure: The event's data is no JSON object.
    """
    try:
        data = json.loads(event.data)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ProviderFailure(
            f"{endpoint.provider}: sent a malformed chunk of {len(event.data)} characters",
            kind="stream",
            provider=endpoint.provider,
        )
    return data


def ended_early(endpoint: Endpoint) -> ProviderFailure:
    """The failure of a stream that ended without the provider's terminal event."""
    return ProviderFailure(
        f"{endpoint.provider}: the stream ended before the answer was complete",
        kind="stream",
        provider=endpoint.provider,
    )
