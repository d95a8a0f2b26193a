from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import json
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError

from gmi.activities.tools import (
    Tool,
    ToolContext,
    ToolRegistry,
    external_tool,
    remote_tool,
    tool,
    tool_activities,
)
from gmi.personas.errors import ToolError
from gmi.workflows.failures import WORKER_SHUTDOWN
from gmi.workflows.steps import ToolOutcome

from .conftest import Bench, MemoryBlobs

SHUTDOWN = ActivityCancellationDetails(worker_shutdown=True)
WAIT = 10
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


@tool(effect="read")
def double(number: int) -> int:
    return 2 * number


@tool(effect="read")
async def double_later(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_only_tools_with_a_local_function_become_activities_named_like_them() -> None:
    registry = ToolRegistry(
        [
            double_later,
            double,
            external_tool("ask", "", OBJECT),
            remote_tool("far", "", OBJECT, "queue"),
        ]
    )
    made = tool_activities(registry, MemoryBlobs())
    names = [getattr(a, "__temporal_activity_definition").name for a in made]
    assert names == ["double", "double_later"]


@pytest.mark.parametrize("function", [double, double_later])
async def test_a_call_is_run_with_converted_arguments(bench: Bench, function: Any) -> None:
    outcome = await bench.call(function, number="21")
    assert outcome.value == 42
    assert not outcome.is_error


async def test_a_sync_wrapper_of_an_async_function_is_awaited(bench: Bench) -> None:
    @tool
    def hand_on(number: int) -> Any:
        return double_later(number)

    assert (await bench.call(hand_on, number=4)).value == 8


async def test_a_method_runs_on_its_object(bench: Bench) -> None:
    class Shop:
        def __init__(self) -> None:
            self.sold: list[str] = []

        def sell(self, item: str) -> int:
            self.sold.append(item)
            return len(self.sold)

    shop = Shop()
    assert (await bench.call(Tool.from_function(shop.sell), item="tea")).value == 1
    assert shop.sold == ["tea"]


async def test_a_tool_that_asks_learns_where_it_stands(bench: Bench) -> None:
    seen: list[ToolContext] = []

    @tool
    def look(context: ToolContext) -> None:
        seen.append(context)

    await bench.call(look)
    bench.env.info = dataclasses.replace(bench.env.info, attempt=2)
    await bench.call(look)
    first, second = seen
    assert first == ToolContext(
        session_id="sess",
        user_id="ada",
        turn="turn",
        step=2,
        call_id="call-1",
        key="session:turn:2:call-1",
        attempt=1,
    )
    assert second == dataclasses.replace(first, attempt=2)


async def test_arguments_that_do_not_fit_are_answered_and_nothing_runs(bench: Bench) -> None:
    ran = threading.Event()

    @tool
    def press(button: int) -> None:
        ran.set()

    outcome = await bench.call(press, button="red")
    assert outcome.is_error
    assert outcome.error is not None
    assert outcome.error.code == "TOOL_ARGUMENTS_INVALID"
    assert "'button'" in outcome.error.message
    assert "valid integer" in outcome.error.message
    assert not ran.is_set()


async def test_large_arguments_are_read_from_the_store(bench: Bench) -> None:
    [ref] = await bench.blobs.put_blobs("json", [json.dumps({"number": 5}).encode()])
    assert (await bench.call(double, arguments_ref=ref)).value == 10


async def test_stored_arguments_that_are_no_object_are_answered(bench: Bench) -> None:
    [ref] = await bench.blobs.put_blobs("json", [b"[1]"])
    outcome = await bench.call(double, arguments_ref=ref)
    assert outcome.error is not None
    assert outcome.error.code == "TOOL_ARGUMENTS_INVALID"


async def test_missing_stored_arguments_fail_the_attempt(bench: Bench) -> None:
    with pytest.raises(ApplicationError) as raised:
        await bench.call(double, arguments_ref="0" * 64)
    assert raised.value.type == "SYS_RESOURCE_NOT_FOUND"
    assert not raised.value.non_retryable


async def test_a_large_result_is_kept_in_the_store(bench: Bench) -> None:
    @tool
    def read_file() -> str:
        return "line\n" * 5000

    outcome = await bench.call(read_file)
    assert outcome.ref is not None
    assert json.loads(bench.blobs.values[outcome.ref]) == "line\n" * 5000


@pytest.mark.parametrize(
    ("effect", "final"), [("read", False), ("idempotent", False), ("once", True)]
)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_an_exception_is_retried_unless_the_tool_may_run_only_once(
    bench: Bench, effect: Any, final: bool, kind: str
) -> None:
    def fail() -> None:
        raise ConnectionError("refused")

    async def fail_later() -> None:
        fail()

    function = fail if kind == "sync" else fail_later
    with pytest.raises(ApplicationError, match="refused") as raised:
        await bench.call(tool(effect=effect)(function))
    assert raised.value.type == "ConnectionError"
    assert raised.value.non_retryable is final
    assert raised.value.__cause__ is None


async def test_a_tools_own_error_is_not_retried(bench: Bench) -> None:
    @tool(effect="read")
    def look_up(name: str) -> str:
        raise ToolError(f"nobody is named {name}", details={"name": name})

    with pytest.raises(ApplicationError) as raised:
        await bench.call(look_up, name="Bo")
    assert raised.value.type == "TOOL_ERROR"
    assert raised.value.details == ({"name": "Bo"},)
    assert raised.value.non_retryable


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(3), TimeoutError(), MemoryError()])
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_no_exception_hangs_a_call_or_ends_the_worker(
    bench: Bench, error: BaseException, kind: str
) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        fail()

    function = fail if kind == "sync" else fail_later
    with pytest.raises(ApplicationError):
        await asyncio.wait_for(bench.call(tool(effect="read")(function)), WAIT)


