from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from gmi.activities.tools import Tool, ToolRegistry, tool_activities
from gmi.personas.errors import NotFoundError, StoreError
from gmi.workflows.steps import ToolCallInput, ToolOutcome


class MemoryBlobs:
    """Blobs in memory; refuses every write while ``down``."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.values: dict[str, bytes] = {}
        self.down = False

    async def put_blobs(self, kind: str, values: list[bytes]) -> list[str]:
        if self.down:
            raise StoreError("the database does not answer")
        digests = [hashlib.sha256(value).hexdigest() for value in values]
        self.values.update(zip(digests, values, strict=True))
        self.kinds.update(dict.fromkeys(digests, kind))
        return digests

    async def get_blob(self, digest: str) -> bytes:
        if digest not in self.values:
            raise NotFoundError(f"no blob {digest}")
        return self.values[digest]


class Bench:
    """Runs one call of one tool as a worker would."""

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()
        self.env = ActivityEnvironment()

    def activity(self, function: Tool | Callable[..., Any]) -> Callable[..., Any]:
        [made] = tool_activities(ToolRegistry([function]), self.blobs)
        return made

    async def call(
        self,
        function: Tool | Callable[..., Any],
        arguments_ref: str | None = None,
        **arguments: Any,
    ) -> ToolOutcome:
        request = ToolCallInput(
            arguments=arguments,
            arguments_ref=arguments_ref,
            call_id="call-1",
            key="session:turn:2:call-1",
            session_id="sess",
            user_id="ada",
            turn="turn",
            step=2,
        )
        outcome = await self.env.run(self.activity(function), request)
        assert isinstance(outcome, ToolOutcome)
        return outcome


@pytest.fixture
def bench() -> Bench:
    return Bench()
