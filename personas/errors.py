"""The one error tree of the project.

    GMIError
    ├── ValidationError            SYS_VALIDATION_ERROR
    │   ├── MessageTooLargeError   MESSAGE_TOO_LARGE
    │   ├── RequestMismatchError   REQUEST_MISMATCH
    │   └── PersonaInvalidError    PERSONA_INVALID
    ├── NotFoundError              SYS_RESOURCE_NOT_FOUND
    │   ├── PersonaNotFoundError   PERSONA_NOT_FOUND
    │   ├── TurnNotFoundError      TURN_UNKNOWN
    │   ├── SessionNotFoundError   SESSION_UNKNOWN
    │   └── ToolNotFoundError      TOOL_UNKNOWN
    ├── ConfigurationError         SYS_CONFIGURATION_ERROR
    ├── PermissionDeniedError      AUTH_PERMISSION_DENIED
    │   ├── SessionUserMismatchError  SESSION_USER_MISMATCH
    │   └── CredentialRefusedError    CREDENTIAL_REFUSED
    ├── SessionError               SYS_INVALID_STATE
    │   ├── SessionBusyError       SESSION_BUSY
    │   ├── ConversationBusyError  CONVERSATION_BUSY
    │   ├── SessionClosedError     SESSION_CLOSED
    │   ├── PersonaMismatchError   SESSION_PERSONA_MISMATCH
    │   └── NotPendingError        TOOL_CALL_NOT_PENDING
    ├── ToolError                  TOOL_ERROR
    │   └── SelfChangeRefusedError  SELF_CHANGE_REFUSED
    ├── ProviderError              LLM_PROVIDER_ERROR
    │   └── ProviderUnavailableError  LLM_PROVIDER_UNAVAILABLE
    ├── StoreError                 STORE_ERROR
    │   ├── StoreBehindError       STORE_BEHIND
    │   ├── StaleWriteError        STORE_STALE_WRITE
    │   └── StoreUnknownSessionError  STORE_UNKNOWN_SESSION
    └── ProcessingError            GMI_PROCESSING_ERROR
        └── SessionStuckError      SESSION_STUCK

Every error carries a stable ``code``. The code, the message and the details cross process
boundaries; the class is found again by its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class GMIError(Exception):
    """Base of every error that this project raises on purpose.

    Args:
        message: What was wrong, the value, and what to do about it.
        details: JSON-able facts for a program that handles the error.
        code: Overrides the class's code; for codes that have no class of their own.

    Attributes:
        code: Stable identifier such as ``PERSONA_NOT_FOUND``.
        retryable: Whether the same call can succeed later without a change by the caller.
    """

    default_code: ClassVar[str] = "GMI_ERROR"
    retryable: bool = False

    def __init__(
        self, message: str, *, details: Mapping[str, Any] | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message
        self.details: dict[str, Any] = dict(details or {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}(code={self.code!r}, message={self.message!r})"


class ValidationError(GMIError):
    """An input does not have the form that the call takes."""

    default_code = "SYS_VALIDATION_ERROR"


class MessageTooLargeError(ValidationError):
    """An input is larger than the limit; the message names both."""

    default_code = "MESSAGE_TOO_LARGE"


class RequestMismatchError(ValidationError):
    """A request id was used before with a different input."""

    default_code = "REQUEST_MISMATCH"


class PersonaInvalidError(ValidationError):
    """A persona has validation errors; ``details["issues"]`` lists them."""

    default_code = "PERSONA_INVALID"


class NotFoundError(GMIError):
    """Something that the call names does not exist."""

    default_code = "SYS_RESOURCE_NOT_FOUND"


class PersonaNotFoundError(NotFoundError):
    """No source provides this persona id; ``details["known"]`` lists the known ones."""

    default_code = "PERSONA_NOT_FOUND"


class TurnNotFoundError(NotFoundError):
    """The session has no turn of this id."""

    default_code = "TURN_UNKNOWN"


class SessionNotFoundError(NotFoundError):
    """No session of this id is open or stored."""

    default_code = "SESSION_UNKNOWN"


class ToolNotFoundError(NotFoundError):
    """No tool of this name is registered; ``details["known"]`` lists the known ones."""

    default_code = "TOOL_UNKNOWN"


class ConfigurationError(GMIError):
    """A setting is missing or wrong; the message says which one and how to set it."""

    default_code = "SYS_CONFIGURATION_ERROR"


class PermissionDeniedError(GMIError):
    """The caller may not do this."""

    default_code = "AUTH_PERMISSION_DENIED"


class SessionUserMismatchError(PermissionDeniedError):
    """The session belongs to another user."""

    default_code = "SESSION_USER_MISMATCH"


class CredentialRefusedError(PermissionDeniedError):
    """A raw key was sent, or a named credential is not on the worker's allow-list."""

    default_code = "CREDENTIAL_REFUSED"


