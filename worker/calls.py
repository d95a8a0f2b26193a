"""Calling a session: one place that retries what can be retried and types what cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ActivityError, ApplicationError, FailureError
from temporalio.service import RPCError, RPCStatusCode

from ..personas.errors import GMIError, ProcessingError, SessionNotFoundError, SessionStuckError
from ..workflows.failures import error_from_failure

T = TypeVar("T")

RETRY_FOR = 60.0
"""Seconds that a call goes on while the server or the workers are away."""

STUCK_FOR = 20.0
"""Seconds that a call goes on while the session's workflow task fails on the workers' code."""

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0

# The run ended while the call was open: another run, or another session, takes a repeat.
_COMPLETED_UNDER_US = "AcceptedUpdateCompletedWorkflow"

_TASK_FAILS = "Workflow Task in failed state"
_NONDETERMINISM = "[TMPRL1100]"

_PASSING = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.UNKNOWN,
        RPCStatusCode.FAILED_PRECONDITION,
    }
)


async def calling(work: Callable[[], Awaitable[T]], *, retry_for: float = RETRY_FOR) -> T:
    """Call until it is answered; a call that is repeated changes nothing a second time.

    Args:
        work: The call.
        retry_for: Seconds to go on while nobody answers.

    Raises:
        GMIError: The session refused the call, with the error's code.
        SessionNotFoundError: There is no such session.
        SessionStuckError: For :data:`STUCK_FOR` seconds no worker's code could run the session.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    deadline = begun + retry_for
    pause = _FIRST_PAUSE
    while True:
        try:
            return await work()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError) and isinstance(
                error.__cause__, asyncio.CancelledError
            ):
                # The client's own error for an update whose caller was cancelled.
                raise error.__cause__ from None
            stuck = stuck_in(error)
            if stuck is not None:
                if loop.time() + pause > min(deadline, begun + STUCK_FOR):
                    raise stuck from error
            else:
                answer = refusal_in(error)
                if answer is not None:
                    raise answer from error
                if not passing(error) or loop.time() + pause > deadline:
                    raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def stuck_in(error: BaseException) -> SessionStuckError | None:
    """The error for a session that the workers' code cannot run, or ``None``.

    The server then answers no query and takes no update; a query that reaches a worker first
    fails with the worker's own words.
    """
    refused = (
        isinstance(error, RPCError)
        and error.status == RPCStatusCode.FAILED_PRECONDITION
        and _TASK_FAILS in error.message
    )
    failed = isinstance(error, WorkflowQueryFailedError) and _NONDETERMINISM in str(error)
    if not refused and not failed:
        return None
    return SessionStuckError(
        f"The session stands still, since its workflow task fails on the workers' code: {error} "
        "`gmi replay --session SESSION` shows what does not fit, and the workers' logs say it too. "
        "Deploy code that fits, or the code of before; nothing is lost."
    )


def refusal_in(error: BaseException) -> GMIError | None:
    """The session's own answer in a failed call, or ``None`` when it gave none."""
    if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
        return SessionNotFoundError("The session is not running; send something to start it.")
    if isinstance(error, WorkflowQueryRejectedError):
        if error.status == WorkflowExecutionStatus.CONTINUED_AS_NEW:
            return None
        return SessionNotFoundError("The session is not running; send something to start it.")
    if isinstance(error, WorkflowQueryFailedError):
        return ProcessingError(f"The session could not answer: {error}")
    if not isinstance(error, WorkflowUpdateFailedError | WorkflowFailureError):
        return None
    cause: BaseException | None = error.cause
    while isinstance(cause, ActivityError):
        cause = cause.cause
    if isinstance(cause, ApplicationError):
        return None if cause.type == _COMPLETED_UNDER_US else error_from_failure(cause)
    return ProcessingError(str(cause)) if isinstance(cause, FailureError) else None


def passing(error: BaseException) -> bool:
    """Whether the same call can succeed when it is repeated."""
    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError):
        return not isinstance(error.__cause__, asyncio.CancelledError)
    if isinstance(error, WorkflowUpdateFailedError):
        cause = error.cause
        return isinstance(cause, ApplicationError) and cause.type == _COMPLETED_UNDER_US
    if isinstance(error, WorkflowQueryRejectedError):
        return error.status == WorkflowExecutionStatus.CONTINUED_AS_NEW
    return isinstance(error, RPCError) and error.status in _PASSING
