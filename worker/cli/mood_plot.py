"""An image of a session's mood over its turns; needs the extra ``plot``."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from ...personas.affect import Vad
from ...personas.emotion import Traits, advanced, felt
from ...personas.errors import ConfigurationError, ValidationError
from ...personas.mind import Mind, traits_in_force
from ...personas.mood import MoodSettings, decayed
from ...personas.schema import Persona

FORMS = (".png", ".svg", ".pdf")

# Distinguishable with every kind of colour vision, and by their marks without any.
_LINES = (("valence", "#0072B2", "o"), ("arousal", "#D55E00", "s"), ("dominance", "#009E73", "^"))


@dataclass(frozen=True, slots=True)
class MoodPoint:
    """What one turn left.

    Attributes:
        turn: The turn's number in the session.
        word: The mood's word.
        mood: Where the mood is.
        felt: What is felt, for a persona with emotions.
    """

    turn: int
    word: str
    mood: Vad
    felt: Vad | None = None

    @classmethod
    def of(cls, turn: int, kept: Mapping[str, Any], at: datetime, persona: Persona) -> Self | None:
        """The point of a mind as a turn left it; ``None`` for one without a mood.

        Args:
            turn: The turn's number.
            kept: The mind as the store has it, which is as its last change left it.
            at: The moment that counts, so that what time has done is seen.
            persona: Says how the mood settles, and the emotions.
        """
        mind = Mind.model_validate(kept)
        if mind.mood is None:
            return None
        settings, _ = MoodSettings.from_adaptation(persona.mood_adaptation)
        mood = decayed(mind.mood, at, settings)
        if mind.emotion is None:
            return cls(turn, mood.word, mood.pad)
        traits = Traits.of(traits_in_force(persona.hexaco, mind))
        return cls(turn, mood.word, mood.pad, felt(advanced(mind.emotion, at.timestamp(), traits)))


def check_plotting(target: Path) -> None:
    """See that an image can be written there.

    Raises:
        ConfigurationError: The library that draws is not installed.
        ValidationError: The file's name has no ending that is known, or its folder is not there.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigurationError(
            "Drawing needs matplotlib, which is not installed; install durable-gmi[plot]."
        )
    if target.suffix.lower() not in FORMS:
        raise ValidationError(
            f"{str(target)!r} has to end with one of {', '.join(FORMS)}, which says what kind of "
            "image it is."
        )
    if not target.parent.is_dir():
        raise ValidationError(f"There is no folder {str(target.parent)!r}; make it first.")


def write_plot(target: Path, points: Sequence[MoodPoint], title: str) -> None:
    """Draw valence, arousal and dominance over the turns, with the mood's words where they change.

    Args:
        target: The file; its ending says what kind of image it is.
        points: At least one, in the order of their turns.
        title: The session's name.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    turns = [point.turn for point in points]
    feeling = [point for point in points if point.felt is not None]
    for name, colour, mark in _LINES:
        values = [getattr(point.mood, name) for point in points]
        axes.plot(turns, values, color=colour, marker=mark, markersize=4, label=name)
        if feeling:
            values = [getattr(point.felt, name) for point in feeling]
            when = [point.turn for point in feeling]
            axes.plot(when, values, color=colour, linestyle=":", label=f"felt {name}")
    before = None
    for point in points:
        if point.word != before:
            axes.axvline(point.turn, color="#999999", linewidth=0.8, linestyle="--")
            axes.annotate(
                point.word, (point.turn, 1.02), xycoords=("data", "axes fraction"), rotation=50
            )
        before = point.word
    axes.set_xlabel("turn")
    axes.set_ylabel("from -1 to 1")
    axes.set_ylim(-1.05, 1.05)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color="#dddddd")
    axes.legend(loc="lower left", ncols=2 if feeling else 3, fontsize="small")
    # A session's id may hold anything, also what would be read as a formula.
    figure.suptitle(f"Mood of session {title}", x=0.02, ha="left", parse_math=False)
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(target)
