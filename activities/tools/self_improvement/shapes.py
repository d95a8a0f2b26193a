"""Values checked against the part of JSON Schema that forged tools may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....personas.errors import ToolError
from ....personas.traits import is_number

KEYWORDS = frozenset(
    {
        "type",
        "description",
        "title",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "maxItems",
    }
)
MAX_DEPTH = 5

_TYPES: dict[str, Any] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": is_number,
    "integer": lambda value: is_number(value) and float(value).is_integer(),
    "null": lambda value: value is None,
}


def check_schema(schema: Any, where: str, depth: int = 0) -> None:
    """Refuse a schema that says something that is not checked here.

    Raises:
        ToolError: It does; the message says where.
    """
    if not isinstance(schema, dict):
        raise ToolError(f"{where} is {str(schema)[:50]!r}; a schema is an object")
    if depth > MAX_DEPTH:
        raise ToolError(f"{where} is nested deeper than {MAX_DEPTH}")
    unknown = sorted(set(schema) - KEYWORDS)
    if unknown:
        raise ToolError(f"{where} has {', '.join(unknown)}, which is not supported here")
    if "type" in schema and schema["type"] not in tuple(_TYPES):
        raise ToolError(f"{where}.type is {schema['type']!r}; use one of {', '.join(_TYPES)}")
    for name, inner in _properties(schema, where).items():
        check_schema(inner, f"{where}.{name}", depth + 1)
    if "items" in schema:
        check_schema(schema["items"], f"{where}[]", depth + 1)
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ToolError(f"{where}.required is no list of names")
    if not isinstance(schema.get("enum", []), list):
        raise ToolError(f"{where}.enum is no list")
    for bound in ("minimum", "maximum", "minLength", "maxLength", "maxItems"):
        if bound in schema and not is_number(schema[bound]):
            raise ToolError(f"{where}.{bound} is no number")


def check_value(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Refuse a value that does not fit a schema.

    Raises:
        ToolError: It does not; the message says where and why.
    """
    wanted = schema.get("type")
    if wanted is not None and not _TYPES[wanted](value):
        raise ToolError(f"{where} is {str(value)[:50]!r}, which is no {wanted}")
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(f"{where} is {str(value)[:50]!r}; use one of {schema['enum']}")
    if is_number(value):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            raise ToolError(f"{where} is {value!r}, which is out of range")
    elif isinstance(value, str):
        size = len(value)
        if size < schema.get("minLength", size) or size > schema.get("maxLength", size):
            raise ToolError(f"{where} has {size} characters, which is out of range")
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            raise ToolError(f"{where} has {len(value)} items, which is too many")
        if "items" in schema:
            for index, item in enumerate(value):
                check_value(item, schema["items"], f"{where}[{index}]")
    elif isinstance(value, dict):
        _check_object(value, schema, where)


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> None:
    properties = _properties(schema, where)
    missing = [name for name in schema.get("required", []) if name not in value]
    if missing:
        raise ToolError(f"{where} lacks {', '.join(missing)}")
    if schema.get("additionalProperties") is False:
        extra = sorted(set(value) - set(properties))
        if extra:
            raise ToolError(f"{where} has {', '.join(extra)}, which it does not take")
    for name, inner in properties.items():
        if name in value:
            check_value(value[name], inner, f"{where}.{name}")


def _properties(schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise ToolError(f"{where}.properties is no object")
    return properties
