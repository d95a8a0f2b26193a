"""How values travel."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import DataConverter, WorkflowSerializationContext

from gmi.worker.converter import SharedPayloadConverter, converter_for
from gmi.workflows.steps import At

AT = At(session="s", turn="t", counter=3, now=datetime(2026, 5, 1, tzinfo=UTC), run="r")


@pytest.mark.parametrize("value", [AT, None, b"raw", {"a": [1, "ü"]}, [AT, AT]])
def test_values_travel_as_temporals_own_converter_has_them(value: Any) -> None:
    [ours] = SharedPayloadConverter().to_payloads([value])
    assert [ours] == PydanticPayloadConverter().to_payloads([value])
    hint = list[At] if isinstance(value, list) else type(value)
    assert SharedPayloadConverter().from_payloads([ours], [hint]) == [value]


def test_what_pydantic_has_compiled_is_shared_by_all_sessions() -> None:
    one, other = SharedPayloadConverter(), SharedPayloadConverter()
    assert list(one.converters.values()) == list(other.converters.values())
    assert one.with_context(WorkflowSerializationContext("default", "w")) is one


@pytest.mark.parametrize("existing", [None, DataConverter.default, pydantic_data_converter])
def test_temporals_own_converters_are_replaced(existing: DataConverter | None) -> None:
    assert converter_for(existing).payload_converter_class is SharedPayloadConverter
