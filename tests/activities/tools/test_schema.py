from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Protocol

import pytest
from pydantic import BaseModel, Field

from gmi.activities.tools import ToolContext
from gmi.activities.tools.schema import ArgumentsInvalidError, Signature
from gmi.personas.errors import ConfigurationError

CONTEXT = ToolContext("s", "u", "t", 0, "c", "k", 1)


class Unit(Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


class Place(BaseModel):
    city: str
    country: str = "DE"


@dataclass
class Point:
    x: float
    y: float


class Unknowable(Protocol):
    def answer(self) -> int: ...


def forecast(
    place: Place,
    days: int = 3,
    unit: Unit = Unit.CELSIUS,
    detail: Literal["low", "high"] | None = None,
    tags: Annotated[list[str], Field(max_length=4, description="from the annotation")] = [],  # noqa: B006
) -> str:
    """Forecast the weather.

    Looks a few days ahead.

    Args:
        place: Where,
            on two lines.
        days (int): How many: at most ten.
        tags: from the docstring

    Returns:
        A sentence.
    """
    return f"{place.city} {days} {unit.value} {detail} {tags}"


def test_a_signature_becomes_a_json_schema_with_its_docstrings_words() -> None:
    signature = Signature(forecast, "forecast")
    assert signature.description == "Forecast the weather.\n\nLooks a few days ahead."
    defs = signature.parameters.pop("$defs")
    assert defs["Place"]["properties"] == {
        "city": {"type": "string"},
        "country": {"default": "DE", "type": "string"},
    }
    assert defs["Unit"]["enum"] == ["celsius", "kelvin"]
    assert signature.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["place"],
        "properties": {
            "place": {"$ref": "#/$defs/Place", "description": "Where, on two lines."},
            "days": {"type": "integer", "default": 3, "description": "How many: at most ten."},
            "unit": {"$ref": "#/$defs/Unit", "default": "celsius"},
            "detail": {
                "anyOf": [{"enum": ["low", "high"], "type": "string"}, {"type": "null"}],
                "default": None,
            },
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 4,
                "default": [],
                "description": "from the annotation",
            },
        },
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def ping() -> str:
        return "pong"

    assert Signature(ping, "ping").parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_arguments_are_converted_to_the_types_of_the_signature() -> None:
    args, kwargs = Signature(forecast, "forecast").bind(
        {"place": {"city": "Bonn"}, "days": "5", "unit": "kelvin"}, CONTEXT
    )
    assert args == []
    assert kwargs["place"] == Place(city="Bonn")
    assert forecast(**kwargs) == "Bonn 5 kelvin None []"


def test_dataclasses_are_parameters_too() -> None:
    def move(to: Point) -> float:
        return to.x

    _, kwargs = Signature(move, "move").bind({"to": {"x": 1, "y": 2}}, CONTEXT)
    assert kwargs == {"to": Point(1.0, 2.0)}


@pytest.mark.parametrize(
    ("arguments", "where", "why"),
    [
        ({}, "'place'", "Field required"),
        ({"place": {}}, "'place.city'", "Field required"),
        ({"place": {"city": "A"}, "days": "many"}, "'days'", "(got 'many')"),
        ({"place": {"city": "A"}, "unit": "ounce"}, "'unit'", "celsius"),
        ({"place": {"city": "A"}, "wind": 1}, "'wind'", "Extra inputs are not permitted"),
        ({"place": {"city": "A"}, "tags": list("abcde")}, "'tags'", "at most 4"),
    ],
)
def test_arguments_that_do_not_fit_are_named_with_the_reason(
    arguments: dict[str, Any], where: str, why: str
) -> None:
    with pytest.raises(ArgumentsInvalidError) as raised:
        Signature(forecast, "forecast").bind(arguments, CONTEXT)
    assert where in str(raised.value)
    assert why in str(raised.value)


def test_a_long_list_of_problems_is_cut_and_large_values_are_not_repeated() -> None:
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    with pytest.raises(ArgumentsInvalidError) as raised:
        Signature(total, "total").bind({"numbers": ["x" * 10_000] * 50}, CONTEXT)
    assert len(raised.value.problems) == 6
    assert raised.value.problems[-1] == "and 45 more"
    assert len(str(raised.value)) < 2000


def test_the_context_is_handed_in_and_hidden_from_the_model() -> None:
    def who(context: ToolContext, maybe: ToolContext | None = None, greeting: str = "Hi") -> str:
        return f"{greeting} {context.user_id}"

    signature = Signature(who, "who")
    assert list(signature.parameters["properties"]) == ["greeting"]
    _, kwargs = signature.bind({}, CONTEXT)
    assert kwargs == {"context": CONTEXT, "maybe": CONTEXT, "greeting": "Hi"}
    with pytest.raises(ArgumentsInvalidError, match="'context'"):
        signature.bind({"context": {"user_id": "somebody else"}}, CONTEXT)


def test_parameters_may_be_named_like_attributes_of_a_model() -> None:
    def odd(model_config: str, copy: int, _private: bool = False, schema: str = "s") -> str:
        return f"{model_config} {copy} {_private} {schema}"

    signature = Signature(odd, "odd")
    assert list(signature.parameters["properties"]) == [
        "model_config",
        "copy",
        "_private",
        "schema",
    ]
    _, kwargs = signature.bind({"model_config": "m", "copy": 1, "_private": True}, CONTEXT)
    assert odd(**kwargs) == "m 1 True s"


def test_positional_only_parameters_are_passed_by_position() -> None:
    def divide(a: int, b: int, /, *, digits: int = 2) -> float:
        return round(a / b, digits)

    args, kwargs = Signature(divide, "divide").bind({"b": 3, "a": 1}, CONTEXT)
    assert divide(*args, **kwargs) == 0.33


def test_a_bound_method_is_described_without_self() -> None:
    class Shop:
        def price(self, item: str) -> int:
            return len(item)

    signature = Signature(Shop().price, "price")
    assert list(signature.parameters["properties"]) == ["item"]


def test_a_wrapped_function_is_described_as_the_one_inside() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @logged
    def double(number: int) -> int:
        return 2 * number

    assert list(Signature(double, "double").parameters["properties"]) == ["number"]


def test_a_default_that_is_no_json_value_is_left_out_of_the_schema_and_still_used() -> None:
    marker = object()

    def find(what: Any = marker) -> bool:
        return what is marker

    signature = Signature(find, "find")
    assert signature.parameters["properties"] == {"what": {}}
    _, kwargs = signature.bind({}, CONTEXT)
    assert find(**kwargs)


def untyped(a, b: int) -> None: ...  # type: ignore[no-untyped-def]


def starred(*names: str) -> None: ...


def double_starred(**names: str) -> None: ...


def unreadable(a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore


def without_schema(a: Unknowable) -> None: ...


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (untyped, "'a'"),
        (starred, r"\*names"),
        (double_starred, r"\*\*names"),
        (unreadable, "Missing"),
        (without_schema, "no JSON Schema"),
        (functools.partial(forecast), "bound method"),
    ],
)
def test_a_signature_that_cannot_be_described_is_refused(function: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as raised:
        Signature(function, "my_tool")
    assert "'my_tool'" in raised.value.message
