"""The schema's version: bringing a database to the one that this code writes."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from ...personas.errors import ConfigurationError
from .learning import tables as learning_tables
from .memory import tables as memory_tables
from .tables import metadata

PARTS = (learning_tables, memory_tables)
"""Modules with tables of their own; imported, so that the metadata is whole for whoever asks."""

_LOCK = 0x676D69
"""Key of PostgreSQL's advisory lock that migrations hold."""


def upgrade(conn: Connection) -> None:
    """Bring the database to this code's schema; two processes may do so at once.

    Args:
        conn: A connection in a transaction that is to be committed afterwards; on SQLite the
            transaction holds the file's write lock.

    Raises:
        ConfigurationError: A newer version of the code wrote the database.
    """
    if conn.dialect.name == "postgresql":
        conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if not is_current(conn):
        command.upgrade(alembic_config(conn), "head")


def is_current(conn: Connection) -> bool:
    """Whether the database has this code's schema.

    Raises:
        ConfigurationError: A newer version of the code wrote the database.
    """
    scripts = ScriptDirectory.from_config(alembic_config(conn))
    ours = {script.revision for script in scripts.walk_revisions()}
    found = set(MigrationContext.configure(conn).get_current_heads())
    if unknown := found - ours:
        raise ConfigurationError(
            f"the store's database has schema {', '.join(sorted(unknown))}, which this version "
            "does not know: a newer version of durable-gmi wrote it; update durable-gmi, or use "
            "another database",
            details={"found": sorted(unknown), "newest": scripts.get_current_head()},
        )
    return found == set(scripts.get_heads())


def alembic_config(conn: Connection) -> Config:
    """Alembic's settings for the migrations of this package, run on one connection."""
    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    config.attributes["metadata"] = metadata
    return config
