from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from gmi.activities.handing_on import shutdown_failure
from gmi.activities.tools.failures import failure_of
from gmi.personas.errors import GMIError, StoreError, ToolError
from gmi.workflows.failures import WORKER_SHUTDOWN, error_from_failure
from gmi.workflows.policies import NOT_REGISTERED


class NotFoundError(Exception):
    """Named like the failure of a tool that no worker serves."""


@pytest.mark.parametrize("retry", [True, False])
def test_a_tools_own_error_is_its_last_word(retry: bool) -> None:
    failure = failure_of(ToolError("sold out", details={"item": "tea"}), retry=retry)
    assert failure.type == "TOOL_ERROR"
    assert failure.message == "sold out"
    assert failure.details == ({"item": "tea"},)
    assert failure.non_retryable
    assert failure.category is ApplicationErrorCategory.BENIGN
    back = error_from_failure(failure)
    assert isinstance(back, ToolError)
    assert back.details == {"item": "tea"}


@pytest.mark.parametrize("retry", [True, False])
def test_another_exception_is_named_by_its_class_and_retried_where_it_may(retry: bool) -> None:
    failure = failure_of(KeyError("city"), retry=retry)
    assert failure.type == "KeyError"
    assert failure.message == "'city'"
    assert failure.non_retryable is not retry


def test_an_error_of_the_project_keeps_its_code() -> None:
    failure = failure_of(StoreError("down"), retry=True)
    assert failure.type == "STORE_ERROR"
    assert not failure.non_retryable


def test_an_application_error_is_passed_on_as_it_is() -> None:
    error = ApplicationError("later", type="BUSY", next_retry_delay=timedelta(seconds=5))
    assert failure_of(error, retry=False) is error


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("no such row"),
        GMIError("mine", code=WORKER_SHUTDOWN),
        ApplicationError("mine", type=WORKER_SHUTDOWN),
        ApplicationError("mine", type=NOT_REGISTERED),
    ],
)
def test_an_exception_cannot_pass_for_a_lost_worker_or_an_unknown_tool(error: Exception) -> None:
    failure = failure_of(error, retry=True)
    assert failure.type not in {WORKER_SHUTDOWN, NOT_REGISTERED}
    assert failure.type is not None
    assert type(error).__name__ in failure.type


def test_an_exception_without_words_is_told_by_its_name() -> None:
    assert failure_of(TimeoutError(), retry=True).message == "TimeoutError"


def test_a_failure_shows_temporal_where_the_tool_failed_and_the_model_only_what() -> None:
    def break_down() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken") as raised:
        break_down()
    failure = failure_of(raised.value, retry=True)
    names = []
    frame = failure.__traceback__
    while frame is not None:
        names.append(frame.tb_frame.f_code.co_name)
        frame = frame.tb_next
    assert "break_down" in names
    assert failure.message == "broken"


@pytest.mark.parametrize(
    ("details", "read"),
    [
        ({"at": timedelta(seconds=1)}, {"at": "PT1S"}),
        ({"big": "x" * 9000}, {}),
        ({"nan": float("nan")}, {}),
    ],
)
def test_details_are_small_json_or_left_out(details: dict[str, Any], read: Any) -> None:
    assert failure_of(ToolError("x", details=details), retry=True).details == (read,)


def test_a_message_is_text_that_can_be_sent() -> None:
    failure = failure_of(ToolError("half a pair: \ud800"), retry=True)
    assert failure.message == "half a pair: ?"


def test_a_long_message_is_cut() -> None:
    assert len(failure_of(ValueError("x" * 1_000_000), retry=True).message) == 2000


def test_a_shutdown_hands_the_call_on_at_once() -> None:
    failure = shutdown_failure("t")
    assert failure.type == WORKER_SHUTDOWN
    assert not failure.non_retryable
    assert failure.next_retry_delay == timedelta(milliseconds=1)
