"""Verbs that serve: worker, dev."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import os
import signal
import sys
import threading
from typing import Any

from ...personas.loader import load_catalog
from ..dev_server import HOST
from ..run import run_worker
from ..settings import DATA_DIRECTORY
from .answering import NO_KEY, answering
from .arguments import Context, Grammar
from .connecting import configured_namespace, connected
from .core_log import log_level
from .exit_codes import ExitCode
from .local import Local
from .workers import polling_workers

DEFAULT_ADDRESS = f"{HOST}:7233"
"""Where programs look for a server unless they are told."""

OWNED_SHUTDOWN_SECONDS = 5.0
"""A person who ends a chat does not wait for a running reply; the next start goes on with it."""


def add(grammar: Grammar) -> None:
    """Add the verbs."""
    parser = grammar.verb("worker", worker, "Serve sessions until SIGTERM or Ctrl-C.")
    parser.add_argument("--with-owner", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser = grammar.verb(
        "dev", dev, "Run a Temporal server and a worker here; the data stay in .gmi/."
    )
    parser.add_argument("--port", type=int, help="the server's port, when it is free")


async def worker(context: Context) -> int:
    """Run a worker."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    log_level(logging.WARNING)
    settings = context.settings
    stop = asyncio.Event()
    if context.args.with_owner:
        _stop_with_owner(stop)
        settings = dataclasses.replace(
            settings, shutdown_timeout=min(settings.shutdown_timeout, OWNED_SHUTDOWN_SECONDS)
        )
        context = dataclasses.replace(context, settings=settings)
    client = await connected(context)

    def ready() -> None:
        if context.output.as_json:
            context.output.json(
                {"ready": True, "task_queue": settings.task_queue, "pid": os.getpid()}
            )
        else:
            context.output.note(
                f"Serving task queue {settings.task_queue!r} of namespace "
                f"{client.temporal.namespace!r}; Ctrl-C ends it."
            )
        if context.args.ready_fd is not None:
            os.write(context.args.ready_fd, b"ready\n")
            os.close(context.args.ready_fd)

    await run_worker(client.temporal, settings, stop=stop, ready=ready)
    return ExitCode.OK


async def dev(context: Context) -> int:
    """Run server and worker until Ctrl-C."""
    out, settings = context.output, context.settings
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    local = await Local.start(
        settings,
        namespace=configured_namespace(context),
        told=out.note,
        port=context.args.port,
    )
    try:
        ended: asyncio.Future[Any] = asyncio.create_task(stop.wait())
        ready: asyncio.Future[Any] = asyncio.create_task(local.ready())
        await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            ready.result()
            await _tell(context, local)
        ready.cancel()
        await asyncio.wait({ended, local.failed}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if local.failed.done():
            raise local.failed.result()
    finally:
        if stop.is_set():
            out.note("Ending; the data stay.")
        await local.stop()
    return ExitCode.OK


async def _tell(context: Context, local: Local) -> None:
    """Say where everything is and who answers."""
    # Here, since a database library costs every command half a second.
    from sqlalchemy.engine import make_url

    out, settings, place = context.output, context.settings, local.server.place
    catalog = await load_catalog(directory=settings.personas, default_id=settings.default_persona)
    who = await answering(settings, catalog)
    others = await _other_workers(context, local)
    store = make_url(settings.database_url).render_as_string(hide_password=True)
    if out.as_json:
        out.json(
            {
                "address": place.address,
                "taken_port": local.server.taken_port,
                "ui": place.ui,
                "task_queue": settings.task_queue,
                "worker_pid": local.worker_pid,
                "other_workers": others,
                "log": str(local.log),
                "store": store,
                "persona": who.persona,
                "model": who.model,
                "offline": who.offline,
                "problem": who.problem,
            }
        )
        return
    running = "" if local.server.owned else " (it was running already)"
    taken = local.server.taken_port
    if taken is not None:
        running = f" (another program has port {taken})"
    stand_in = " (the stand-in, no model)" if who.offline else ""
    out.text(f"Temporal  {place.address}{running}")
    out.text(f"UI        {place.ui}")
    out.text(f"Worker    pid {local.worker_pid}, task queue {settings.task_queue}")
    out.text(f"Log       {local.log} (what the worker logs and what tools print)")
    out.text(f"Store     {store}")
    out.text(f"Persona   {who.persona}{who.name and f' ({who.name})'}")
    out.text(f"Model     {who.model or 'none'}{stand_in}")
    if place.address != DEFAULT_ADDRESS:
        out.text(f"export TEMPORAL_ADDRESS={place.address}")
        out.note("The line above is for programs that are started elsewhere.")
    if others:
        out.note(
            f"A worker with settings of its own serves the task queue {settings.task_queue} "
            f"already ({', '.join(others)}): either may answer. End one of them, or give this one "
            "another --task-queue."
        )
    if who.problem is not None:
        out.note(f"Turns of the default persona will fail: {who.problem.rstrip('.')}.")
    if who.offline:
        out.note(NO_KEY)
    out.note(
        f"`gmi chat` in another terminal talks to it. Ctrl-C ends it; the data stay in "
        f"{DATA_DIRECTORY}/."
    )


async def _other_workers(context: Context, local: Local) -> list[str]:
    """Identities of the workers that serve the queue beside the one that was started here."""
    client = await connected(context, local.server.place.address)
    own = f"{local.worker_pid}@"
    return [name for name in await polling_workers(client) if not name.startswith(own)]


def _stop_with_owner(stop: asyncio.Event) -> None:
    """Stop when stdin ends: the process that started this one has ended, however it did."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, daemon=True).start()
