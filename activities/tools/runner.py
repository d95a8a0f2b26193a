"""Tools as activities: arguments checked, attempts kept alive, results made fit to travel."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

from temporalio import activity

from ...personas.errors import ToolError
from ...workflows.steps import ToolCallInput, ToolOutcome
from ...workflows.turns import ErrorInfo
from ..handing_on import shutdown_failure, worker_stops
from ..heartbeats import beating
from .context import ToolContext
from .failures import failure_of
from .registry import Function, Tool, ToolRegistry
from .results import BlobStore, error_outcome, outcome_of
from .schema import ARGUMENTS_INVALID, ArgumentsInvalidError, Signature
from .threads import in_thread

MAX_BEAT = 5.0
"""Seconds between heartbeats at most; an attempt learns of its cancel by its heartbeat."""


def tool_activities(registry: ToolRegistry, store: BlobStore) -> list[Callable[..., Any]]:
    """One activity for each tool that has a local function.

    An activity's type is its tool's name; it takes a :class:`ToolCallInput` and returns a
    :class:`ToolOutcome`. Async functions run on the event loop, sync ones in a thread; both are
    kept alive by heartbeats from beside them.

    Args:
        registry: The worker's tools.
        store: Holds large arguments, and keeps large results.
    """
    return [
        _activity(tool, tool.function, store)
        for tool in registry.all()
        if tool.function is not None
    ]


def _activity(tool: Tool, function: Function, store: BlobStore) -> Callable[..., Any]:
    runner = _Runner(tool, function, store)

    @activity.defn(name=tool.name)
    async def run(request: ToolCallInput) -> ToolOutcome:
        return await runner.run(request)

    return run


class _Runner:
    def __init__(self, tool: Tool, function: Function, store: BlobStore) -> None:
        self._name = tool.name
        self._retry = tool.route.effect != "once"
        self._function = function
        self._signature = Signature(function, tool.name)
        self._store = store

    async def run(self, request: ToolCallInput) -> ToolOutcome:
        async with beating(every=_beat_interval()):
            try:
                outcome = await self._serve(request)
                return outcome.model_copy(update={"attempt": activity.info().attempt})
            except asyncio.CancelledError as error:
                if activity.is_cancelled():
                    raise self._cancelled(error) from None
                # The tool cancelled something of its own: an error like any other.
                raise failure_of(error, retry=self._retry) from None

    async def _serve(self, request: ToolCallInput) -> ToolOutcome:
        try:
            arguments = await self._arguments(request)
            args, kwargs = self._signature.bind(arguments, _context(request))
        except ArgumentsInvalidError as error:
            return error_outcome(
                ErrorInfo(code=ARGUMENTS_INVALID, message=f"The tool was not run: {error}.")
            )
        # Nothing has run yet, so even a tool that may run only once could be tried again.
        except Exception as error:
            raise failure_of(error, retry=True) from None
        try:
            value = await invoke(self._function, self._name, args, kwargs)
            return await outcome_of(value, self._store, self._name)
        # SystemExit would end the worker.
        except (Exception, SystemExit) as error:
            failure = failure_of(error, retry=self._retry)
            # While it is cancelled, only a tool's own word says more than the cancel does.
            if activity.is_cancelled() and not isinstance(error, ToolError):
                raise self._cancelled(error) from None
            raise failure from None

    async def _arguments(self, request: ToolCallInput) -> dict[str, Any]:
        if request.arguments_ref is None:
            return request.arguments
        arguments = json.loads(await self._store.get_blob(request.arguments_ref))
        if not isinstance(arguments, dict):
            raise ArgumentsInvalidError(
                [f"the arguments are not an object but a {type(arguments).__name__}"]
            )
        return arguments

    def _cancelled(self, error: BaseException) -> BaseException:
        if worker_stops():
            return shutdown_failure(f"The worker shut down while the tool {self._name} ran.")
        return error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError()


async def invoke(function: Function, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a tool's function: an async one on the event loop, any other in a thread.

    Args:
        function: The function.
        name: The tool's name.
        args: Its positional values.
        kwargs: Its named values.
    """
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    value = await in_thread(lambda: function(*args, **kwargs), name)
    # A sync wrapper may hand on what an async function returned.
    return await value if inspect.isawaitable(value) else value


def _context(request: ToolCallInput) -> ToolContext:
    return ToolContext(
        session_id=request.session_id,
        user_id=request.user_id,
        turn=request.turn,
        step=request.step,
        call_id=request.call_id,
        key=request.key,
        attempt=activity.info().attempt,
        learning=request.learning,
        mind=request.mind,
    )


def _beat_interval() -> float:
    timeout = activity.info().heartbeat_timeout
    return MAX_BEAT if timeout is None else min(timeout.total_seconds() / 3, MAX_BEAT)
