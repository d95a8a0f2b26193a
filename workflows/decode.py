"""Decoding of handler inputs inside our own code.

The SDK drops a signal that does not decode and answers a malformed update with an untyped
error, so handlers take raw values and decode them here, with a size limit and typed errors.
"""

from __future__ import annotations

import json
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError
from temporalio import workflow
from temporalio.common import RawValue

from ..personas.errors import MessageTooLargeError
from .failures import invalid

MAX_INPUT_BYTES = 1_000_000
"""Largest encoded input of a handler, in bytes."""

MISSING = cast(RawValue, None)
"""Default of a handler's input: a call without one is refused like any other malformed one,
while a handler that cannot be called at all would hold the session up."""

T = TypeVar("T", bound=BaseModel)


def decode(raw: RawValue, model: type[T]) -> T:
    """The input that ``raw`` holds.

    Raises:
        MessageTooLargeError: It is over :data:`MAX_INPUT_BYTES`.
        gmi.personas.errors.ValidationError: It is not JSON or not of this form.
    """
    if raw is MISSING:
        raise invalid(model.__name__, "the call has no input")
    size = len(raw.payload.data)
    if size > MAX_INPUT_BYTES:
        raise MessageTooLargeError(
            f"The input of {model.__name__} has {size} bytes and the limit is "
            f"{MAX_INPUT_BYTES}; keep large content elsewhere and send a reference.",
            details={"bytes": size, "limit": MAX_INPUT_BYTES},
        )
    try:
        value = workflow.payload_converter().from_payload(raw.payload)
    except Exception as error:
        raise invalid(model.__name__, f"it does not decode ({error})") from error
    return parse(value, model)


def parse(value: object, model: type[T]) -> T:
    """``value``, any JSON value, as ``model``.

    Raises:
        gmi.personas.errors.ValidationError: It is not of this form.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[:3]
        problem = "; ".join(
            f"{'.'.join(str(p) for p in item['loc']) or model.__name__}: {item['msg']}"
            for item in first
        )
        raise invalid(model.__name__, problem) from error


def encoded_size(value: object) -> int:
    """Bytes of ``value`` as compact JSON."""
    if isinstance(value, BaseModel):
        return len(value.model_dump_json(exclude_defaults=True).encode())
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
