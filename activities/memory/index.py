"""The active traces of one scope, held in memory in columns and kept up to date row by row."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .places import Places, place_of
from .traces import Scope, Trace, TraceType
from .vectors import Vector, VectorIndex
from .words import Mask, WordIndex

Numbers = NDArray[np.float64]

_NUMBERS = (
    "strength",
    "stability",
    "last_access",
    "importance",
    "confidence",
    "intensity",
    "created_at",
)
_TRACE_BYTES = 1500
"""What a trace weighs beside its text: objects, columns, its places in the dictionaries."""
_TIDY_FROM = 1000
"""Rows of traces that are gone; so many, and more than the others, are cleared away."""


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which traces count in a search; only active ones ever do.

    Attributes:
        session: Key of the session that asks. What its own turns have made counts only on
            ``path``; that of other sessions always does, and so does what no turn has made.
        path: Where the asking turn stands: a branch and the last depth on it that counts
            (``None`` for all), for each branch of the path.
        types: Types that count; all without it.
        min_confidence: Least confidence that counts, in [0, 1].
        created_from: Seconds since the epoch; what was made earlier does not count.
        created_until: Seconds since the epoch; what was made later does not count.
        exclude_turns: Turns, as ``(session, turn)``, whose traces do not count.
    """

    session: str = ""
    path: Sequence[tuple[str, int | None]] = ()
    types: Collection[TraceType] | None = None
    min_confidence: float = 0.0
    created_from: float | None = None
    created_until: float | None = None
    exclude_turns: Collection[tuple[str, str]] = ()


