"""Memories that contradict each other, found without a model.

Two rules, both cautious: they miss much, and what they find is seldom wrong.

- *Denial*: two sentences of the same speaker say the same in nearly the same words, one of them
  negated: "I like coffee" and "I don't like coffee any more".
- *Correction*: what was said directly before, at most three turns earlier in the same session, is
  taken up in half of its words by a sentence that begins with a word of correction: "My sister is
  called Anna" and "Actually, my sister is called Maria".

Questions say nothing. Words are compared in English; other languages find nothing here. Only what
one user or one conversation said is compared: in a persona's or an organization's memories "I" is
many people.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .traces import Trace
from .words import tokenize

NAME = "contradicted"

HONEST = 0.6
"""A character more honest than this believes what it heard last."""

CLEAR_GAP = 0.2
"""Otherwise the more trusted memory counts, if it is trusted so much more."""

TRUST_KEPT = 0.5
"""Share of its confidence that the memory that is in the wrong keeps."""

SAME_WORDS = 0.6
SHARED_WORDS = 2
CORRECTED_WORDS = 0.5
CORRECTED_TURNS = 3
MAX_SENTENCES = 12
MAX_NOTED = 8

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|no longer|(?:do|does|did|is|are|was|were|has|have|had|ca|wo|would|"
    r"should|could|must)n['’]?t)\b"
)
_CORRECTION = re.compile(
    r"^\W*(?:actually\b|correction\b|in fact\b|i was wrong\b|i meant\b|(?:no|sorry|wait),)"
)
_FILLERS = frozenset(
    tokenize(
        "never longer anymore more cannot actually correction fact wrong meant sorry wait dont "
        "doesnt didnt isnt arent wasnt werent hasnt havent hadnt cant wont wouldnt shouldnt "
        "couldnt mustnt any today now yet ever"
    )
)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two memories that cannot both be true.

    Attributes:
        older: Id of the one that was made first.
        newer: Id of the other.
        wrong: Id of the one to believe less, or ``None`` where nothing speaks for either.
    """

    older: str
    newer: str
    wrong: str | None


@dataclass(frozen=True, slots=True)
class _Statement:
    trace: Trace
    words: frozenset[str]
    negated: bool
    corrects: bool


def contradictions(traces: Iterable[Trace], honesty: float) -> list[Contradiction]:
    """The pairs of memories that contradict each other, in the order of the newer one.

    Args:
        traces: Memories of one scope.
        honesty: The persona's trait, in [0, 1].
    """
    spoken = sorted(
        (t for t in traces if t.active and t.scope.kind in ("user", "thread") and _speaks(t)),
        key=lambda trace: (trace.created_at, trace.depth, trace.id),
    )
    found: dict[tuple[str, str], Contradiction] = {}
    said = _Said()
    for trace in spoken:
        own = list(_statements(trace))
        for statement in own:
            for earlier in (*said.denied_by(statement), *said.corrected_by(statement)):
                pair = (earlier.id, trace.id)
                if pair not in found:
                    found[pair] = Contradiction(*pair, _wrong(earlier, trace, honesty))
        for statement in own:
            said.add(statement)
    return list(found.values())


class _Said:
    """Statements in the order in which they were made, found by their words."""

    def __init__(self) -> None:
        self._statements: list[_Statement] = []
        # By role and by whether they are negated: only the opposite of a statement denies it.
        self._words: dict[tuple[str, bool], dict[str, list[int]]] = {}
        self._latest: dict[tuple[str, str, str], deque[_Statement]] = {}

    def add(self, statement: _Statement) -> None:
        trace, number = statement.trace, len(self._statements)
        self._statements.append(statement)
        words = self._words.setdefault((trace.role, statement.negated), {})
        for word in statement.words:
            words.setdefault(word, []).append(number)
        if trace.turn:
            place = (trace.session, trace.branch, trace.role)
            latest = self._latest.setdefault(place, deque(maxlen=CORRECTED_TURNS * MAX_SENTENCES))
            latest.append(statement)

    def denied_by(self, later: _Statement) -> Iterator[Trace]:
        """What says the opposite in nearly the same words."""
        words = self._words.get((later.trace.role, not later.negated), {})
        shared: Counter[int] = Counter()
        for word in later.words:
            shared.update(words.get(word, ()))
        for number, count in shared.items():
            earlier = self._statements[number]
            every = len(earlier.words) + len(later.words) - count
            if count >= SHARED_WORDS and count / every >= SAME_WORDS:
                yield earlier.trace

    def corrected_by(self, later: _Statement) -> Iterator[Trace]:
        """What was said just before and is taken up in other words."""
        trace = later.trace
        if not later.corrects:
            return
        for earlier in self._latest.get((trace.session, trace.branch, trace.role), ()):
            near = 0 < trace.depth - earlier.trace.depth <= CORRECTED_TURNS
            shared = len(earlier.words & later.words)
            least = min(len(earlier.words), len(later.words))
            other = not later.words <= earlier.words
            if near and other and shared / least >= CORRECTED_WORDS:
                yield earlier.trace


def doubted(trace: Trace, other: str, now: float) -> Trace | None:
    """The memory after another one showed it to be in the wrong; ``None`` where it knows.

    It is believed half as much and stays: the rules here are not sure enough to forget it. What
    contradicts it is kept under ``mechanisms["contradicted"]``.
    """
    by: list[str] = (trace.mechanisms.get(NAME) or {}).get("by", [])
    if other in by or not trace.active:
        return None
    return replace(
        trace,
        confidence=trace.confidence * TRUST_KEPT,
        contradicted_by=other,
        mechanisms={**trace.mechanisms, NAME: {"at": now, "by": [*by, other][-MAX_NOTED:]}},
    )


def _speaks(trace: Trace) -> bool:
    return trace.role in ("user", "assistant", "note")


def _statements(trace: Trace) -> Iterator[_Statement]:
    sentences: Sequence[str] = _SENTENCE.findall(trace.content)[:MAX_SENTENCES]
    for sentence in sentences:
        if sentence.rstrip().endswith("?"):
            continue
        text = sentence.strip().lower()
        words = frozenset(tokenize(text)) - _FILLERS
        if words:
            negated = len(_NEGATION.findall(text)) % 2 == 1
            yield _Statement(trace, words, negated, bool(_CORRECTION.match(text)))


def _wrong(older: Trace, newer: Trace, honesty: float) -> str | None:
    if honesty > HONEST:
        return older.id
    gap = newer.confidence - older.confidence
    if abs(gap) <= CLEAR_GAP:
        return None
    return older.id if gap > 0 else newer.id
