"""The learning layer: binds sessions to learners and prepares what each turn is told of them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...personas.errors import ConfigurationError
from ...personas.learning import (
    PREPARE_TIMEOUT,
    Binding,
    LearnerKey,
    LearningSettings,
    ModeInForce,
    NoLearner,
    PromptPiece,
    Switches,
    TurnLearning,
    bind_key,
    learner_of_turn,
    mode_in_force,
)
from ...personas.loops import Loop, LoopManifest, Surface, TurnCounts, manifest
from ...personas.personality import personality_section
from ...personas.prompt import PRIORITY_PERSONALITY
from ...personas.self_changes import ChangeKind, Holder, SelfChange, latest, learned_traits
from ...personas.self_improvement import EmergentConfig, with_learned
from .pieces import change_pieces
from .store import Call, Draft, LearningStore

PREPARED: tuple[ChangeKind, ...] = ("trait", "skill", "param", "tool")
"""Kinds of changes that a turn is told of."""

_log = logging.getLogger("gmi.learning")


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is prepared.

    Attributes:
        session: The session's key.
        user: Who speaks.
        now: Seconds since the epoch.
        namespace: The organization that the turn belongs to.
        seat: A workflow speaks instead of a user.
        traits: The traits that the persona's author wrote.
        overrides: Traits that the host set in this session.
        emergent: What the persona may change about itself.
    """

    session: str
    user: str
    now: float
    namespace: str = ""
    seat: bool = False
    traits: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, float] = field(default_factory=dict)
    emergent: EmergentConfig = field(default_factory=EmergentConfig)


@dataclass(frozen=True, slots=True)
class LearnerContext:
    """What a session with a learner is told of itself.

    Attributes:
        session_id: Names it.
        persona_id: Who speaks in it.
        authored_traits: The traits that the persona's author wrote.
        no_learner_reason: Why the host passes no key.
        emergent: What the persona may change about itself.
    """

    session_id: str
    persona_id: str = ""
    authored_traits: Mapping[str, Any] = field(default_factory=dict)
    no_learner_reason: NoLearner = "anonymous"
    emergent: EmergentConfig = field(default_factory=EmergentConfig)


class LearningLayer:
    """Prepares turns; see :func:`create_learning_layer`.

    Args:
        settings: How the agent learns.
        switches: What the process is told about every layer.
        store: Keeps changes; without one nothing is kept, and every turn shows what was authored.
        surface: Where the layer runs.
        profile: The host's name for how much of the mind it runs.
        host: The loops that the host runs, for the manifest.
        timeout: Seconds that a turn waits for its preparation.
    """

    def __init__(
        self,
        settings: LearningSettings,
        *,
        switches: Switches | None = None,
        store: LearningStore | None = None,
        surface: Surface = "custom",
        profile: str = "custom",
        host: Mapping[str, Loop] | None = None,
        timeout: float = PREPARE_TIMEOUT,
    ) -> None:
        self.settings = settings
        self._switches = switches or Switches()
        self._store = store
        self._surface: Surface = surface
        self._profile = profile
        self._host = dict(host or {})
        self._timeout = timeout
        self._prepared = 0
        self._bound = 0
        self._none: Counter[str] = Counter()
        self._told = False
        self._closed = False

    @property
    def mode(self) -> ModeInForce:
        """The mode of every turn, and what set it."""
        return mode_in_force(self.settings, self._switches)

    async def for_learner(self, key: LearnerKey | None, context: LearnerContext) -> LearnerSession:
        """Open a session of a learner, for a turn loop of one's own.

        A key without an agent or with a user id that stands for nobody gives a session that has
        no learner, shows the authored traits and learns nothing.

        Raises:
            ConfigurationError: The layer was closed.
        """
        if self._closed:
            raise ConfigurationError("the learning layer is closed; create a new one")
        self._say_once()
        binding = bind_key(self.settings, key, context.no_learner_reason)
        return LearnerSession(self, binding, context)

    async def prepare(self, binding: Binding, turn: Turn) -> TurnLearning:
        """What a turn is told; never fails, and takes no longer than the timeout."""
        self._say_once()
        mode = self.mode.mode
        place = self.settings.namespace
        found = learner_of_turn(
            binding,
            user=turn.user,
            namespace=turn.namespace if place is None else place,
            seat=turn.seat,
        )
        key, reason = found.key, found.reason
        changes: list[SelfChange] = []
        warnings: tuple[str, ...] = ()
        if key is not None and mode != "off" and self._store is not None:
            changes, warnings = await changes_of(
                self._store, Holder(turn.session, key), self._timeout
            )
            if warnings:
                key, reason = None, "failed"
        self._count(key, reason)
        learned = learned_traits(changes, turn.now)
        shown = dict(turn.traits)
        if self.settings.traits and key is not None and mode != "off":
            shown = with_learned({**shown, **turn.overrides}, learned)
        section = personality_section(shown)
        pieces = change_pieces(turn.emergent, changes)
        if section is not None:
            personality = PromptPiece(
                name="personality", priority=PRIORITY_PERSONALITY, text=section
            )
            pieces = [personality, *pieces]
        return TurnLearning(
            mode=mode,
            learner="none" if key is None else "bound",
            reason=reason,
            key=key,
            binding=found.binding,
            pieces=tuple(pieces),
            learned=learned,
            params=params_of(changes),
            warnings=warnings,
        )

    async def changes(self, key: LearnerKey) -> list[SelfChange]:
        """Everything that a learner's agent changed about itself, undone changes included."""
        if self._store is None:
            return []
        return await self._store.changes(Holder("", key))

    async def undo(self, id_: str, now: float, key: LearnerKey | None = None) -> bool:
        """Undo a change; ``False`` when there is none, or it is undone, or another learner's."""
        return self._store is not None and await self._store.undo(id_, now, key)

    async def switch_skill(
        self, key: LearnerKey, skill_id: str, on: bool, *, now: float, request: str
    ) -> SelfChange | None:
        """Switch a skill for a learner, as the host: no rule of the agent's own holds.

        Args:
            key: The learner.
            skill_id: The skill.
            on: Whether it shall be on.
            now: Seconds since the epoch.
            request: Makes one change of however many calls carry it.
        """
        if self._store is None:
            return None
        draft = Draft("skill", skill_id, {"on": on, "by": "host"})
        call = Call(f"host:{request}", Holder("", key), turn="", step=0, now=now)
        return await self._store.make(call, lambda _: draft, [])

    def manifest(self) -> LoopManifest:
        """Which loops run here, and what the layer prepared in this process."""
        return manifest(
            self.settings,
            self.mode,
            surface=self._surface,
            profile=self._profile,
            keeps=self._store is not None,
            host=self._host,
            turns=TurnCounts(prepared=self._prepared, bound=self._bound, none=dict(self._none)),
        )

    async def close(self) -> None:
        """Open no more sessions; those that are open go on, and the store stays open."""
        self._closed = True

    def _count(self, key: LearnerKey | None, reason: NoLearner | None) -> None:
        self._prepared += 1
        if key is not None:
            self._bound += 1
        else:
            self._none[reason or "ended"] += 1

    def _say_once(self) -> None:
        if not self._told:
            self._told = True
            said = self.manifest().model_dump_json(by_alias=True, exclude_none=True)
            _log.info("This worker's learning layer: %s", said)