async def test_a_tool_that_cancels_itself_has_failed(bench: Bench) -> None:
    @tool(effect="read")
    async def give_up() -> None:
        task = asyncio.create_task(asyncio.sleep(WAIT))
        task.cancel()
        await task

    with pytest.raises(ApplicationError) as raised:
        await bench.call(give_up)
    assert raised.value.type == "CancelledError"
    assert not raised.value.non_retryable


async def test_a_blocking_tool_is_kept_alive_by_heartbeats(bench: Bench) -> None:
    beaten = threading.Event()
    beats: list[tuple[Any, ...]] = []

    def on_heartbeat(*details: Any) -> None:
        beats.append(details)
        if len(beats) == 3:
            beaten.set()

    bench.env.on_heartbeat = on_heartbeat
    bench.env.info = dataclasses.replace(
        bench.env.info, heartbeat_timeout=timedelta(milliseconds=30)
    )

    @tool
    def block() -> bool:
        return beaten.wait(WAIT)

    assert (await bench.call(block)).value is True
    assert beats[:3] == [(), (), ()]


async def test_heartbeats_end_with_the_call(bench: Bench) -> None:
    before = asyncio.all_tasks()
    await bench.call(double, number=1)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before


async def test_blocking_tools_run_side_by_side_and_leave_the_loop_free(bench: Bench) -> None:
    together = threading.Barrier(50, timeout=WAIT)

    @tool
    def meet() -> str:
        together.wait()
        return "met"

    outcomes = await asyncio.gather(*(bench.call(meet) for _ in range(50)))
    assert {outcome.value for outcome in outcomes} == {"met"}


async def test_a_blocking_tool_sees_the_callers_context_variables(bench: Bench) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    tenant.set("blue")

    @tool
    def which() -> list[str]:
        return [tenant.get(), activity.info().activity_id]

    assert (await bench.call(which)).value == ["blue", "test"]


@contextlib.asynccontextmanager
async def _held(bench: Bench) -> AsyncIterator[asyncio.Task[ToolOutcome]]:
    """A blocking tool that runs, and is let go at the end."""
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tool(effect="read")
    def hold() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(WAIT)

    call = asyncio.create_task(bench.call(hold))
    try:
        await asyncio.wait_for(started.wait(), WAIT)
        yield call
    finally:
        release.set()


async def test_a_stop_does_not_wait_for_a_blocking_tool(bench: Bench) -> None:
    async with _held(bench) as call:
        bench.env.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, WAIT / 2)


async def test_a_workers_shutdown_hands_a_blocking_tool_on(bench: Bench) -> None:
    async with _held(bench) as call:
        bench.env.cancel(SHUTDOWN)
        with pytest.raises(ApplicationError) as raised:
            await asyncio.wait_for(call, WAIT / 2)
    assert raised.value.type == WORKER_SHUTDOWN
    assert not raised.value.non_retryable
    assert raised.value.next_retry_delay == timedelta(milliseconds=1)


def test_a_hung_blocking_tool_keeps_no_loop_from_closing() -> None:
    release, ended = threading.Event(), threading.Event()

    async def abandon() -> None:
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        @tool
        def hang() -> None:
            loop.call_soon_threadsafe(started.set)
            release.wait(WAIT)
            ended.set()

        bench = Bench()
        call = asyncio.create_task(bench.call(hang))
        await started.wait()
        bench.env.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call

    asyncio.run(abandon())
    assert not ended.is_set()
    release.set()
    assert ended.wait(WAIT)


@pytest.mark.parametrize("shutdown", [True, False])
async def test_an_async_tool_may_tidy_up_when_it_is_cancelled(bench: Bench, shutdown: bool) -> None:
    started, tidied = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        started.set()
        try:
            await asyncio.sleep(WAIT)
        finally:
            tidied.set()

    call = asyncio.create_task(bench.call(wait))
    await started.wait()
    bench.env.cancel(SHUTDOWN) if shutdown else bench.env.cancel()
    with pytest.raises(ApplicationError if shutdown else asyncio.CancelledError) as raised:
        await call
    assert tidied.is_set()
    assert getattr(raised.value, "type", None) == (WORKER_SHUTDOWN if shutdown else None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(RuntimeError("pool closed"), WORKER_SHUTDOWN), (ToolError("no"), "TOOL_ERROR")],
)
async def test_an_error_at_a_shutdown_is_the_shutdown_unless_it_is_the_tools_own(
    bench: Bench, error: Exception, kind: str
) -> None:
    started = asyncio.Event()

    @tool
    async def wait() -> None:
        started.set()
        try:
            await asyncio.sleep(WAIT)
        except asyncio.CancelledError:
            raise error from None

    call = asyncio.create_task(bench.call(wait))
    await started.wait()
    bench.env.cancel(SHUTDOWN)
    with pytest.raises(ApplicationError) as raised:
        await call
    assert raised.value.type == kind
