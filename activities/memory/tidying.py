"""What a consolidation changes in memories, as they stand in its transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...personas.memory import MemorySettings
from ...workflows.memory import MaintenanceReport
from . import clusters, rehearsal
from .contradictions import Contradiction, doubted
from .decay import is_prunable
from .mechanisms.emotion_regulation import regulated
from .mechanisms.source_confidence_decay import faded
from .mechanisms.temporal_gist import due, gisted
from .traces import DAY, HOUR, Trace

PRUNED = "pruned"
REGULATED = "emotion_regulation"
CALM_HOURS = 1.0
"""A memory is calmed once in so many hours at most, however often its scope is tidied."""


@dataclass(frozen=True, slots=True)
class Gist:
    """A gist that a model wrote.

    Attributes:
        digest: SHA-256 of the text that it is the gist of.
    """

    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What was worked out ahead of the transaction.

    Attributes:
        now: Seconds since the epoch.
        settings: The persona's, its mechanisms scaled by its traits.
        gists: What a model wrote, by trace; ``None`` where no model is asked and a gist is the
            memory's beginning.
        joined: The cluster that each trace joins.
        contradictions: The pairs that were found.
    """

    now: float
    settings: MemorySettings
    gists: Mapping[str, Gist] | None = None
    joined: Mapping[str, str] = field(default_factory=dict)
    contradictions: Sequence[Contradiction] = ()


class Tidying:
    """Tidies traces by a plan; a :data:`~gmi.activities.memory.store.Change`.

    Doing it twice does no harm: what is done to a memory is noted in it with its time.

    Attributes:
        report: What the last call did.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._traces: dict[str, Trace] = {}
        self._changed: set[str] = set()
        self.report = MaintenanceReport()

    def __call__(self, standing: Mapping[str, Trace]) -> list[Trace]:
        """The traces that change."""
        self._traces = dict(standing)
        self._changed = set()
        # In this order: what is given up needs nothing else.
        report = MaintenanceReport(
            traces=len(standing),
            pruned=self._prune(),
            faded=self._fade(),
            regulated=self._regulate(),
            gisted=self._shrink(),
            rehearsed=self._rehearse(),
        )
        self._doubt()
        self._join()
        self.report = report
        return [self._traces[id_] for id_ in sorted(self._changed)]

    def _put(self, *changed: Trace) -> int:
        for trace in changed:
            self._traces[trace.id] = trace
            self._changed.add(trace.id)
        return len(changed)

    def _prune(self) -> int:
        now, decay = self._plan.now, self._plan.settings.decay
        threshold, keep = decay.pruning_threshold, decay.keep_days * DAY
        faint = [t for t in self._traces.values() if is_prunable(t, now, threshold, keep)]
        for trace in faint:
            noted = {**trace.mechanisms, PRUNED: {"at": now}}
            self._put(replace(trace, active=False, mechanisms=noted))
        return len(faint)

    def _fade(self) -> int:
        mechanisms = self._plan.settings.mechanisms
        if mechanisms is None:
            return 0
        changed = [
            new
            for trace in self._traces.values()
            if (new := faded(trace, self._plan.now, mechanisms.source_confidence_decay)) is not None
        ]
        return self._put(*changed)

    def _regulate(self) -> int:
        mechanisms, now = self._plan.settings.mechanisms, self._plan.now
        if mechanisms is None:
            return 0
        open_ = [t for t in self._traces.values() if not _lately(t, REGULATED, now)]
        changed = regulated(open_, mechanisms.emotion_regulation)
        for trace in changed:
            self._put(replace(trace, mechanisms={**trace.mechanisms, REGULATED: {"at": now}}))
        return len(changed)

    def _shrink(self) -> int:
        mechanisms, now = self._plan.settings.mechanisms, self._plan.now
        if mechanisms is None:
            return 0
        settings, count = mechanisms.temporal_gist, 0
        for trace in due(shrinkable(self._traces.values()), now, settings):
            if self._plan.gists is None:
                self._put(gisted(trace, None, now, settings))
                count += 1
                continue
            gist = self._plan.gists.get(trace.id)
            # The text may have been corrected since the model saw it.
            if gist is not None and gist.digest == digest(trace.content):
                self._put(gisted(trace, gist.text, now, settings))
                count += 1
        return count

    def _rehearse(self) -> int:
        faint = self._plan.settings.decay.pruning_threshold
        changed = [
            new
            for trace in self._traces.values()
            if (new := rehearsal.rehearsed(trace, self._plan.now, faint)) is not None
        ]
        return self._put(*changed)

    def _doubt(self) -> None:
        for pair in self._plan.contradictions:
            wrong = self._traces.get(pair.wrong) if pair.wrong is not None else None
            if wrong is None:
                continue
            right = pair.newer if pair.wrong == pair.older else pair.older
            changed = doubted(wrong, right, self._plan.now)
            if changed is not None:
                self._put(changed)

    def _join(self) -> None:
        for id_, cluster in self._plan.joined.items():
            trace = self._traces.get(id_)
            if trace is not None and trace.active:
                noted = {**trace.mechanisms, clusters.NAME: {"cluster": cluster}}
                self._put(replace(trace, mechanisms=noted))


def shrinkable(traces: Iterable[Trace]) -> list[Trace]:
    """The traces that a gist may be made of; a schema is none."""
    return [trace for trace in traces if trace.role != "schema"]


def digest(text: str) -> str:
    """SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _lately(trace: Trace, name: str, now: float) -> bool:
    at = (trace.mechanisms.get(name) or {}).get("at")
    return at is not None and now - float(at) < CALM_HOURS * HOUR
