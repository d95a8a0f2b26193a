"""Old memories shrink to what they were about.

After fuzzy-trace theory (Reyna & Brainerd 1995): the wording goes, the gist stays. Ages and
lengths are conventions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from ....personas.memory import TemporalGist
from ..traces import DAY, Trace

NAME = "temporal_gist"
MAX_WORDS = 30
TOO_STRONG = 0.9
STRENGTH_KEPT = 0.8
SHRINKING_TYPES = frozenset({"episodic", "semantic"})


def due(traces: Iterable[Trace], now: float, settings: TemporalGist) -> list[Trace]:
    """The memories that shrink now, at most ``max_per_cycle`` of them, the oldest first.

    They are active, old enough, of what happened or what is known, not burnt in, not shrunk
    before, and recalled as often as the rule says.

    Args:
        traces: Candidates.
        now: Seconds since the epoch.
        settings: The rule, the age, the number.
    """
    if not settings.enabled:
        return []

    def shrinks(trace: Trace) -> bool:
        often = trace.retrievals >= settings.min_retrieval_count
        return (
            trace.active
            and trace.type in SHRINKING_TYPES
            and now - trace.created_at >= settings.age_threshold_days * DAY
            and often == (settings.rule == "retrieved")
            and trace.strength < TOO_STRONG
            and NAME not in trace.mechanisms
        )

    found = sorted(filter(shrinks, traces), key=lambda trace: trace.created_at)
    return found[: settings.max_per_cycle]


def gist_text(trace: Trace, settings: TemporalGist) -> str:
    """What is left of a memory's text without a model: its beginning.

    The entities that the beginning does not name follow in brackets, then the mood, where the
    settings keep them.
    """
    words = trace.content.split()
    text = " ".join(words[:MAX_WORDS])
    if len(words) > MAX_WORDS:
        text += "..."
    if settings.preserve_entities:
        unnamed = [name for name in trace.entities if name.casefold() not in text.casefold()]
        if unnamed:
            text += f" ({', '.join(unnamed)})"
    if settings.preserve_emotional_context:
        text += f" [{trace.mood}]"
    return text


def gisted(trace: Trace, text: str | None, now: float, settings: TemporalGist) -> Trace:
    """The memory shrunk to its gist.

    What the text was is known by its SHA-256 under ``mechanisms["temporal_gist"]``.

    Args:
        trace: The memory.
        text: The gist that a model wrote; without one, or with a blank one, its beginning.
        now: Seconds since the epoch.
        settings: What the gist keeps.
    """
    written = (text or "").strip()
    note = {
        "at": now,
        "sha256": hashlib.sha256(trace.content.encode("utf-8")).hexdigest(),
        "words": len(trace.content.split()),
        "model": bool(written),
    }
    return replace(
        trace,
        content=written or gist_text(trace, settings),
        entities=trace.entities if settings.preserve_entities else (),
        strength=trace.strength * STRENGTH_KEPT,
        mechanisms={**trace.mechanisms, NAME: note},
    )
