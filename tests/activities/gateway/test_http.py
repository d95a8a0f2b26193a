"""The shared transport, against a server that breaks off where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from httpx_sse import ServerSentEvent

from gmi.activities.gateway.failures import ProviderFailure
from gmi.activities.gateway.http import Endpoint, decode_event, post_events

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def serving(handler: Handler, idle: float = 5.0) -> AsyncIterator[Endpoint]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            await handler(writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield Endpoint("tested", f"http://127.0.0.1:{port}", idle_timeout=idle)


async def read(endpoint: Endpoint, request_timeout: float | None = None) -> list[str]:
    async with httpx.AsyncClient() as client:
        events = post_events(client, endpoint, "/x", {}, request_timeout=request_timeout)
        return [event.data async for event in events]


async def test_events_arrive_as_they_are_sent() -> None:
    gate = asyncio.Event()

    async def handler(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"data: one\n\n")
        await writer.drain()
        await gate.wait()
        writer.write(b": note\r\n\r\ndata: two\r\n\r\n")

    async with serving(handler) as endpoint, httpx.AsyncClient() as client:
        events = post_events(client, endpoint, "/x", {})
        assert (await anext(events)).data == "one"
        gate.set()
        assert [e.data async for e in events] == ["two"]


async def test_a_stall_in_the_middle_is_a_stream_fault() -> None:
    never = asyncio.Event()

    async def handler(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"data: one\n\n")
        await writer.drain()
        await never.wait()

    async with serving(handler, idle=0.1) as endpoint:
        with pytest.raises(ProviderFailure, match=r"nothing for 0\.1 s") as caught:
            await read(endpoint)
        never.set()
    assert caught.value.kind == "stream"


async def test_a_trickle_of_bytes_is_no_stall_but_meets_the_request_timeout() -> None:
    async def handler(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        while not writer.is_closing():
            writer.write(b": still here\n\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with serving(handler, idle=0.2) as endpoint:
        with pytest.raises(ProviderFailure, match="request timeout") as caught:
            await read(endpoint, request_timeout=0.5)
    assert caught.value.kind == "timeout"


async def test_a_connection_cut_in_the_middle_is_a_network_fault() -> None:
    async def handler(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD.replace(b"connection: close", b"content-length: 9999") + b"data: one\n\n")
        await writer.drain()

    async with serving(handler) as endpoint:
        with pytest.raises(ProviderFailure) as caught:
            await read(endpoint)
    assert caught.value.kind == "network"


async def test_nobody_listening_is_a_network_fault() -> None:
    async def handler(_: asyncio.StreamWriter) -> None:
        return None

    async with serving(handler) as endpoint:
        pass
    with pytest.raises(ProviderFailure) as caught:
        await read(endpoint)
    assert caught.value.kind == "network"
    assert caught.value.same_hop_retryable


async def test_a_reader_who_takes_his_time_is_not_cut_off_by_the_timeout() -> None:
    async def handler(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"data: one\n\n")

    async with serving(handler) as endpoint, httpx.AsyncClient() as client:
        events = post_events(client, endpoint, "/x", {}, request_timeout=0.2)
        assert (await anext(events)).data == "one"
        await asyncio.sleep(0.3)
        with pytest.raises(ProviderFailure, match="request timeout"):
            await anext(events)


async def test_a_cancelled_caller_gets_the_cancellation_and_no_failure() -> None:
    asked = asyncio.Event()
    never = asyncio.Event()

    async def handler(_: asyncio.StreamWriter) -> None:
        asked.set()
        await never.wait()

    async with serving(handler) as endpoint:
        task = asyncio.create_task(read(endpoint))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        never.set()


async def test_a_huge_error_page_is_read_only_in_part() -> None:
    sent = 0

    async def handler(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n")
        while sent < 50_000_000 and not writer.is_closing():
            writer.write(b"x" * 65536)
            sent += 65536
            try:
                await writer.drain()
            except ConnectionError:
                return

    async with serving(handler) as endpoint:
        with pytest.raises(ProviderFailure) as caught:
            await read(endpoint)
    assert caught.value.status == 502
    assert sent < 50_000_000


@pytest.mark.parametrize("data", ["{", "[1]", "null", '"x"', ""])
def test_a_chunk_that_is_no_object_is_a_stream_fault(data: str) -> None:
    with pytest.raises(ProviderFailure, match="malformed chunk") as caught:
        decode_event(Endpoint("tested", "http://x"), ServerSentEvent(data=data))
    assert caught.value.kind == "stream"


def test_an_endpoint_does_not_show_its_headers() -> None:
    endpoint = Endpoint("p", "http://x", headers={"x-api-key": "the-key"}, secrets=["the-key"])
    assert "the-key" not in repr(endpoint)
