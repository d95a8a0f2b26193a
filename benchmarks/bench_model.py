"""A model server in the benchmark's own process, so that one clock sees both ends of a stream."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench_processes import free_port

MODEL = "openai-compatible:bench"

WORDS = 20
PAUSE = 0.02


class StreamingModel:
    """Speaks OpenAI's chat protocol.

    Attributes:
        spoke: When the last answer's first text was written, by ``time.perf_counter``.
    """

    def __init__(self) -> None:
        self.spoke = 0.0
        self._port = free_port()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen while the body runs."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", self._port)
        try:
            yield
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await reader.readexactly(int(line.partition(b":")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        writer.write(b"connection: close\r\n\r\n")
        _event(writer, {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        await writer.drain()
        for word in range(WORDS):
            await asyncio.sleep(PAUSE)
            if word == 0:
                self.spoke = time.perf_counter()
            _event(writer, {"choices": [{"index": 0, "delta": {"content": f"word{word} "}}]})
            await writer.drain()
        _event(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 1, "completion_tokens": WORDS, "total_tokens": WORDS + 1}
        _event(writer, {"choices": [], "usage": usage})
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()


def _event(writer: asyncio.StreamWriter, fields: dict[str, object]) -> None:
    chunk = {"id": "bench", "object": "chat.completion.chunk", "model": "bench", **fields}
    writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
