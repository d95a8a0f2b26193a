"""Verbs that serve: worker, dev."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import signal
import sys
import threading
from typing import Any

from ...activities.gateway.registry import OFFLINE_MODEL, default_model
from ..run import run_worker
from ..settings import DATA_DIRECTORY
from .arguments import Context, Grammar
from .connecting import configured_namespace, connected
from .exit_codes import ExitCode
from .local import Local

OWNED_SHUTDOWN_SECONDS = 5.0
"""A person who ends a chat does not wait for a running reply; the next start goes on with it."""

NO_KEY = (
    "No key is set, so the offline stand-in answers: it understands nothing. For a real model set "
    "OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_BASE_URL."
)


def add(grammar: Grammar) -> None:
    """Add the verbs."""
    parser = grammar.verb("worker", worker, "Serve sessions until SIGTERM or Ctrl-C.")
    parser.add_argument("--with-owner", action="store_true", help=argparse.SUPPRESS)
    parser = grammar.verb(
        "dev", dev, "Run a Temporal server and a worker here; the data stay in .gmi/."
    )
    parser.add_argument("--port", type=int, help="the server's port, when it is free")


async def worker(context: Context) -> int:
    """Run a worker."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
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
            context.output.json({"ready": True, "task_queue": settings.task_queue})
        else:
            context.output.note(
                f"Serving task queue {settings.task_queue!r} of namespace "
                f"{client.temporal.namespace!r}; Ctrl-C ends it."
            )

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
            _tell(context, local)
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


def _tell(context: Context, local: Local) -> None:
    out, settings, place = context.output, context.settings, local.server.place
    model = default_model(settings.providers)
    if out.as_json:
        out.json(
            {
                "address": place.address,
                "ui": place.ui,
                "task_queue": settings.task_queue,
                "model": model,
            }
        )
        return
    running = "" if local.server.owned else " (it was running already)"
    out.text(f"Temporal  {place.address}{running}")
    out.text(f"UI        {place.ui}")
    out.text(f"Worker    task queue {settings.task_queue}, model {model}")
    out.text(f"Data      {DATA_DIRECTORY}/")
    if model == OFFLINE_MODEL:
        out.note(NO_KEY)
    out.note("`gmi chat` in another terminal talks to it. Ctrl-C ends it; the data stay.")


def _stop_with_owner(stop: asyncio.Event) -> None:
    """Stop when stdin ends: the process that started this one has ended, however it did."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, daemon=True).start()
