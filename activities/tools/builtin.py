"""Small tools for a first try: none needs a key or the network."""

from __future__ import annotations

import random
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import Field

from ...personas.errors import ToolError
from .arithmetic import evaluate
from .registry import Tool, external_tool, tool, tool_of


@tool(effect="read")
def get_time(timezone: str = "UTC") -> dict[str, str]:
    """Tell the current date and time.

    Args:
        timezone: IANA name of a time zone, for example Europe/Berlin.
    """
    now = datetime.now(_zone(timezone))
    return {
        "time": now.isoformat(timespec="seconds"),
        "weekday": now.strftime("%A"),
        "timezone": timezone,
    }


@tool(effect="read")
def calculate(expression: str) -> int | float:
    """Work out an arithmetic expression. Use it instead of mental arithmetic.

    Args:
        expression: Numbers, + - * / // % **, parentheses, pi, e, and the functions abs, ceil,
            floor, max, min, round and sqrt.
    """
    return evaluate(expression)


@tool
def roll_dice(
    sides: Annotated[int, Field(ge=2, le=1000)] = 6,
    count: Annotated[int, Field(ge=1, le=100)] = 1,
) -> dict[str, Any]:
    """Roll dice.

    Args:
        sides: Sides of each die.
        count: How many dice.
    """
    rolls = [random.randint(1, sides) for _ in range(count)]
    return {"rolls": rolls, "total": sum(rolls)}


@tool(approval=True)
def confirm_order(
    item: Annotated[str, Field(min_length=1, max_length=200)],
    quantity: Annotated[int, Field(ge=1, le=1000)],
) -> str:
    """Confirm an order. Someone has to approve it first.

    This is a demonstration: nothing is ordered.

    Args:
        item: What is ordered.
        quantity: How many of it.
    """
    return f"Order confirmed: {quantity} × {item}."


ask_host: Tool = external_tool(
    "ask_host",
    "Ask the person or program that runs this conversation a question, and wait for the answer.",
    {
        "type": "object",
        "properties": {"question": {"type": "string", "description": "What to ask."}},
        "required": ["question"],
        "additionalProperties": False,
    },
)

BUILT_IN_TOOLS: list[Tool] = [
    ask_host,
    tool_of(calculate),
    tool_of(confirm_order),
    tool_of(get_time),
    tool_of(roll_dice),
]


def _zone(name: str) -> tzinfo:
    # Known without a time zone database.
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    # A folder of the database, such as "America", is an OSError.
    except (KeyError, ValueError, OSError) as error:
        raise ToolError(
            f"{name!r} is not a known time zone; use an IANA name such as 'Europe/Berlin', or 'UTC'"
        ) from error
