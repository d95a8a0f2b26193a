"""The self-modification tools as tools of a registry, and who is offered them."""

from __future__ import annotations

from collections.abc import Iterable

from ....personas.schema import Persona
from ..registry import Tool, ToolRegistry
from .adapt_personality import AdaptPersonality
from .asking import Parts
from .create_workflow import CreateWorkflow
from .forge_tool import ForgeTool
from .manage_skills import ManageSkills
from .names import (
    ADAPT_PERSONALITY,
    CREATE_WORKFLOW,
    FORGE_TOOL,
    MANAGE_SKILLS,
    SELF_EVALUATE,
    SELF_IMPROVEMENT_TOOLS,
    USE_FORGED_TOOL,
)
from .self_evaluate import SelfEvaluate
from .use_forged_tool import UseForgedTool

RUN_TIMEOUT = 330.0
"""Seconds for a workflow: ten steps of 30 s, and what is written beside them."""

FORGE_TIMEOUT = 90.0
JUDGE_TIMEOUT = 60.0


def self_improvement_tools(parts: Parts) -> list[Tool]:
    """The tools; a worker serves them all, and :func:`offered` says to whom.

    Each makes its change once however often its call is tried, so a lost worker loses nothing.
    """
    return [
        Tool.from_function(
            AdaptPersonality(parts).run,
            name=ADAPT_PERSONALITY,
            effect="idempotent",
            reads_mind=True,
        ),
        Tool.from_function(
            ManageSkills(parts).run, name=MANAGE_SKILLS, effect="idempotent", reads_mind=True
        ),
        Tool.from_function(
            CreateWorkflow(parts).run,
            name=CREATE_WORKFLOW,
            effect="idempotent",
            timeout=RUN_TIMEOUT,
            reads_mind=True,
        ),
        Tool.from_function(
            SelfEvaluate(parts).run,
            name=SELF_EVALUATE,
            effect="idempotent",
            timeout=JUDGE_TIMEOUT,
            reads_mind=True,
        ),
        Tool.from_function(
            ForgeTool(parts).run,
            name=FORGE_TOOL,
            effect="idempotent",
            timeout=FORGE_TIMEOUT,
            reads_mind=True,
        ),
        Tool.from_function(
            UseForgedTool(parts).run,
            name=USE_FORGED_TOOL,
            effect="read",
            timeout=FORGE_TIMEOUT,
            reads_mind=True,
        ),
    ]


def offered(persona: Persona, names: Iterable[str] | None, registry: ToolRegistry) -> list[str]:
    """The tools of a session.

    Args:
        persona: Who answers; only one that may change itself has the self-modification tools.
        names: The tools that the session or the persona names; ``None`` for every tool.
        registry: The worker's tools.
    """
    known = registry.names()
    wanted = known if names is None else list(names)
    others = [name for name in wanted if name not in SELF_IMPROVEMENT_TOOLS]
    if not persona.self_improvement.enabled:
        return others
    return [*others, *(name for name in known if name in SELF_IMPROVEMENT_TOOLS)]
