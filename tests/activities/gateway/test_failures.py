from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import get_args

import httpx
import pytest

from gmi.activities.gateway.failures import (
    FailureKind,
    ProviderFailure,
    classify,
    retry_after_seconds,
)
from gmi.personas.errors import ConfigurationError
from gmi.personas.messages import Usage

NEXT_HOP = [401, 402, 403, 408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]
NOT_AT_ALL = [400, 404, 409, 413, 418, 422, 425, 451, 499, 501, 505, 507, 599]
SAME_HOP = [408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]


@pytest.mark.parametrize("status", NEXT_HOP)
def test_these_statuses_let_the_next_hop_try(status: int) -> None:
    assert classify(status=status, body="upstream said no").retryable


@pytest.mark.parametrize("status", NOT_AT_ALL)
def test_these_statuses_end_the_chain(status: int) -> None:
    failure = classify(status=status, body="upstream said no")
    assert not failure.retryable
    assert not failure.same_hop_retryable


@pytest.mark.parametrize("status", NEXT_HOP)
def test_the_same_hop_is_asked_again_only_where_waiting_helps(status: int) -> None:
    assert classify(status=status).same_hop_retryable is (status in SAME_HOP)


# A decision made on the sentence alone would retry the first four of these, because a number or
# a bare word stands in them, and would end the chain at the others, which the provider or the
# transport names by a type. Typed fields decide, so they come out the other way round:
#   text with a number, no status      -> the number is part of a sentence
#   408                                -> a timeout like any other
#   529, overloaded_error, api_error   -> typed by the provider
#   ECONNRESET and its kin, timeouts   -> typed by the transport
#   a bare provider code as the text   -> read as the code that it is
@pytest.mark.parametrize(
    "text",
    [
        "500 apples",
        "[503] upstream said no",
        "Request failed with status code 429",
        "order 401",
        "I cannot help with that",
        "unknown model",
        "tool_use failed",
        "",
    ],
)
def test_a_number_in_a_sentence_decides_nothing(text: str) -> None:
    assert not classify(body=text).retryable


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, 529),
        ({"error": {"type": "api_error", "message": "internal"}}, 500),
        ({"error": {"type": "rate_limit_error"}}, 429),
        ({"error": {"type": "authentication_error"}}, 401),
        ({"error": {"type": "server_error", "code": "rate_limit_exceeded"}}, 429),
        ({"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}}, 503),
        ({"error": {"status": "RESOURCE_EXHAUSTED"}}, 429),
        ([{"error": {"code": 504, "status": "DEADLINE_EXCEEDED"}}], 504),
        ("This request requires more credits", 402),
        ("insufficient credits", 402),
        ("Rate limit reached", 429),
        ("You exceeded your current quota", 429),
        ("Too many requests", 429),
        ("Overloaded", 529),
    ],
)
def test_the_providers_words_stand_for_a_status(body: object, status: int) -> None:
    failure = classify(body=body)
    assert failure.status == status
    assert failure.retryable


def test_an_exhausted_account_is_not_a_rate_limit() -> None:
    failure = classify(
        status=429, body={"error": {"code": "insufficient_quota", "type": "insufficient_quota"}}
    )
    assert failure.status == 402
    assert failure.retryable
    assert not failure.same_hop_retryable


def test_an_empty_account_behind_a_400_is_found_by_its_message() -> None:
    body = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "Your credit balance is too low to access the API.",
        },
    }
    assert classify(status=400, body=body).status == 402


def test_a_wrong_gemini_key_behind_a_400_is_a_wrong_key() -> None:
    body = {
        "error": {
            "code": 400,
            "message": "API key not valid.",
            "status": "INVALID_ARGUMENT",
            "details": [{"reason": "API_KEY_INVALID"}],
        }
    }
    assert classify(status=400, body=body).status == 401


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "content_policy_violation", "message": "x"}}),
        (400, {"error": {"code": "CONTENT_FILTER", "message": "x"}}),
        (400, {"error": {"type": "Content_Policy_Violation", "message": "x"}}),
        (400, {"error": {"message": "blocked by their usage policies"}}),
        (None, "violates safety guidelines"),
        (None, "safety_violations"),
        (403, {"error": {"message": "flagged", "metadata": {"flagged_input": "…"}}}),
    ],
)
def test_a_content_policy_refusal_goes_to_the_next_hop_and_never_back(
    status: int | None, body: object
) -> None:
    failure = classify(status=status, body=body)
    assert failure.kind == "refusal"
    assert failure.retryable
    assert not failure.same_hop_retryable


