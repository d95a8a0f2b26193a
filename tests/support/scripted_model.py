"""A model server that speaks OpenAI's streaming format and does exactly what a test tells it.

A reply is chosen by the last user message, and may stop at a barrier in the middle of its stream:
the test waits until the barrier is reached, does its deed (kills a worker, say), and opens it.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    """A text delta."""

    text: str


@dataclass(frozen=True)
class Call:
    """A whole tool call."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    raw: str | None = None


@dataclass(frozen=True)
class Barrier:
    """The stream stops here until the test opens it; from then on it is open."""

    name: str


@dataclass(frozen=True)
class Hang:
    """Nothing more is sent, and the connection stays."""


@dataclass(frozen=True)
class Cut:
    """The connection is closed without the terminal event."""


@dataclass(frozen=True)
class Fail:
    """An HTTP error in place of a stream."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=lambda: {"error": {"message": "scripted"}})


Step = Text | Call | Barrier | Hang | Cut | Fail
Script = Sequence[Step]


class ScriptedModel:
    """The server. Scripts are added with :meth:`on`; requests are kept in :attr:`requests`."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self._rules: list[tuple[Callable[[dict[str, Any]], bool], Script, int | None]] = []
        self._used: dict[int, int] = defaultdict(int)
        self._reached: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._open: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self.effects: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def on(self, text: str, *script: Step, times: int | None = None, calls: int = 0) -> None:
        """Answer a prompt whose last user message holds ``text``.

        Args:
            text: Part of the last user message.
            script: What to send.
            times: How often this rule applies; then the next one does.
            calls: Tool results that follow the user message.
        """

        def matches(body: dict[str, Any]) -> bool:
            users = [m for m in body["messages"] if m["role"] == "user"]
            after = 0
            for message in reversed(body["messages"]):
                if message["role"] == "user":
                    break
                after += message["role"] == "tool"
            return bool(users) and text in str(users[-1]["content"]) and after == calls

        self._rules.append((matches, script, times))

    async def reached(self, barrier: str, timeout: float = 30) -> None:
        """Wait until a stream or a tool stands at the barrier."""
        async with asyncio.timeout(timeout):
            await self._reached[barrier].wait()

    def open(self, barrier: str) -> None:
        """Open a barrier for everyone."""
        self._open[barrier].set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        for event in self._open.values():
            event.set()
        for task in list(self._handlers):
            task.cancel()
        for task in list(self._handlers):
            with suppress(asyncio.CancelledError):
                await task
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        length = next(
            (
                int(l.split(":")[1])
                for l in head.split("\r\n")
                if l.lower().startswith("content-le")
            ),
            0,
        )
        body = json.loads(await reader.readexactly(length)) if length else {}
        if path.startswith("/barrier/"):
            name = path.removeprefix("/barrier/")
            if body.get("effect"):
                self.effects.append(body["effect"])
            self._reached[name].set()
            await self._open[name].wait()
            await self._plain(writer, 200, {})
            return
        if path.startswith("/effect"):
            self.effects.append(body["effect"])
            await self._plain(writer, 200, {})
            return
        self.requests.append(body)
        await self._play(writer, body, self._choose(body))

    def _choose(self, body: dict[str, Any]) -> Script:
        for index, (matches, script, times) in enumerate(self._rules):
            if matches(body) and (times is None or self._used[index] < times):
                self._used[index] += 1
                return script
        return (Fail(400, body={"error": {"message": "no script fits this prompt"}}),)

    async def _play(
        self, writer: asyncio.StreamWriter, body: dict[str, Any], script: Script
    ) -> None:
        if isinstance(script[0], Fail):
            await self._plain(writer, script[0].status, script[0].body, script[0].headers)
            return
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        await writer.drain()
        calls = 0
        said = 0
        for step in script:
            if isinstance(step, Text):
                said += len(step.text)
                await self._event(writer, body, {"content": step.text})
            elif isinstance(step, Call):
                arguments = step.raw if step.raw is not None else json.dumps(step.arguments)
                call = {
                    "index": calls,
                    "id": step.id or f"call_{len(self.requests)}_{calls}",
                    "type": "function",
                    "function": {"name": step.name, "arguments": arguments},
                }
                calls += 1
                await self._event(writer, body, {"tool_calls": [call]})
            elif isinstance(step, Barrier):
                self._reached[step.name].set()
                await self._open[step.name].wait()
            elif isinstance(step, Hang):
                await asyncio.Event().wait()
            elif isinstance(step, Cut):
                return
        reason = "tool_calls" if calls else "stop"
        await self._event(writer, body, {}, reason)
        usage = {
            "id": "x",
            "object": "chat.completion.chunk",
            "model": body["model"],
            "choices": [],
            "usage": {"prompt_tokens": 10, "completion_tokens": max(1, said // 4)},
        }
        usage["usage"]["total_tokens"] = 10 + max(1, said // 4)  # type: ignore[index]
        writer.write(f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode())
        await writer.drain()

    async def _event(
        self,
        writer: asyncio.StreamWriter,
        body: dict[str, Any],
        delta: dict[str, Any],
        finish: str | None = None,
    ) -> None:
        event = {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion.chunk",
            "model": body["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        writer.write(f"data: {json.dumps(event)}\n\n".encode())
        await writer.drain()

    async def _plain(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: dict[str, Any],
        headers: dict[str, str] | None = None,
    ) -> None:
        data = json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(data)}"]
        lines += ["Content-Type: application/json", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await writer.drain()
