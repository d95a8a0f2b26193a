from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from gmi.activities.tools import BUILT_IN_TOOLS, ToolRegistry
from gmi.activities.tools.arithmetic import evaluate
from gmi.activities.tools.builtin import confirm_order, get_time, roll_dice
from gmi.personas.errors import ToolError


def test_the_built_in_tools_show_each_way_a_call_can_go() -> None:
    registry = ToolRegistry(BUILT_IN_TOOLS)
    assert registry.names() == ["ask_host", "calculate", "confirm_order", "get_time", "roll_dice"]
    assert registry.get("ask_host").route.external
    assert registry.get("confirm_order").route.approval
    assert registry.get("confirm_order").route.effect == "once"
    assert registry.get("get_time").route.effect == "read"
    for tool in registry.all():
        assert tool.definition.description
        for schema in tool.definition.parameters["properties"].values():
            assert {"type", "default"} & schema.keys()


def test_the_time_is_now_in_utc_and_in_other_zones() -> None:
    now = datetime.now(UTC)
    told = datetime.fromisoformat(get_time()["time"])
    assert told.utcoffset() == timedelta(0)
    assert abs(told - now) < timedelta(minutes=1)
    assert get_time("Asia/Kolkata")["time"].endswith("+05:30")


@pytest.mark.parametrize("zone", ["Mars/Base", "", "/etc/passwd", "../x", "America", "a\0b"])
def test_an_unknown_zone_is_the_models_error(zone: str) -> None:
    with pytest.raises(ToolError, match="not a known time zone"):
        get_time(zone)


def test_dice_stay_within_their_sides_and_add_up() -> None:
    rolled = roll_dice(sides=4, count=100)
    assert len(rolled["rolls"]) == 100
    assert set(rolled["rolls"]) <= {1, 2, 3, 4}
    assert rolled["total"] == sum(rolled["rolls"])


def test_an_order_is_repeated() -> None:
    assert confirm_order("tea", 2) == "Order confirmed: 2 × tea."


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (" 2 + 3 * 4 ", 14),
        ("-(2 - 5) ** 2", -9),
        ("7 // 2 + 7 % 2", 4),
        ("2 ** -1", 0.5),
        ("2 ** 1000", 2**1000),
        ("(-1) ** 999999999", -1),
        ("sqrt(16) + abs(-1.5)", 5.5),
        ("round(2.675, 1) + max(1, 2, min(3, 4))", 5.7),
        ("ceil(1.2) + floor(1.8)", 3),
        ("pi", math.pi),
    ],
)
def test_an_expression_is_worked_out(expression: str, value: float) -> None:
    assert evaluate(expression) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 +",
        "1 / 0",
        "9 ** 9 ** 9 ** 9",
        "2 ** 1025",
        "10 ** 300 * 10 ** 300",
        "1e308 * 10",
        "9.9 ** 999",
        "(-8) ** 0.5",
        "round(1, -10 ** 9)",
        "sqrt(-1)",
        "sqrt()",
        "max(1)",
        "True",
        "'a' * 3",
        "1 << 3",
        "[1][0]",
        "x",
        "().__class__",
        "__import__('os')",
        "abs(x=1)",
        "(lambda: 1)()",
        "1\0",
        "1" * 201,
        "(" * 100 + "1" + ")" * 100,
        "-" * 199 + "x",
    ],
)
def test_what_is_no_bounded_arithmetic_is_the_models_error(expression: str) -> None:
    with pytest.raises(ToolError):
        evaluate(expression)
