"""What a tool raised, in the form that the retry policy and the workflow read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from ...personas.errors import GMIError, ToolError
from ...workflows.failures import WORKER_SHUTDOWN
from ...workflows.policies import NOT_REGISTERED
from ...workflows.steps import INLINE_TEXT_BYTES

MAX_MESSAGE = 2000

# An exception class that happens to have such a name must not be read as what it means.
_RESERVED = {WORKER_SHUTDOWN, NOT_REGISTERED}


def failure_of(error: BaseException, *, retry: bool) -> ApplicationError:
    """The failure that stands for what a tool raised.

    Args:
        error: What the tool raised. A :class:`ToolError` is the tool's last word and is never
            retried; an ``ApplicationError`` is passed on as it is.
        retry: Whether the tool may run again.

    Returns:
        An error whose type is the error's code, or the class of a foreign exception.
    """
    if isinstance(error, ApplicationError) and error.type not in _RESERVED:
        return error
    details: list[dict[str, Any]] = []
    if isinstance(error, GMIError):
        kind, message = error.code, error.message
        details = [_json_details(error.details)]
    else:
        kind, message = type(error).__name__, str(error)
    if kind in _RESERVED:
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
    # Half of a surrogate pair cannot be sent.
    sendable = message[:MAX_MESSAGE].encode(errors="replace").decode()
    own = isinstance(error, ToolError)
    failure = ApplicationError(
        sendable or kind,
        *details,
        type=kind,
        non_retryable=own or not retry,
        # What a tool says to the model is no fault of the worker's, for its log.
        category=ApplicationErrorCategory.BENIGN if own else ApplicationErrorCategory.UNSPECIFIED,
    )
    # Temporal shows where the tool failed; the message, which the model reads, does not.
    return failure.with_traceback(error.__traceback__)


def _json_details(details: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = to_jsonable_python(details, fallback=repr)
        size = len(json.dumps(plain, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError):
        return {}
    return plain if size <= INLINE_TEXT_BYTES else {}
