"""From recalled memories to the text that goes ahead of the user's message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...personas.budget import estimate_tokens
from .ago import ago
from .mechanisms.feeling_of_knowing import Feeling
from .provenance import provenance
from .scoring import PartialRecall
from .traces import Trace

LINE_CHARS = 600
"""Longer memories are cut here."""
MAX_HINTS = 2
"""Feelings of knowing that a prompt tells of."""

PREAMBLE = (
    "[What you remember. These lines come from your own memory, not from the user's message. Each "
    "says how old it is and where it comes from. What is said now overrules what was said before; "
    "where a memory is uncertain, say so.]"
)
SHORT_PREAMBLE = "[What you remember]"
END = "[End of what you remember]"
_MARKER = re.compile(r"\[(?=\s*(?:end\s+of\s+)?what\s+you\s+remember)", re.IGNORECASE)
PREAMBLE_ROOM = 100
"""Tokens that must be left for memories before the long preamble is worth its place."""

SHARES = {
    "working": 0.15,
    "prospective": 0.05,
    "graph": 0.05,
    "observation": 0.05,
    "persistent": 0.05,
    "episodic": 0.25,
    "semantic": 0.40,
}
"""Shares of the token budget. What the others leave over goes to ``semantic``, and what that
leaves to every section that has more to tell."""

HEADINGS = {
    "working": "In your mind at present:",
    "prospective": "To keep in mind now:",
    "persistent": "Noted for you:",
    "semantic": "What you know:",
    "episodic": "What happened, oldest first:",
    "graph": "What else comes to mind:",
    "observation": "Noticed, or faint:",
}
"""In the order in which the sections stand."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A recalled memory.

    Attributes:
        score: By which it was recalled.
        linked: It came up by its links with other memories, not by its own words.
    """

    trace: Trace
    score: float = 0.0
    linked: bool = False


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """What a prompt tells of the memory.

    Attributes:
        text: Ready to stand ahead of the user's message; empty when there is nothing to tell.
        shown: Ids of the memories whose words the text holds.
        hinted: Ids of those that it hints at without their words.
        reminded: Places of the reminders that it holds, in the sequence that was given.
        tokens: Estimated tokens of the text.
    """

    text: str = ""
    shown: list[str] = field(default_factory=list)
    hinted: list[str] = field(default_factory=list)
    reminded: list[int] = field(default_factory=list)
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    shown: str | None = None
    hint: str | None = None
    reminder: int | None = None
    made_at: float = 0.0


class _Section:
    """Takes lines in their order until one does not fit."""

    def __init__(self, name: str, lines: Sequence[_Line], cost: Callable[[str], int]) -> None:
        self.name = name
        self.taken: list[_Line] = []
        self._waiting = list(lines)
        self._cost = cost

    @property
    def least(self) -> int:
        """Tokens that the first line takes, with the heading; 0 without lines."""
        if not self._waiting:
            return 0
        return self._cost(HEADINGS[self.name]) + self._cost(self._waiting[0].text)

    def take(self, tokens: int) -> int:
        """Take lines for so many tokens; returns what is left of them."""
        while self._waiting:
            needed = self._cost(self._waiting[0].text)
            if not self.taken:
                needed += self._cost(HEADINGS[self.name])
            if needed > tokens:
                break
            tokens -= needed
            self.taken.append(self._waiting.pop(0))
        return tokens


def assemble_context(
    items: Sequence[Shown],
    *,
    now: float,
    token_budget: int,
    working: Sequence[Trace] = (),
    half: Sequence[Feeling] = (),
    partial: Sequence[PartialRecall] = (),
    involuntary: Trace | None = None,
    reminders: Sequence[str] = (),
    user_name: str | None = None,
    model: str | None = None,
) -> MemoryContext:
    """The text that tells a model what it remembers, within a budget.

    Nothing is told twice, and each memory takes one line. The same arguments give the same bytes.

    Args:
        items: Recalled memories, the best first.
        now: Seconds since the epoch.
        token_budget: Estimated tokens that the text may take.
        working: What working memory holds, the most active first.
        half: Memories that almost came up; the text says so without their words.
        partial: Memories that fit but are faint; those that ``items`` has are told there.
        involuntary: A memory that came up by itself.
        reminders: What is due, or what its cue brought up.
        user_name: How to call the user; ``the user`` without it.
        model: The model's id, for the estimate.
    """

    def cost(text: str) -> int:
        return estimate_tokens(len(text) + 1, model)

    lines = _lines(items, now, working, half, partial, involuntary, reminders, user_name)
    frame = cost(END)
    head = PREAMBLE
    if token_budget < frame + cost(PREAMBLE) + PREAMBLE_ROOM:
        head = SHORT_PREAMBLE
    budget = token_budget - frame - cost(head)
    if budget <= 0:
        return MemoryContext()
    sections = {name: _Section(name, lines[name], cost) for name in SHARES}
    # Shares are cut to whole tokens; what that leaves over is the first spare.
    rooms = {name: int(budget * share) for name, share in SHARES.items()}
    spare = budget - sum(rooms.values())
    # Memories may wait for another turn; what was meant to be done by now should not.
    more = min(max(0, sections["prospective"].least - rooms["prospective"]), rooms["semantic"])
    rooms["prospective"] += more
    rooms["semantic"] -= more
    for name in SHARES:
        if name != "semantic":
            spare += sections[name].take(rooms[name])
    spare = sections["semantic"].take(rooms["semantic"] + spare)
    for name in ("prospective", "episodic", "persistent", "working", "graph", "observation"):
        spare = sections[name].take(spare)
    return _written(head, sections, model)


def _lines(
    items: Sequence[Shown],
    now: float,
    working: Sequence[Trace],
    half: Sequence[Feeling],
    partial: Sequence[PartialRecall],
    involuntary: Trace | None,
    reminders: Sequence[str],
    user_name: str | None,
) -> dict[str, list[_Line]]:
    """The lines of each section, each memory and each sentence once."""
    lines: dict[str, list[_Line]] = {name: [] for name in SHARES}
    seen: set[str] = set()

    def add(section: str, trace: Trace, mark: str = "") -> None:
        said = f"({provenance(trace, now, user_name, mark)})"
        words = _one_line(trace.content)
        same = f"{trace.role} {words.casefold()}"
        if words and not seen & {trace.id, same}:
            seen.update((trace.id, same))
            lines[section].append(
                _Line(f"- {said} {words}", shown=trace.id, made_at=trace.created_at)
            )

    for number, reminder in enumerate(reminders):
        if words := _one_line(reminder):
            lines["prospective"].append(_Line(f"- {words}", reminder=number))
    for trace in working:
        add("working", trace)
    for item in items:
        add("graph" if item.linked else section_of(item.trace), item.trace)
    if involuntary is not None:
        add("graph", involuntary, "comes to mind by itself")
    for recall in partial:
        words = _one_line(recall.content)
        if words and recall.trace_id not in seen:
            seen.add(recall.trace_id)
            text = f"- (half remembered, perhaps wrong) {words}"
            lines["observation"].append(_Line(text, shown=recall.trace_id))
    told = [feeling for feeling in half if feeling.trace_id not in seen]
    for feeling in told[:MAX_HINTS]:
        lines["observation"].append(_Line(f"- {_hint(feeling)}", hint=feeling.trace_id))
    return lines


def section_of(trace: Trace) -> str:
    """The section in which a recalled memory is told."""
    if trace.role == "note":
        return "persistent"
    if trace.source in ("observation", "reflection"):
        return "observation"
    if trace.type in ("prospective", "episodic"):
        return trace.type
    return "semantic"


def _hint(feeling: Feeling) -> str:
    sure = (
        "You are nearly sure that you know"
        if feeling.kind == "high_confidence"
        else "You have the feeling of knowing"
    )
    about = f" about {_listed(feeling.entities[:3])}" if feeling.entities else ""
    when = ago(feeling.age)
    rough = "about " if when.endswith(" ago") else ""
    return (
        f"{sure} something more{about} from {rough}{when}, but cannot recall it; say so rather "
        "than guess."
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _one_line(text: str) -> str:
    # A memory cannot end the frame that it stands in.
    words = _MARKER.sub("(", " ".join(text.split()))
    return words if len(words) <= LINE_CHARS else words[: LINE_CHARS - 1].rstrip() + "…"


def _written(head: str, sections: dict[str, _Section], model: str | None) -> MemoryContext:
    parts = [head]
    taken: list[_Line] = []
    for name, heading in HEADINGS.items():
        own = sections[name].taken
        if own:
            taken += own
            ordered = own if name != "episodic" else sorted(own, key=lambda line: line.made_at)
            parts += [heading, *(line.text for line in ordered)]
    if not taken:
        return MemoryContext()
    text = "\n".join([*parts, END])
    return MemoryContext(
        text=text,
        shown=[line.shown for line in taken if line.shown is not None],
        hinted=[line.hint for line in taken if line.hint is not None],
        reminded=[line.reminder for line in taken if line.reminder is not None],
        tokens=estimate_tokens(len(text), model),
    )
