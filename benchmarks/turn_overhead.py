"""What a turn costs beside a hand-written Temporal loop: `python benchmarks/turn_overhead.py`.

Starts a Temporal server and workers of its own in a temporary directory, measures both sides in
the same run and removes everything. Ours and the loop take turns (A B A B), so that a noisy
machine disturbs both alike; a pause before every turn lets the closing of the one before end, so
that neither side pays for the other's work. All times are medians, in milliseconds.

The loop (`minimal_loop.py`) keeps the conversation in the workflow and stores nothing; ours writes
every message, the usage and the trace to SQLite. Both answer from a model without latency. The
ratios compare a persona without long-term memory, since the loop has none; `remembering` is the
plain turn of one that recalls before each answer and encodes each turn after it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import signal
import sys
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import temporalio.client
from bench_figures import machine, per_turn, show, summary
from bench_model import MODEL, StreamingModel
from bench_processes import Bench, Process, server_binary
from minimal_loop import MinimalLoop
from temporalio.api.enums.v1 import EventType
from temporalio.contrib.pydantic import pydantic_data_converter

from gmi.worker import Client, GMIPlugin, Settings

PLAIN = "What is the weather like today?"
TOOL = "call get_time"
QUIET = 0.05
"""Seconds before each turn, in which the turn before is closed."""

Send = Callable[[str], Awaitable[object]]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    warm_up: int = 5
    turns: int = 60
    sessions: int = 30
    session_turns: int = 10
    rounds: int = 3
    history_turns: int = 20
    cached: int = 200
    streams: int = 30
    kills: int = 3


QUICK = Sizes(
    warm_up=2,
    turns=12,
    session_turns=3,
    rounds=1,
    history_turns=5,
    cached=40,
    streams=6,
    kills=1,
)


class Side(ABC):
    """One of the two that are compared.

    Args:
        temporal: The Temporal client.
        worker: The worker process.
    """

    name = ""

    def __init__(self, temporal: temporalio.client.Client, worker: Process) -> None:
        self.temporal = temporal
        self.worker = worker

    @abstractmethod
    async def open(self) -> tuple[Send, str]:
        """A new session: what sends to it, and the id of its workflow."""


class Ours(Side):
    """Sessions of this project."""

    name = "ours"

    def __init__(self, client: Client, worker: Process, persona: str = "forgetful") -> None:
        super().__init__(client.temporal, worker)
        self.client = client
        self._persona = persona

    async def open(self) -> tuple[Send, str]:
        """A session starts with its first turn."""
        session = self.client.session(persona=self._persona)
        return session.send, session.workflow_id


class Loop(Side):
    """The hand-written loop."""

    name = "loop"

    def __init__(self, temporal: temporalio.client.Client, worker: Process, queue: str) -> None:
        super().__init__(temporal, worker)
        self._queue = queue

    async def open(self) -> tuple[Send, str]:
        """The workflow is started here."""
        handle = await self.temporal.start_workflow(
            MinimalLoop.run, [], id=f"loop-{uuid.uuid4()}", task_queue=self._queue
        )

        async def send(text: str) -> object:
            return await handle.execute_update(MinimalLoop.send, text)

        return send, handle.id


async def pair(bench: Bench, name: str) -> tuple[Ours, Loop]:
    """Both sides, each with a fresh worker process on a queue of its own."""
    ours, loop = f"gmi-{name}", f"loop-{name}"
    plugin = GMIPlugin(Settings(database_url=bench.store))
    client = await Client.connect(address=bench.address, task_queue=ours, plugin=plugin)
    plain = await temporalio.client.Client.connect(
        bench.address, data_converter=pydantic_data_converter
    )
    return (
        Ours(client, await bench.start_worker("ours", ours)),
        Loop(plain, await bench.start_worker("loop", loop), loop),
    )


async def timed(send: Send, text: str) -> float:
    await asyncio.sleep(QUIET)
    began = time.perf_counter()
    await send(text)
    return time.perf_counter() - began


async def latency(sides: tuple[Side, Side], text: str, sizes: Sizes) -> dict[str, Any]:
    """A turn's time from the call to its output, one session a side, one turn at a time."""
    sends = {side.name: (await side.open())[0] for side in sides}
    for send in sends.values():
        for _ in range(sizes.warm_up):
            await send(text)
    times: dict[str, list[float]] = {name: [] for name in sends}
    before = {side.name: side.worker.cpu() for side in sides}
    for _ in range(sizes.turns):
        for name, send in sends.items():
            times[name].append(await timed(send, text))
    return {
        side.name: summary(times[side.name], 1000)
        | {"worker_cpu_ms": per_turn(before[side.name], side.worker.cpu(), sizes.turns)}
        for side in sides
    }


