"""What was asked beside a step reaches the ledger, also when the store was down meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from temporalio.testing import ActivityEnvironment

from gmi.activities import beside
from gmi.activities.asking import Asker, Bill
from gmi.activities.beside import bill_anyway, count, write
from gmi.activities.feelings import Feelings
from gmi.activities.gateway.circuits import CircuitRegistry
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.activities.progress import Progress
from gmi.activities.sentiment import SentimentScorers
from gmi.activities.store.protocol import History, UsageRow
from gmi.personas.builtin import get_built_in_persona
from gmi.personas.errors import StoreError
from gmi.personas.messages import Message, Usage
from gmi.personas.parts import SentimentTracking
from gmi.workflows.steps import At, RunStep

from .memory.models import Writer

AT = At(session="s", turn="t", counter=1, now=datetime(2030, 1, 1, tzinfo=UTC), run="r")
BILL = Bill(0, "openai", "small", Usage(prompt_tokens=7))


class Ledger:
    """A store that is down until the test says otherwise."""

    def __init__(self) -> None:
        self.down = True
        self.rows: list[UsageRow] = []

    async def record_usage(self, at: At, rows: Sequence[UsageRow]) -> None:
        if self.down:
            raise StoreError("the store is away")
        self.rows += rows


class Desk:
    """An activity that waits for ever, and then counts a bill.

    Attributes:
        environment: Where it runs.
        progress: The step's.
    """

    def __init__(self) -> None:
        self.environment = ActivityEnvironment()
        self.ledger: Any = Ledger()
        self.progress = Progress()
        self.request = RunStep.model_construct(at=AT, step=0)
        self.beats: list[Any] = []
        self.environment.on_heartbeat = lambda *details: self.beats.append(details)

    async def cancelled(self) -> None:
        """Run it, and cancel it while it waits."""
        waits = asyncio.Event()

        async def step() -> None:
            try:
                waits.set()
                await asyncio.Event().wait()
            finally:
                await count(self.ledger, self.request, self.progress, 1, [BILL], "hyde")

        running = asyncio.create_task(self.environment.run(step))
        await waits.wait()
        self.environment.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_rows_that_could_not_be_written_are_written_by_the_next_attempt() -> None:
    desk = Desk()
    with pytest.raises(StoreError):
        await desk.environment.run(
            count, desk.ledger, desk.request, desk.progress, 1, [BILL], "sentiment"
        )
    desk.ledger.down = False
    later = Progress.resume(desk.beats[-1])
    assert later.beside.prompt_tokens == 7
    await write(desk.ledger, desk.request, later)
    await write(desk.ledger, desk.request, later)
    [row] = desk.ledger.rows
    assert (row.turn, row.attempt, row.purpose) == ("t", 1, "sentiment")
    assert row.usage.prompt_tokens == 7
    assert later.unwritten == []


async def test_a_cancelled_step_records_what_was_asked_beside_it() -> None:
    desk = Desk()
    desk.ledger.down = False
    await desk.cancelled()
    [row] = desk.ledger.rows
    assert (row.purpose, row.usage.prompt_tokens) == ("hyde", 7)


async def test_a_cancelled_step_stays_cancelled_when_the_ledger_fails() -> None:
    desk = Desk()
    await desk.cancelled()
    # A worker that shuts down hands it on to the next attempt.
    assert [row.purpose for row in Progress.resume(desk.beats[-1]).unwritten] == ["hyde"]


async def test_a_cancel_does_not_stop_a_bill_that_is_being_written() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    written: list[str] = []

    async def record() -> None:
        begun.set()
        await go_on.wait()
        written.append("bill")

    recording = asyncio.create_task(bill_anyway(record))
    await begun.wait()
    recording.cancel()
    await asyncio.sleep(0)
    recording.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await recording
    assert written == ["bill"]


async def hangs() -> None:
    await asyncio.Event().wait()


async def fails() -> None:
    raise StoreError("the store is away")


@pytest.mark.parametrize("record", [hangs, fails])
async def test_a_bill_that_cannot_be_written_holds_up_nobody_and_is_logged(
    record: Callable[[], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(beside, "CUT_SECONDS", 0.05)
    async with asyncio.timeout(10):
        await bill_anyway(record)
    [said] = caplog.records
    assert "is not recorded" in said.getMessage()


async def test_words_whose_scoring_is_cancelled_tell_what_it_was_billed() -> None:
    writer, asked = Writer(), asyncio.Event()

    async def hang() -> None:
        asked.set()
        await asyncio.Event().wait()

    writer.meanwhile = hang
    providers = ProviderRegistry(httpx.AsyncClient(), {})
    providers.register("writer", writer)
    feelings = Feelings(SentimentScorers(), Asker(providers, CircuitRegistry(lambda: 0.0), {}))
    persona = get_built_in_persona("v_researcher").model_copy(
        update={"sentiment_tracking": SentimentTracking(enabled=True, method="llm")}
    )
    request = RunStep.model_construct(mind=None, model="writer:one", credentials={})
    history = History(turn=[Message(role="user", content="That is great.")])
    bills: list[Bill] = []
    scoring = asyncio.create_task(feelings.score(request, persona, history, bills))
    await asked.wait()
    scoring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scoring
    assert [(bill.provider, bill.failed) for bill in bills] == [("writer", True)]
