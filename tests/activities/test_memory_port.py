"""A turn that a mistake keeps from being encoded is given up; one without a store waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from gmi.activities.catalog import Catalog
from gmi.activities.embedders.embedder import EmbedderDownError
from gmi.activities.memory.memories import Memories
from gmi.activities.memory_port import MAX_CRASHES, MemoryActivities
from gmi.activities.store import SQLStore
from gmi.personas.errors import StoreError
from gmi.workflows.memory import Encode, Encoded
from gmi.workflows.steps import At

REQUEST = Encode(
    at=At(session="s", run="r", turn="t", counter=1, now=datetime(2026, 1, 1, tzinfo=UTC)),
    user_id="kim",
    persona_digest="p",
)


@dataclass
class Failing:
    """Personas and memories of which the second raises what it is told to."""

    error: Callable[[], Exception] | None
    store: Any = field(default=None)

    async def persona(self, digest: str) -> None:
        return None

    async def encode(self, request: Encode, persona: None, attempt: int) -> Encoded:
        if self.error is not None:
            raise self.error()
        return Encoded(traces=["one"])


class Attempts:
    """One activity's attempts; each is told what the one before said in its last heartbeat."""

    def __init__(self) -> None:
        self.failing = Failing(None)
        parts = cast(Any, self.failing)
        self.port = MemoryActivities(
            cast(Memories, parts), cast(Catalog, parts), cast(SQLStore, parts)
        )
        self.details: tuple[Any, ...] = ()
        self.number = 0

    async def next(self, error: Callable[[], Exception] | None) -> Encoded:
        self.number += 1
        self.failing.error = error
        environment = ActivityEnvironment()
        environment.info = replace(
            environment.info, attempt=self.number, heartbeat_details=list(self.details)
        )

        def kept(*details: Any) -> None:
            self.details = details

        environment.on_heartbeat = kept
        return await environment.run(self.port.encode, REQUEST)


async def test_a_turn_whose_encoding_always_crashes_is_given_up_with_a_warning() -> None:
    attempts = Attempts()
    for _ in range(MAX_CRASHES - 1):
        with pytest.raises(RuntimeError, match="broken embedder"):
            await attempts.next(lambda: RuntimeError("broken embedder"))
    given_up = await attempts.next(lambda: RuntimeError("broken embedder"))
    assert given_up.traces == []
    [warning] = given_up.warnings
    assert warning.startswith("ENCODING_FAILED: ")
    assert "RuntimeError: broken embedder" in warning


async def test_a_store_or_a_model_that_is_down_is_waited_for_and_counts_as_no_crash() -> None:
    attempts = Attempts()
    down = (
        lambda: StoreError("locked", details={"retryable": True}),
        lambda: EmbedderDownError("away"),
    )
    for _ in range(MAX_CRASHES):
        for error in down:
            with pytest.raises(ApplicationError):
                await attempts.next(error)
    for _ in range(MAX_CRASHES - 1):
        with pytest.raises(KeyError):
            await attempts.next(lambda: KeyError("once"))
    assert (await attempts.next(None)).traces == ["one"]
