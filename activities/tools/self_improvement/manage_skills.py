"""The tool that switches skills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ....personas.self_changes import SelfChange
from ....personas.self_improvement import (
    EmergentConfig,
    Skill,
    check_skill,
    needs_approval,
    refused,
    skills_on,
)
from ....workflows.steps import ToolOutcome
from ...learning.store import Draft
from ..context import ToolContext
from .asking import Asking, Parts, asking, needed
from .names import MANAGE_SKILLS

Action = Literal["enable", "disable", "search", "list"]


class ManageSkills:
    """Serves :data:`~.names.MANAGE_SKILLS`.

    Args:
        parts: What the tools share.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(
        self,
        action: Action,
        context: ToolContext,
        skillId: str | None = None,
        query: str | None = None,
    ) -> ToolOutcome:
        """List or search your skills, or switch one on or off.

        A skill that is on adds its instructions to what you are told from your next turn on.

        Args:
            action: What to do.
            skillId: For enable and disable: which skill.
            query: For search: words that the skill's name or description contains.
            context: Where the call stands.
        """
        ask = await asking(MANAGE_SKILLS, self._parts, context)
        skills = (ask.persona.emergent or EmergentConfig()).skills
        if action in ("list", "search"):
            if action == "search":
                needed(MANAGE_SKILLS, query=query)
            on = skills_on(skills, await ask.standing(["skill"]))
            found = [_view(skill, on) for skill in skills if _matches(skill, query)]
            return ToolOutcome(value={"skills": found})
        needed(MANAGE_SKILLS, skillId=skillId)
        return await ask.made() or await _switch(ask, skills, skillId or "", action == "enable")


async def _switch(ask: Asking, skills: Sequence[Skill], skill_id: str, on: bool) -> ToolOutcome:
    ask.gate()
    skill = next((skill for skill in skills if skill.id == skill_id), None)
    if skill is None:
        known = ", ".join(known.id for known in skills) or "none"
        raise refused(
            ask.tool, "unknown_skill", f"there is no skill {skill_id!r}; there are: {known}"
        )
    rules = ask.rules.skills
    check_skill(ask.tool, skill, rules)
    answer: dict[str, Any] = {"status": "enabled" if on else "disabled", "skillId": skill_id}

    def decide(changes: Sequence[SelfChange]) -> Draft | None:
        states = skills_on(skills, changes)
        if states[skill_id] == on:
            answer["alreadyActive" if on else "alreadyInactive"] = True
            return None
        if on and needs_approval(skill, skills, states, rules):
            answer["status"] = "requires_approval"
            answer["category"] = skill.category
            answer["reason"] = (
                f"no skill of the category {skill.category!r} is on; the host decides on a new one"
            )
            return None
        return Draft("skill", skill_id, {"on": on, "result": dict(answer)})

    return await ask.make(decide, ["skill"]) or ToolOutcome(value=answer)


def _view(skill: Skill, on: dict[str, bool]) -> dict[str, Any]:
    return {
        "skillId": skill.id,
        "name": skill.name,
        "description": skill.description,
        "category": skill.category,
        "enabled": on[skill.id],
        "locked": skill.locked,
    }


def _matches(skill: Skill, query: str | None) -> bool:
    if not query:
        return True
    text = f"{skill.id} {skill.name} {skill.description} {skill.category}".casefold()
    return all(word in text for word in query.casefold().split())
