"""The providers' own words for their errors, as tables.

Kept apart from the classification so that a new provider's vocabulary is a line here.
"""

from __future__ import annotations

import re

# The status that a typed error code, error type or reason stands for.
_STATUS_OF_CODE = {
    # OpenAI and those who speak its format
    "invalid_api_key": 401,
    "insufficient_quota": 402,
    "insufficient_balance": 402,
    "billing_hard_limit_reached": 402,
    "billing_not_active": 402,
    "rate_limit_exceeded": 429,
    "tokens": 429,
    "requests": 429,
    "server_error": 500,
    "internal_server_error": 500,
    "internal_error": 500,
    "service_unavailable": 503,
    "engine_overloaded": 503,
    "model_not_found": 404,
    "context_length_exceeded": 400,
    # Anthropic
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    # Gemini
    "api_key_invalid": 401,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "resource_exhausted": 429,
    "internal": 500,
    "unavailable": 503,
    "deadline_exceeded": 504,
}

_REFUSAL_CODE = re.compile(r"content_policy|content_filter|safety_violation", re.IGNORECASE)
_REFUSAL_TEXT = re.compile(
    r"content[_ ]policy|content[_ ]filter|safety guidelines|safety policy|usage policies"
    r"|safety_violations",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"requires more credits|insufficient[_ ](?:credits|balance|quota)|credit balance",
    re.IGNORECASE,
)
_RATE_LIMITED = re.compile(r"rate[ _]limit|too many requests|\bquota\b", re.IGNORECASE)
_OVERLOADED = re.compile(r"\boverloaded\b", re.IGNORECASE)
_WINDOW = re.compile(
    r"maximum context length|context[_ ]length|prompt is too long|context window"
    r"|exceeds the maximum number of tokens|input token count",
    re.IGNORECASE,
)


def status_of_codes(*codes: str | None) -> int | None:
    """The HTTP status that the first known of these codes stands for."""
    # Billing and key trouble win over a code that names only the class of the error.
    found = [_STATUS_OF_CODE[c.lower()] for c in codes if c and c.lower() in _STATUS_OF_CODE]
    return next((status for status in found if status in (401, 402)), found[0] if found else None)


def status_of_text(text: str, *, known: int | None) -> int | None:
    """The status that a provider's sentence stands for where no typed field says it.

    Args:
        text: The error's message.
        known: The status so far: ``None``, or 400, behind which only a lack of credit hides.
    """
    if _NO_CREDIT.search(text):
        return 402
    if known is not None:
        return None
    if _RATE_LIMITED.search(text):
        return 429
    if _OVERLOADED.search(text):
        return 529
    return None


def is_refusal(code: str | None, error_type: str | None, text: str, status: int | None) -> bool:
    """Whether an error is a content-policy refusal.

    Sentences count only where the status leaves it open; a rate limit that mentions a policy is
    still a rate limit.
    """
    if any(value and _REFUSAL_CODE.search(value) for value in (code, error_type)):
        return True
    return status in (None, 400, 403, 422) and bool(_REFUSAL_TEXT.search(text))


def window_exceeded(status: int | None, code: str | None, text: str) -> bool:
    """Whether an error says that the prompt does not fit the context window."""
    if code == "context_length_exceeded":
        return True
    return status in (400, 413) and bool(_WINDOW.search(text))
