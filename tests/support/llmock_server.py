"""The `llmock` model server, which speaks OpenAI's, Anthropic's and Gemini's formats."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from .temporal_server import free_port


class ModelServer:
    """A scripted model server that speaks three providers' formats."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self.url = url
        self.client = client

    async def script(self, *behaviors: dict[str, object]) -> None:
        response = await self.client.post(
            f"{self.url}/_llmock/scenario", json={"behaviors": list(behaviors)}
        )
        response.raise_for_status()

    async def reset(self) -> None:
        (await self.client.post(f"{self.url}/_llmock/reset")).raise_for_status()


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    """A running server."""
    port = free_port()
    program = Path(sys.executable).with_name("llmock")
    process = await asyncio.create_subprocess_exec(
        *(str(program), "serve", "--host", "127.0.0.1", "--port", str(port)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient() as client:
            for _ in range(600):
                try:
                    await client.get(f"{url}/health")
                    break
                except httpx.TransportError:
                    assert process.returncode is None, "the model server ended"
                    await asyncio.sleep(0.05)
            yield ModelServer(url, client)
    finally:
        process.terminate()
        await process.wait()
