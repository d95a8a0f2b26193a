"""A worker process of the benchmark: `bench_worker.py {ours,loop} ADDRESS QUEUE STORE MODEL DELAY`.

Both kinds run with the same worker settings. Says "ready" on its standard output once it polls.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from datetime import timedelta

import temporalio.client
from minimal_loop import MinimalLoop, call_model, get_time
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from gmi.worker import GMIPlugin, Settings, connect

PERSONAS = [
    {
        "id": name,
        "name": name.title(),
        "description": "Answers in the benchmark.",
        "version": "1.0.0",
        "baseSystemPrompt": "You answer.",
        "memoryConfig": memory,
    }
    for name, memory in (
        ("forgetful", None),
        ("mindful", {"enabled": True, "cognitiveMechanisms": {}}),
    )
]
"""One that keeps nothing beyond the conversation, as the loop does, and one that remembers."""


async def serve(worker: Worker) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with worker:
        print("ready", flush=True)
        await ended.wait()


async def ours(address: str, queue: str, store: str, model: str, delay: float) -> None:
    settings = Settings(
        task_queue=queue,
        database_url=store,
        providers={"OPENAI_COMPATIBLE_BASE_URL": model},
        offline_delay=delay,
        default_persona="forgetful",
        shutdown_timeout=2.0,
    )
    client = await connect(address=address, plugin=GMIPlugin(settings, personas=PERSONAS))
    await serve(Worker(client, task_queue=queue))


async def loop(address: str, queue: str) -> None:
    client = await temporalio.client.Client.connect(address, data_converter=pydantic_data_converter)
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[MinimalLoop],
        activities=[call_model, get_time],
        max_cached_workflows=1000,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        default_heartbeat_throttle_interval=timedelta(seconds=1),
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=2),
    )
    await serve(worker)


if __name__ == "__main__":
    kind, address, queue, store, model, delay = sys.argv[1:]
    if kind == "ours":
        asyncio.run(ours(address, queue, store, model, float(delay)))
    else:
        asyncio.run(loop(address, queue))
