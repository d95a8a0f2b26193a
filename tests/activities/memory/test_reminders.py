"""What was meant to be done reaches the prompt, whatever else the memory can or cannot tell."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from gmi.activities.memory.memories import Memories
from gmi.activities.memory.provider import ContextRequest, Observation
from gmi.activities.memory.store import MemoryStore
from gmi.activities.store.protocol import History
from gmi.personas.messages import Message
from gmi.personas.schema import Persona
from gmi.workflows.steps import At, OpenTurn, RecallOrder, Reminder, RunStep, Segment

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Contexts:
    """A store that keeps what a turn was shown, and has no memories to give."""

    async def context(self, session: str, turn: str) -> dict[str, Any] | None:
        return None

    async def keep_context(self, at: At, attempt: int, data: dict[str, Any]) -> dict[str, Any]:
        return data


class Provider:
    async def get_context(self, request: ContextRequest) -> str | None:
        return f"The host knows about {request.text}."

    async def observe(self, observation: Observation) -> None:
        raise AssertionError


def persona(**memory: Any) -> Persona:
    return Persona.model_validate(
        {
            "id": "p",
            "name": "P",
            "description": "For tests.",
            "version": "1.0.0",
            "baseSystemPrompt": "BASE",
            **({"memoryConfig": memory} if memory else {}),
        }
    )


def step(*reminders: Reminder) -> RunStep:
    return RunStep(
        at=At(session="s", turn="t", counter=1, now=NOW, run="r"),
        step=0,
        opening=OpenTurn(
            seq=1,
            request_id="r",
            digest="",
            kind="text",
            parent=None,
            segment=Segment(branch="main", depth=1),
            created_at=NOW,
            recall=RecallOrder(reminders=list(reminders)),
        ),
        persona_digest="",
        toolset_digest="",
        user_id="kim",
        remembers=True,
    )


HISTORY = History(turn=[Message(role="user", content="my cat is ill")])
DUE = Reminder(id="due", content="offer tea", importance=0.2)
CUED = Reminder(id="cued", content="the vet opens at nine", cue="cat", importance=0.8)
OTHER = Reminder(id="other", content="the concert", cue="music")


def memories(provider: Provider | None = None) -> Memories:
    return Memories(cast(MemoryStore, Contexts()), provider=provider)


async def test_a_persona_without_a_memory_is_told_by_importance() -> None:
    shown = await memories().for_step(step(DUE, CUED, OTHER), 1, persona(), HISTORY, [])
    assert shown.opened is not None
    assert shown.opened.reminded == ["cued", "due"]
    assert shown.text.index("the vet opens at nine") < shown.text.index("offer tea")
    assert "concert" not in shown.text
    assert shown.opened.warnings == []


async def test_it_stands_beside_what_the_hosts_own_memory_tells() -> None:
    shown = await memories(Provider()).for_step(step(DUE), 1, persona(), HISTORY, [])
    assert shown.opened is not None
    assert shown.opened.reminded == ["due"]
    assert "offer tea" in shown.text
    assert shown.text.endswith("The host knows about my cat is ill.")


async def test_what_is_due_is_told_when_the_recall_fails() -> None:
    mindful = persona(enabled=True)
    shown = await memories().for_step(step(DUE, CUED), 1, mindful, HISTORY, [])
    assert shown.opened is not None
    assert shown.opened.reminded == ["due"]
    assert "offer tea" in shown.text
    assert shown.opened.warnings[0].startswith("RECALL_FAILED")
