from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gmi.activities.store import SQLStore, open_store
from gmi.activities.store.engine import connect
from gmi.personas.errors import StoreError
from gmi.workflows.pages import Read


class Lock:
    """Another process's lock on the file, held in a thread until it is let go."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = threading.Event()
        self._free = threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        conn = sqlite3.connect(self._path, isolation_level=None)
        conn.execute("BEGIN EXCLUSIVE")
        self._held.set()
        self._free.wait(30)
        conn.execute("ROLLBACK")
        conn.close()

    def take(self) -> None:
        self._thread.start()
        assert self._held.wait(10)

    def free(self) -> None:
        self._free.set()
        self._thread.join()


async def test_a_write_waits_for_a_lock_of_five_seconds_and_reads_go_on(
    tmp_path: Path, lives: Any
) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        life = lives(store)
        await life.open()
        lock = Lock(tmp_path / "store.db")
        lock.take()
        asyncio.get_running_loop().call_later(5.2, lock.free)
        start = time.monotonic()
        write = asyncio.create_task(life.begin("t1"))
        page = await store.read(Read(what="turns", session_id=life.session_id))
        assert (page.items, write.done()) == ([], False)
        await write
        assert time.monotonic() - start >= 5
        page = await store.read(Read(what="turns", session_id=life.session_id))
        assert [item["turn"] for item in page.items] == ["t1"]


async def test_a_lock_that_is_not_let_go_in_time_is_a_retryable_error(
    tmp_path: Path, lives: Any
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with open_store(url) as patient:
        life = lives(patient)
        await life.open()
    hasty = connect(url, busy_timeout=0.1)
    life.store = SQLStore(hasty)
    lock = Lock(tmp_path / "store.db")
    lock.take()
    with pytest.raises(StoreError, match="locked") as caught:
        await life.begin("t1")
    assert caught.value.details == {"retryable": True}
    lock.free()
    life.counter, life.seq = 0, 0
    await life.whole_turn("t1")
    await hasty.close()


async def test_a_write_is_finished_although_its_caller_was_cancelled(
    tmp_path: Path, lives: Any
) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        life = lives(store)
        await life.open()
        lock = Lock(tmp_path / "store.db")
        lock.take()
        write = asyncio.create_task(life.begin("t1"))
        # One turn of the loop begins the write.
        await asyncio.sleep(0)
        write.cancel()
        with pytest.raises(asyncio.CancelledError):
            await write
        lock.free()
        await life.reply(life.at("t1"))
        page = await store.read(Read(what="messages", session_id=life.session_id, turn="t1"))
        assert len(page.items) == 2


async def test_many_sessions_of_one_process_write_at_once(tmp_path: Path, lives: Any) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:

        async def live(number: int) -> Any:
            life = lives(store, run=f"run-{number}")
            await life.open()
            for turn in range(5):
                await life.whole_turn(f"t{turn}")
            return life

        everyone = await asyncio.gather(*(live(number) for number in range(20)))
        for life in everyone:
            row = await store.get_session(life.session)
            assert row is not None
            assert (row.head, row.seq) == ("t4", 5)


OTHER_PROCESS = """
import asyncio, sys
from gmi.activities.store import SQLStore, open_store
from gmi.activities.store.engine import connect

async def main(url, name):
    async with open_store(url) as store:
        for number in range(50):
            await store.put_blobs("json", [f"{name} {number}".encode()])

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_start_and_write_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'folder' / 'store.db'}"
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OTHER_PROCESS, url, name, stderr=asyncio.subprocess.PIPE
        )
        for name in ("one", "two")
    ]
    for process in processes:
        _, problem = await process.communicate()
        assert process.returncode == 0, problem.decode()
    async with open_store(url) as store:
        found = await store.database.read(
            lambda conn: conn.exec_driver_sql("SELECT count(*) FROM blobs").scalar()
        )
    assert found == 100


async def test_the_file_has_a_write_ahead_log_and_checks_its_keys(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:

        def settings(conn: Any) -> list[Any]:
            names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            return [conn.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

        assert await store.database.read(settings) == ["wal", 1, 1, 15_000]
