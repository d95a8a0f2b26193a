"""What can go wrong with a model call, in one typed form.

Everything that decides about a failed call reads the same :class:`ProviderFailure`: whether the
next hop may be tried, whether the same hop is worth another try and after how long, and what the
failure says about the provider's health. :func:`classify` is the only place where HTTP statuses,
headers, error bodies and exceptions become such a failure. It decides by typed fields; a number
inside a sentence decides nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import httpx

from ...personas.errors import ConfigurationError
from ...personas.messages import Usage
from .error_codes import is_refusal, status_of_codes, status_of_text, window_exceeded

FailureKind = Literal[
    "http",
    "network",
    "timeout",
    "stream",
    "refusal",
    "configuration",
    "unsupported",
    "circuit_open",
    "aborted",
]

# 408 is a timeout; 520 to 524 are an edge's words for network faults and timeouts behind it.
NEXT_HOP_STATUSES = frozenset(
    {401, 402, 403, 408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
)
# These three do not heal by asking again: the key, the account or the permission is wrong.
_NEVER_ON_SAME_HOP = frozenset({401, 402, 403})

_TRANSIENT_KINDS = frozenset({"network", "timeout", "stream"})
_NEXT_HOP_KINDS = _TRANSIENT_KINDS | {"refusal", "configuration", "unsupported", "circuit_open"}

_MESSAGE_LIMIT = 500
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|xai|key|AIza)[-_][\w*.-]{6,}|\bAIza[\w-]{8,}|Bearer\s+\S+")


class ProviderFailure(Exception):
    """A model call that failed, with everything that a decision about it needs.

    Args:
        message: What went wrong, for people; never contains a key.
        kind: What sort of failure it is.
        provider: The provider's name, for example ``openrouter``.
        status: The HTTP status, or the one that the provider's error code stands for
            (``overloaded_error`` stands for 529, ``insufficient_quota`` for 402).
        code: The provider's error code.
        error_type: The provider's error type.
        should_retry: The provider's own word on trying again (``x-should-retry``).
        retry_after: Seconds that the provider asks to wait.
        usage: What the failed call was billed, where the provider said so.

    Attributes:
        retryable: Whether the next hop may be tried.
        same_hop_retryable: Whether the same hop is worth another try.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        provider: str = "",
        status: int | None = None,
        code: str | None = None,
        error_type: str | None = None,
        should_retry: bool | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind: FailureKind = kind
        self.provider = provider
        self.status = status
        self.code = code
        self.error_type = error_type
        self.should_retry = should_retry
        self.retry_after = retry_after
        self.usage = usage

    @property
    def retryable(self) -> bool:
        """Whether the next hop may be tried. A caller's abort never is."""
        if self.kind == "aborted":
            return False
        if self.kind in _NEXT_HOP_KINDS or self.should_retry:
            return True
        return self.status in NEXT_HOP_STATUSES

    @property
    def same_hop_retryable(self) -> bool:
        """Whether the same hop is worth another try, after ``retry_after`` where it is set."""
        if not self.broke_off and self.kind != "http":
            return False
        if self.should_retry is not None:
            return self.should_retry
        return self.retryable and self.status not in _NEVER_ON_SAME_HOP

    @property
    def window_exceeded(self) -> bool:
        """Whether the prompt did not fit the model's context window."""
        return window_exceeded(self.status, self.code, self.message)

    @property
    def broke_off(self) -> bool:
        """Whether the connection or the stream failed, and nothing was said against the call."""
        return self.kind in _TRANSIENT_KINDS

    def with_usage(self, usage: Usage | None) -> ProviderFailure:
        """This failure, carrying what the call was billed unless it already says so."""
        if self.usage is None:
            self.usage = usage
        return self

    def as_details(self) -> dict[str, Any]:
        """The JSON-able facts, for a trace, an error's details or a heartbeat."""
        facts: dict[str, Any] = {
            "kind": self.kind,
            "provider": self.provider,
            "status": self.status,
            "code": self.code,
            "type": self.error_type,
            "message": self.message,
            "retryable": self.retryable,
            "retry_after": self.retry_after,
            "window_exceeded": self.window_exceeded or None,
        }
        return {name: value for name, value in facts.items() if value not in (None, "")}

    def __repr__(self) -> str:
        return (
            f"ProviderFailure({self.message!r}, kind={self.kind!r}, provider={self.provider!r}, "
            f"status={self.status!r}, code={self.code!r})"
        )