async def throughput(
    bench: Bench, sides: tuple[Side, Side], sizes: Sizes
) -> dict[str, dict[str, Any]]:
    """Turns per second with many sessions at once, and the CPU that each process spends."""
    sends: dict[str, list[Send]] = {}
    for side in sides:
        sends[side.name] = [(await side.open())[0] for _ in range(sizes.sessions)]
        await asyncio.gather(*(send(PLAIN) for send in sends[side.name]))
    found: dict[str, dict[str, list[float]]] = {
        side.name: {"turns_per_second": [], "worker": [], "server": [], "client": []}
        for side in sides
    }

    async def talk(send: Send) -> None:
        for _ in range(sizes.session_turns):
            await send(PLAIN)

    for _ in range(sizes.rounds):
        for side in sides:
            await asyncio.sleep(1.0)
            processes = {"worker": side.worker, "server": bench.server}
            before = {name: process.cpu() for name, process in processes.items()}
            own, began = time.process_time(), time.perf_counter()
            await asyncio.gather(*(talk(send) for send in sends[side.name]))
            turns = sizes.sessions * sizes.session_turns
            of = found[side.name]
            of["turns_per_second"].append(turns / (time.perf_counter() - began))
            of["client"].append((time.process_time() - own) * 1000 / turns)
            # What closes the last turns counts too.
            await asyncio.sleep(0.5)
            for name, process in processes.items():
                spent = per_turn(before[name], process.cpu(), turns)
                of[name] += [] if spent is None else [spent]
    return {
        name: {
            "turns_per_second": summary(of["turns_per_second"]),
            "cpu_ms": {k: summary(of[k]) for k in ("worker", "server", "client") if of[k]},
        }
        for name, of in found.items()
    }


async def settled(handle: temporalio.client.WorkflowHandle[Any, Any]) -> tuple[int, int]:
    """Events and bytes of a workflow's history once nothing runs in it."""
    last = -1
    while True:
        info = (await handle.describe()).raw_description
        if info.workflow_execution_info.history_length == last and not info.pending_activities:
            execution = info.workflow_execution_info
            return execution.history_length, execution.history_size_bytes
        last = info.workflow_execution_info.history_length
        await asyncio.sleep(0.2)


async def history(side: Side, sizes: Sizes) -> dict[str, Any]:
    """Events and bytes that a turn adds, early and late in a session's life."""
    send, workflow_id = await side.open()
    for _ in range(sizes.warm_up):
        await send(PLAIN)
    handle = side.temporal.get_workflow_handle(workflow_id)
    found: dict[str, Any] = {}
    stretches = (("plain", PLAIN), ("tool", TOOL), ("between", PLAIN), ("plain_late", PLAIN))
    for name, text in stretches:
        before = await settled(handle)
        for _ in range(sizes.history_turns):
            await timed(send, text)
        after = await settled(handle)
        kinds, spans = await mechanics(handle, before[0])
        count = sizes.history_turns
        found[name] = {
            "events": (after[0] - before[0]) / count,
            "bytes": (after[1] - before[1]) / count,
            "kinds": {kind: number / count for kind, number in kinds.most_common()},
            "activities": {kind: summary(times, 1000) for kind, times in spans.items()},
        }
    del found["between"]
    return found


async def mechanics(
    handle: temporalio.client.WorkflowHandle[Any, Any], after: int
) -> tuple[Counter[str], dict[str, list[float]]]:
    """Events by their kind, and the seconds that each activity ran, since an event."""
    kinds: Counter[str] = Counter()
    began: dict[int, tuple[str, float]] = {}
    names: dict[int, str] = {}
    spans: dict[str, list[float]] = {}
    async for event in handle.fetch_history_events():
        at = event.event_time.seconds + event.event_time.nanos / 1e9
        kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
        if kind == "activity_task_scheduled":
            details = event.activity_task_scheduled_event_attributes
            names[event.event_id] = details.activity_type.name
        elif kind == "activity_task_started":
            scheduled = event.activity_task_started_event_attributes.scheduled_event_id
            began[event.event_id] = (names[scheduled], at)
        elif kind == "activity_task_completed" and event.event_id > after:
            name, start = began[event.activity_task_completed_event_attributes.started_event_id]
            spans.setdefault(name, []).append(at - start)
        if event.event_id > after:
            kinds[kind] += 1
    return kinds, spans


