"""Decoding of handler inputs inside our own code.

The SDK drops a signal that does not decode and answers a malformed update with an untyped
error, so handlers take raw values and decode them here, with a size limit and typed errors.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar, cast

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

MAX_PASSES = 8
"""A field may lie in one that was just taken out of the way of its decoding."""

T = TypeVar("T", bound=BaseModel)


def nothing(raw: RawValue, name: str) -> None:
    """Refuse the input of a call that takes none; ``null`` and ``{}`` say nothing.

    Args:
        raw: The call's input.
        name: The call's name.

    Raises:
        MessageTooLargeError: It is over :data:`MAX_INPUT_BYTES`.
        gmi.personas.errors.ValidationError: It says something.
    """
    if raw is MISSING:
        return
    value = _value(raw, name)
    if value is not None and value != {}:
        raise invalid(name, "the call takes no input; send none")


def decode(raw: RawValue, model: type[T]) -> T:
    """The input that ``raw`` holds.

    Raises:
        MessageTooLargeError: It is over :data:`MAX_INPUT_BYTES`.
        gmi.personas.errors.ValidationError: It is not JSON or not of this form.
    """
    if raw is MISSING:
        raise invalid(model.__name__, "the call has no input")
    return parse(_value(raw, model.__name__), model)


def carried(raw: RawValue, model: type[T]) -> T:
    """What the run before handed over; see :func:`lenient`."""
    return lenient(_value(raw, model.__name__), model)


def lenient(value: object, model: type[T]) -> T:
    """What a session carries, also when a newer release wrote it.

    Its fields that this release does not know are passed over at every depth.

    Raises:
        gmi.personas.errors.ValidationError: It is not of this form.
    """
    for _ in range(MAX_PASSES):
        try:
            return model.model_validate(value)
        except ValidationError as error:
            unknown = [e["loc"] for e in error.errors() if e["type"] == "extra_forbidden"]
            if not unknown:
                break
            for place in unknown:
                _remove(value, place)
    return parse(value, model)


def _remove(value: Any, place: tuple[int | str, ...]) -> None:
    """Take a field out; a step that names no key, such as a union's, is passed over."""
    for step in place[:-1]:
        if isinstance(value, dict):
            value = value.get(step, value)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
    if isinstance(value, dict):
        value.pop(place[-1], None)


def _value(raw: RawValue, what: str) -> object:
    """The JSON value that ``raw`` holds."""
    size = len(raw.payload.data)
    if size > MAX_INPUT_BYTES:
        raise MessageTooLargeError(
            f"The input of {what} has {size} bytes and the limit is "
            f"{MAX_INPUT_BYTES}; keep large content elsewhere and send a reference.",
            details={"bytes": size, "limit": MAX_INPUT_BYTES},
        )
    try:
        value: object = workflow.payload_converter().from_payload(raw.payload)
    except Exception as error:
        raise invalid(what, undecodable(raw, error)) from None
    return value


def parse(value: object, model: type[T]) -> T:
    """``value``, any JSON value, as ``model``.

    Raises:
        gmi.personas.errors.ValidationError: It is not of this form.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Not from the error, which quotes the input and would be kept in the history with it.
        raise invalid(model.__name__, misfit(error, model.__name__)) from None


def misfit(error: ValidationError, what: str) -> str:
    """How a value does not have the form of ``what``, without a word of what it holds."""
    first = error.errors(include_url=False, include_input=False)[:3]
    return "; ".join(
        f"{'.'.join(str(p) for p in item['loc']) or what}: {item['msg']}" for item in first
    )


def undecodable(raw: RawValue, error: Exception) -> str:
    """Why a payload does not decode, without a word of what it holds."""
    encoding = raw.payload.metadata.get("encoding", b"").decode(errors="replace")[:100]
    return (
        f"its {len(raw.payload.data)} bytes of encoding {encoding!r} do not decode "
        f"({type(error).__name__})"
    )


def short_digest(text: str) -> str:
    """16 hex characters that recognise a text among a session's own."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def encoded_size(value: object) -> int:
    """Bytes of ``value`` as compact JSON."""
    if isinstance(value, BaseModel):
        return len(value.model_dump_json(exclude_defaults=True).encode())
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
