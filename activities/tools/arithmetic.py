"""Arithmetic from text, without running it: only numbers, operators and a few functions."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from ...personas.errors import ToolError

Number = int | float

MAX_LENGTH = 200
MAX_BITS = 1024
"""Whole numbers grow no larger, so that no expression takes long."""

MAX_DIGITS = 20

_UNARY: dict[type[ast.unaryop], Callable[[Any], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e}


def evaluate(expression: str) -> Number:
    """The value of an arithmetic expression.

    Args:
        expression: At most 200 characters of numbers, ``+ - * / // % **``, parentheses, ``pi``,
            ``e``, and the functions ``abs``, ``ceil``, ``floor``, ``max``, ``min``, ``round``
            and ``sqrt``.

    Raises:
        ToolError: It is something else, or its value is no finite number, or one over 1024 bits.
    """
    if len(expression) > MAX_LENGTH:
        raise ToolError(
            f"the expression has {len(expression)} characters and the limit is {MAX_LENGTH}; "
            "calculate it in parts"
        )
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _value(tree.body)
    except SyntaxError as error:
        raise ToolError(f"{expression!r} is not an arithmetic expression: {error.msg}") from error
    except (ArithmeticError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ToolError(f"{expression!r} has no value: {error}") from error


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return bounded(node.value)
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            return power(left, right)
        if type(node.op) in _BINARY:
            return bounded(_BINARY[type(node.op)](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is not None:
            return bounded(function(*[_value(argument) for argument in node.args]))
    raise ToolError(
        f"{ast.unparse(node)!r} is not allowed; use numbers, + - * / // % **, parentheses, "
        f"{', '.join(_CONSTANTS)} and {', '.join(sorted(_FUNCTIONS))}"
    )


def power(base: Number, exponent: Number) -> Number:
    """A power that is no larger than other values may be.

    Raises:
        OverflowError: It is too large.
        ValueError: It is no real number.
    """
    whole = isinstance(base, int) and isinstance(exponent, int) and exponent >= 0
    # Checked before it is worked out: that alone could take for ever.
    if whole and abs(base) > 1 and int(base).bit_length() * exponent > 2 * MAX_BITS:
        raise OverflowError(f"{base} ** {exponent} is too large")
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError("the root of a negative number is not real")
    return bounded(value)


def rounded(value: Number, digits: int = 0) -> Number:
    """A number rounded to so many digits.

    Raises:
        ValueError: These are too many digits.
    """
    if abs(digits) > MAX_DIGITS:
        raise ValueError(f"it rounds to {digits} digits and the limit is {MAX_DIGITS}")
    return round(value, digits) if digits else round(value)


def bounded(value: Any) -> Number:
    """The value, when it is a number of bearable size.

    Raises:
        OverflowError: It is too large.
        ValueError: It is not a finite number.
    """
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise OverflowError(f"a number has over {MAX_BITS} bits")
        return value
    if not isinstance(value, float) or not math.isfinite(value):
        raise ValueError("it is not a finite number")
    return value


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "max": max,
    "min": min,
    "round": rounded,
    "sqrt": math.sqrt,
}
