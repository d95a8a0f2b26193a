from __future__ import annotations

import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError

from gmi.activities.store import SQLStore, Store, open_store
from gmi.activities.store.engine import database_url, store_failure
from gmi.personas.errors import ConfigurationError, StoreError


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ("sqlite:///store.db", "sqlite+pysqlite"),
        ("sqlite+aiosqlite:////var/lib/store.db", "sqlite+pysqlite"),
        ("postgresql://u:p@host:5432/gmi", "postgresql+psycopg"),
        ("postgres://u:p@host/gmi", "postgresql+psycopg"),
        ("postgresql+psycopg://u:p@host/gmi?sslmode=require", "postgresql+psycopg"),
    ],
)
def test_a_url_gets_the_driver_that_the_store_uses(given: str, driver: str) -> None:
    assert database_url(given).drivername == driver


@pytest.mark.parametrize(
    "given", ["sqlite://", "sqlite:///:memory:", "mysql://u:hush@host/x", "store.db", ""]
)
def test_another_url_is_refused_without_showing_its_password(given: str) -> None:
    with pytest.raises(ConfigurationError, match="use sqlite:///path") as caught:
        database_url(given)
    assert "hush" not in str(caught.value)


async def test_a_store_that_answers_pings(store: SQLStore) -> None:
    await store.ping()


def test_the_sql_store_is_a_store(store: SQLStore) -> None:
    taken: Store = store
    assert taken is store


async def test_a_server_that_is_down_is_a_retryable_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"postgresql://u:hush@127.0.0.1:{unused.getsockname()[1]}/gmi"
        with pytest.raises(StoreError) as caught:
            async with open_store(url):
                pass
    assert caught.value.details == {"retryable": True}
    assert "hush" not in str(caught.value)


async def test_a_file_that_cannot_be_opened_is_a_store_error(tmp_path: Path) -> None:
    folder = tmp_path / "store.db"
    folder.mkdir()
    with pytest.raises(StoreError) as caught:
        async with open_store(f"sqlite:///{folder}"):
            pass
    assert caught.value.details == {"retryable": True}


async def test_a_mistake_of_ours_is_not_hidden_behind_a_store_error(store: SQLStore) -> None:
    with pytest.raises(DBAPIError) as caught:
        await store.database.read(lambda conn: conn.exec_driver_sql("SELECT * FROM nowhere"))
    assert store_failure(caught.value) is None


async def test_a_broken_constraint_is_not_hidden_behind_a_store_error(
    store: SQLStore, life: Any
) -> None:
    twice = (
        f"INSERT INTO branches (session, branch, fork_depth) VALUES ('{life.session}', 'main', 0)"
    )
    with pytest.raises(IntegrityError):
        await store.database.write(lambda conn: conn.exec_driver_sql(twice))
    await store.ping()


async def test_a_failed_transaction_leaves_nothing_and_the_next_one_works(
    store: SQLStore, life: Any
) -> None:
    def half(conn: Any) -> None:
        conn.exec_driver_sql(f"DELETE FROM branches WHERE session = '{life.session}'")
        raise KeyError("stop")

    with pytest.raises(KeyError):
        await store.database.write(half)
    found = await store.database.read(
        lambda conn: conn.exec_driver_sql(
            f"SELECT count(*) FROM branches WHERE session = '{life.session}'"
        ).scalar()
    )
    assert found == 1
    await life.whole_turn("t1")


@pytest.mark.parametrize(
    ("name", "passing"),
    [
        ("SQLITE_BUSY", True),
        ("SQLITE_BUSY_SNAPSHOT", True),
        ("SQLITE_IOERR_FSYNC", True),
        ("SQLITE_FULL", True),
        ("SQLITE_ERROR", False),
        ("SQLITE_CORRUPT", False),
        ("SQLITE_CONSTRAINT_UNIQUE", False),
    ],
)
def test_only_sqlite_failures_that_pass_are_retryable(name: str, passing: bool) -> None:
    cause = sqlite3.OperationalError("it failed")
    cause.sqlite_errorname = name
    failure = store_failure(DBAPIError("SELECT 1", {}, cause))
    assert (failure is not None) == passing


async def test_a_lost_connection_is_retryable_and_the_next_call_works(
    postgresql_server: str, lives: Any
) -> None:
    async with open_store(postgresql_server) as store:
        end_it = "SELECT pg_terminate_backend(pg_backend_pid())"
        with pytest.raises(StoreError) as caught:
            await store.database.read(lambda conn: conn.exec_driver_sql(end_it))
        assert caught.value.details == {"retryable": True}
        await lives(store).open()
