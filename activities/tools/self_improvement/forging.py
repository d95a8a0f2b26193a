"""Forged tools: what they are made of, and how they are worked out."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ....personas.errors import ToolError
from ....personas.self_improvement import refused
from ....personas.traits import is_number
from .asking import Asking
from .composing import Step, check_steps, run_steps
from .expressions import Expression
from .shapes import check_value

FORGED_TIMEOUT = 60.0
"""Seconds that a forged tool may take."""

MAX_INPUT_BYTES = 64 * 1024


class ForgedModel(BaseModel):
    """Base of what a forged tool is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Expressed(ForgedModel):
    """An expression over the input; see :mod:`.expressions`."""

    mode: Literal["expression"]
    expression: str


class Composed(ForgedModel):
    """Steps over tools that change nothing; the last one's result is the tool's."""

    mode: Literal["compose"]
    steps: list[Step]


Implementation = Annotated[Expressed | Composed, Field(discriminator="mode")]

_implementation: TypeAdapter[Expressed | Composed] = TypeAdapter(Implementation)


class TestCase(ForgedModel):
    """What a forged tool has to give for an input before it is kept."""

    # Not a test of ours.
    __test__ = False

    input: dict[str, Any]
    expectedOutput: Any


def read_implementation(tool: str, given: Any) -> Expressed | Composed:
    """An implementation, which is data.

    Raises:
        SelfChangeRefusedError: It is anything else, such as code.
    """
    try:
        return _implementation.validate_python(given)
    except ValidationError as error:
        raise refused(
            tool,
            "not_data",
            "an implementation is {mode: 'expression', expression} or {mode: 'compose', steps: "
            "[{tool, args}]}; code is never run",
        ) from error


async def check_implementation(ask: Asking, made: Expressed | Composed) -> None:
    """Refuse an implementation that could not be worked out.

    Raises:
        SelfChangeRefusedError: It is no expression, or its steps cannot be run.
    """
    if isinstance(made, Composed):
        await check_steps(ask, made.steps, read_only=True)
        return
    try:
        Expression(made.expression)
    except ToolError as error:
        raise refused(ask.tool, "not_data", error.message) from error


async def work_out(
    ask: Asking,
    made: Expressed | Composed,
    given: Any,
    input_schema: dict[str, Any],
    output_schema: dict[str, Any] | None,
) -> Any:
    """What a forged tool gives for an input.

    Raises:
        ToolError: The input or the result has not the form that the tool declares, or it failed.
    """
    if not isinstance(given, dict):
        raise ToolError(f"input is {str(given)[:50]!r}; a tool's input is an object")
    if len(json.dumps(given).encode()) > MAX_INPUT_BYTES:
        raise ToolError(f"the input has more than {MAX_INPUT_BYTES} bytes")
    check_value(given, input_schema, "input")
    if isinstance(made, Expressed):
        found = Expression(made.expression).value(given)
    else:
        try:
            async with asyncio.timeout(FORGED_TIMEOUT):
                found = (await run_steps(ask, made.steps, given, read_only=True))[-1]
        except TimeoutError as error:
            raise ToolError(f"it took longer than {FORGED_TIMEOUT:g} s") from error
    if output_schema is not None:
        check_value(found, output_schema, "output")
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; numbers may differ by what rounding leaves."""
    if is_number(one) and is_number(other):
        return bool(abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other)))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)
