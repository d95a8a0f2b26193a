from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gmi.activities.store import SQLStore, open_store
from gmi.activities.store.memory.sql import SQLMemoryStore

from ...support.databases import Databases


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Databases:
    server = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql_server")
    return Databases(tmp_path_factory.mktemp(request.param), server)


@pytest.fixture(scope="session")
async def store(databases: Databases) -> AsyncIterator[SQLStore]:
    """One store of each kind for all tests; each test has scopes of its own."""
    async with open_store(databases.new()) as opened:
        yield opened


@pytest.fixture
def memory(store: SQLStore) -> SQLMemoryStore:
    """The memories of that store."""
    return SQLMemoryStore(store.database)
