"""The store's copy of what a session means to do later."""

from __future__ import annotations

from typing import Any

from gmi.activities.store.intentions import kept_intentions


async def kept(life: Any, at: Any) -> Any:
    return await life.store.database.read(lambda conn: kept_intentions(conn, at.session))


async def test_older_intentions_never_replace_newer_ones(life: Any) -> None:
    await life.whole_turn("t1")
    older, newer = life.at(), life.at()
    assert older.counter < newer.counter
    assert await kept(life, newer) is None
    await life.store.keep_intentions(newer, {"waiting": ["☃"], "digests": {}})
    await life.store.keep_intentions(older, {"waiting": [], "digests": {}})
    assert await kept(life, newer) == {"waiting": ["☃"], "digests": {}}
    await life.store.keep_intentions(life.at(), {"waiting": [], "digests": {}})
    assert await kept(life, newer) == {"waiting": [], "digests": {}}
