"""What a step asks beside its own call, and what that was billed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..workflows.steps import RunStep
from .asking import Bill
from .progress import Progress
from .store.protocol import Store, UsageRow

ASK_SECONDS = 10.0
"""A question beside a step that takes longer is given up; the turn goes on without its answer."""


async def count(
    store: Store,
    request: RunStep,
    progress: Progress,
    attempt: int,
    bills: Sequence[Bill],
    purpose: str,
) -> None:
    """Record what was asked beside a step in the ledger, and count it with the step.

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
    rows = [
        UsageRow(
            turn=request.at.turn,
            step=request.step,
            attempt=attempt,
            hop=bill.hop,
            provider=bill.provider,
            model=bill.model,
            state="failed" if bill.failed else "done",
            usage=bill.usage,
            purpose=purpose,
            at=request.at.now,
        )
        for bill in hops.values()
    ]
    for row in rows:
        progress.beside = progress.beside + row.usage
    progress.unwritten += rows
    # Counted first: a store that is down is asked again by the next attempt, not the model.
    progress.beat()
    await write(store, request, progress)


async def write(store: Store, request: RunStep, progress: Progress) -> None:
    """Record in the ledger what it may not have yet; writing a row twice changes nothing."""
    if progress.unwritten:
        await store.record_usage(request.at, progress.unwritten)
        progress.unwritten = []
