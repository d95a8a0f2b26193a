"""Errors on the wire: from our tree to Temporal's failures and back.

An error crosses a boundary as an ``ApplicationError`` whose type is the error's code and whose
first detail is its details, so that the class is found again on the other side and in any
language.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    TimeoutError,
    TimeoutType,
)

from ..personas.errors import GMIError, ValidationError, error_from_code
from .turns import ErrorInfo

WORKER_SHUTDOWN = "WORKER_SHUTDOWN"
"""Type of the retryable failure by which a worker that shuts down hands an activity on."""


def refusal(error: GMIError) -> ApplicationError:
    """The failure that tells a caller about ``error``."""
    return ApplicationError(
        error.message, error.details, type=error.code, non_retryable=not error.retryable
    )


def as_error_info(error: GMIError) -> ErrorInfo:
    """``error`` as data."""
    return ErrorInfo(code=error.code, message=error.message, details=error.details)


def error_from_failure(failure: ApplicationError) -> GMIError:
    """The error that a failure stands for."""
    details: dict[str, Any] = {}
    if failure.details and isinstance(failure.details[0], dict):
        details = dict(failure.details[0])
    return error_from_code(failure.type or "GMI_PROCESSING_ERROR", failure.message, details)


def root_cause(error: BaseException) -> BaseException:
    """The innermost failure of an activity's error."""
    cause: BaseException = error
    while isinstance(cause, ActivityError) and cause.cause is not None:
        cause = cause.cause
    return cause


def info_from_activity(error: ActivityError) -> ErrorInfo:
    """What an activity's failure says, as data."""
    cause = root_cause(error)
    if isinstance(cause, ApplicationError):
        return as_error_info(error_from_failure(cause))
    if isinstance(cause, TimeoutError):
        kind = cause.type.name if cause.type is not None else "UNKNOWN"
        return ErrorInfo(
            code="GMI_PROCESSING_ERROR",
            message=f"Activity {error.activity_type} timed out ({kind}).",
            details={"timeout": kind},
        )
    if isinstance(cause, CancelledError):
        return ErrorInfo(
            code="GMI_PROCESSING_ERROR", message=f"Activity {error.activity_type} was cancelled."
        )
    return ErrorInfo(
        code="GMI_PROCESSING_ERROR",
        message=f"Activity {error.activity_type} failed: {type(cause).__name__}: {cause}",
    )


def error_from_activity(error: ActivityError) -> GMIError:
    """What an activity's failure says, as an error."""
    info = info_from_activity(error)
    return error_from_code(info.code, info.message, info.details)


def never_started(error: ActivityError) -> bool:
    """Whether no worker took the activity before its time to start ran out."""
    cause = root_cause(error)
    return isinstance(cause, TimeoutError) and cause.type == TimeoutType.SCHEDULE_TO_START


def outcome_unknown(error: ActivityError) -> bool:
    """Whether the activity may have done its work although no result came back."""
    cause = root_cause(error)
    if isinstance(cause, TimeoutError):
        return cause.type != TimeoutType.SCHEDULE_TO_START
    if isinstance(cause, ApplicationError):
        return cause.type == WORKER_SHUTDOWN
    return isinstance(cause, CancelledError)


def invalid(what: str, problem: object) -> ValidationError:
    """The error for an input that does not decode."""
    return ValidationError(f"{what} is not valid: {problem}", details={"input": what})


class refusing:
    """Turns the project's errors into failures of the update that raised them."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, GMIError):
            raise refusal(error) from error
        if isinstance(error, ActivityError):
            raise refusal(error_from_activity(error)) from error


def let_go(handle: asyncio.Task[Any]) -> None:
    """Cancel a call that nobody waits for any longer, and look at what it comes to."""

    def look(ended: asyncio.Task[Any]) -> None:
        if not ended.cancelled():
            ended.exception()

    handle.add_done_callback(look)
    handle.cancel()