class LearnerSession:
    """One session's turns, prepared one after the other.

    Args:
        layer: The layer.
        binding: What the session is bound to.
        context: The session.
    """

    def __init__(self, layer: LearningLayer, binding: Binding, context: LearnerContext) -> None:
        self._layer = layer
        self._context = context
        self.binding = binding

    async def prepare_turn(
        self, *, user: str, now: float, namespace: str = "", workflow_seat: bool = False
    ) -> TurnLearning:
        """Prepare one user turn, before its first model call.

        Args:
            user: Who speaks; somebody else than the learner's user ends the learner.
            now: Seconds since the epoch.
            namespace: Where; another one than the learner's ends the learner.
            workflow_seat: A workflow speaks instead of the user.
        """
        context = self._context
        prepared = await self._layer.prepare(
            self.binding,
            Turn(
                session=context.session_id,
                user=user,
                now=now,
                namespace=namespace,
                seat=workflow_seat,
                traits=context.authored_traits,
                emergent=context.emergent,
            ),
        )
        self.binding = prepared.binding or self.binding
        return prepared

    async def end_session(self) -> None:
        """End the learner: later turns have none."""
        self.binding = Binding(
            reason="ended", user=self.binding.user, namespace=self.binding.namespace
        )


def params_of(changes: list[SelfChange]) -> dict[str, Any]:
    """The settings that an agent gave itself, as they stand."""
    return {name: change.data.get("value") for name, change in latest(changes, "param").items()}


async def changes_of(
    store: LearningStore, holder: Holder, timeout: float
) -> tuple[list[SelfChange], tuple[str, ...]]:
    """The changes that a turn is told of, or none and a warning.

    Whatever a store raises, the turn goes on with what the persona's author wrote.
    """
    try:
        return await asyncio.wait_for(store.changes(holder, PREPARED), timeout), ()
    except Exception as error:
        what = (
            f"gave no answer within {timeout:g} s"
            if isinstance(error, TimeoutError)
            else f"failed: {type(error).__name__}: {error}"
        )
        warning = (
            f"LEARNING_UNAVAILABLE: what was learned could not be read: the store {what}; the "
            "turn goes on without it."
        )
        return [], (warning,)


def create_learning_layer(
    learning: LearningSettings | Mapping[str, Any] | bool = True,
    *,
    switches: Switches | None = None,
    store: LearningStore | None = None,
    profile: str = "custom",
    host: Mapping[str, Loop] | None = None,
    timeout: float = PREPARE_TIMEOUT,
) -> LearningLayer:
    """Make a layer for a turn loop of one's own.

    Args:
        learning: How the agent learns; ``True`` for the defaults.
        switches: What the process is told about every layer.
        store: Keeps changes, such as the worker's
            :class:`~gmi.activities.store.learning.sql.SQLLearningStore`.
        profile: The host's name for how much of the mind it runs.
        host: The loops that the host runs, by their names in :data:`gmi.personas.loops.HOST_LOOPS`.
        timeout: Seconds that a turn waits for its preparation.

    Raises:
        ConfigurationError: A setting has a value that it does not take, or learning is ``False``.
    """
    settings = LearningSettings.read(learning)
    if settings is None:
        raise ConfigurationError("learning is off: pass True or settings to make a layer")
    return LearningLayer(
        settings, switches=switches, store=store, profile=profile, host=host, timeout=timeout
    )
