from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gmi.activities.store import SessionRow, SQLStore, UsageRow, open_store
from gmi.personas.messages import Message, Usage
from gmi.workflows.steps import At, OpenTurn, Segment
from gmi.workflows.trace import TraceEntry
from gmi.workflows.turns import TurnKind, TurnOutput, TurnStatus

from ...support.databases import Databases

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


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
    """One store of each kind for all tests; each test has a session of its own."""
    async with open_store(databases.new()) as opened:
        yield opened


class Life:
    """Writes to one session as its workflow and activities would."""

    def __init__(self, store: SQLStore, run: str = "run-1") -> None:
        self.store = store
        self.session_id = f"session-{uuid.uuid4().hex[:8]}"
        self.session = f"{self.session_id}~1"
        self.run = run
        self.reset = False
        self.counter = 0
        self.seq = 0
        self.parent: str | None = None
        self.branch = "main"
        self.depth = 0

    async def open(self, **changes: Any) -> SessionRow:
        row: dict[str, Any] = {
            "session": self.session,
            "session_id": self.session_id,
            "user_id": "ada",
            "org": "",
            "persona_digest": "p1",
            "toolset_digest": "t1",
            "config": {"stream": True},
            "state": None,
            "counter": 0,
            "created_at": START,
            "closed_at": None,
        }
        return await self.store.open_session(SessionRow(**(row | changes)), self.run)

    def at(self, turn: str = "", counter: int | None = None) -> At:
        if counter is None:
            self.counter += 1
            counter = self.counter
        return At(
            session=self.session,
            turn=turn,
            counter=counter,
            now=START + timedelta(seconds=counter),
            run=self.run,
            reset=self.reset,
        )

    def opening(self, turn: str, digest: str = "d", kind: TurnKind = "text") -> OpenTurn:
        self.seq += 1
        return OpenTurn(
            seq=self.seq,
            request_id=f"request-{turn}",
            digest=digest,
            kind=kind,
            parent=self.parent,
            segment=Segment(branch=self.branch, depth=self.depth + 1),
            persona_digest="p1",
            toolset_digest="t1",
            created_at=START + timedelta(seconds=self.counter),
        )

    def output(self, turn: str, status: TurnStatus = "done", **changes: Any) -> TurnOutput:
        return TurnOutput(
            session_key=self.session,
            turn=turn,
            request_id=f"request-{turn}",
            status=status,
            is_final=True,
            response_text=f"answer to {turn}",
            steps=1,
            **changes,
        )

    def bill(self, turn: str, state: str = "done", **changes: Any) -> UsageRow:
        row: dict[str, Any] = {
            "step": 0,
            "attempt": 1,
            "hop": 0,
            "provider": "offline",
            "model": "echo",
            "usage": Usage(prompt_tokens=10, completion_tokens=5)
            if state != "reserved"
            else Usage(),
        }
        return UsageRow(turn=turn, state=state, **(row | changes))

    def entry(self, seq: int, turn: str | None = None, **details: Any) -> TraceEntry:
        at = START + timedelta(seconds=seq)
        return TraceEntry(
            seq=seq, at=at, type="DEBUG", message=f"entry {seq}", turn=turn, details=details
        )

    async def begin(self, turn: str, *, attempt: int = 1, said: str | None = None) -> At:
        """Open a turn with one user message; returns where it was written."""
        at = self.at(turn)
        await self.store.begin_step(
            at,
            attempt,
            step=0,
            opening=self.opening(turn),
            new=[user(said or f"question {turn}")],
            expect_messages=0,
            reserve=self.bill(turn, "reserved", attempt=attempt),
            trace=[],
        )
        return at

    async def reply(self, at: At, *, attempt: int = 1, said: str | None = None) -> None:
        await self.store.save_reply(
            at,
            attempt,
            step=0,
            index=1,
            reply=assistant(said or f"answer to {at.turn}"),
            usage=self.bill(at.turn, attempt=attempt),
        )

    async def close(self, turn: str, status: TurnStatus = "done") -> At:
        at = self.at(turn)
        if status == "done":
            self.parent, self.depth = turn, self.depth + 1
        await self.store.close_turn(
            at,
            status=status,
            output=self.output(turn, status, write_counter=at.counter),
            opening=None,
            layout=[2],
            messages=[],
            trace=[],
            head=self.parent,
        )
        return at

    async def whole_turn(self, turn: str, *, said: str | None = None) -> None:
        """A plain turn from its input to its end."""
        await self.reply(await self.begin(turn, said=said))
        await self.close(turn)


def user(content: str) -> Message:
    return Message(role="user", content=content)


def assistant(content: str) -> Message:
    return Message(role="assistant", content=content)


@pytest.fixture
async def life(store: SQLStore) -> Life:
    """An open session."""
    life = Life(store)
    await life.open()
    return life


@pytest.fixture
def lives() -> type[Life]:
    """For tests that need more than one session, or one that is not open."""
    return Life
