"""Tools of the tests' workers: each reports its effect to the test, some stop at a barrier."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx

from gmi.activities.tools import ToolContext, external_tool, remote_tool, tool
from gmi.workflows.steps import ToolOutcome


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
    await _post("barrier/looking", f"look_up:{word}:{context.attempt}:{context.key}")
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
async def meet(name: str) -> str:
    """Wait at the barrier of this name."""
    await _post(f"barrier/{name}", f"meet:{name}")
    return f"met {name}"


@tool(effect="read")
async def not_a_number() -> float:
    """A result that JSON cannot hold."""
    return float("nan")


@tool(effect="read")
async def records(count: int) -> list[dict[str, Any]]:
    """So many records of a kilobyte each."""
    return [{"number": n, "text": "ü" * 500} for n in range(count)]


@tool(effect="read", timeout=1, max_attempts=1)
async def overdue() -> str:
    """Takes longer than it may."""
    await asyncio.Event().wait()
    return "never"


@tool(effect="once", timeout=1)
async def overdue_once(context: ToolContext) -> str:
    """May run only once, and takes longer than it may."""
    await _post("effect", f"overdue_once:{context.attempt}")
    await asyncio.Event().wait()
    return "never"


_queue = os.environ.get("TEST_REMOTE_QUEUE", "gmi-test-remote")
far_away = remote_tool(
    "far_away",
    "Add two numbers on another machine.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    task_queue=_queue,
    effect="read",
)
never_served = remote_tool(
    "never_served",
    "A tool whose workers are gone.",
    {"type": "object", "properties": {}},
    task_queue=f"{_queue}-nobody",
    effect="read",
    schedule_timeout=1,
)
unregistered = remote_tool(
    "unregistered",
    "A tool that the other worker has never heard of.",
    {"type": "object", "properties": {}},
    task_queue=_queue,
    effect="read",
)


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


@tool(effect="read")
async def meddle(patch: dict[str, Any]) -> ToolOutcome:
    """Wants to change the mind, though nobody lets it."""
    return ToolOutcome(value="meddled", patch=patch)
