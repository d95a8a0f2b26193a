"""Learning in a worker: the layer of each persona, and what a session's turn is prepared with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from ...personas.learning import (
    PREPARE_TIMEOUT,
    LearningSettings,
    Switches,
    TurnLearning,
    bind,
)
from ...personas.loops import Loop, LoopManifest
from ...personas.schema import Persona
from ...personas.self_changes import Holder, learned_traits
from ...personas.self_improvement import EmergentConfig
from ...workflows.steps import LearnOrder, RunStep
from .layer import LearningLayer, Turn, changes_of, params_of
from .pieces import change_pieces
from .store import LearningStore

MAX_LAYERS = 256


class Learning:
    """The learning of a worker's sessions.

    Args:
        store: Keeps changes.
        switches: What the process is told about every layer.
        default: For personas that do not say themselves whether they learn.
        timeout: Seconds that a turn waits for its preparation.
    """

    def __init__(
        self,
        store: LearningStore,
        switches: Switches | None = None,
        default: LearningSettings | None = None,
        timeout: float = PREPARE_TIMEOUT,
    ) -> None:
        self.store = store
        self.switches = switches or Switches()
        self._default = default
        self._timeout = timeout
        self._layers: OrderedDict[str, LearningLayer] = OrderedDict()

    def layer(self, persona: Persona) -> LearningLayer | None:
        """The layer of a persona; ``None`` when it does not learn."""
        settings = self._default if persona.learning is None else persona.learning
        if not settings:
            return None
        host = host_loops(persona)
        name = f"{persona.id}\n{settings.model_dump_json()}\n{host}"
        found = self._layers.get(name)
        if found is None:
            found = self._layers[name] = LearningLayer(
                settings,
                switches=self.switches,
                store=self.store,
                surface="gmi",
                profile="session",
                host=host,
                timeout=self._timeout,
            )
            while len(self._layers) > MAX_LAYERS:
                self._layers.popitem(last=False)
        self._layers.move_to_end(name)
        return found

    def manifest(self, persona: Persona) -> LoopManifest | None:
        """The manifest of a persona's layer; ``None`` when it does not learn."""
        layer = self.layer(persona)
        return None if layer is None else layer.manifest()

    async def for_step(self, request: RunStep, persona: Persona) -> TurnLearning | None:
        """What a step's prompt is told: prepared at the turn's opening, the same in later steps."""
        if request.opening is None or request.opening.learn is None:
            return request.learning
        return await self.prepare(
            persona,
            request.opening.learn,
            session=request.at.session,
            user=request.user_id,
            now=request.at.now.timestamp(),
        )

    async def prepare(
        self, persona: Persona, order: LearnOrder, *, session: str, user: str, now: float
    ) -> TurnLearning | None:
        """Prepare a turn; ``None`` for a persona that neither learns nor changes itself.

        Args:
            persona: Who answers.
            order: What the workflow knows.
            session: The session's key.
            user: Who speaks.
            now: Seconds since the epoch.
        """
        turn = Turn(
            session=session,
            user=user,
            now=now,
            namespace=order.org,
            seat=order.seat,
            traits=persona.personality_traits,
            overrides=order.overrides,
            emergent=persona.emergent or EmergentConfig(),
        )
        layer = self.layer(persona)
        if layer is not None:
            binding = order.binding or bind(
                layer.settings,
                persona_id=persona.id,
                user=user,
                namespace=order.org,
                seat=order.seat,
            )
            return await layer.prepare(binding, turn)
        if persona.self_improvement.enabled or turn.emergent.skills:
            return await self._without_layer(turn)
        return None

    async def _without_layer(self, turn: Turn) -> TurnLearning:
        changes, warnings = await changes_of(self.store, Holder(turn.session), self._timeout)
        return TurnLearning(
            pieces=tuple(change_pieces(turn.emergent, changes)),
            learned=learned_traits(changes, turn.now),
            params=params_of(changes),
            warnings=warnings,
        )


def host_loops(persona: Persona) -> Mapping[str, Loop]:
    """The loops that a session of this persona runs beside the layer's own."""
    memory = persona.memory
    without_memory = "the persona remembers nothing beyond its conversations"
    sentiment = persona.sentiment_tracking is not None and persona.sentiment_tracking.enabled
    improves = persona.self_improvement.enabled
    remembers = Loop(live=memory.enabled, detail=None if memory.enabled else without_memory)
    mechanisms = memory.enabled and memory.mechanisms is not None
    return {
        "memory": remembers,
        "memory_store": remembers,
        "memory_mechanisms": Loop(
            live=mechanisms, detail=None if mechanisms else "the persona's memory has none on"
        ),
        "memory_observer_reflector": Loop(live=False, detail="no such loop runs here"),
        "sentiment": Loop(
            live=sentiment, detail=None if sentiment else "the persona tracks no sentiment"
        ),
        "metaprompts": Loop(
            live=bool(persona.meta_prompts) or sentiment,
            detail=None if persona.meta_prompts or sentiment else "the persona has none",
        ),
        "emergent_tools": Loop(
            live=improves, detail=None if improves else "the persona may not change itself"
        ),
        "self_improvement_tools": Loop(
            live=improves, detail=None if improves else "the persona may not change itself"
        ),
        "forged_code_executor": Loop(
            live=False, detail="a forged tool is data and is evaluated; code is never run"
        ),
        "hitl": Loop(live="varies", detail="a tool may ask for approval, or be the host's"),
        "tool_policy": Loop(live=False, detail="no policy is asked beside approvals"),
        "rag": Loop(live=False, detail="no documents are retrieved"),
    }
