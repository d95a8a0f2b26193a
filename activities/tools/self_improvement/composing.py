"""Steps over a session's tools: checked when they are kept, run one after the other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ....personas.errors import ToolError
from ....personas.self_improvement import refused
from ....workflows.steps import Route, ToolOutcome
from ....workflows.turns import ErrorInfo
from ..registry import Tool
from ..results import encode
from ..runner import invoke
from ..schema import ArgumentsInvalidError, Signature
from .asking import Asking
from .names import SELF_IMPROVEMENT_TOOLS

STEP_TIMEOUT = 30.0
"""Seconds that one step may take."""

MAX_STEP_BYTES = 64 * 1024
"""Bytes of what one step gives to the next."""

_REFERENCE = re.compile(r"\$(input|prev|steps\[(\d+)\])((?:\.[A-Za-z_]\w*|\[\d+\])*)")
_PART = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


class Step(BaseModel):
    """One step.

    Attributes:
        tool: The tool's name.
        args: Its arguments; a text such as ``$input``, ``$prev.name`` or ``$steps[0]`` stands for
            a value: what was given, what the step before gave, what a certain step gave.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    args: dict[str, Any] = Field(default_factory=dict)


async def check_steps(ask: Asking, steps: Sequence[Step], *, read_only: bool = False) -> None:
    """Refuse steps that could not be run.

    Args:
        ask: Who asks.
        steps: The steps.
        read_only: Only tools that change nothing may be used.

    Raises:
        SelfChangeRefusedError: There are too many or none, or one names a tool that the session
            does not have or that cannot be part of a composition.
    """
    limit = ask.rules.workflows.max_steps
    if not 1 <= len(steps) <= limit:
        raise refused(ask.tool, "too_many_steps", f"there are {len(steps)} steps; use 1 to {limit}")
    routes = (await ask.parts.toolset(ask.mind.toolset_digest)).routes
    for index, step in enumerate(steps):
        why = _unusable(ask, step, routes, read_only)
        if why is not None:
            raise refused(ask.tool, "not_composable", f"step {index} uses {step.tool!r}, {why}")
        for reference in _references(step.args):
            number = reference.group(2)
            if number is not None and int(number) >= index:
                raise refused(
                    ask.tool,
                    "not_composable",
                    f"step {index} refers to {reference.group(0)!r}, which comes later",
                )


async def run_steps(
    ask: Asking, steps: Sequence[Step], given: Any, *, read_only: bool = False
) -> list[Any]:
    """Run steps; what changes something is done once, also when the call is tried again.

    Args:
        ask: Who asks.
        steps: The steps, checked before.
        given: What ``$input`` stands for.
        read_only: Only tools that change nothing may be used.

    Returns:
        What each step gave.

    Raises:
        ToolError: A step failed, or cannot be run any more; the details name it.
    """
    routes = (await ask.parts.toolset(ask.mind.toolset_digest)).routes
    results: list[Any] = []
    for index, step in enumerate(steps):
        why = _unusable(ask, step, routes, read_only)
        if why is not None:
            raise _failed(index, step, f"the session can no longer use it: it is a tool {why}")
        arguments = resolve(step.args, given, results)
        if routes[step.tool].effect == "read":
            results.append(await _run(ask, index, step, arguments))
            continue
        results.append(await _run_once(ask, index, step, arguments, routes[step.tool]))
    return results


def resolve(value: Any, given: Any, results: Sequence[Any]) -> Any:
    """Arguments with every reference replaced by the value that it stands for.

    Raises:
        ToolError: A reference leads to nothing.
    """
    if isinstance(value, dict):
        return {name: resolve(part, given, results) for name, part in value.items()}
    if isinstance(value, list):
        return [resolve(part, given, results) for part in value]
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    try:
        if found.group(2) is not None:
            place = results[int(found.group(2))]
        elif found.group(1) == "prev":
            place = results[-1] if results else given
        else:
            place = given
        for name, number in _PART.findall(found.group(3)):
            place = place[name] if name else place[int(number)]
    except (LookupError, TypeError) as error:
        raise ToolError(f"{value!r} leads to nothing: {type(error).__name__}: {error}") from error
    return place


async def _run_once(
    ask: Asking, index: int, step: Step, arguments: dict[str, Any], route: Route
) -> Any:
    store, call = ask.parts.store, ask.call
    known = await store.begin_step(call, index)
    if known is not None and known.done:
        return known.result
    if known is not None and route.effect == "once":
        raise _failed(
            index,
            step,
            "it was started before and its worker was lost; it may have run and is not run again",
            code="TOOL_OUTCOME_UNKNOWN",
        )
    result = await _run(ask, index, step, arguments)
    await store.end_step(call.key, index, result)
    return result


async def _run(ask: Asking, index: int, step: Step, arguments: dict[str, Any]) -> Any:
    tool = ask.parts.tools().get(step.tool)
    function = tool.function
    assert function is not None  # checked before
    context = replace(
        ask.context,
        key=f"{ask.context.key}:{index}",
        call_id=f"{ask.context.call_id}:{index}",
        mind=None,
    )
    timeout = min(STEP_TIMEOUT, tool.route.timeout)
    try:
        args, kwargs = Signature(function, tool.name).bind(arguments, context)
        value = await asyncio.wait_for(invoke(function, tool.name, args, kwargs), timeout)
    except TimeoutError as error:
        raise _failed(index, step, f"it took longer than {timeout:g} s") from error
    except ArgumentsInvalidError as error:
        raise _failed(index, step, str(error)) from error
    except ToolError as error:
        raise _failed(index, step, error.message) from error
    if isinstance(value, ToolOutcome):
        if value.is_error:
            raise _failed(index, step, value.error.message if value.error else "it failed")
        value = value.value
    encoded = encode(value)
    if isinstance(encoded, ErrorInfo):
        raise _failed(index, step, encoded.message)
    if encoded.size > MAX_STEP_BYTES:
        raise _failed(
            index, step, f"its result has {encoded.size} bytes and the limit is {MAX_STEP_BYTES}"
        )
    return encoded.value


def _unusable(ask: Asking, step: Step, routes: dict[str, Route], read_only: bool) -> str | None:
    """Why a step's tool cannot be part of a composition."""
    route = routes.get(step.tool)
    if route is None:
        return "which this session does not have"
    if step.tool in SELF_IMPROVEMENT_TOOLS or route.reads_mind:
        return "which changes the agent itself"
    if route.external or route.approval:
        return "which asks the host"
    tool: Tool | None = None
    if step.tool in ask.parts.tools().names():
        tool = ask.parts.tools().get(step.tool)
    if route.task_queue is not None or tool is None or tool.function is None:
        return "which another worker serves"
    if read_only and route.effect != "read":
        return "which may change something"
    return None


def _references(value: Any) -> list[re.Match[str]]:
    if isinstance(value, dict):
        return [found for part in value.values() for found in _references(part)]
    if isinstance(value, list):
        return [found for part in value for found in _references(part)]
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return [] if found is None else [found]


def _failed(index: int, step: Step, why: str, code: str | None = None) -> ToolError:
    return ToolError(
        f"step {index} ({step.tool}) failed: {why}; the steps before it were done",
        details={"step": index, "tool": step.tool},
        code=code,
    )
