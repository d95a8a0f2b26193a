"""The tool that keeps steps over other tools under a name, and runs them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Literal

from ....personas.errors import ToolError
from ....personas.self_changes import SelfChange, latest
from ....personas.self_improvement import refused
from ....workflows.steps import ToolOutcome
from ...learning.store import Draft
from ..context import ToolContext
from .asking import Asking, Parts, asking, needed
from .composing import Step, check_steps, run_steps
from .names import CREATE_WORKFLOW

Action = Literal["create", "run", "list"]

MAX_WORKFLOWS = 50
MAX_NAME = 100
MAX_BYTES = 16 * 1024


class CreateWorkflow:
    """Serves :data:`~.names.CREATE_WORKFLOW`.

    Args:
        parts: What the tools share.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(
        self,
        action: Action,
        context: ToolContext,
        name: str | None = None,
        description: str | None = None,
        steps: list[Step] | None = None,
        workflowId: str | None = None,
        input: Any = None,
    ) -> ToolOutcome:
        """Keep a sequence of calls of your other tools as a workflow, run one, or list them.

        In the arguments of a step, "$input" stands for what the workflow is run with, "$prev" for
        what the step before gave, and "$steps[0]" for what a certain step gave; ".field" and
        "[0]" may follow.

        Args:
            action: What to do.
            name: For create: a short name.
            description: For create: what it is good for.
            steps: For create: each with a tool and its args.
            workflowId: For run: which workflow.
            input: For run: what it is run with.
            context: Where the call stands.
        """
        ask = await asking(CREATE_WORKFLOW, self._parts, context)
        if action == "list":
            return ToolOutcome(value={"workflows": await _listed(ask)})
        if action == "create":
            needed(CREATE_WORKFLOW, name=name, steps=steps)
            made = await ask.made()
            return made or await _create(ask, name or "", description or "", steps or [])
        needed(CREATE_WORKFLOW, workflowId=workflowId)
        return await ask.made() or await _run(ask, workflowId or "", input)


async def _create(ask: Asking, name: str, description: str, steps: list[Step]) -> ToolOutcome:
    ask.gate()
    data = {
        "name": name.strip(),
        "description": description.strip(),
        "steps": [step.model_dump() for step in steps],
    }
    if len(name) > MAX_NAME or len(json.dumps(data).encode()) > MAX_BYTES:
        raise refused(
            ask.tool,
            "too_large",
            f"a name has at most {MAX_NAME} characters and a workflow {MAX_BYTES} bytes",
        )
    await check_steps(ask, steps)
    workflow = f"workflow-{hashlib.sha256(ask.call.key.encode()).hexdigest()[:12]}"
    result = {"workflowId": workflow, "name": name.strip(), "stepCount": len(steps)}

    def decide(changes: Sequence[SelfChange]) -> Draft:
        if len(latest(changes, "workflow")) >= MAX_WORKFLOWS:
            raise refused(ask.tool, "limit_reached", f"there are {MAX_WORKFLOWS} workflows")
        return Draft("workflow", workflow, {**data, "result": result})

    outcome = await ask.make(decide, ["workflow"])
    assert outcome is not None  # the decision is a draft or an error
    return outcome


async def _run(ask: Asking, workflow: str, given: Any) -> ToolOutcome:
    changes = await ask.standing(["workflow"])
    found = latest(changes, "workflow").get(workflow)
    if found is None:
        known = ", ".join(latest(changes, "workflow")) or "none"
        raise ToolError(f"there is no workflow {workflow!r}; there are: {known}")
    steps = [Step.model_validate(step) for step in found.data["steps"]]
    results = await run_steps(ask, steps, given)
    answer: dict[str, Any] = {
        "workflowId": workflow,
        "stepResults": [
            {"tool": step.tool, "result": result}
            for step, result in zip(steps, results, strict=True)
        ],
        "finalOutput": results[-1],
    }

    def decide(changes: Sequence[SelfChange]) -> Draft:
        runs = sum(change.name == workflow for change in changes)
        answer["runCount"] = runs + 1
        return Draft("run", workflow, {"result": dict(answer)})

    outcome = await ask.make(decide, ["run"])
    assert outcome is not None  # the decision is a draft
    return outcome


async def _listed(ask: Asking) -> list[dict[str, Any]]:
    changes = await ask.standing(["workflow", "run"])
    return [
        {
            "workflowId": workflow,
            "name": change.data["name"],
            "description": change.data["description"],
            "stepCount": len(change.data["steps"]),
            "runCount": sum(c.kind == "run" and c.name == workflow for c in changes),
        }
        for workflow, change in latest(changes, "workflow").items()
    ]
