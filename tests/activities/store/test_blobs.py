from __future__ import annotations

import asyncio
import hashlib

import pytest

from gmi.activities.store import SQLStore
from gmi.personas.errors import NotFoundError


async def test_values_come_back_under_their_sha256(store: SQLStore) -> None:
    values = [b"", b"\x00\xff binary", "text ☃".encode(), b"x" * 2_000_000, b""]
    digests = await store.put_blobs("json", values)
    assert digests == [hashlib.sha256(value).hexdigest() for value in values]
    assert [await store.get_blob(digest) for digest in digests] == values
    assert await store.put_blobs("json", values) == digests


async def test_no_values_are_no_digests(store: SQLStore) -> None:
    assert await store.put_blobs("json", []) == []


async def test_the_same_values_kept_by_many_at_once_are_kept_once(store: SQLStore) -> None:
    values = [f"blob {n}".encode() for n in range(20)]
    orders = [values, values[::-1]] * 5
    found = await asyncio.gather(*(store.put_blobs("json", order) for order in orders))
    assert all(sorted(digests) == sorted(found[0]) for digests in found)


async def test_an_unknown_digest_is_named(store: SQLStore) -> None:
    with pytest.raises(NotFoundError, match="no blob 'abc'"):
        await store.get_blob("abc")
