"""What was asked beside a step reaches the ledger, also when the store was down meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from gmi.activities.asking import Bill
from gmi.activities.beside import count, write
from gmi.activities.progress import Progress
from gmi.activities.store.protocol import UsageRow
from gmi.personas.errors import StoreError
from gmi.personas.messages import Usage
from gmi.workflows.steps import At, RunStep

AT = At(session="s", turn="t", counter=1, now=datetime(2030, 1, 1, tzinfo=UTC), run="r")


class Ledger:
    """A store that is down until the test says otherwise."""

    def __init__(self) -> None:
        self.down = True
        self.rows: list[UsageRow] = []

    async def record_usage(self, at: At, rows: Sequence[UsageRow]) -> None:
        if self.down:
            raise StoreError("the store is away")
        self.rows += rows


async def test_rows_that_could_not_be_written_are_written_by_the_next_attempt() -> None:
    ledger: Any = Ledger()
    request = RunStep.model_construct(at=AT, step=0)
    environment = ActivityEnvironment()
    beats: list[Any] = []
    environment.on_heartbeat = lambda *details: beats.append(details)
    progress = Progress()
    bill = Bill(0, "openai", "small", Usage(prompt_tokens=7))
    with pytest.raises(StoreError):
        await environment.run(count, ledger, request, progress, 1, [bill], "sentiment")
    ledger.down = False
    later = Progress.resume(beats[-1])
    assert later.beside.prompt_tokens == 7
    await write(ledger, request, later)
    await write(ledger, request, later)
    [row] = ledger.rows
    assert (row.turn, row.attempt, row.purpose) == ("t", 1, "sentiment")
    assert row.usage.prompt_tokens == 7
    assert later.unwritten == []
