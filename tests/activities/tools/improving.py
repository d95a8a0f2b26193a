"""A worker's self-modification tools, with a session that calls them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from gmi.activities.catalog import Toolset
from gmi.activities.tools import Tool, ToolContext, ToolRegistry, external_tool, tool, tool_of
from gmi.activities.tools.runner import tool_activities
from gmi.activities.tools.self_improvement import (
    Asking,
    Judged,
    Parts,
    offered,
    self_improvement_tools,
)
from gmi.personas.errors import ToolError
from gmi.personas.learning import LearnerKey, Switches, TurnLearning
from gmi.personas.messages import Usage
from gmi.personas.schema import Persona
from gmi.workflows.steps import MindFacts, ToolCallInput, ToolOutcome

from ..learning.keeping import MemoryLearning
from .conftest import MemoryBlobs

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADA = LearnerKey(namespace="acme", agent="tutor", user="ada")
BOUND = TurnLearning(mode="on", learner="bound", key=ADA)


@dataclass
class Refused:
    """What a failed call says."""

    code: str | None
    message: str
    details: dict[str, Any]

    @property
    def reason(self) -> Any:
        return self.details.get("reason")


class Desk:
    """One worker, one persona, and tools that remember what was done with them."""

    def __init__(self, switches: Switches | None = None, **rules: Any) -> None:
        self.store = MemoryLearning()
        self.sent: list[tuple[str, str]] = []
        self.put: list[str] = []
        self.lost = False
        self.judged = 0
        self.scores = {"relevance": 1.0, "clarity": 0.5, "accuracy": 0.75, "helpfulness": 0.25}
        self.persona = persona(rules)
        self.env = ActivityEnvironment()
        parts = Parts(
            store=self.store,
            persona=self._persona,
            toolset=self._toolset,
            tools=lambda: self.registry,
            switches=switches or Switches(),
            judge=self._judge,
        )
        self.registry = ToolRegistry([*self._tools(), *self_improvement_tools(parts)])
        served = [tool for tool in self.registry.all() if tool.function is not None]
        made = tool_activities(self.registry, MemoryBlobs())
        self._activities = {tool.name: run for tool, run in zip(served, made, strict=True)}
        self._calls = 0

    async def call(
        self,
        tool_name: str,
        /,
        *,
        learning: TurnLearning | None = BOUND,
        session: str = "s1",
        key: str | None = None,
        step: int | None = None,
        traits: dict[str, float] | None = None,
        days: float = 0,
        **arguments: Any,
    ) -> Any:
        """A call's value, or why it failed."""
        outcome = await self.outcome(
            tool_name,
            learning=learning,
            session=session,
            key=key,
            step=step,
            traits=traits,
            days=days,
            **arguments,
        )
        return outcome if isinstance(outcome, Refused) else outcome.value

    async def outcome(
        self,
        tool_name: str,
        /,
        *,
        learning: TurnLearning | None = BOUND,
        session: str = "s1",
        key: str | None = None,
        step: int | None = None,
        traits: dict[str, float] | None = None,
        days: float = 0,
        **arguments: Any,
    ) -> ToolOutcome | Refused:
        self._calls += 1
        number = self._calls if step is None else step
        request = ToolCallInput(
            arguments=arguments,
            call_id=f"call-{self._calls}",
            key=key or f"{session}:turn:{number}:call-{self._calls}",
            session_id="session",
            user_id="ada",
            turn="turn",
            step=number,
            learning=learning,
            mind=MindFacts(
                session=session,
                now=NOW + timedelta(days=days),
                persona_digest="persona",
                toolset_digest="tools",
                traits=traits or {},
            ),
        )
        try:
            found = await self.env.run(self._activities[tool_name], request)
        except ApplicationError as error:
            details = error.details[0] if error.details else {}
            return Refused(error.type, error.message, details)
        assert isinstance(found, ToolOutcome)
        if found.is_error:
            assert found.error is not None
            return Refused(found.error.code, found.error.message, found.error.details)
        return found

    async def _persona(self, digest: str) -> Persona:
        return self.persona

    async def _toolset(self, digest: str) -> Toolset:
        names = offered(self.persona, None, self.registry)
        return Toolset(routes={name: self.registry.get(name).route for name in names})

    async def _judge(self, ask: Asking, query: str, response: str) -> Judged:
        self.judged += 1
        return Judged(self.scores, Usage(prompt_tokens=10, completion_tokens=2))

    def _tools(self) -> list[Tool]:
        @tool(effect="read")
        def look_up(word: str) -> dict[str, Any]:
            """Look a word up."""
            if word == "nothing":
                raise ToolError("there is no such word")
            return {"word": word, "letters": len(word), "parts": list(word)}

        @tool
        async def send(text: str, context: ToolContext) -> str:
            """Send a text."""
            self.sent.append((text, context.key))
            if self.lost:
                raise ConnectionError("the line is dead")
            return f"sent {text}"

        @tool(effect="idempotent")
        def put(text: str) -> int:
            """Put a text."""
            self.put.append(text)
            return len(self.put)

        @tool(approval=True)
        def order(item: str) -> str:
            """Order an item."""
            return item

        ask = external_tool("ask", "Ask.", {"type": "object", "properties": {}})
        return [tool_of(look_up), tool_of(send), tool_of(put), tool_of(order), ask]


def persona(rules: dict[str, Any]) -> Persona:
    return Persona.model_validate(
        {
            "id": "tutor",
            "name": "Tutor",
            "description": "d",
            "version": "1.0.0",
            "baseSystemPrompt": "You teach.",
            "emergent": {
                "selfImprovement": {"enabled": True, **rules},
                "skills": [
                    {"id": "chess", "name": "Chess", "category": "games", "enabled": True},
                    {"id": "go", "name": "Go", "category": "games", "description": "The board"},
                    {"id": "tax", "name": "Tax", "category": "law"},
                    {"id": "core", "name": "Core", "category": "games", "locked": True},
                ],
            },
        }
    )
