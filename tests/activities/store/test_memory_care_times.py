"""Times that care and consolidations are given: seconds of years that people live in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from gmi.activities.memory.traces import Trace
from gmi.activities.memory.view import iso, item_of
from gmi.activities.store import SQLStore
from gmi.personas.errors import ValidationError
from gmi.workflows.decode import parse
from gmi.workflows.memory import Care, Consolidate, Maintain

from .caring import NOW, World

WRONG = [math.nan, math.inf, -math.inf, -1.0, NOW * 1000, NOW * 1e6, 1e308, -1e308]


@pytest.fixture
def world(store: SQLStore) -> World:
    return World(store)


@pytest.mark.parametrize("now", WRONG)
async def test_a_time_in_another_unit_writes_nothing_and_spoils_no_list(
    world: World, now: float
) -> None:
    await world.keep(world.trace("good one"))
    for kind in ("remember", "list", "search", "stats", "forget", "health"):
        given: dict[str, Any] = {"kind": kind, "now": now, "user_id": world.user, "text": "hi"}
        with pytest.raises(ValidationError, match="now"):
            await world.serve(parse(given, Care))
    listed = await world.ask("list", user_id=world.user)
    assert [item["content"] for item in listed.items] == ["good one"]


@pytest.mark.parametrize("now", WRONG)
def test_a_consolidation_at_such_a_time_is_refused(now: float) -> None:
    with pytest.raises(ValidationError, match="now"):
        parse({"persona": "mira", "now": now}, Consolidate)
    with pytest.raises(ValidationError, match="now"):
        parse({"persona": "mira", "now": now, "run": "r"}, Maintain)


def test_a_consolidation_names_its_persona() -> None:
    with pytest.raises(ValidationError, match="persona"):
        parse({"persona": ""}, Consolidate)


@pytest.mark.parametrize("now", [0.0, NOW, NOW + 200 * 365.25 * 86_400])
async def test_a_time_two_hundred_years_off_is_a_time(world: World, now: float) -> None:
    await world.ask("remember", text="good one", user_id=world.user, now=now)
    listed = await world.ask("list", user_id=world.user, now=now)
    assert [item["age"] for item in listed.items] == ["just now"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "1970-01-01T00:00:00.000+00:00"),
        (1.7799, "1970-01-01T00:00:01.779+00:00"),
        (NOW * 1000, "9999-12-31T23:59:59.000+00:00"),
        (math.inf, "9999-12-31T23:59:59.000+00:00"),
        (-1e30, "0001-01-01T00:00:00.000+00:00"),
        (math.nan, "0001-01-01T00:00:00.000+00:00"),
    ],
)
def test_every_time_can_be_told(seconds: float, told: str) -> None:
    assert iso(seconds) == told


async def test_a_memory_of_another_unit_is_listed_beside_the_good_ones(world: World) -> None:
    odd: Trace = replace(world.trace("odd"), created_at=NOW * 1000, last_access=NOW * 1000)
    await world.keep(world.trace("good one"), odd)
    assert item_of(odd, NOW)["created_at"] == "9999-12-31T23:59:59.000+00:00"
    listed = await world.ask("list", user_id=world.user)
    assert [item["content"] for item in listed.items] == ["odd", "good one"]
