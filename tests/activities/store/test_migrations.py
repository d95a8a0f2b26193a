from __future__ import annotations

import asyncio
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, UniqueConstraint, inspect

from gmi.activities.store import open_store
from gmi.activities.store.engine import connect
from gmi.activities.store.schema import alembic_config
from gmi.activities.store.tables import metadata
from gmi.personas.errors import ConfigurationError


async def run(url: str, work: Any) -> Any:
    database = connect(url)
    try:
        return await database.write(work)
    finally:
        await database.close()


def tables_of(conn: Connection) -> set[str]:
    return set(inspect(conn).get_table_names()) - {"alembic_version"}


async def test_the_migrated_schema_is_the_one_that_the_code_uses(databases: Any) -> None:
    url = databases.new()
    async with open_store(url) as store:

        def differences(conn: Connection) -> list[Any]:
            options = {"compare_type": True, "compare_server_default": True}
            return list(compare_metadata(MigrationContext.configure(conn, opts=options), metadata))

        assert await store.database.read(differences) == []
        assert await store.database.read(tables_of) == set(metadata.tables)


async def test_primary_keys_and_unique_keys_are_those_of_the_code(databases: Any) -> None:
    async with open_store(databases.new()) as store:

        def keys(conn: Connection) -> dict[str, Any]:
            found = inspect(conn)
            return {
                name: (
                    set(found.get_pk_constraint(name)["constrained_columns"]),
                    {tuple(u["column_names"]) for u in found.get_unique_constraints(name)},
                    {tuple(f["constrained_columns"]) for f in found.get_foreign_keys(name)},
                )
                for name in metadata.tables
            }

        expected = {
            name: (
                {column.name for column in table.primary_key},
                {
                    tuple(column.name for column in constraint.columns)
                    for constraint in table.constraints
                    if isinstance(constraint, UniqueConstraint)
                },
                {tuple(f.column_keys) for f in table.foreign_key_constraints},
            )
            for name, table in metadata.tables.items()
        }
        assert await store.database.read(keys) == expected


async def test_stores_that_start_at_once_migrate_once(databases: Any) -> None:
    url = databases.new()

    async def start() -> None:
        async with open_store(url) as store:
            await store.ping()

    await asyncio.gather(*(start() for _ in range(6)))
    async with open_store(url, migrate=False) as store:
        assert await store.database.read(tables_of) == set(metadata.tables)


async def test_a_database_of_a_newer_version_is_refused(databases: Any) -> None:
    url = databases.new()
    async with open_store(url):
        pass
    newer = "UPDATE alembic_version SET version_num = '9999'"
    await run(url, lambda conn: conn.exec_driver_sql(newer))
    for migrate in (True, False):
        with pytest.raises(ConfigurationError, match="newer version of durable-gmi"):
            async with open_store(url, migrate=migrate):
                pass


async def test_without_migration_an_empty_database_is_refused_and_left_alone(
    databases: Any,
) -> None:
    url = databases.new()
    with pytest.raises(ConfigurationError, match="migrate=True"):
        async with open_store(url, migrate=False):
            pass
    assert await run(url, tables_of) == set()


async def test_a_migration_that_is_interrupted_leaves_nothing(databases: Any) -> None:
    url = databases.new()

    def interrupted(conn: Connection) -> None:
        command.upgrade(alembic_config(conn), "head")
        raise KeyError("stop")

    with pytest.raises(KeyError):
        await run(url, interrupted)
    assert await run(url, tables_of) == set()


async def test_the_first_migration_can_be_taken_back(databases: Any) -> None:
    url = databases.new()
    async with open_store(url):
        pass
    await run(url, lambda conn: command.downgrade(alembic_config(conn), "base"))
    assert await run(url, tables_of) == set()
