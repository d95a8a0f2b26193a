"""The verb mind: what a session feels, counts and knows, and what made it so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from ...personas.affect import Vad
from ...personas.errors import SessionNotFoundError
from ...workflows.mind_calls import MindShown
from ...workflows.trace import TraceEntry
from ..session import Session
from .arguments import Context, Grammar, at_least
from .connecting import connected, is_open, opened, patience
from .exit_codes import ExitCode
from .mood_plot import MoodPoint, check_plotting, write_plot
from .output import shortened

CHANGES = 12
"""Changes that the table shows without ``--limit``."""

_REFLECTION = "SELF_REFLECTION_"


def add(grammar: Grammar) -> None:
    """Add the verb."""
    parser = grammar.session_verb("mind", mind, "Show what a session feels, and what made it so.")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="write the mood over the turns as an image"
    )
    parser.add_argument(
        "--limit", type=at_least(0), default=CHANGES, help=f"at most so many changes ({CHANGES})"
    )


async def mind(context: Context) -> int:
    """Show the mind, and draw its moods where that is asked for."""
    target: Path | None = context.args.plot
    if target is not None:
        # Before anything is asked of a server that may be far away.
        check_plotting(target)
    client = await connected(context)
    async with patience(context, client):
        session = opened(context, client)
        await is_open(client, session)
        shown = await session.mind()
        entries = await session.get_reasoning_trace()
        points = [] if target is None else await mood_points(session)
    changes = [entry for entry in entries if is_change(entry)]
    changes = changes[max(0, len(changes) - context.args.limit) :]
    if target is not None:
        await asyncio.to_thread(write_plot, target, points, session.id)
    if context.output.as_json:
        told = [entry.model_dump(mode="json") for entry in changes]
        context.output.json({**shown.model_dump(mode="json"), "changes": told})
        return ExitCode.OK
    context.output.table(["what", "is"], list(rows(shown)))
    if changes:
        context.output.text("")
        context.output.table(
            ["at", "turn", "what changed", "why"], [_change_row(entry) for entry in changes]
        )
    if target is not None:
        context.output.note(f"Wrote the mood of {len(points)} turns to {target}.")
    return ExitCode.OK


def is_change(entry: TraceEntry) -> bool:
    """Whether a trace entry tells of the mind: what moved it, or what tried to."""
    if entry.type.startswith(_REFLECTION):
        return True
    keys = entry.details.keys()
    if entry.type == "STATE_CHANGE":
        return bool(keys & {"metaprompt", "trait", "felt"})
    if entry.type in ("WARNING", "DEBUG"):
        return bool(keys & {"metaprompt", "severity", "frustration", "correction"})
    return False


def rows(shown: MindShown) -> Iterable[tuple[str, str]]:
    """The mind as a table."""
    yield "mood", _with_point(shown.mood, shown.pad)
    if shown.emotion is not None:
        felt = Vad.model_validate(shown.emotion["felt"])
        word = f"{shown.emotion['label']} {shown.emotion['intensity']:.2f}"
        yield "emotion", _with_point(word, felt)
        yield "body", f"{shown.emotion['body']:.2f}"
        needs = [f"{name} {value:.2f}" for name, value in shown.emotion["needs"].items()]
        yield "needs", ", ".join(needs)
    trends = shown.sentiment.get("trends") or []
    if trends:
        last = trends[-1]
        yield "last words felt", f"{last['polarity']} {last['score']:+.2f}"
    counted = [f"{k} {v}" for k, v in shown.sentiment.items() if isinstance(v, int) and v]
    yield "turns in a row", ", ".join(counted) or "-"
    yield "turns since", ", ".join(f"{k} {v}" for k, v in shown.counters.items()) or "-"
    yield "pending events", ", ".join(shown.pending) or "-"
    yield "running", ", ".join(shown.running) or "-"
    yield "traits", ", ".join(f"{k} {v:g}" for k, v in sorted(shown.traits.items())) or "-"
    yield "user", shortened(shown.user)
    yield "task", shortened(shown.task)
    yield "notes", ", ".join(shown.working) or "-"


async def mood_points(session: Session) -> list[MoodPoint]:
    """The mood and the feeling that each turn left, oldest first.

    Raises:
        SessionNotFoundError: The store has no such session.
    """
    points: list[MoodPoint] = []
    persona = await session.get_persona()
    async for item in session.read("mind"):
        at = datetime.fromisoformat(item["created_at"])
        found = MoodPoint.of(item["seq"], item["mind"], at, persona)
        if found is not None:
            points.append(found)
    if not points:
        raise SessionNotFoundError(
            f"No turn of session {session.id!r} has left a mind: its persona follows no sentiment, "
            "has no metaprompts and no emotions, or nothing was said yet."
        )
    return points


def _with_point(word: str, at: Vad) -> str:
    return (
        f"{word} (valence {at.valence:+.2f}, arousal {at.arousal:+.2f}, dominance "
        f"{at.dominance:+.2f})"
    )


def _change_row(entry: TraceEntry) -> tuple[str, str, str, str]:
    details: dict[str, Any] = {
        key: value for key, value in entry.details.items() if value not in (None, [], {})
    }
    why = shortened(details, 100) if details else ""
    return (f"{entry.at:%H:%M:%S}", (entry.turn or "")[:8], shortened(entry.message, 100), why)