async def memory(bench: Bench, sizes: Sizes) -> dict[str, Any]:
    """Resident memory that a cached session adds to its worker."""
    found = {}
    for side in await pair(bench, "memory"):

        async def start(some: int, side: Side = side) -> None:
            for _ in range(some):
                send, _id = await side.open()
                await send(PLAIN)

        await start(10)
        await asyncio.sleep(1.0)
        before = side.worker.rss()
        await asyncio.gather(*(start(sizes.cached // 10) for _ in range(10)))
        await asyncio.sleep(1.0)
        after = side.worker.rss()
        side.worker.stop()
        found[side.name] = {
            "sessions": sizes.cached,
            "before_mb": before / 1e6,
            "after_mb": after / 1e6,
            "kb_per_session": (after - before) / 1e3 / sizes.cached,
        }
    return found


async def first_delta(ours: Ours, model: StreamingModel, sizes: Sizes) -> dict[str, Any]:
    """From the model's first text to the reader's; both ends are this process, by one clock.

    The model waits 20 ms before its first text, which the time from the call includes.
    """
    session = ours.client.session()
    lags, waits = [], []
    for turn in range(sizes.streams + 2):
        await asyncio.sleep(QUIET)
        began = time.perf_counter()
        stream = await session.stream(PLAIN, model=MODEL)
        seen = 0.0
        async for chunk in stream:
            if chunk.type == "text_delta" and not seen:
                seen = time.perf_counter()
        output = await stream.result()
        if output.status != "done" or not seen:
            raise RuntimeError(f"a streamed turn ended {output.status}: {output.error}")
        if turn >= 2:
            lags.append(seen - model.spoke)
            waits.append(seen - began)
    return {"from_model": summary(lags, 1000), "from_send": summary(waits, 1000)}


async def recovery(bench: Bench, sizes: Sizes) -> dict[str, Any]:
    """A worker is killed while it streams; another, which never saw the session, takes over.

    The killed one held the session in its cache and ran its step: the worst case.
    """
    words, delay = 40, 0.075
    queue = "gmi-recovery"
    plugin = GMIPlugin(Settings(database_url=bench.store))
    client = await Client.connect(address=bench.address, task_queue=queue, plugin=plugin)
    worker = await bench.start_worker("ours", queue, delay=delay)
    deltas, ends, whole = [], [], []
    for _ in range(sizes.kills):
        session = client.session()
        await session.send("say 2 words")
        began = time.perf_counter()
        await session.send(f"say {words} words", stream=True)
        whole.append(time.perf_counter() - began)
        stream = await session.stream(f"say {words} words")
        spare: Process | None = None
        killed = resumed = 0.0
        async for chunk in stream:
            if chunk.type != "text_delta":
                continue
            if spare is None:
                spare = await bench.start_worker("ours", queue, delay=delay)
                worker.kill()
                killed = time.perf_counter()
            elif chunk.attempt > 1 and not resumed:
                resumed = time.perf_counter()
        output = await stream.result()
        ended = time.perf_counter()
        if spare is None or not resumed or output.status != "done":
            raise RuntimeError("the turn did not go on after its worker was killed")
        if stream.text != output.response_text:
            raise RuntimeError("the streamed text differs from the committed text")
        deltas.append(resumed - killed)
        ends.append(ended - killed)
        worker = spare
    worker.stop()
    return {
        "to_first_delta_s": summary(deltas),
        "to_end_s": summary(ends),
        "undisturbed_turn_s": summary(whole),
    }


async def measure(bench: Bench, model: StreamingModel, sizes: Sizes) -> dict[str, Any]:
    await bench.start_server()
    ours, loop = sides = await pair(bench, "turns")
    mindful = (Ours(ours.client, ours.worker, "mindful"), loop)
    server = os.popen(f"'{server_binary()}' --version").read().strip()
    result: dict[str, Any] = {
        "machine": {**machine("temporalio", "pydantic"), "server": server},
        "sizes": asdict(sizes),
    }
    steps: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
        ("plain", lambda: latency(sides, PLAIN, sizes)),
        ("tool", lambda: latency(sides, TOOL, sizes)),
        ("remembering", lambda: latency(mindful, PLAIN, sizes)),
        ("throughput", lambda: throughput(bench, sides, sizes)),
        ("history_ours", lambda: history(ours, sizes)),
        ("history_loop", lambda: history(loop, sizes)),
        ("first_delta", lambda: first_delta(ours, model, sizes)),
        ("memory", lambda: memory(bench, sizes)),
        ("recovery", lambda: recovery(bench, sizes)),
    ]
    for number, (name, step) in zip(itertools.count(1), steps, strict=False):
        print(f"[{number}/{len(steps)}] {name}", file=sys.stderr, flush=True)
        result[name] = await step()
    result["ratios"] = {
        "plain": result["plain"]["ours"]["p50"] / result["plain"]["loop"]["p50"],
        "tool": result["tool"]["ours"]["p50"] / result["tool"]["loop"]["p50"],
        "remembering": result["remembering"]["ours"]["p50"] / result["remembering"]["loop"]["p50"],
        "throughput": result["throughput"]["ours"]["turns_per_second"]["p50"]
        / result["throughput"]["loop"]["turns_per_second"]["p50"],
    }
    return result


async def run(sizes: Sizes) -> dict[str, Any]:
    """Start everything, measure, and leave nothing behind."""
    model = StreamingModel()
    with tempfile.TemporaryDirectory(prefix="gmi-bench-", ignore_cleanup_errors=True) as directory:
        bench = Bench(Path(directory), model.url)
        try:
            async with model.serving():
                return await measure(bench, model, sizes)
        finally:
            bench.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="What a turn costs beside a hand-written loop.")
    parser.add_argument("--quick", action="store_true", help="few turns, about a minute")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    given = parser.parse_args()
    # Told to end, it still stops what it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = asyncio.run(run(QUICK if given.quick else Sizes()))
    print(show(result))
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2) + "\n")
    # A process that used a Temporal client can crash in its last moments; all work is done.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
