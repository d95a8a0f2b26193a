from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, model_serializer

from gmi.activities.tools.results import outcome_of
from gmi.personas.errors import StoreError
from gmi.workflows.steps import INLINE_TEXT_BYTES, MAX_RESULT_BYTES, TOOL_INLINE_BYTES

from .conftest import Bench


class Weather(BaseModel):
    at: datetime
    degrees: float


@dataclass
class Pair:
    left: int
    right: Weather | None = None


class Unwilling(BaseModel):
    @model_serializer
    def refuse(self) -> str:
        raise RuntimeError("not today")


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, None),
        ("text", "text"),
        (True, True),
        (1.5, 1.5),
        ([1, (2, 3)], [1, [2, 3]]),
        ({"a": {1: "b"}}, {"a": {"1": "b"}}),
        (NOON, "2024-05-01T12:00:00Z"),
        (date(2024, 5, 1), "2024-05-01"),
        (Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"bytes", "bytes"),
        ({"only"}, ["only"]),
        (
            Pair(1, Weather(at=NOON, degrees=2)),
            {"left": 1, "right": {"at": "2024-05-01T12:00:00Z", "degrees": 2.0}},
        ),
    ],
)
async def test_ordinary_values_become_json(bench: Bench, value: Any, read: Any) -> None:
    outcome = await outcome_of(value, bench.blobs, "t")
    assert not outcome.is_error
    assert outcome.value == read
    assert outcome.ref is None
    assert not bench.blobs.values


def endless() -> Any:
    while True:
        yield 1


def circle() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        {"a": [float("-inf")]},
        object(),
        {object()},
        {"a": lambda: None},
        b"\xff\xfe",
        "half a pair: \ud800",
        circle(),
        Unwilling(),
        endless(),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_is_not_json_is_an_error_for_the_model(bench: Bench, value: Any) -> None:
    outcome = await outcome_of(value, bench.blobs, "t")
    assert outcome.is_error
    assert outcome.error is not None
    assert outcome.error.code == "TOOL_RESULT_NOT_JSON"
    assert len(outcome.error.message) < 1000


async def test_a_text_of_8_kb_goes_by_value_and_one_byte_more_by_reference(bench: Bench) -> None:
    fits = await outcome_of("é" * (INLINE_TEXT_BYTES // 2), bench.blobs, "t")
    assert fits.ref is None
    assert not bench.blobs.values
    large = "é" * (INLINE_TEXT_BYTES // 2) + "x"
    kept = await outcome_of(large, bench.blobs, "t")
    assert kept.value is None
    assert kept.ref is not None
    assert bench.blobs.kinds == {kept.ref: "tool_result"}
    assert json.loads(bench.blobs.values[kept.ref]) == large


async def test_a_large_value_is_kept_as_the_text_that_the_model_reads(bench: Bench) -> None:
    value = {"rows": [{"name": "Zoë", "n": n} for n in range(1000)]}
    kept = await outcome_of(value, bench.blobs, "t")
    assert kept.ref is not None
    text = json.loads(bench.blobs.values[kept.ref])
    assert isinstance(text, str)
    assert "Zoë" in text
    assert json.loads(text) == value


async def test_a_result_of_2_mb_is_kept_and_one_byte_more_is_refused(bench: Bench) -> None:
    assert (await outcome_of("x" * MAX_RESULT_BYTES, bench.blobs, "t")).ref is not None
    refused = await outcome_of("x" * (MAX_RESULT_BYTES + 1), bench.blobs, "t")
    assert refused.is_error
    assert refused.error is not None
    assert refused.error.code == "TOOL_RESULT_TOO_LARGE"
    assert refused.error.details == {"bytes": 2_000_001, "limit": 2_000_000}
    assert len(bench.blobs.values) == 1


async def test_while_the_store_is_down_a_result_goes_by_value_as_far_as_it_may(
    bench: Bench,
) -> None:
    bench.blobs.down = True
    outcome = await outcome_of("x" * TOOL_INLINE_BYTES, bench.blobs, "t")
    assert outcome.value == "x" * TOOL_INLINE_BYTES
    with pytest.raises(StoreError):
        await outcome_of("x" * (TOOL_INLINE_BYTES + 1), bench.blobs, "t")
