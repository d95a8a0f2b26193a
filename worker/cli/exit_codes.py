"""What the command line's exit codes mean, and which one an error gets."""

from __future__ import annotations

from enum import IntEnum

from temporalio.service import RPCError, RPCStatusCode

from ...personas.errors import (
    GMIError,
    NotFoundError,
    PermissionDeniedError,
    PersonaInvalidError,
    SessionError,
    ValidationError,
)

SERVER_UNREACHABLE = "SERVER_UNREACHABLE"
"""Code of the error when no Temporal server answers."""

USAGE = "USAGE"
"""Code of the error for a command line that cannot be read."""


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_SERVER = 3
    NOT_FOUND = 4
    REFUSED = 5
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "the session, the turn or a check failed",
    ExitCode.USAGE: "the command line or the input is wrong",
    ExitCode.NO_SERVER: "no Temporal server answers",
    ExitCode.NOT_FOUND: "the session, turn, persona or file does not exist",
    ExitCode.REFUSED: "the session is busy or closed, or does not allow it",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}

NO_ANSWER = frozenset({RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED})
"""How a call fails when no server answers."""


_HINTS = (
    (
        "SESSION_USER_MISMATCH",
        "",
        "--user, or GMI_USER, says who speaks, and without either it is `local`; `gmi list` shows "
        "whose the session is.",
    ),
    (
        "SESSION_PERSONA_MISMATCH",
        "",
        "`gmi chat SESSION --persona PERSONA` changes who speaks; without --persona the session "
        "keeps its own.",
    ),
    (
        "CONVERSATION_BUSY",
        "",
        "`gmi pending SESSION` lists the calls, `gmi answer` answers one; `gmi send --on-pause "
        "answer` answers them as not run.",
    ),
    (
        "SYS_VALIDATION_ERROR",
        "waits for an approval",
        "give --approve, or --deny with a reason.",
    ),
    (
        "SYS_VALIDATION_ERROR",
        "waits for a result",
        "give the result: VALUE, --json-value or --error.",
    ),
)
"""Code of an error, words in its message, and what the command line has for it.

The errors speak to programs, and name the arguments of the Python client."""


class UsageError(GMIError):
    """The command line cannot be read."""

    default_code = USAGE


def error_of(error: Exception) -> GMIError | None:
    """The error to show for an expected failure; ``None`` for a mistake of ours."""
    if isinstance(error, GMIError):
        return error
    if isinstance(error, RPCError):
        if error.status in NO_ANSWER:
            return GMIError(
                f"The Temporal server or its workers do not answer: {error.message}. `gmi doctor` "
                "tells which.",
                code=SERVER_UNREACHABLE,
            )
        return GMIError(f"The Temporal server refused: {error.message}", code=error.status.name)
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"There is no file {error.filename!r}.")
    if isinstance(error, OSError):
        return GMIError(str(error), code="OS_ERROR")
    return None


def exit_code(error: GMIError) -> ExitCode:
    """The exit code for an error."""
    if error.code == SERVER_UNREACHABLE:
        return ExitCode.NO_SERVER
    if isinstance(error, PersonaInvalidError):
        return ExitCode.FAILED
    if isinstance(error, ValidationError | UsageError):
        return ExitCode.USAGE
    if isinstance(error, NotFoundError):
        return ExitCode.NOT_FOUND
    if isinstance(error, SessionError | PermissionDeniedError):
        return ExitCode.REFUSED
    return ExitCode.FAILED


def hint(error: GMIError) -> str | None:
    """What to do about an error on the command line, where its message does not say it."""
    return next(
        (told for code, words, told in _HINTS if code == error.code and words in error.message),
        None,
    )
