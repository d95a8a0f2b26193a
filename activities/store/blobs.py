"""Large values, kept once under their digest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, func, select

from ...personas.errors import NotFoundError
from .rows import add
from .tables import blobs


def digest_of(value: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(value).hexdigest()


def put_blobs(conn: Connection, kind: str, values: dict[str, bytes]) -> None:
    """Keep values under their digests."""
    rows = [
        {"digest": digest, "kind": kind, "data": value, "bytes": len(value)}
        # One order for everybody, so that two writers never wait for each other.
        for digest, value in sorted(values.items())
    ]
    conn.execute(add(conn.dialect.name, blobs), rows)


def missing_blobs(conn: Connection, digests: Sequence[str]) -> set[str]:
    """Digests that no blob has."""
    found = conn.execute(select(blobs.c.digest).where(blobs.c.digest.in_(digests)))
    return set(digests) - set(found.scalars())


def get_blob(conn: Connection, digest: str) -> bytes:
    """The value of this digest."""
    query = select(blobs.c.data).where(blobs.c.digest == digest)
    data = conn.execute(query).scalar()
    if data is None:
        raise no_blob(digest)
    return bytes(data)


def blob_piece(conn: Connection, digest: str, offset: int, size: int) -> tuple[str, int, bytes]:
    """The kind and length of a blob, and ``size`` bytes of it from ``offset`` on."""
    # Cut by the database: a piece of a large blob costs a piece.
    query = select(
        blobs.c.kind, blobs.c.bytes, func.substr(blobs.c.data, offset + 1, size).label("piece")
    ).where(blobs.c.digest == digest)
    row = conn.execute(query).first()
    if row is None:
        raise no_blob(digest)
    return row.kind, row.bytes, bytes(row.piece)


def no_blob(digest: str) -> NotFoundError:
    """The error for a digest that no blob has."""
    return NotFoundError(
        f"the store has no blob {digest!r}; check the digest, and that the worker uses the "
        "database that the blob was written to",
        details={"digest": digest},
    )
