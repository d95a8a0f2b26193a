"""Where the server is, and whether the session is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from ...personas.errors import (
    ConfigurationError,
    GMIError,
    SessionClosedError,
    SessionNotFoundError,
)
from ...workflows.session_records import SessionConfig
from ...workflows.state import WORKFLOW_PREFIX
from ..client import Client, has_search_attributes
from ..connection import connect, load_configuration
from ..dev_server import HOST, find_dev_server
from ..plugin import GMIPlugin
from ..session import Session
from ..status import failing_task
from .arguments import Context
from .exit_codes import SERVER_UNREACHABLE

PATIENCE = 5.0
"""Seconds after which a person is told what a call waits for."""

# A worker's poll lasts a minute; the server remembers it for longer than the worker may live.
_POLLED_SECONDS = 90.0


def configured_address(context: Context) -> str | None:
    """The address that somebody chose, by option, variable or profile; else ``None``.

    Raises:
        ConfigurationError: Temporal's configuration cannot be read.
    """
    args = context.args
    if args.address is not None:
        address: str = args.address
        return address
    return load_configuration(args.profile, args.config_file).get("target_host")


def configured_namespace(context: Context) -> str:
    """The namespace that counts when this machine's own server is used.

    Raises:
        ConfigurationError: Temporal's configuration cannot be read.
    """
    args = context.args
    if args.namespace is not None:
        namespace: str = args.namespace
        return namespace
    return load_configuration(args.profile, args.config_file).get("namespace") or "default"


async def server_address(context: Context) -> str:
    """The chosen address, else this directory's server, else the usual port here."""
    chosen = configured_address(context)
    if chosen is not None:
        return chosen
    found = await find_dev_server()
    return found.address if found else f"{HOST}:{context.settings.dev_port}"


async def connected(context: Context, address: str | None = None) -> Client:
    """A client of the server.

    Raises:
        GMIError: No server answers; its code is ``SERVER_UNREACHABLE``.
        ConfigurationError: The configuration cannot be read.
    """
    try:
        temporal = await connect(
            address=address or await server_address(context),
            namespace=context.args.namespace,
            profile=context.args.profile,
            config_file=context.args.config_file,
            plugin=GMIPlugin(context.settings),
        )
    except ConfigurationError as error:
        if "address" not in error.details:
            raise
        raise GMIError(error.message, details=error.details, code=SERVER_UNREACHABLE) from error
    return Client(
        temporal,
        task_queue=context.settings.task_queue,
        search_attributes=await has_search_attributes(temporal),
    )


def opened(context: Context, client: Client, session_id: str | None = None) -> Session:
    """The session that the command line names; nothing is sent yet."""
    args = context.args
    return client.session(
        session_id or context.session_id,
        user_id=context.user,
        persona=getattr(args, "persona", None),
        config=SessionConfig(model=getattr(args, "model", None)),
    )


async def is_open(client: Client, session: Session) -> bool:
    """Whether the session's workflow runs.

    Raises:
        SessionNotFoundError: The server never had it.
    """
    handle = client.temporal.get_workflow_handle(session.workflow_id)
    try:
        found = await handle.describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        raise SessionNotFoundError(
            f"There is no session {session.id!r}; `gmi list` shows those that are open."
        ) from error
    return found.status == WorkflowExecutionStatus.RUNNING


async def open_session(context: Context, client: Client) -> Session:
    """The session that the command line names, which has to be open.

    Raises:
        SessionNotFoundError: There is none.
        SessionClosedError: It is closed, or was released while it was idle.
    """
    session = opened(context, client)
    if not await is_open(client, session):
        raise SessionClosedError(
            f"The session {session.id!r} is not open; `gmi send {session.id} TEXT` opens it."
        )
    return session


async def polling_workers(client: Client) -> list[str]:
    """Identities of the workers that serve the task queue, as the server has seen them lately."""
    temporal = client.temporal
    now = datetime.now(UTC)
    polling: list[set[str]] = []
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        found = await temporal.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=temporal.namespace,
                task_queue=TaskQueue(name=client.task_queue),
                task_queue_type=kind,
            )
        )
        polling.append(
            {
                poller.identity
                for poller in found.pollers
                if (now - poller.last_access_time.ToDatetime(UTC)).total_seconds() < _POLLED_SECONDS
            }
        )
    return sorted(set.intersection(*polling))


@asynccontextmanager
async def patience(
    context: Context, client: Client, session_id: str | None = None
) -> AsyncIterator[None]:
    """Say why an answer takes long: no worker is there, or none whose code fits the session."""
    waited_for = session_id or context.named_session

    async def tell() -> None:
        reason = None
        while reason is None:
            await asyncio.sleep(PATIENCE)
            with suppress(RPCError):
                reason = await _why_nobody_answers(client, waited_for)
        context.output.note(reason)

    task = asyncio.create_task(tell())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _why_nobody_answers(client: Client, session_id: str | None) -> str | None:
    if not await polling_workers(client):
        return (
            f"No worker polls the task queue {client.task_queue!r}; waiting for one. `gmi worker` "
            "starts it."
        )
    if session_id is None:
        return None
    task = await failing_task(client.temporal, WORKFLOW_PREFIX + session_id)
    if task is None:
        return None
    return (
        f"The session stands still: its workflow task fails on the workers' code (attempt "
        f"{task.attempt}): {task.failure}\n`gmi replay --session {session_id}` shows whether the "
        "code here fits. Deploy code that fits, or the code of before; nothing is lost."
    )
