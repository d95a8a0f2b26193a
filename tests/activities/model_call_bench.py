"""Serves model calls as a worker would, one attempt after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from gmi.activities.asking import Asker
from gmi.activities.catalog import Catalog
from gmi.activities.gateway.circuits import CircuitRegistry
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.activities.model_calls import ModelCalls
from gmi.activities.store import SessionRow, SQLStore, UsageRow, open_store
from gmi.activities.tools import ToolRegistry
from gmi.personas.loader import PersonaCatalog
from gmi.personas.messages import Message, Usage
from gmi.personas.metaprompts import MindView
from gmi.personas.schema import Persona
from gmi.workflows.model_calls import CallResult, ModelCall
from gmi.workflows.pages import Read
from gmi.workflows.steps import At, OpenTurn, Segment
from gmi.workflows.turns import TurnOutput

from ..support.scripted_model import ScriptedModel

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SESSION = "session~1"

PERSONA = Persona.model_validate(
    {
        "id": "ada",
        "name": "Ada",
        "description": "a mathematician",
        "version": "1.0.0",
        "baseSystemPrompt": "You are Ada.",
        "sentimentTracking": {"enabled": True, "presets": "all"},
        "metaPrompts": [
            {
                "id": "own",
                "promptTemplate": "LOOK {{current_mood}} {{recent_conversation}} {{nobody}}",
                "trigger": {"type": "manual"},
            },
            {
                "id": "elsewhere",
                "promptTemplate": "LOOK",
                "modelId": "other",
                "providerId": "openai",
                "temperature": 1.0,
                "maxOutputTokens": 64,
                "trigger": {"type": "manual"},
            },
        ],
    }
)


class WavingStore(SQLStore):
    """A store whose ledger can be out of order for a while."""

    down = 0

    async def record_usage(self, at: At, rows: Any) -> None:
        if self.down:
            self.down -= 1
            raise RuntimeError("the ledger does not answer")
        await super().record_usage(at, rows)


class Bench:
    """One worker and one session with a turn.

    Attributes:
        env: Where attempts run; cancelling it cancels the attempt under way.
        details: What the last heartbeat told the server.
        failures: The failures of attempts that were followed by another.
    """

    def __init__(self, store: WavingStore, calls: ModelCalls, digest: str) -> None:
        self.store = store
        self.calls = calls
        self.digest = digest
        self.env = ActivityEnvironment()
        self.details: list[Any] = []
        self.failures: list[ApplicationError] = []

    def request(self, prompt_id: str = "own", **changes: Any) -> ModelCall:
        fields: dict[str, Any] = {
            "at": At(session=SESSION, turn="t1", counter=9, now=NOW, run="run-1"),
            "purpose": "metaprompt",
            "id": prompt_id,
            "persona_digest": self.digest,
            "view": MindView(mood="focused"),
            "model": "openai:scripted",
            "fallback": [],
        }
        return ModelCall.model_validate(fields | changes)

    async def attempt(self, request: ModelCall, number: int = 1, gone: float = 0.0) -> CallResult:
        """Serve one attempt, ``gone`` seconds after the first one was scheduled."""
        self.env = ActivityEnvironment()
        self.env.info = replace(
            self.env.info,
            attempt=number,
            heartbeat_details=list(self.details),
            started_time=self.env.info.scheduled_time + timedelta(seconds=gone),
        )
        self.env.on_heartbeat = self._beat
        return await self.env.run(self.calls.serve, request)

    async def serve(self, request: ModelCall, most: int = 5) -> CallResult:
        """Serve attempt after attempt, as long as they fail with what may pass."""
        for number in range(1, most):
            try:
                return await self.attempt(request, number)
            except ApplicationError as failure:
                if failure.non_retryable:
                    raise
                self.failures.append(failure)
            except RuntimeError:
                continue
        return await self.attempt(request, most)

    async def bills(self) -> list[dict[str, Any]]:
        page = await self.store.read(Read(what="usage", session_id="session", limit=100))
        return page.items

    def _beat(self, *details: Any) -> None:
        self.details = list(details)


@asynccontextmanager
async def bench(directory: Path, model: ScriptedModel) -> AsyncIterator[Bench]:
    """A bench whose session has one turn: ``the question`` and ``the answer``."""
    async with (
        open_store(f"sqlite:///{directory / 'store.db'}") as opened,
        httpx.AsyncClient() as client,
    ):
        store = WavingStore(opened.database)
        settings = {
            "OPENAI_API_KEY": "test-key-not-secret",
            "OPENAI_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "test-key-not-secret",
            "ANTHROPIC_BASE_URL": model.base_url("anthropic"),
        }
        providers = ProviderRegistry(client, settings)
        asker = Asker(providers, CircuitRegistry(lambda: 0.0), settings)

        async def nobody() -> PersonaCatalog:
            raise AssertionError("a frozen persona is read from the store")

        catalog = Catalog(nobody, ToolRegistry([]), store)
        [digest] = await store.put_blobs("persona", [PERSONA.to_json().encode()])
        await _one_turn(store, digest)
        yield Bench(store, ModelCalls(store, catalog, asker), digest)


async def _one_turn(store: SQLStore, digest: str) -> None:
    row = SessionRow(
        session=SESSION,
        session_id="session",
        user_id="kim",
        org="",
        persona_digest=digest,
        toolset_digest="",
        config={},
        state=None,
        counter=0,
        created_at=NOW,
        closed_at=None,
    )
    await store.open_session(row, "run-1")
    at = At(session=SESSION, turn="t1", counter=1, now=NOW, run="run-1")
    bill = UsageRow("t1", 0, 1, 0, "openai", "scripted", "done", Usage(prompt_tokens=1))
    opening = OpenTurn(
        seq=1,
        request_id="r1",
        digest="d",
        kind="text",
        parent=None,
        segment=Segment(branch="main", depth=1),
        created_at=NOW,
    )
    await store.begin_step(
        at,
        1,
        step=0,
        opening=opening,
        new=[Message(role="user", content="the question")],
        expect_messages=0,
        reserve=None,
        trace=[],
    )
    reply = Message(role="assistant", content="the answer")
    await store.save_reply(at, 1, step=0, index=1, reply=reply, usage=bill)
    output = TurnOutput(
        session_key=SESSION, turn="t1", request_id="r1", status="done", is_final=True
    )
    await store.close_turn(
        at.model_copy(update={"counter": 2}),
        status="done",
        output=output,
        opening=None,
        layout=[2],
        messages=[],
        trace=[],
        head="t1",
    )
