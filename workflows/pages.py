"""What crosses the one port that reads: a question, and a page of the answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .steps import PortModel

ReadKind = Literal[
    "session", "turns", "messages", "message", "trace", "usage", "turn", "mind", "text", "blob"
]


class Read(PortModel):
    """Input of the workflow ``GMIRead`` and of ``gmi.store.read``.

    Attributes:
        what: What to list.
        session_id: The session; its newest row counts unless ``session_key`` is given.
        turn: For ``turn``, ``mind``, ``messages``, ``message`` and ``text``: the turn; without it
            ``mind`` lists those of all turns.
        step: For ``message``: its step in the turn, as ``messages`` lists it.
        index: For ``message``: its place in the step.
        digest: For ``blob``.
        after: Cursor of the page before.
        limit: Items of a page.
        min_counter: Wait up to ``wait`` seconds until the store has this write counter.
    """

    what: ReadKind
    session_id: str
    session_key: str | None = None
    turn: str | None = None
    step: int | None = Field(default=None, ge=0, lt=1 << 31)
    index: int | None = Field(default=None, ge=0, lt=1 << 31)
    digest: str | None = None
    after: str | None = None
    limit: int = Field(default=100, ge=1, le=1000)
    min_counter: int = Field(default=0, ge=0, lt=1 << 62)
    wait: float = Field(default=5.0, ge=0, le=60)


class Page(PortModel):
    """A page of at most 256 KB.

    Attributes:
        items: JSON objects. One that alone is over the bound is cut, and has
            ``"truncated": true``: read a cut message with ``message``, whose pieces of ``json``
            make the whole.
        next: Cursor of the next page, or ``None`` on the last.
        counter: The store's write counter when the page was read.
        behind: The store did not reach ``min_counter`` in time.
    """

    items: list[dict[str, Any]] = Field(default_factory=list)
    next: str | None = None
    counter: int = 0
    behind: bool = False
