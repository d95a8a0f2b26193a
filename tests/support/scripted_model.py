"""A model server that does exactly what a test tells it, in OpenAI's and Anthropic's formats.

A reply is chosen by the last user message, and may stop at a barrier in the middle of its stream:
the test waits until the barrier is reached, does its deed (kills a worker, say), and opens it.
One server plays many providers: each has a base URL of its own, see :meth:`ScriptedModel.base_url`.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gmi.personas.prompt import split_background

from .word_vectors import word_vector


@dataclass(frozen=True)
class Text:
    """A text delta."""

    text: str


@dataclass(frozen=True)
class Whole:
    """The whole text in place of deltas."""

    text: str


@dataclass(frozen=True)
class Thought:
    """A thinking block with its signature; Anthropic's format alone has it."""

    text: str
    signature: str


@dataclass(frozen=True)
class Used:
    """A running total of the usage. The last one counts; without one the server makes it up."""

    prompt: int
    completion: int


@dataclass(frozen=True)
class Error:
    """An error inside the stream."""

    code: str = "server_error"
    message: str = "scripted"


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


Step = Text | Whole | Thought | Used | Error | Call | Barrier | Hang | Cut | Fail
Script = Sequence[Step]


class ScriptedModel:
    """The server. Scripts are added with :meth:`on`; requests are kept in :attr:`requests`.

    Attributes:
        requests: The bodies of all model calls.
        calls: Beside each, the provider that it was meant for and the key that it carried.
        embedded: The texts of all embedding calls.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str]] = []
        self._rules: list[tuple[Callable[[dict[str, Any]], bool], Script, int | None]] = []
        self._used: dict[int, int] = defaultdict(int)
        self._reached: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._open: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self.effects: list[str] = []
        self.embedded: list[str] = []
        self._embedding: list[tuple[str, Barrier | Fail]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def base_url(self, provider: str) -> str:
        """Where a worker finds this server in the place of a provider."""
        return f"http://127.0.0.1:{self.port}/as/{provider}"

    def asked(self, text: str, provider: str | None = None) -> list[dict[str, Any]]:
        """The requests whose messages hold ``text``, oldest first."""
        return [
            body
            for body, (name, _) in zip(self.requests, self.calls, strict=True)
            if text in json.dumps(body["messages"], ensure_ascii=False) and provider in (None, name)
        ]

    def key_of(self, text: str) -> str:
        """The key of the last request whose messages hold ``text``."""
        body = self.asked(text)[-1]
        return next(
            key for known, (_, key) in zip(self.requests, self.calls, strict=True) if known is body
        )

    def on(
        self,
        text: str,
        *script: Step,
        times: int | None = None,
        calls: int = 0,
        provider: str | None = None,
    ) -> None:
        """Answer a prompt whose last user message holds ``text``.

        Args:
            text: Part of the last user message.
            script: What to send.
            times: How often this rule applies; then the next one does.
            calls: Tool results that follow the user message.
            provider: The provider that is asked; any without one.
        """

        def matches(body: dict[str, Any]) -> bool:
            if provider not in (None, self.calls[-1][0]):
                return False
            said: str | None = None
            after = 0
            for message in reversed(body["messages"]):
                if message["role"] == "tool":
                    after += 1
                elif message["role"] == "user":
                    results = _tool_results(message)
                    after += results
                    if not results:
                        said = _own_words(message["content"])
                        break
            return said is not None and text in said and after == calls

        self._rules.append((matches, script, times))

    def on_system(self, text: str, *script: Step, times: int | None = None) -> None:
        """Answer a prompt whose first message, the system's, holds ``text``."""
        self._rules.append(
            (lambda body: text in str(body["messages"][0]["content"]), script, times)
        )

    def forget_scripts(self) -> None:
        """Answer nothing any more: what one test scripts is no other test's."""
        self._rules = []
        self._used.clear()
        self._embedding = []

    def on_embedding(self, text: str, step: Barrier | Fail) -> None:
        """Stop at a barrier, or fail, whenever a text that holds ``text`` is embedded."""
        self._embedding.append((text, step))

    def embed_again(self) -> None:
        """From now on every text is embedded."""
        self._embedding.clear()

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
                int(line.split(":")[1])
                for line in head.split("\r\n")
                if line.lower().startswith("content-le")
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
        if path.endswith("/embeddings"):
            await self._embed(writer, body)
            return
        self.requests.append(body)
        name = path.split("/")[2] if path.startswith("/as/") else "openai"
        self.calls.append((name, _key(head)))
        script = self._choose(body)
        if isinstance(script[0], Fail):
            await self._plain(writer, script[0].status, script[0].body, script[0].headers)
        elif path.endswith("/messages"):
            await self._play_anthropic(writer, body, script)
        else:
            await self._play(writer, body, script)

    async def _embed(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
        """Embed texts by their words, in OpenAI's format."""
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        self.embedded.extend(texts)
        for word, step in self._embedding:
            if not any(word in text for text in texts):
                continue
            if isinstance(step, Fail):
                await self._plain(writer, step.status, step.body, step.headers)
                return
            self._reached[step.name].set()
            await self._open[step.name].wait()
        data = [
            {"object": "embedding", "index": i, "embedding": word_vector(text)}
            for i, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        answer = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        await self._plain(writer, 200, answer)

    def _choose(self, body: dict[str, Any]) -> Script:
        for index, (matches, script, times) in enumerate(self._rules):
            if matches(body) and (times is None or self._used[index] < times):
                self._used[index] += 1
                return script
        return (Fail(400, body={"error": {"message": "no script fits this prompt"}}),)

    async def _play(
        self, writer: asyncio.StreamWriter, body: dict[str, Any], script: Script
    ) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        await writer.drain()
        calls = 0
        said = 0
        used = False
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
            elif isinstance(step, Whole):
                await self._event(writer, body, {"content": step.text}, key="message")
            elif isinstance(step, Used):
                await self._usage(writer, body, step)
                used = True
            elif isinstance(step, Error):
                error = {"error": {"message": step.message, "code": step.code}}
                await self._data(writer, error)
                return
            elif isinstance(step, Cut):
                return
            else:
                await self._stand(step)
        await self._event(writer, body, {}, finish="tool_calls" if calls else "stop")
        if not used:
            await self._usage(writer, body, Used(10, max(1, said // 4)))
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()

    async def _play_anthropic(
        self, writer: asyncio.StreamWriter, body: dict[str, Any], script: Script
    ) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        message = {"id": f"msg_{len(self.requests)}", "model": body["model"]}
        usage = {"input_tokens": 10, "output_tokens": 1}
        await self._data(writer, {"type": "message_start", "message": {**message, "usage": usage}})
        reason = "end_turn"
        for index, step in enumerate(script):
            block: dict[str, Any]
            deltas: list[dict[str, Any]]
            if isinstance(step, Text):
                block = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": step.text}]
            elif isinstance(step, Thought):
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": step.text},
                    {"type": "signature_delta", "signature": step.signature},
                ]
            elif isinstance(step, Call):
                reason = "tool_use"
                call_id = step.id or f"toolu_{len(self.requests)}_{index}"
                block = {"type": "tool_use", "id": call_id, "name": step.name, "input": {}}
                arguments = json.dumps(step.arguments)
                deltas = [{"type": "input_json_delta", "partial_json": arguments}]
            else:
                await self._stand(step)
                continue
            start = {"type": "content_block_start", "index": index, "content_block": block}
            await self._data(writer, start)
            for delta in deltas:
                await self._data(
                    writer, {"type": "content_block_delta", "index": index, "delta": delta}
                )
            await self._data(writer, {"type": "content_block_stop", "index": index})
        end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
        await self._data(writer, end)
        await self._data(writer, {"type": "message_stop"})

    async def _stand(self, step: Step) -> None:
        if isinstance(step, Barrier):
            self._reached[step.name].set()
            await self._open[step.name].wait()
        elif isinstance(step, Hang):
            await asyncio.Event().wait()

    async def _event(
        self,
        writer: asyncio.StreamWriter,
        body: dict[str, Any],
        delta: dict[str, Any],
        finish: str | None = None,
        key: str = "delta",
    ) -> None:
        event = {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion.chunk",
            "model": body["model"],
            "choices": [{"index": 0, key: delta, "finish_reason": finish}],
        }
        await self._data(writer, event)

    async def _usage(self, writer: asyncio.StreamWriter, body: dict[str, Any], used: Used) -> None:
        counts = {
            "prompt_tokens": used.prompt,
            "completion_tokens": used.completion,
            "total_tokens": used.prompt + used.completion,
        }
        await self._data(
            writer, {"id": "x", "model": body["model"], "choices": [], "usage": counts}
        )

    async def _data(self, writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
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


def _own_words(content: Any) -> str:
    """What the user says, without what was remembered for it."""
    if isinstance(content, str):
        return json.dumps(split_background(content)[1], ensure_ascii=False)
    parts = [
        {**part, "text": split_background(part["text"])[1]} if "text" in part else part
        for part in content or []
    ]
    return json.dumps(parts, ensure_ascii=False)


def _tool_results(message: dict[str, Any]) -> int:
    """Tool results in a user message, where Anthropic's format keeps them."""
    content = message["content"]
    if not isinstance(content, list):
        return 0
    return sum(part.get("type") == "tool_result" for part in content)


def _key(head: str) -> str:
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() in ("authorization", "x-api-key"):
            return value.strip().removeprefix("Bearer ")
    return ""
