"""Tools of the tests' workers: each reports its effect to the test, some stop at a barrier."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx

from gmi.activities.tools import ToolContext, external_tool, tool


async def _post(path: str, effect: str) -> None:
    url = f"{os.environ['TEST_MODEL']}/{path}"
    async with httpx.AsyncClient(timeout=None) as client:
        await client.post(url, json={"effect": effect})


@tool(effect="once")
async def charge(amount: int, context: ToolContext) -> str:
    """Charge an amount; may happen only once."""
    await _post("effect", f"charge:{amount}:{context.key}")
    return f"charged {amount}"


@tool(effect="once")
async def charge_slowly(amount: int, context: ToolContext) -> str:
    """Charge an amount, then wait at the barrier ``charging``."""
    await _post("barrier/charging", f"charge_slowly:{amount}:{context.key}")
    return f"charged {amount}"


@tool(effect="idempotent")
async def look_up(word: str, context: ToolContext) -> dict[str, Any]:
    """Look a word up; waits at the barrier ``looking``."""
    await _post("barrier/looking", f"look_up:{word}:{context.attempt}")
    return {"word": word, "found": True}


@tool(effect="read")
async def echo(text: str) -> str:
    """Say it back."""
    return text


@tool(effect="read")
async def big(kilobytes: int) -> str:
    """A result of the given size."""
    return "x" * (kilobytes * 1024)


@tool(effect="read", max_attempts=3)
async def flaky(context: ToolContext) -> str:
    """Fails on its first attempt."""
    await _post("effect", f"flaky:{context.attempt}")
    if context.attempt < 2:
        raise RuntimeError("not yet")
    return "now"


@tool(effect="once")
async def broken() -> str:
    """Always fails."""
    raise ValueError("it is broken")


@tool(effect="read")
async def slow() -> str:
    """Waits for ever, until it is cancelled."""
    await asyncio.Event().wait()
    return "never"


@tool(effect="once", approval=True)
async def pay(amount: int) -> str:
    """Pay; a person has to allow it."""
    await _post("effect", f"pay:{amount}")
    return f"paid {amount}"


ask_person = external_tool(
    "ask_person",
    "Ask the person at the other end.",
    {
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
    },
)
