"""The tool that makes tools: of an expression or of other tools, never of code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ....personas.errors import ToolError
from ....personas.self_changes import SelfChange, latest
from ....personas.self_improvement import refused
from ....workflows.steps import ToolOutcome
from ...learning.store import Draft
from ..context import ToolContext
from ..registry import NAME
from .asking import Asking, Parts, asking, needed
from .forging import (
    Composed,
    Expressed,
    TestCase,
    check_implementation,
    read_implementation,
    same,
    work_out,
)
from .names import FORGE_TOOL, SELF_IMPROVEMENT_TOOLS, USE_FORGED_TOOL
from .shapes import check_schema

MAX_FORGED = 50
MAX_CASES = 10
MAX_DESCRIPTION = 500
MAX_BYTES = 16 * 1024


class ForgeTool:
    """Serves :data:`~.names.FORGE_TOOL`.

    Args:
        parts: What the tools share.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(
        self,
        name: str,
        description: str,
        inputSchema: dict[str, Any],
        implementation: Any,
        testCases: list[TestCase],
        context: ToolContext,
        outputSchema: dict[str, Any] | None = None,
    ) -> ToolOutcome:
        """Make a tool of an expression or of your other tools; call it with use_forged_tool.

        It is kept only if it passes all of its test cases. A tool of the same name that you made
        before is replaced.

        Args:
            name: Letters, digits, _ and -.
            description: What it does.
            inputSchema: JSON Schema of its input, an object.
            implementation: Either {"mode": "expression", "expression": "..."}, with the input's
                fields as names, operators, comprehensions and the functions abs, ends_with, get,
                join, keys, len, lower, max, min, number, replace, round, sorted, split,
                starts_with, strip, sum, text, title and upper; or {"mode": "compose", "steps":
                [{"tool": ..., "args": {...}}]} with tools that only read and the references
                "$input", "$prev" and "$steps[0]".
            testCases: One to ten, each with an input and the expectedOutput.
            outputSchema: JSON Schema of its result.
            context: Where the call stands.
        """
        ask = await asking(FORGE_TOOL, self._parts, context)
        made = await ask.made()
        if made is not None:
            return made
        ask.gate()
        needed(FORGE_TOOL, description=description)
        await _check_name(ask, name)
        implemented = read_implementation(FORGE_TOOL, implementation)
        data: dict[str, Any] = {
            "description": description.strip()[:MAX_DESCRIPTION],
            "inputSchema": inputSchema,
            "outputSchema": outputSchema,
            "implementation": implemented.model_dump(),
        }
        if len(json.dumps(data).encode()) > MAX_BYTES:
            raise refused(FORGE_TOOL, "too_large", f"a tool has at most {MAX_BYTES} bytes")
        _check_schemas(inputSchema, outputSchema)
        await check_implementation(ask, implemented)
        if not 1 <= len(testCases) <= MAX_CASES:
            raise refused(
                FORGE_TOOL, "tests_missing", f"it has {len(testCases)} test cases; give 1 to 10"
            )
        await _test(ask, implemented, testCases, inputSchema, outputSchema)
        return await _keep(ask, name, data, len(testCases))


async def _check_name(ask: Asking, name: str) -> None:
    routes = (await ask.parts.toolset(ask.mind.toolset_digest)).routes
    if NAME.fullmatch(name) is None:
        raise refused(
            ask.tool, "invalid_name", f"{name[:80]!r} is not 1 to 64 letters, digits, '_' and '-'"
        )
    if name in routes or name in SELF_IMPROVEMENT_TOOLS:
        raise refused(ask.tool, "name_taken", f"{name!r} is a tool that is there already")


def _check_schemas(given: dict[str, Any], result: dict[str, Any] | None) -> None:
    try:
        check_schema(given, "inputSchema")
        if given.get("type") != "object":
            raise ToolError("inputSchema.type is not 'object'")
        if result is not None:
            check_schema(result, "outputSchema")
    except ToolError as error:
        raise refused(FORGE_TOOL, "invalid_schema", error.message) from error


async def _test(
    ask: Asking,
    implemented: Expressed | Composed,
    cases: Sequence[TestCase],
    given: dict[str, Any],
    result: dict[str, Any] | None,
) -> None:
    for number, case in enumerate(cases, 1):
        try:
            found = await work_out(ask, implemented, case.input, given, result)
        except ToolError as error:
            raise refused(
                FORGE_TOOL, "tests_failed", f"test case {number} failed: {error.message}"
            ) from error
        if not same(found, case.expectedOutput):
            raise refused(
                FORGE_TOOL,
                "tests_failed",
                f"test case {number} gave {json.dumps(found)[:200]} instead of "
                f"{json.dumps(case.expectedOutput)[:200]}",
            )


async def _keep(ask: Asking, name: str, data: dict[str, Any], cases: int) -> ToolOutcome:
    result = {"name": name, "status": "kept", "testsPassed": cases, "callWith": USE_FORGED_TOOL}

    def decide(changes: Sequence[SelfChange]) -> Draft:
        standing = latest(changes, "tool")
        if name not in standing and len(standing) >= MAX_FORGED:
            raise refused(ask.tool, "limit_reached", f"there are {MAX_FORGED} forged tools")
        return Draft("tool", name, {**data, "result": result})

    outcome = await ask.make(decide, ["tool"])
    assert outcome is not None  # the decision is a draft or an error
    return outcome
