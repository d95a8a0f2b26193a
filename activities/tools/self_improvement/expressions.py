"""Expressions over JSON values, evaluated without running them as code.

The language is a small part of Python's expressions: literals, the fields of the input, arithmetic,
comparisons, ``and``/``or``/``not``, ``a if c else b``, indexes and slices, lists, objects,
comprehensions over one list, and a fixed set of functions. Nothing else is reachable: there are no
attributes, no methods, no imports, and no other names. Length, steps and sizes are bounded, so an
expression ends soon whatever it says.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ....personas.errors import ToolError
from ..arithmetic import bounded, power, rounded

MAX_LENGTH = 2000
MAX_STEPS = 50_000
"""Values looked at; a text counts once more for every 50 characters."""

MAX_ITEMS = 10_000
"""Items of a list or object, and characters of a text, that an expression makes."""

_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, whole: item in whole,
    ast.NotIn: lambda item, whole: item not in whole,
}


class Expression:
    """An expression that has been read.

    Args:
        source: At most 2,000 characters.

    Raises:
        ToolError: It is too long, or not an expression of this language.
    """

    def __init__(self, source: str) -> None:
        if len(source) > MAX_LENGTH:
            raise ToolError(
                f"the expression has {len(source)} characters and the limit is {MAX_LENGTH}"
            )
        try:
            self._body = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ToolError(f"{source[:200]!r} is not an expression: {error}") from error
        self._source = source

    def value(self, given: Mapping[str, Any]) -> Any:
        """Its value for an input, whose fields are names in it; ``input`` is the whole of it.

        Raises:
            ToolError: It has no value for this input, or goes over a bound.
        """
        try:
            evaluation = _Evaluation({**given, "input": dict(given)})
            found = evaluation.value(self._body)
            evaluation.charge(found)
            return found
        except ToolError:
            raise
        except (
            ArithmeticError,
            ValueError,
            TypeError,
            LookupError,
            RecursionError,
            MemoryError,
        ) as error:
            kind = type(error).__name__
            raise ToolError(f"{self._source[:200]!r} has no value: {kind}: {error}") from error


class _Evaluation:
    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._steps = 0

    def value(self, node: ast.expr) -> Any:
        self._spend(1)
        evaluate = _NODES.get(type(node))
        if evaluate is None:
            raise ToolError(f"{ast.unparse(node)[:200]!r} is not allowed in an expression")
        return _fit(evaluate(self, node))

    def charge(self, value: Any) -> None:
        """Count what it takes to look at all of a value; parts that it shares count each time."""
        left = [value]
        while left:
            part = left.pop()
            self._spend(1)
            if isinstance(part, str):
                self._spend(len(part) // 50)
            elif isinstance(part, dict):
                left.extend(part.values())
            elif isinstance(part, list):
                left.extend(part)

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise ToolError(f"the expression takes more than {MAX_STEPS} steps")

    def constant(self, node: ast.Constant) -> Any:
        if node.value is None or type(node.value) in (bool, int, float, str):
            return node.value
        raise ToolError(f"{node.value!r} is no JSON value")

    def name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            known = ", ".join(sorted(self._names)) or "none"
            raise ToolError(f"there is no name {node.id!r}; there are: {known}")
        return self._names[node.id]

    def unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return not self.value(node.operand)
        if type(node.op) not in _UNARY:
            raise ToolError("the operator ~ is not allowed in an expression")
        return _UNARY[type(node.op)](_number(self.value(node.operand)))

    def binary(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Add):
            both = (left, right)
            if all(isinstance(v, str) for v in both) or all(isinstance(v, list) for v in both):
                self._spend((len(left) + len(right)) // 50)
                return _fit(left + right)
            return _number(left) + _number(right)
        if type(node.op) not in _BINARY:
            raise ToolError(f"{ast.unparse(node)[:200]!r} uses an operator that is not allowed")
        return _BINARY[type(node.op)](_number(left), _number(right))

    def boolean(self, node: ast.BoolOp) -> Any:
        wanted = isinstance(node.op, ast.Or)
        found: Any = None
        for part in node.values:
            found = self.value(part)
            if bool(found) is wanted:
                break
        return found

    def compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            if type(op) not in _COMPARE:
                raise ToolError("use == and != instead of is and is not")
            self.charge(left)
            self.charge(right)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def choice(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def item(self, node: ast.Subscript) -> Any:
        whole = self.value(node.value)
        if not isinstance(whole, str | list | dict):
            raise ToolError(
                f"{ast.unparse(node)[:200]!r}: only texts, lists and objects have items"
            )
        if isinstance(node.slice, ast.Slice):
            if isinstance(whole, dict):
                raise ToolError("an object has no slices")
            self._spend(len(whole) // 50)
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            return whole[slice(*(None if part is None else self.value(part) for part in parts))]
        return whole[self.value(node.slice)]

    def listed(self, node: ast.List | ast.Tuple) -> Any:
        return [self.value(part) for part in node.elts]

    def mapped(self, node: ast.Dict) -> Any:
        made: dict[str, Any] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            name = None if key is None else self.value(key)
            if not isinstance(name, str):
                raise ToolError("the keys of an object are texts")
            made[name] = self.value(part)
        return made

    def comprehension(self, node: ast.ListComp) -> Any:
        [loop, *more] = node.generators
        if more or loop.is_async or not isinstance(loop.target, ast.Name):
            raise ToolError("a comprehension runs over one list with one name")
        whole = self.value(loop.iter)
        if not isinstance(whole, str | list):
            raise ToolError("a comprehension runs over a list or a text")
        name, outer, made = loop.target.id, dict(self._names), []
        for item in whole:
            self._names = {**outer, name: item}
            if all(self.value(test) for test in loop.ifs):
                made.append(self.value(node.elt))
        self._names = outer
        return made

    def call(self, node: ast.Call) -> Any:
        function = _FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None or node.keywords:
            raise ToolError(
                f"{ast.unparse(node)[:200]!r} is not allowed; the functions are "
                f"{', '.join(sorted(_FUNCTIONS))}, without keyword arguments"
            )
        arguments = [self.value(part) for part in node.args]
        self.charge(arguments)
        return function(*arguments)


_NODES: dict[type[ast.expr], Callable[[_Evaluation, Any], Any]] = {
    ast.Constant: _Evaluation.constant,
    ast.Name: _Evaluation.name,
    ast.UnaryOp: _Evaluation.unary,
    ast.BinOp: _Evaluation.binary,
    ast.BoolOp: _Evaluation.boolean,
    ast.Compare: _Evaluation.compare,
    ast.IfExp: _Evaluation.choice,
    ast.Subscript: _Evaluation.item,
    ast.List: _Evaluation.listed,
    ast.Tuple: _Evaluation.listed,
    ast.Dict: _Evaluation.mapped,
    ast.ListComp: _Evaluation.comprehension,
    ast.Call: _Evaluation.call,
}


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:50]!r} is no number")
    return value


def _fit(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return bounded(value)
    if isinstance(value, str | list | dict):
        if len(value) > MAX_ITEMS:
            raise ToolError(f"a value has {len(value)} items and the limit is {MAX_ITEMS}")
        return value
    raise ToolError(f"{type(value).__name__} is no JSON value")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:50]!r} is no text")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:50]!r} is no object")
    return value


def _joined(parts: Any, between: Any = "") -> str:
    size = sum(len(_text(part)) for part in parts) + len(_text(between)) * len(parts)
    if size > MAX_ITEMS:
        raise ToolError(f"a text has {size} characters and the limit is {MAX_ITEMS}")
    return str(between.join(parts))


def _replaced(text: Any, old: Any, new: Any) -> str:
    if not _text(old):
        raise ValueError("there is nothing to replace")
    if _text(text).count(old) * len(_text(new)) > MAX_ITEMS:
        raise ToolError(f"a text would be longer than {MAX_ITEMS} characters")
    return str(text.replace(old, new))


def _as_text(value: Any) -> str:
    if isinstance(value, list | dict):
        raise TypeError("a list or an object is no text; join its items")
    return value if isinstance(value, str) else str(value)


def _as_number(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 100:
        raise ValueError("a number has at most 100 characters")
    number = float(value)
    return int(number) if number.is_integer() and "e" not in str(number) else number


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda value: abs(_number(value)),
    "ends_with": lambda text, end: _text(text).endswith(_text(end)),
    "get": lambda whole, key, default=None: _mapping(whole).get(_text(key), default),
    "join": _joined,
    "keys": lambda whole: sorted(_mapping(whole)),
    "len": len,
    "lower": lambda text: _text(text).lower(),
    "max": max,
    "min": min,
    "number": _as_number,
    "replace": _replaced,
    "round": lambda value, digits=0: rounded(_number(value), digits),
    "sorted": sorted,
    "split": lambda text, at=None: _text(text).split(at),
    "starts_with": lambda text, start: _text(text).startswith(_text(start)),
    "strip": lambda text: _text(text).strip(),
    "sum": lambda values: sum(_number(value) for value in values),
    "text": _as_text,
    "title": lambda text: _text(text).title(),
    "upper": lambda text: _text(text).upper(),
}
