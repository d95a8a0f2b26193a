"""One call of a self-modification tool: who asks, whether it may, and whose change it would be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ....personas.errors import ToolError
from ....personas.learning import Refusal, Switches, refusal
from ....personas.messages import Usage
from ....personas.schema import Persona
from ....personas.self_changes import ChangeKind, Holder, SelfChange
from ....personas.self_improvement import SelfImprovementSettings, gated
from ....workflows.steps import MindFacts, Route, ToolOutcome
from ...learning.store import Call, Decide, LearningStore
from ..context import ToolContext
from ..registry import ToolRegistry


class Routes(Protocol):
    """The tools that a session has, by name."""

    @property
    def routes(self) -> dict[str, Route]:
        """How each is carried out."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """How good an answer is: scores from 0 to 1, and what the judging cost."""

    scores: dict[str, float]
    usage: Usage = field(default_factory=Usage)


class Judge(Protocol):
    """Judges answers."""

    async def __call__(self, ask: Asking, query: str, response: str) -> Judged:
        """How good a response to a query is.

        Args:
            ask: The call that wants to know.
            query: What was asked.
            response: What was answered.
        """
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What the self-modification tools of a worker share.

    Attributes:
        store: Keeps the changes.
        persona: A frozen persona by its digest.
        toolset: A session's tools by their digest.
        tools: The worker's tools, looked up when a workflow runs one.
        switches: What the process is told about learning.
        judge: Judges answers; without one nothing is evaluated.
    """

    store: LearningStore
    persona: Callable[[str], Awaitable[Persona]]
    toolset: Callable[[str], Awaitable[Routes]]
    tools: Callable[[], ToolRegistry]
    switches: Switches = field(default_factory=Switches)
    judge: Judge | None = None


class Asking:
    """One call.

    Args:
        tool: The tool's name.
        parts: What all calls share.
        context: Where the call stands.
        mind: Whose mind it is.
        persona: Who asks.
    """

    def __init__(
        self, tool: str, parts: Parts, context: ToolContext, mind: MindFacts, persona: Persona
    ) -> None:
        self.tool = tool
        self.parts = parts
        self.context = context
        self.mind = mind
        self.persona = persona
        learning = context.learning
        self.mode = None if learning is None else learning.mode
        self.layer = self.mode is not None
        bound = learning is not None and learning.learner == "bound"
        self.call = Call(
            key=context.key,
            holder=Holder(mind.session, learning.key if learning and bound else None),
            turn=context.turn,
            step=context.step,
            now=mind.now.timestamp(),
        )
        self.refusal: Refusal | None = refusal(
            parts.switches.frozen, self.mode, "bound" if bound else "none"
        )

    @property
    def rules(self) -> SelfImprovementSettings:
        """What the persona may change."""
        return self.persona.self_improvement

    async def made(self) -> ToolOutcome | None:
        """What an earlier attempt of this call made."""
        change = await self.parts.store.made(self.call.key)
        return None if change is None else outcome_of_change(change)

    def gate(self) -> None:
        """Refuse a change where learning is frozen, off, or has no learner.

        Raises:
            SelfChangeRefusedError: It is.
        """
        if self.refusal is not None:
            raise gated(self.tool, self.refusal)

    async def standing(self, kinds: Sequence[ChangeKind]) -> list[SelfChange]:
        """The changes that count for this turn; none where learning is off."""
        if self.mode == "off":
            return []
        return await self.parts.store.changes(self.call.holder, kinds)

    async def make(self, decide: Decide, kinds: Sequence[ChangeKind]) -> ToolOutcome | None:
        """Make a change; ``None`` when the decision was that there is none to make."""
        change = await self.parts.store.make(self.call, decide, kinds)
        return None if change is None else outcome_of_change(change)


async def asking(tool: str, parts: Parts, context: ToolContext) -> Asking:
    """Begin to serve a call.

    Raises:
        ToolError: The call does not say whose mind it is, or the persona may not change itself.
    """
    mind = context.mind
    if mind is None:
        raise ToolError(f"{tool} was called without a session's mind; call it from a session")
    persona = await parts.persona(mind.persona_digest)
    if not persona.self_improvement.enabled:
        raise ToolError(
            f"{tool} is not for persona {persona.id!r}; set emergent.selfImprovement.enabled in it"
        )
    return Asking(tool, parts, context, mind, persona)


def outcome_of_change(change: SelfChange) -> ToolOutcome:
    """What the call that made a change returns, on every attempt."""
    return ToolOutcome(value=change.result, patch=change.data.get("patch"))


def needed(tool: str, **arguments: Any) -> None:
    """Refuse a call that leaves out what its action needs.

    Raises:
        ToolError: An argument is missing or blank; the message names it.
    """
    for name, value in arguments.items():
        if value is None or (isinstance(value, str) and not value.strip()):
            raise ToolError(f"{tool}: this action needs the argument {name!r}; give it")
