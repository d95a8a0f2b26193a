"""Where the server is, and whether the session is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

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
from ..status import FailingTask, failing_task
from .arguments import Context
from .exit_codes import NO_ANSWER, SERVER_UNREACHABLE
from .workers import heard_of, polling_workers, round_trip

PATIENCE = 5.0
"""Seconds after which a person is told what a call waits for."""

_ASKED_SECONDS = 5.0


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


@asynccontextmanager
async def patience(
    context: Context, client: Client, session_id: str | None = None
) -> AsyncIterator[None]:
    """Say why an answer takes long: no server or worker is there, or none whose code fits.

    What the server knows is said after :data:`PATIENCE` seconds. It still lists a worker that ended
    a moment ago: after as long again the workers are asked, and after three times as long those
    that did not answer are named.
    """
    if context.output.as_json:
        # Programs are told nothing, so nobody is asked for it.
        yield
        return
    task = asyncio.create_task(_tell(context, client, session_id or context.named_session))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _tell(context: Context, client: Client, session_id: str | None) -> None:
    looks, away = 0, False
    while True:
        await asyncio.sleep(PATIENCE)
        try:
            reason = await _why_nobody_answers(client, session_id, ask=looks == 1)
        except RPCError as error:
            if error.status in NO_ANSWER and not away:
                away = True
                address = client.temporal.service_client.config.target_host
                context.output.note(
                    f"The Temporal server at {address} does not answer; waiting for it."
                )
            continue
        looks += 1
        if reason is not None:
            context.output.note(reason)
            return


async def _why_nobody_answers(client: Client, session_id: str | None, *, ask: bool) -> str | None:
    """What a call waits for, or ``None``.

    Args:
        client: The client.
        session_id: The session that is called, if it is one.
        ask: Whether to ask the workers that are listed if they are there.

    Raises:
        RPCError: The server does not say.
    """
    listed = await polling_workers(client)
    if not listed:
        return (
            f"No worker polls the task queue {client.task_queue!r}; waiting for one. `gmi worker` "
            "starts it."
        )
    if session_id is not None:
        task = await _failing(client, session_id)
        if task is not None:
            return (
                f"The session stands still: its workflow task fails on the workers' code (attempt "
                f"{task.attempt}): {task.failure}\n`gmi replay --session {session_id}` shows "
                "whether the code here fits. Deploy code that fits, or the code of before; nothing "
                "is lost."
            )
    if not ask or await round_trip(client, _ASKED_SECONDS) is not None:
        return None
    return (
        f"Nobody answers on the task queue {client.task_queue!r}. The server lists "
        f"{heard_of(listed)}, but may do so for a minute after a worker ended. `gmi worker` starts "
        "another; the call goes on when one is there."
    )


async def _failing(client: Client, session_id: str) -> FailingTask | None:
    try:
        return await failing_task(client.temporal, WORKFLOW_PREFIX + session_id)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
