"""What a learning layer says about itself: which loops run, which do not, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from .learning import LearningModel, LearningSettings, Mode, ModeInForce

Surface = Literal["gmi", "runtime", "custom"]

HOST_LOOPS = (
    "memory",
    "memory_mechanisms",
    "memory_observer_reflector",
    "memory_store",
    "sentiment",
    "metaprompts",
    "emergent_tools",
    "self_improvement_tools",
    "forged_code_executor",
    "hitl",
    "tool_policy",
    "rag",
)
"""Loops that the host runs, and says itself whether it does."""


class Loop(LearningModel):
    """Whether a loop runs; ``varies`` when a persona decides it.

    Attributes:
        detail: Why it does not run, or what it depends on.
    """

    live: bool | Literal["varies"]
    detail: str | None = None


class Guardrails(LearningModel):
    """Whether every change of itself passes a guardrail; it does not."""

    complete: bool = False
    detail: str = "changes of itself pass budgets and gates, and no guardrail reads their content"


class TurnCounts(LearningModel):
    """The turns that a layer prepared in this process.

    Attributes:
        bound: Those that had a learner.
        none: The others, by reason.
    """

    prepared: int = 0
    bound: int = 0
    none: dict[str, int] = Field(default_factory=dict)


class LoopManifest(LearningModel):
    """Which loops a deployment runs.

    Attributes:
        surface: ``gmi`` for one agent, ``runtime`` for a worker of many, ``custom`` for a turn
            loop of the host's own.
        profile: The host's name for how much of the mind it runs.
        mode: The mode in force.
        mode_set_by: ``config``, or the variable that set it.
    """

    surface: Surface
    profile: str
    mode: Mode
    mode_set_by: str
    loops: dict[str, Loop]
    guardrails: Guardrails = Guardrails()
    turns: TurnCounts = TurnCounts()


def manifest(
    settings: LearningSettings,
    mode: ModeInForce,
    *,
    surface: Surface,
    profile: str,
    keeps: bool,
    host: Mapping[str, Loop],
    turns: TurnCounts,
) -> LoopManifest:
    """The manifest of a layer.

    Args:
        settings: The layer's.
        mode: The mode in force.
        surface: Where it runs.
        profile: The host's name for it.
        keeps: The layer has a store.
        host: The host's own loops; those that it does not name are off.
        turns: What the layer prepared.
    """
    unknown = Loop(live=False, detail="the host runs no such loop, or did not say so")
    loops = {name: host.get(name, unknown) for name in HOST_LOOPS}
    loops["personality_rendering"] = Loop(live=True)
    loops["outcomes"] = _off("no outcome of a turn is recorded")
    loops["trait_changes"] = _trait_changes(settings.traits, mode, keeps)
    for name, asked in (("lessons", settings.lessons), ("skills", settings.skills)):
        said = "; they were asked for" if asked else ""
        loops[name] = _off(f"no {name} are learned from turns{said}")
    loops["ledger"] = (
        Loop(live=True, detail="each change is a row that can be undone")
        if keeps
        else _off("the layer has no store")
    )
    return LoopManifest(
        surface=surface,
        profile=profile,
        mode=mode.mode,
        mode_set_by=mode.set_by,
        loops=loops,
        turns=turns,
    )


def _off(detail: str) -> Loop:
    return Loop(live=False, detail=detail)


def _trait_changes(asked: bool, mode: ModeInForce, keeps: bool) -> Loop:
    if not asked:
        return _off("learning.traits was not asked for, so prompts show the authored traits")
    if not keeps:
        return _off("learning.traits was asked for, and the layer has no store")
    if mode.mode == "off":
        return _off("learning.traits was asked for, and the mode is off")
    return Loop(live=True)
