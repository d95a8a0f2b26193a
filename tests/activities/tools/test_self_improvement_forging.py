"""Tools that an agent makes: data that is tested before it is kept, never code."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gmi.activities.tools.self_improvement.expressions import Expression
from gmi.activities.tools.self_improvement.shapes import check_schema, check_value
from gmi.personas.errors import ToolError

from .improving import Desk, Refused

NUMBER = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}


def forged(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": "double",
        "description": "doubles a number",
        "inputSchema": NUMBER,
        "outputSchema": {"type": "number"},
        "implementation": {"mode": "expression", "expression": "2 * x"},
        "testCases": [{"input": {"x": 2}, "expectedOutput": 4}],
    }
    return made | changes


async def use(desk: Desk, name: str, given: Any, **facts: Any) -> Any:
    return await desk.call("use_forged_tool", name=name, input=given, **facts)


async def test_an_expression_becomes_a_tool_once_it_passes_its_tests() -> None:
    desk = Desk()
    made = await desk.call("forge_tool", **forged())
    assert made == {
        "name": "double",
        "status": "kept",
        "testsPassed": 1,
        "callWith": "use_forged_tool",
    }
    assert await use(desk, "double", {"x": 21}) == 42
    assert await use(desk, "double", {"x": 21}, session="s2") == 42


async def test_a_composition_of_tools_becomes_a_tool() -> None:
    steps = [
        {"tool": "look_up", "args": {"word": "$input.word"}},
        {"tool": "look_up", "args": {"word": "$prev.parts[0]"}},
    ]
    desk = Desk()
    made = await desk.call(
        "forge_tool",
        **forged(
            name="initial",
            inputSchema={"type": "object", "properties": {"word": {"type": "string"}}},
            outputSchema=None,
            implementation={"mode": "compose", "steps": steps},
            testCases=[
                {
                    "input": {"word": "ape"},
                    "expectedOutput": {"word": "a", "letters": 1, "parts": ["a"]},
                }
            ],
        ),
    )
    assert made["status"] == "kept"
    assert (await use(desk, "initial", {"word": "zebra"}))["word"] == "z"
    failed = await use(desk, "initial", {"word": "nothing"})
    assert "no such word" in failed.message


async def test_the_newer_tool_of_a_name_counts() -> None:
    desk = Desk()
    await desk.call("forge_tool", **forged())
    await desk.call(
        "forge_tool",
        days=1,
        **forged(
            implementation={"mode": "expression", "expression": "x + x + 0"},
            testCases=[{"input": {"x": 1}, "expectedOutput": 2.0000000000001}],
        ),
    )
    assert len(desk.store.kept) == 2
    assert await use(desk, "double", {"x": 4}) == 8


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"implementation": "def run(x): return 2 * x"}, "not_data"),
        ({"implementation": {"mode": "sandbox", "code": "import os"}}, "not_data"),
        ({"implementation": {"mode": "expression", "expression": "x +"}}, "not_data"),
        (
            {"implementation": {"mode": "expression", "expression": "x", "code": "1"}},
            "not_data",
        ),
        (
            {"implementation": {"mode": "compose", "steps": [{"tool": "send", "args": {}}]}},
            "not_composable",
        ),
        (
            {"implementation": {"mode": "compose", "steps": [{"tool": "forge_tool"}]}},
            "not_composable",
        ),
        ({"testCases": []}, "tests_missing"),
        ({"testCases": [{"input": {"x": 2}, "expectedOutput": 5}]}, "tests_failed"),
        ({"testCases": [{"input": {"y": 2}, "expectedOutput": 4}]}, "tests_failed"),
        ({"testCases": [{"input": {"x": 2}, "expectedOutput": "4"}]}, "tests_failed"),
        ({"outputSchema": {"type": "string"}}, "tests_failed"),
        ({"name": "look_up"}, "name_taken"),
        ({"name": "adapt_personality"}, "name_taken"),
        ({"name": "no spaces"}, "invalid_name"),
        ({"inputSchema": {"type": "string"}}, "invalid_schema"),
        ({"inputSchema": {"type": "object", "$ref": "#/x"}}, "invalid_schema"),
        ({"inputSchema": {**NUMBER, "description": "x" * 17_000}}, "too_large"),
    ],
)
async def test_what_is_no_tool_is_refused_and_not_kept(
    changes: dict[str, Any], reason: str
) -> None:
    desk = Desk()
    refused = await desk.call("forge_tool", **forged(**changes))
    assert isinstance(refused, Refused)
    assert refused.details == {"status": "rejected", "reason": reason}
    assert desk.store.kept == {}
    assert desk.sent == []


async def test_a_call_of_a_forged_tool_is_checked() -> None:
    desk = Desk()
    await desk.call("forge_tool", **forged())
    assert "'4'" in (await use(desk, "double", {"x": "4"})).message
    assert "lacks x" in (await use(desk, "double", {})).message
    assert "there are: double" in (await use(desk, "triple", {"x": 1})).message


@pytest.mark.parametrize(
    ("source", "given", "value"),
    [
        ("2 * x + 1", {"x": 3}, 7),
        ("x ** 2 // 3 % 5", {"x": 4}, 0),
        ("-x if x > 0 else x", {"x": 4}, -4),
        ("upper(name) + '!'", {"name": "ada"}, "ADA!"),
        ("join(split(lower(strip(t))), '-')", {"t": " My Big Title "}, "my-big-title"),
        ("[w for w in words if len(w) > 2]", {"words": ["a", "abc"]}, ["abc"]),
        ("sum([p['price'] * p['count'] for p in items])", {"items": [{"price": 2, "count": 3}]}, 6),
        (
            "{'total': a + b, 'both': a > 1 and b > 1}",
            {"a": 1, "b": 2},
            {"total": 3, "both": False},
        ),
        ("get(input, 'y', 'none')", {"x": 1}, "none"),
        ("text[::-1]", {"text": "abc"}, "cba"),
        ("1 < x <= 3 and x not in [2]", {"x": 3}, True),
        ("a or 'nobody'", {"a": ""}, "nobody"),
        ("round(number('2.346'), 2)", {}, 2.35),
        ("number('7')", {}, 7),
        ("sorted(keys(input))", {"b": 1, "a": 2}, ["a", "b"]),
        ("replace(t, 'a', 'o')", {"t": "banana"}, "bonono"),
        ("[[x, y] for x in 'ab'][1][0]", {"y": 1}, "b"),
        ("max(xs) - min(xs)", {"xs": [3, 9]}, 6),
        ("not x", {"x": None}, True),
    ],
)
def test_expressions_have_values(source: str, given: dict[str, Any], value: Any) -> None:
    assert Expression(source).value(given) == value


@pytest.mark.parametrize(
    "source",
    [
        "__import__('os').system('id')",
        "().__class__.__bases__[0].__subclasses__()",
        "x.__class__",
        "open('/etc/passwd')",
        "eval('1')",
        "(lambda: 1)()",
        "[y := 1]",
        "f'{x}'",
        "b'bytes'",
        "{1, 2}",
        "(y for y in [1])",
        "{y: 1 for y in [1]}",
        "[y for y in [1] for z in [2]]",
        "upper(t='a')",
        "max([1], key=abs)",
        "print(x)",
        "await x",
        "x is None",
        "~x",
        "x << 1",
        "'a' * 1000000",
        "'%s' % x",
        "1j",
        "...",
        "unknown",
        "{**input}",
        "True + 1",
        "1 / 0",
        "9 ** 9 ** 9",
        "[1][5]",
        "sorted([1, 'a'])",
        "number('nan')",
        "len(5)",
        "text([1])",
        "replace('a', '', 'b')",
    ],
)
def test_nothing_else_is_an_expression(source: str) -> None:
    with pytest.raises(ToolError):
        Expression(source).value({"x": 1})


@pytest.mark.parametrize(
    "source",
    [
        "[[y for y in xs] for z in xs]",
        "[a for b in xs for c in xs]",
        "[[a for i in xs] for a in [[s for i in xs] for s in [xs]]]",
        "[[[t for i in xs] for j in xs] for k in xs]",
        "[xs == xs for i in xs]",
        "[join(xs, '') for i in xs]",
        "[t + t for i in xs]",
        "[sorted(xs) for i in xs]",
        "join([t for i in xs], t)",
        "-" * 1900 + "1",
        "(" * 900 + "1" + ")" * 900,
        "x" + " + x" * 600,
        "1" * 3000,
    ],
)
def test_an_expression_that_would_take_long_ends_soon(source: str) -> None:
    given = {"xs": ["abc"] * 9000, "t": "y" * 9000, "x": "z" * 9000, "s": 1}
    started = time.perf_counter()
    with pytest.raises(ToolError):
        Expression(source).value(given)
    assert time.perf_counter() - started < 2


def test_values_are_checked_against_their_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 5},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
            "t": {"type": "string", "minLength": 1, "maxLength": 3},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    check_schema(schema, "s")
    check_value({"n": 3.0, "tags": ["a"], "t": "abc"}, schema, "v")
    wrong: list[Any] = [
        {},
        {"n": 0},
        {"n": 1.5},
        {"n": True},
        {"n": 1, "tags": ["c"]},
        {"n": 1, "tags": ["a", "a", "a"]},
        {"n": 1, "t": ""},
        {"n": 1, "t": "abcd"},
        {"n": 1, "z": 1},
        [],
    ]
    for value in wrong:
        with pytest.raises(ToolError, match=r"^v"):
            check_value(value, schema, "v")


@pytest.mark.parametrize(
    "schema",
    [
        "object",
        {"type": "thing"},
        {"type": ["string", "null"]},
        {"pattern": ".*"},
        {"properties": []},
        {"properties": {"a": {"oneOf": []}}},
        {"items": 1},
        {"required": "a"},
        {"enum": "a"},
        {"minimum": "1"},
    ],
)
def test_a_schema_that_says_more_than_is_checked_is_refused(schema: Any) -> None:
    with pytest.raises(ToolError, match=r"^s"):
        check_schema(schema, "s")
