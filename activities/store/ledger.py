"""The ledger: what each attempt of a model call was billed."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from ...personas.messages import Usage
from ...workflows.state import count_usage
from ...workflows.steps import At
from .fences import lock_session, resolve_epoch
from .protocol import UsageRow
from .rows import Values, upsert_usage
from .tables import runs, usage


def usage_values(at: At, epoch: int, row: UsageRow) -> Values:
    """A row of ``usage``."""
    return {
        "session": at.session,
        "turn": row.turn,
        "purpose": row.purpose,
        "epoch": epoch,
        "step": row.step,
        "attempt": row.attempt,
        "hop": row.hop,
        "provider": row.provider,
        "model": row.model,
        "state": row.state,
        "usage": row.usage.model_dump(mode="json"),
        "at": row.at or at.now,
    }


def settle_usage(conn: Connection, at: At, epoch: int, row: UsageRow) -> None:
    """Write a row of the ledger inside another transaction."""
    conn.execute(upsert_usage(conn.dialect.name), usage_values(at, epoch, row))


def record_usage(conn: Connection, at: At, rows: Sequence[UsageRow]) -> None:
    """Write or settle rows; a bill is recorded even when its run was abandoned by a reset."""
    if not rows:
        return
    lock_session(conn, at.session)
    mine = (runs.c.session == at.session) & (runs.c.run == at.run)
    known = conn.execute(select(runs.c.epoch).where(mine)).scalar()
    epoch = resolve_epoch(conn, at) if known is None else known
    values = [usage_values(at, epoch, row) for row in rows]
    conn.execute(upsert_usage(conn.dialect.name), values)


def billed(conn: Connection, session: str) -> dict[str, Usage]:
    """What a session was billed, by ``provider:model`` in the order of their first bills.

    Many models are counted as a live session counts them.
    """
    settled = (
        select(usage.c.provider, usage.c.model, usage.c.state, usage.c.usage)
        .where(usage.c.session == session, usage.c.state != "reserved")
        .order_by(usage.c.at)
    )
    by_model: dict[str, Usage] = {}
    for provider, model, state, data in conn.execute(settled):
        used = Usage.model_validate(data)
        if state == "failed" and used == Usage():
            # A provider that refused the call and took nothing for it.
            continue
        count_usage(by_model, f"{provider}:{model}", used)
    return by_model