def classify(
    *,
    provider: str = "",
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    body: object = None,
    error: BaseException | None = None,
    in_band: bool = False,
    secrets: Sequence[str] = (),
    usage: Usage | None = None,
    now: datetime | None = None,
) -> ProviderFailure:
    """Turn whatever is known of a failed call into one typed failure.

    Args:
        provider: The provider's name.
        status: HTTP status of the response, if there was one.
        headers: Response headers; looked up without regard to case.
        body: The error body: parsed JSON, or text.
        error: The exception that ended the call, if one did.
        in_band: The body came inside a running stream. A number 401 or 403 in it speaks of
            something behind the provider, not of our key, and is no status.
        secrets: Strings that must not appear in the message.
        usage: What the call was billed.
        now: Reads HTTP dates in ``Retry-After``; the current time by default.
    """
    if isinstance(error, ProviderFailure):
        return error.with_usage(usage)
    if error is not None:
        return _from_exception(error, provider, secrets, usage)

    facts = _error_facts(body)
    code, error_type, text = facts.code, facts.type, facts.message
    number = facts.number
    if number is not None and not (400 <= number <= 599 and number not in (401, 403)):
        number = None
    typed = status_of_codes(code, error_type, facts.reason)
    effective = _effective_status(status, number, typed, text)
    kind: FailureKind = "http"
    if is_refusal(code, error_type, text, effective):
        kind = "refusal"
    elif in_band and effective is None:
        kind = "stream"

    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    wait = retry_after_seconds(lowered, now=now)
    shown = _redact(text or (f"HTTP {status}" if status else "the provider sent an error"), secrets)
    return ProviderFailure(
        f"{provider or 'provider'}: {shown}" + (f" (HTTP {status})" if status and text else ""),
        kind=kind,
        provider=provider,
        status=effective,
        code=code,
        error_type=error_type,
        should_retry=_should_retry(lowered),
        retry_after=wait if wait is not None else facts.retry_delay,
        usage=usage,
    )


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds to wait by ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date).

    Args:
        headers: Response headers with lower-case names.
        now: Reads HTTP dates; the current time by default.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def refusal(
    provider: str, reason: str, *, usage: Usage | None = None, text: str = ""
) -> ProviderFailure:
    """The failure of a call that the model or its filter declined before any output.

    Args:
        provider: The provider's name.
        reason: The provider's word for it, for example ``SAFETY``.
        usage: What the refused call was billed.
        text: The model's own words, where it gave some.
    """
    said = f": {text[:_MESSAGE_LIMIT]}" if text else ""
    return ProviderFailure(
        f"{provider}: the model declined to answer ({reason}){said}",
        kind="refusal",
        provider=provider,
        code=reason,
        usage=usage,
    )


def _from_exception(
    error: BaseException, provider: str, secrets: Sequence[str], usage: Usage | None
) -> ProviderFailure:
    kind: FailureKind
    match error:
        case asyncio.CancelledError():
            kind = "aborted"
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | httpx.InvalidURL():
            kind = "configuration"
        case ConfigurationError():
            kind = "configuration"
        case TimeoutError() | httpx.TimeoutException():
            kind = "timeout"
        case httpx.TransportError() | OSError():
            kind = "network"
        case _:
            kind = "stream"
    text = _redact(str(error), secrets)
    name = type(error).__name__
    return ProviderFailure(
        f"{provider or 'provider'}: {name}: {text}"
        if text
        else f"{provider or 'provider'}: {name}",
        kind=kind,
        provider=provider,
        usage=usage,
    )


class _Facts:
    """What an error body says, whichever provider wrote it."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.code: str | None = None
        self.type: str | None = None
        self.reason: str | None = None
        self.message = ""
        self.retry_delay: float | None = None


def _error_facts(body: object) -> _Facts:
    facts = _Facts()
    # Gemini wraps its error object in a list when it answers a stream request.
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        facts.message = str(body).strip() if body else ""
        return facts
    error = body.get("error", body)
    if not isinstance(error, Mapping):
        facts.message = str(error)
        return facts
    facts.message = str(error.get("message") or body.get("message") or body.get("detail") or "")
    code = error.get("code")
    if isinstance(code, int) and not isinstance(code, bool):
        facts.number = code
    elif isinstance(code, str) and code:
        facts.code = code
    kind = error.get("type") or error.get("status")
    if isinstance(kind, str):
        facts.type = kind
    # OpenRouter's moderation answers 403, which elsewhere speaks of the key.
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping) and "flagged_input" in metadata:
        facts.code = "content_policy_violation"
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        if not isinstance(detail, Mapping):
            continue
        if isinstance(detail.get("reason"), str):
            facts.reason = detail["reason"]
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            facts.retry_delay = _number(delay.removesuffix("s"))
    return facts


def _effective_status(
    status: int | None, number: int | None, typed: int | None, text: str
) -> int | None:
    # An account without credit and a wrong key hide behind 400 or 429 at some providers; their
    # own codes say it better than the status does.
    if typed in (401, 402) and status in (None, 400, 429):
        return typed
    found = status if status is not None and status >= 400 else number or typed
    if found in (None, 400):
        return status_of_text(text, known=found) or found
    return found


def _should_retry(headers: Mapping[str, str]) -> bool | None:
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    # "nan" and "inf" are floats too, and no wait.
    return number if number is not None and 0 <= number < 1e9 else None


def _redact(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    return _KEY_LIKE.sub("[key]", text)[:_MESSAGE_LIMIT]
