"""What a step asks beside its own call, and what that was billed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from temporalio import activity

from ..workflows.steps import At, RunStep
from .asking import Bill
from .progress import Progress
from .store.protocol import Store, UsageRow

logger = logging.getLogger(__name__)

ASK_SECONDS = 10.0
"""A question beside a step that takes longer is given up; the turn goes on without its answer."""

CUT_SECONDS = 3.0
"""A call that was cancelled has this long to tell the ledger what it was billed until then."""


def row_of(bill: Bill, at: At, step: int, attempt: int, purpose: str) -> UsageRow:
    """A bill as the ledger has it.

    Args:
        bill: What one hop was billed.
        at: The turn.
        step: The turn's step.
        attempt: The attempt that asked.
        purpose: What it was for.
    """
    return UsageRow(
        turn=at.turn,
        step=step,
        attempt=attempt,
        hop=bill.hop,
        provider=bill.provider,
        model=bill.model,
        state="failed" if bill.failed else "done",
        usage=bill.usage,
        purpose=purpose,
        at=at.now,
    )


async def bill_anyway(record: Callable[[], Awaitable[None]]) -> None:
    """Let a write to the ledger end where the call that it is for has come to nothing.

    It takes :data:`CUT_SECONDS` at most, and a failure is only logged. A cancel that comes
    meanwhile goes on when it has ended; one that came before is the caller's to raise again.
    """

    async def bounded() -> None:
        try:
            async with asyncio.timeout(CUT_SECONDS):
                await record()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            logger.warning("What a call was billed that came to nothing is not recorded: %s", why)

    task = asyncio.create_task(bounded())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def count(
    store: Store,
    request: RunStep,
    progress: Progress,
    attempt: int,
    bills: Sequence[Bill],
    purpose: str,
) -> None:
    """Record what was asked beside a step in the ledger, and count it with the step.

    In a step that is cancelled it is tried for a few seconds, and its failure is only logged.

    Args:
        store: The ledger.
        request: The step.
        progress: The step's, so that a later attempt counts it too.
        attempt: The attempt that asked.
        bills: What the questions were billed.
        purpose: What they were for, as the ledger names it.
    """
    if not bills:
        return
    hops: dict[int, Bill] = {}
    for bill in bills:
        known = hops.get(bill.hop)
        hops[bill.hop] = bill if known is None else replace(bill, usage=known.usage + bill.usage)
    rows = [row_of(bill, request.at, request.step, attempt, purpose) for bill in hops.values()]
    for row in rows:
        progress.beside = progress.beside + row.usage
    progress.unwritten += rows
    # Counted first: a store that is down is asked again by the next attempt, not the model.
    progress.beat()
    if activity.is_cancelled():
        await bill_anyway(partial(write, store, request, progress))
    else:
        await write(store, request, progress)


async def write(store: Store, request: RunStep, progress: Progress) -> None:
    """Record in the ledger what it may not have yet; writing a row twice changes nothing."""
    if progress.unwritten:
        await store.record_usage(request.at, progress.unwritten)
        progress.unwritten = []
