"""What a turn begins with: what the host says of user and task, and the overlays that fit."""

from __future__ import annotations

from typing import Any, NamedTuple

from temporalio import workflow

from ..personas.contexts import told
from ..personas.mind import Mind
from ..personas.mood import moved
from ..personas.overlays import OverlayContext, OverlayEffect, OverlayRule, overlay_effect
from .core import Core
from .state import AppliedOverlays, TurnRecord
from .turns import FINAL_STATUSES

TASK_COMPLETED = "completed"


class _Before(NamedTuple):
    turn: str
    mind: Mind
    overlays: AppliedOverlays


class Beginning:
    """Prepares a session's mind for a turn.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._before: _Before | None = None

    def begin(self, record: TurnRecord) -> dict[str, float]:
        """Take contexts and overlays; returns the traits that the overlays change for the turn."""
        state = self._core.state
        self._before = _Before(record.turn, state.mind, state.overlays)
        self._take_contexts(record)
        return self._overlay(record)

    def undo(self, record: TurnRecord) -> None:
        """Take back what the turn began with: it turned out to have been made before."""
        before, state = self._before, self._core.state
        if before is None or before.turn != record.turn:
            return
        state.mind = state.mind.but(user=before.mind.user, task=before.mind.task)
        if state.overlays.mood is not None and state.overlays.mood != before.overlays.mood:
            state.mind = state.mind.but(mood=before.mind.mood)
        state.overlays = before.overlays
        self._before = None

    def _take_contexts(self, record: TurnRecord) -> None:
        """Take what the host says of the user and the task into the mind, where it stays."""
        state, given = self._core.state, record.input
        rules, mind = state.rules.mind, state.mind
        if given.user_context is not None:
            user, changed = told(mind.user, given.user_context, rules.user)
            mind = mind.but(user=user)
            self._changed(record, "user", changed)
        if given.task_context is not None:
            task, changed = told(mind.task, given.task_context, rules.task)
            mind = mind.but(task=task)
            self._changed(record, "task", changed)
        state.mind = mind

    def _changed(self, record: TurnRecord, whose: str, changed: dict[str, Any]) -> None:
        if not changed:
            return
        self._core.state.moved = True
        self._core.trace.add(
            "STATE_CHANGE",
            f"The host said more of the {whose}.",
            record.turn,
            {f"{whose}_context": changed},
        )

    def _overlay(self, record: TurnRecord) -> dict[str, float]:
        """Apply the overlays that fit the turn; returns the traits that they change for it.

        A mood is set when another one is asked for than at the turn before, so that it is free to
        move while the same rules apply.
        """
        core, state = self._core, self._core.state
        if not state.config.overlays:
            return {}
        rules = [OverlayRule.model_validate(rule) for rule in state.config.overlays]
        effect = overlay_effect(rules, self._situation(record))
        before = state.overlays
        state.overlays = AppliedOverlays(rules=effect.applied, mood=effect.mood)
        details: dict[str, Any] = {
            "rules": effect.applied,
            "before": before.rules,
            "traits": effect.numbers,
            "metadata": effect.metadata,
        }
        if effect.mood is not None and effect.mood != before.mood:
            details |= self._set_mood(record, effect)
        if effect.applied != before.rules:
            applied = ", ".join(effect.applied) or "none"
            core.trace.add("STATE_CHANGE", f"Overlays apply: {applied}.", record.turn, details)
        return effect.numbers

    def _situation(self, record: TurnRecord) -> OverlayContext:
        state = self._core.state
        ended = [
            card.status
            for card in state.cards
            if card.seq < record.seq and card.status in FINAL_STATUSES
        ]
        failed = bool(ended) and ended[-1] == "failed"
        return OverlayContext(
            first_activation=state.head is None,
            last_event=state.mind.last_event,
            state="errored" if failed else "ready",
            task_completed=state.mind.task.status == TASK_COMPLETED,
            facts={"taskStatus": state.mind.task.status},
        )

    def _set_mood(self, record: TurnRecord, effect: OverlayEffect) -> dict[str, Any]:
        """Jump to the mood that the overlays set; returns what to trace."""
        core, state = self._core, self._core.state
        if state.mind.mood is None or effect.mood is None:
            return {}
        result = moved(
            state.mind.mood, effect.mood, state.rules.mind.mood, workflow.now(), share=1.0
        )
        if result.refused is not None:
            core.trace.add("WARNING", result.refused, record.turn, {"overlays": effect.applied})
            return {}
        state.mind = state.mind.but(mood=result.state)
        state.moved = True
        return {"mood": result.state.word, "pad": result.state.pad.model_dump()}