def test_a_rate_limit_that_mentions_a_policy_is_a_rate_limit() -> None:
    assert classify(status=429, body="see our usage policies").kind == "http"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), "network"),
        (httpx.RemoteProtocolError("peer closed"), "network"),
        (ConnectionResetError("reset"), "network"),
        (httpx.ConnectTimeout("slow"), "timeout"),
        (TimeoutError(), "timeout"),
        (ValueError("odd"), "stream"),
        (httpx.UnsupportedProtocol("ftp"), "configuration"),
        (ConfigurationError("no key"), "configuration"),
    ],
)
def test_every_exception_has_a_kind_and_lets_the_next_hop_try(
    error: Exception, kind: FailureKind
) -> None:
    failure = classify(error=error)
    assert failure.kind == kind
    assert failure.retryable
    assert failure.same_hop_retryable is (kind in ("network", "timeout", "stream"))


def test_an_abort_is_never_retried() -> None:
    failure = classify(error=asyncio.CancelledError())
    assert failure.kind == "aborted"
    assert not failure.retryable
    assert not failure.same_hop_retryable


def test_an_abort_stays_final_whatever_the_provider_suggests() -> None:
    assert not ProviderFailure("x", kind="aborted", status=503, should_retry=True).retryable


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_what_the_same_hop_may_repeat_the_next_hop_may_try(kind: FailureKind) -> None:
    for status in (None, *NEXT_HOP, *NOT_AT_ALL):
        for word in (None, True, False):
            failure = ProviderFailure("x", kind=kind, status=status, should_retry=word)
            assert failure.retryable or not failure.same_hop_retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sat, 01 Jun 2030 12:01:00 GMT"}, 60.0),
        ({"retry-after": "Sat, 01 Jun 2030 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_the_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    now = datetime(2030, 6, 1, 12, 0, tzinfo=UTC)
    assert retry_after_seconds(headers, now=now) == seconds


def test_header_names_have_no_case() -> None:
    assert classify(status=429, headers={"Retry-After": "5"}).retry_after == 5.0


def test_gemini_names_the_wait_in_the_body() -> None:
    body = {"error": {"code": 429, "details": [{"retryDelay": "34.5s"}]}}
    assert classify(status=429, body=body).retry_after == 34.5


def test_the_provider_can_forbid_and_ask_for_another_try() -> None:
    forbidden = classify(status=503, headers={"x-should-retry": "false"})
    assert forbidden.retryable
    assert not forbidden.same_hop_retryable
    asked = classify(status=409, headers={"x-should-retry": "true"})
    assert asked.retryable
    assert asked.same_hop_retryable


def test_a_number_in_a_running_stream_is_a_status_but_not_our_keys() -> None:
    assert classify(body={"error": {"code": 502}}, in_band=True).status == 502
    upstream = classify(body={"error": {"code": 403, "message": "no"}}, in_band=True)
    assert upstream.status is None
    assert upstream.kind == "stream"
    assert upstream.retryable


def test_no_key_gets_into_a_message() -> None:
    key = "abc123secret"
    failure = classify(
        provider="openai",
        status=401,
        body={"error": {"message": f"Incorrect API key provided: {key}, or sk-proj-9f9f9f9f9f"}},
        secrets=[key],
    )
    shown = f"{failure} {failure!r} {failure.as_details()}"
    assert key not in shown
    assert "sk-proj" not in shown
    assert "Incorrect API key provided" in shown


def test_a_long_error_page_is_cut() -> None:
    assert len(classify(status=502, body="<html>" + "x" * 50_000).message) < 600


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "context_length_exceeded", "message": "too long"}},
        {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}},
        {"error": {"message": "This model's maximum context length is 8192 tokens"}},
        {"error": {"message": "The input token count (9) exceeds the maximum number of tokens"}},
    ],
)
def test_a_prompt_over_the_window_is_recognised(body: object) -> None:
    failure = classify(status=400, body=body)
    assert failure.window_exceeded
    assert not failure.retryable


def test_a_bad_request_is_not_a_full_window() -> None:
    assert not classify(status=400, body="unknown parameter").window_exceeded


def test_the_bill_stays_with_the_failure_that_names_it() -> None:
    billed = Usage(prompt_tokens=5)
    failure = classify(status=500, usage=billed)
    assert failure.with_usage(Usage(prompt_tokens=9)).usage == billed
    assert classify(error=failure) is failure