class ScopeIndex:
    """The active traces of a scope.

    Every trace has a row. Rows are numbers into the columns and hold until the next
    :meth:`apply` or :meth:`remove`; ids hold for ever. Not safe for use by two threads at once.

    Args:
        scope: Whose traces these are.
        model: ``provider:model`` of the vectors; without it there are none.
        dimension: Numbers in a vector; those of the first one without it.

    Attributes:
        foreign: Traces whose vector cannot be used, as it has another size than the model's;
            they count as traces without one.
        version: The highest version of any trace that was applied.
        tidied: How often rows moved because those of traces that are gone were cleared away.
    """

    def __init__(
        self, scope: Scope, model: str | None = None, dimension: int | None = None
    ) -> None:
        self.scope = scope
        self.words = WordIndex()
        self.vectors = VectorIndex(model, dimension) if model is not None else None
        self.places = Places()
        self.foreign: set[str] = set()
        self.version = 0
        self.tidied = 0
        self._rows: dict[str, int] = {}
        self._traces: list[Trace | None] = []
        self._columns: dict[str, NDArray[Any]] = {
            **{name: np.zeros(256) for name in (*_NUMBERS, "valence", "arousal")},
            **{name: np.zeros(256, np.int32) for name in ("type", "session", "branch", "depth")},
            "active": np.zeros(256, np.bool_),
            "lot": np.zeros(256, np.uint32),
        }
        self._codes: dict[str, dict[str, int]] = {"type": {}, "session": {}, "branch": {}}
        self._turns: dict[tuple[str, str], set[str]] = {}
        self._text_bytes = 0

    def __len__(self) -> int:
        """Number of active traces."""
        return len(self._rows)

    def __contains__(self, trace_id: object) -> bool:
        return trace_id in self._rows

    @property
    def model(self) -> str | None:
        """``provider:model`` of the vectors."""
        return self.vectors.model if self.vectors is not None else None

    @property
    def size(self) -> int:
        """Number of rows, those of traces that are gone included."""
        return len(self._traces)

    @property
    def bytes(self) -> int:
        """An estimate of the memory that the scope takes."""
        held = self.words.bytes + self.places.bytes + self._text_bytes
        held += self.vectors.bytes if self.vectors is not None else 0
        held += sum(column.nbytes for column in self._columns.values())
        return held + _TRACE_BYTES * len(self._rows)

    @property
    def strength(self) -> Numbers:
        """Strength at the last access, of each row."""
        return self._column("strength")

    @property
    def stability(self) -> Numbers:
        """Stability of each row, in seconds."""
        return self._column("stability")

    @property
    def last_access(self) -> Numbers:
        """Last access of each row, in seconds since the epoch."""
        return self._column("last_access")

    @property
    def importance(self) -> Numbers:
        """Importance of each row."""
        return self._column("importance")

    @property
    def confidence(self) -> Numbers:
        """Confidence in each row's source."""
        return self._column("confidence")

    @property
    def intensity(self) -> Numbers:
        """Intensity of the feeling of each row."""
        return self._column("intensity")

    @property
    def valence(self) -> Numbers:
        """Valence of each row, in [-1, 1]."""
        return self._column("valence")

    @property
    def arousal(self) -> Numbers:
        """Arousal of each row, in [-1, 1]."""
        return self._column("arousal")

    @property
    def created_at(self) -> Numbers:
        """When each row was made, in seconds since the epoch."""
        return self._column("created_at")

    @property
    def lot(self) -> NDArray[np.uint32]:
        """A number of each row that its id alone decides.

        Chance draws by it, and so draws the same traces on every worker; rows stand as they were
        loaded, which differs.
        """
        return self._column("lot")

    @property
    def active(self) -> Mask:
        """Whether each row is an active trace."""
        return self._column("active")

    def ids(self) -> list[str]:
        """Ids of the active traces."""
        return list(self._rows)

    def row(self, trace_id: str) -> int | None:
        """The row of a trace, or ``None`` when it is not here."""
        return self._rows.get(trace_id)

    def trace(self, row: int) -> Trace:
        """The trace of a row of an active trace.

        Raises:
            KeyError: The row has no active trace.
        """
        trace = self._traces[row]
        if trace is None:
            raise KeyError(row)
        return trace

    def get(self, trace_id: str) -> Trace | None:
        """A trace by its id, or ``None`` when it is not here."""
        row = self._rows.get(trace_id)
        return None if row is None else self._traces[row]

    def missing(self) -> list[str]:
        """Ids of the traces without a vector of the model; none where there is no model."""
        if self.vectors is None:
            return []
        known = self.vectors.known
        return [trace_id for trace_id, row in self._rows.items() if not known[row]]

    def apply(
        self, changed: Iterable[Trace], vectors: Mapping[str, ArrayLike] | None = None
    ) -> None:
        """Bring rows up to date.

        A trace that is new here gets a row; one that is no longer active leaves. A vector stays
        with its trace until the trace's text changes.

        Args:
            changed: Traces of this scope as they now are.
            vectors: Vectors of the model by trace id, of these or of other traces here.
        """
        new: dict[str, Trace] = {}
        for trace in changed:
            self.version = max(self.version, trace.version)
            row = self._rows.get(trace.id)
            old = None if row is None else self._traces[row]
            if row is not None and old is not None and trace.active and _same_text(old, trace):
                self._traces[row] = trace
                self._write(row, trace)
                continue
            self._drop(trace.id)
            new.pop(trace.id, None)
            if trace.active:
                new[trace.id] = trace
        self._add(list(new.values()))
        if self.vectors is not None:
            for trace_id, vector in (vectors or {}).items():
                if (row := self._rows.get(trace_id)) is None:
                    continue
                if self.vectors.offer(row, vector):
                    self.foreign.discard(trace_id)
                else:
                    self.foreign.add(trace_id)
            self.vectors.settle()
        self._tidy()

    def remove(self, ids: Iterable[str]) -> None:
        """Take out traces that were erased; unknown ids are passed over."""
        for trace_id in ids:
            self._drop(trace_id)
        self._tidy()

    def mask(self, wanted: SearchFilter) -> Mask:
        """For each row, whether it counts in a search."""
        found = self.active.copy()
        if wanted.types is not None:
            codes = self._codes["type"]
            allowed = [codes[name] for name in wanted.types if name in codes]
            found &= np.isin(self._column("type"), allowed)
        if wanted.min_confidence > 0:
            found &= self.confidence >= wanted.min_confidence
        if wanted.created_from is not None:
            found &= self.created_at >= wanted.created_from
        if wanted.created_until is not None:
            found &= self.created_at <= wanted.created_until
        for turn in wanted.exclude_turns:
            found[[self._rows[trace_id] for trace_id in self._turns.get(turn, ())]] = False
        own = self._codes["session"].get(wanted.session) if wanted.session else None
        if own is not None:
            rows = np.flatnonzero(self._column("session") == own)
            found[rows] &= self._on_path(rows, wanted.path)
        return found

    def similarity(self, query: ArrayLike) -> Vector:
        """The cosine of a query's vector with each row; 0 for a row without a vector."""
        if self.vectors is None:
            return np.zeros(self.size, np.float32)
        return self.vectors.similarity(query)

    def _on_path(self, rows: NDArray[np.intp], path: Sequence[tuple[str, int | None]]) -> Mask:
        branches, depths = self._column("branch")[rows], self._column("depth")[rows]
        found = np.zeros(len(rows), np.bool_)
        for branch, depth in path:
            on = branches == self._codes["branch"].get(branch, -1)
            found |= on if depth is None else on & (depths <= depth)
        return found

    def _column(self, name: str) -> NDArray[Any]:
        return self._columns[name][: len(self._traces)]

    def _add(self, traces: list[Trace]) -> None:
        first = len(self._traces)
        self._reserve(first + len(traces))
        self._traces.extend(traces)
        for row, trace in enumerate(traces, first):
            self._rows[trace.id] = row
            self._write(row, trace)
            # What no turn has made lies on no path, and counts on each.
            path = trace.session if trace.turn else ""
            self._columns["session"][row] = self._code("session", path)
            self._columns["branch"][row] = self._code("branch", trace.branch)
            self._columns["depth"][row] = trace.depth
            self._columns["lot"][row] = _lot(trace.id)
            if trace.turn:
                self._turns.setdefault((trace.session, trace.turn), set()).add(trace.id)
            self._text_bytes += len(trace.content)
        self.words.add([trace.content for trace in traces])
        self.places.add([place_of(trace) for trace in traces])
        if self.vectors is not None:
            self.vectors.extend(len(traces))

    def _write(self, row: int, trace: Trace) -> None:
        columns = self._columns
        for name in _NUMBERS:
            columns[name][row] = getattr(trace, name)
        columns["valence"][row] = trace.affect.valence
        columns["arousal"][row] = trace.affect.arousal
        columns["type"][row] = self._code("type", trace.type)
        columns["active"][row] = True

    def _drop(self, trace_id: str) -> None:
        row = self._rows.pop(trace_id, None)
        if row is None:
            return
        trace = self.trace(row)
        self._traces[row] = None
        self._columns["active"][row] = False
        self._text_bytes -= len(trace.content)
        self.foreign.discard(trace_id)
        self.places.drop(row)
        turn = self._turns.get((trace.session, trace.turn))
        if turn is not None:
            turn.discard(trace_id)
            if not turn:
                del self._turns[trace.session, trace.turn]

    def _code(self, kind: str, name: str) -> int:
        return self._codes[kind].setdefault(name, len(self._codes[kind]))

    def _reserve(self, rows: int) -> None:
        for name, column in self._columns.items():
            if rows > len(column):
                larger = np.zeros(max(rows, 2 * len(column)), column.dtype)
                larger[: len(column)] = column
                self._columns[name] = larger

    def _tidy(self) -> None:
        gone = len(self._traces) - len(self._rows)
        if gone < _TIDY_FROM or gone < len(self._rows):
            return
        self.tidied += 1
        keep = self.active.copy()
        self._columns = {name: self._column(name)[keep].copy() for name in self._columns}
        self.words.compact(keep)
        self.places = self.places.compacted(keep)
        if self.vectors is not None:
            self.vectors.compact(keep)
        self._traces = [trace for trace in self._traces if trace is not None]
        self._rows = {trace.id: row for row, trace in enumerate(self._traces) if trace is not None}


def _same_text(old: Trace, new: Trace) -> bool:
    return (old.content, place_of(old)) == (new.content, place_of(new))


def _lot(trace_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(trace_id.encode(), digest_size=4).digest())