class SessionError(GMIError):
    """The session is not in a state that allows the call."""

    default_code = "SYS_INVALID_STATE"


class SessionBusyError(SessionError):
    """The session's queue is full, or a turn runs and ``sends="refuse"`` was asked for."""

    default_code = "SESSION_BUSY"
    retryable = True


class ConversationBusyError(SessionError):
    """A turn waits for tool results; ``details["pending"]`` names the calls."""

    default_code = "CONVERSATION_BUSY"


class SessionClosedError(SessionError):
    """The session was closed."""

    default_code = "SESSION_CLOSED"


class PersonaMismatchError(SessionError):
    """The session runs another persona; ``refresh_persona`` changes it."""

    default_code = "SESSION_PERSONA_MISMATCH"


class NotPendingError(SessionError):
    """A result names a call that is not waiting; ``details["pending"]`` names those that are."""

    default_code = "TOOL_CALL_NOT_PENDING"


class ToolError(GMIError):
    """A tool failed, and the turn was told to fail with it."""

    default_code = "TOOL_ERROR"


class SelfChangeRefusedError(ToolError):
    """A change that an agent wanted to make to itself is not allowed; nothing was changed.

    ``details`` holds ``status``, always ``rejected``, and the ``reason``.
    """

    default_code = "SELF_CHANGE_REFUSED"


class ProviderError(GMIError):
    """A model provider failed and no fallback was left."""

    default_code = "LLM_PROVIDER_ERROR"


class ProviderUnavailableError(ProviderError):
    """No provider of the chain could start."""

    default_code = "LLM_PROVIDER_UNAVAILABLE"


class StoreError(GMIError):
    """The store refused or failed an operation.

    It is retryable where its details say so: the database is down or locked, and nothing was
    written.
    """

    default_code = "STORE_ERROR"

    def __init__(
        self, message: str, *, details: Mapping[str, Any] | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, details=details, code=code)
        self.retryable = bool(self.details.get("retryable"))


class StoreBehindError(StoreError):
    """The store lacks rows that the workflow recorded."""

    default_code = "STORE_BEHIND"


class StaleWriteError(StoreError):
    """A newer attempt has written this row; the late write was dropped."""

    default_code = "STORE_STALE_WRITE"


class StoreUnknownSessionError(StoreError):
    """The store has no row of this session."""

    default_code = "STORE_UNKNOWN_SESSION"


class ProcessingError(GMIError):
    """A turn failed for a reason that has no code of its own."""

    default_code = "GMI_PROCESSING_ERROR"


class SessionStuckError(ProcessingError):
    """The workers' code cannot run the session; it goes on once code that fits is deployed."""

    default_code = "SESSION_STUCK"
    retryable = True


def _subclasses(root: type[GMIError]) -> list[type[GMIError]]:
    found = [root]
    for child in root.__subclasses__():
        found.extend(_subclasses(child))
    return found


def error_from_code(code: str, message: str, details: Mapping[str, Any] | None = None) -> GMIError:
    """Rebuild the error that a code names, after it crossed a process boundary.

    Args:
        code: An error's ``code``; one without a class gives a plain :class:`GMIError`.
        message: The error's message.
        details: The error's details.
    """
    for cls in _subclasses(GMIError):
        if cls.default_code == code:
            return cls(message, details=details)
    return GMIError(message, details=details, code=code)
