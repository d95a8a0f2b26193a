"""Reading a history as a step does, without beginning one."""

from __future__ import annotations

from typing import Any

from gmi.activities.store import History, Shown
from gmi.activities.store.history import load_history as load
from gmi.workflows.steps import At


async def load_history(life: Any, at: At, *, step: int, **shown: Any) -> History:
    """The messages for the prompt of a step."""
    history: History = await life.store.database.read(
        lambda conn: load(conn, at, step=step, shown=Shown(**shown))
    )
    return history
