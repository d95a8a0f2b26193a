"""How long a recall takes: `python benchmarks/recall.py`.

One scope of 1,000, 10,000 and 100,000 memories in a SQLite file, each with a vector of 384
numbers. Measured is what a worker does for a turn, the embedding of the question excepted: the
scope's version is read from the store, candidates are searched by words and vectors, links are
followed, everything is scored. The scope is in the worker's memory, as it is after its first use;
how long that first use takes is told too.

`search` is the search for candidates alone, `recall` the whole with all mechanisms on; `recall,
words` is without an embedding model. `after a turn` is a recall that first takes in two memories
that were written since the last one. All times are in milliseconds.

The vectors differ mostly in few directions, as those of real models do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench_figures import machine, summary
from bench_memory import PACKAGES, Memory, encoded, memory
from numpy.typing import NDArray

from gmi.activities.embedders import EmbedKind, Vectors
from gmi.activities.memory.candidates import find_candidates
from gmi.activities.memory.index import SearchFilter
from gmi.activities.memory.recall import RecallQuery
from gmi.activities.memory.traces import DAY, Affect, Scope, Trace
from gmi.personas.memory import MechanismSettings, MemorySettings

DIMENSION = 384
MODEL = "bench:vectors"
NOW = 1_800_000_000.0
SIZES = (1_000, 10_000, 100_000)
TARGET = 15.0
"""Milliseconds that 95 of 100 recalls may take in the largest scope."""

_VOCABULARY = 20_000
_WORDS = 20
_SESSION_TURNS = 200


@dataclass
class Vocabulary:
    """Words as often as in real texts (Zipf), without the 30 that no search counts.

    The most frequent one that is left stands in every tenth text.
    """

    chance: random.Random

    def __post_init__(self) -> None:
        self._words = [self._word(n) for n in range(_VOCABULARY)]
        self._weights = np.cumsum([1 / (n + 30) for n in range(_VOCABULARY)]).tolist()

    def text(self, words: int) -> str:
        """So many words."""
        return " ".join(self.chance.choices(self._words, cum_weights=self._weights, k=words))

    def _word(self, number: int) -> str:
        signs = "bdfgklmnprstvz"
        return "".join(signs[number // 14**place % 14] + "aeio"[place] for place in range(4))


class Vectorizer:
    """An embedder without a model, whose answers cost nothing."""

    model = MODEL
    dimension = DIMENSION

    def __init__(self) -> None:
        self._chance = np.random.default_rng(5)
        self._spread = (1 / np.sqrt(np.arange(1, DIMENSION + 1))).astype(np.float32)

    def make(self, count: int) -> NDArray[np.float32]:
        """Vectors whose numbers differ the less the later they stand."""
        drawn = self._chance.standard_normal((count, DIMENSION), dtype=np.float32)
        found: NDArray[np.float32] = drawn * self._spread + np.float32(0.2)
        return found

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Vectors:
        """See `Embedder`."""
        return self.make(len(texts))


def traces_of(scope: Scope, count: int, words: Vocabulary, first: int = 0) -> list[Trace]:
    """Memories of three years, in sessions of 200 turns, said by two in turn."""
    found = []
    for number in range(first, first + count):
        turn = number // 2
        session = f"session-{turn // _SESSION_TURNS}"
        text = words.text(_WORDS)
        made = NOW - 3 * 365 * DAY * (1 - number / (first + count))
        trace = Trace(
            id=f"{scope.id}-{number}",
            scope=scope,
            content=text,
            session=session,
            turn=f"turn-{turn}",
            branch="main",
            depth=turn % _SESSION_TURNS,
            role=("user", "assistant")[number % 2],
            persona_id="bench",
            created_at=made,
        )
        found.append(encoded(trace, words.chance.uniform(-1, 1), text))
    return found


async def timed(work: Callable[[str], Awaitable[object]], questions: Sequence[str]) -> Any:
    times = []
    for number, question in enumerate(questions):
        began = time.perf_counter()
        await work(question)
        # The first ones warm the processor's and the interpreter's caches.
        if number >= 10:
            times.append(time.perf_counter() - began)
    return summary(times, 1000)


async def measure(held: Memory, count: int, repeat: int) -> dict[str, Any]:
    """Everything about one scope."""
    words, embedder = Vocabulary(random.Random(count)), Vectorizer()
    scope = Scope("user", f"user-{count}")
    print(f"{count} memories: writing", file=sys.stderr, flush=True)
    traces = traces_of(scope, count, words)
    made = embedder.make(count)
    await held.write(traces, MODEL, {trace.id: made[row] for row, trace in enumerate(traces)})
    settings = MemorySettings(mechanisms=MechanismSettings())
    where = SearchFilter(session="session-0", path=[("main", 100)])
    questions = [words.text(8) for _ in range(repeat + 10)]
    recallers = {True: held.recaller(embedder), False: held.recaller(None)}
    seeds = iter(range(10**9))

    def recall(vectors: bool) -> Callable[[str], Awaitable[object]]:
        async def ask(question: str) -> object:
            query = RecallQuery(
                question, [scope], NOW, settings, Affect(0.1), where, seed=str(next(seeds))
            )
            return await recallers[vectors].recall(query)

        return ask

    print(f"{count} memories: measuring", file=sys.stderr, flush=True)
    began = time.perf_counter()
    (index,) = await held.cache.load([scope], MODEL)
    loading = time.perf_counter() - began

    async def search(question: str) -> object:
        vector = embedder.make(1)[0]
        return await held.cache.run(
            lambda: find_candidates([index], question, vector=vector, model=MODEL, wanted=where)
        )

    async def write() -> None:
        new = traces_of(scope, 2, words, index.size)
        vectors = embedder.make(2)
        await held.write(new, MODEL, {trace.id: vectors[row] for row, trace in enumerate(new)})

    result: dict[str, Any] = {
        "load_s": loading,
        "mb": index.bytes / 1e6,
        "search": await timed(search, questions),
        "recall": await timed(recall(True), questions),
        "recall, words": await timed(recall(False), questions),
    }
    after = []
    for question in questions[: max(20, repeat // 4)]:
        await write()
        began = time.perf_counter()
        await recall(True)(question)
        after.append(time.perf_counter() - began)
    result["after a turn"] = summary(after, 1000)
    return result


def show(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [", ".join(f"{k} {v}" for k, v in result["machine"].items()), ""]
    lines.append("memories, ms".ljust(22) + "".join(f"{n:>12}" for n in ("p50", "p95", "max")))
    for count, of in result["sizes"].items():
        for name in ("search", "recall", "recall, words", "after a turn"):
            values = "".join(f"{of[name][figure]:12.1f}" for figure in ("p50", "p95", "max"))
            lines.append(f"{int(count):>7} {name}".ljust(22) + values)
        lines.append(f"{int(count):>7} loaded in {of['load_s']:.1f} s, {of['mb']:.0f} MB")
    largest = list(result["sizes"].values())[-1]["recall"]["p95"]
    told = "within" if largest <= TARGET else "BEYOND"
    lines.append(f"p95 of a recall in the largest scope: {largest:.1f} ms, {told} {TARGET:.0f} ms")
    return "\n".join(lines)


async def run(sizes: Sequence[int], repeat: int) -> dict[str, Any]:
    async with memory() as held:
        found = {str(count): await measure(held, count, repeat) for count in sizes}
    return {"machine": machine(*PACKAGES), "sizes": found}


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a recall takes.")
    parser.add_argument("--quick", action="store_true", help="without the largest scope")
    parser.add_argument("--repeat", type=int, default=200, help="recalls of each kind")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    given = parser.parse_args()
    result = asyncio.run(run(SIZES[:2] if given.quick else SIZES, given.repeat))
    print(show(result))
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
