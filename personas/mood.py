"""The persona's mood: a word and a point that moves slowly and comes back by itself.

A mood is a point in valence, arousal and dominance (Mehrabian 1996); a word names the region. Where
the points lie, how far one move goes and how long the way back takes are conventions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from .affect import DECIMALS, Vad, limited
from .parts import MoodAdaptation

PAD: Mapping[str, Vad] = MappingProxyType(
    {
        "neutral": Vad(valence=0.0, arousal=0.0, dominance=0.0),
        "focused": Vad(valence=0.2, arousal=0.1, dominance=0.55),
        "empathetic": Vad(valence=0.55, arousal=0.15, dominance=0.25),
        "curious": Vad(valence=0.35, arousal=0.45, dominance=0.15),
        "assertive": Vad(valence=0.15, arousal=0.35, dominance=0.7),
        "analytical": Vad(valence=0.1, arousal=-0.1, dominance=0.45),
        "frustrated": Vad(valence=-0.65, arousal=0.6, dominance=0.2),
        "creative": Vad(valence=0.45, arousal=0.35, dominance=0.35),
    }
)
"""Each mood's point."""

MOODS: tuple[str, ...] = tuple(PAD)
NEUTRAL = "neutral"

SENSITIVITY = 0.8
"""Share of the way to a named mood that one move goes where the persona does not say.

From neutral it takes one move to any mood, and the word stays for four hours.
"""

HALF_LIFE = 6 * 3600.0
"""Seconds after which half of the distance to the default mood is left."""

_KINDRED = MappingProxyType(
    {
        "calm": "neutral",
        "careful": "analytical",
        "engaging": "curious",
        "enthusiastic": "creative",
        "friendly": "empathetic",
        "helpful": "empathetic",
        "helpful_engaged": "empathetic",
        "patient": "empathetic",
        "playful": "creative",
    }
)


def mood_word(name: str) -> str | None:
    """The mood that a name stands for; ``None`` for a name that is none.

    Case and spaces do not count. Words that other persona forms use, such as ``helpful`` or
    ``playful``, stand for the mood that comes closest to them.
    """
    word = "_".join(name.lower().replace("-", " ").split())
    if word in PAD:
        return word
    return _KINDRED.get(word)


def mood_of(pad: Vad, among: Collection[str] = MOODS) -> str:
    """The mood whose point is nearest; of equally near ones the first in the order of `MOODS`.

    Args:
        pad: The point.
        among: The moods to choose from; none of them known chooses from all.
    """
    words = [word for word in MOODS if word in among] or MOODS
    return min(words, key=lambda word: _distance(pad, PAD[word]))


class MoodSettings(BaseModel):
    """How a persona's mood behaves.

    Attributes:
        adapts: Whether it moves at all; otherwise it stays at the default.
        default: The mood to start in and to come back to.
        allowed: The moods that it may take; the default is always among them.
        sensitivity: Share of the way to a named mood that one move goes, in [0, 1].
        half_life: Seconds after which half of the distance to the default mood is left.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    adapts: bool = True
    default: str = NEUTRAL
    allowed: tuple[str, ...] = MOODS
    sensitivity: float = Field(default=SENSITIVITY, ge=0, le=1, allow_inf_nan=False)
    half_life: float = Field(default=HALF_LIFE, gt=0, allow_inf_nan=False)

    @field_validator("default")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in PAD:
            raise ValueError(f"{value!r} is no mood; use one of {', '.join(MOODS)}")
        return value

    @classmethod
    def from_adaptation(
        cls, adaptation: MoodAdaptation | None
    ) -> tuple[MoodSettings, tuple[str, ...]]:
        """What the persona asks for, and warnings about what cannot be had.

        A persona that says nothing starts neutral and may take any mood; one whose adaptation is
        not enabled keeps its default mood. Unknown words never stop a persona: a default mood is
        replaced, an allowed one left out.
        """
        if adaptation is None:
            return cls(), ()
        warnings: list[str] = []

        def word(name: str, field: str, instead: str) -> str | None:
            found = mood_word(name)
            if found is None:
                warnings.append(
                    f"moodAdaptation.{field} {name!r} is no mood, {instead}; "
                    f"the moods are {', '.join(MOODS)}."
                )
            elif found != name.strip().lower():
                warnings.append(f"moodAdaptation.{field} {name!r} is taken as {found!r}.")
            return found

        default = NEUTRAL
        if adaptation.default_mood is not None:
            default = word(adaptation.default_mood, "defaultMood", "neutral is used") or NEUTRAL
        allowed = MOODS
        if adaptation.allowed_moods:
            named = {
                word(name, "allowedMoods", "it is left out") for name in adaptation.allowed_moods
            }
            allowed = tuple(mood for mood in MOODS if mood in named or mood == default)
        sensitivity = adaptation.sensitivity_factor
        if sensitivity is None:
            sensitivity = SENSITIVITY
        elif not 0 <= sensitivity <= 1:
            known = not math.isnan(sensitivity)
            within = limited(sensitivity, 0.0, 1.0) if known else SENSITIVITY
            warnings.append(
                f"moodAdaptation.sensitivityFactor {sensitivity} is not in [0, 1], "
                f"{within:g} is used."
            )
            sensitivity = within
        settings = cls(
            adapts=adaptation.enabled, default=default, allowed=allowed, sensitivity=sensitivity
        )
        return settings, tuple(warnings)


class MoodState(BaseModel):
    """A mood at one moment.

    Attributes:
        word: The mood's name; it follows the point, so it changes after the point has moved.
        pad: The point.
        since: When the word was first found to be this one.
        at: The moment that the point holds for.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    word: str = NEUTRAL
    pad: Vad = Vad()
    since: AwareDatetime
    at: AwareDatetime

    @classmethod
    def resting(cls, settings: MoodSettings, now: datetime) -> MoodState:
        """The mood that a session starts in: the default, without any movement."""
        return cls(word=settings.default, pad=PAD[settings.default], since=now, at=now)


class Moved(NamedTuple):
    """What became of a move.

    Attributes:
        state: The mood after it; after a refusal the one that time alone has made.
        changed: Whether the word is another one than before.
        refused: Why nothing was moved, or ``None``.
    """

    state: MoodState
    changed: bool
    refused: str | None = None


def decayed(state: MoodState, now: datetime, settings: MoodSettings) -> MoodState:
    """The mood at a later moment, on its way back to the default mood.

    It can be computed at any time: two steps lead to the same point as one. A moment that lies
    before the state changes nothing.
    """
    elapsed = (now - state.at).total_seconds()
    if elapsed <= 0:
        return state
    pad = _towards(state.pad, PAD[settings.default], 1.0 - 2.0 ** (-elapsed / settings.half_life))
    return _at(state, pad, settings.default, now, settings)


def moved(
    state: MoodState,
    target: str,
    settings: MoodSettings,
    now: datetime,
    *,
    share: float | None = None,
) -> Moved:
    """The mood after a move towards a named one.

    The point goes a share of the way; the word becomes the named mood once that is the nearest of
    the allowed ones, so a single move may leave the word as it was and repeated ones arrive.

    Args:
        state: The mood before; what time has done since then is done first.
        target: The mood to move to, or a word that stands for one.
        settings: The persona's.
        now: The moment of the move.
        share: Share of the way in [0, 1], the persona's sensitivity without it; 1 jumps.
    """
    before = decayed(state, now, settings)
    word = mood_word(target)
    if word is None:
        return _refused(state, before, f"{target!r} is no mood; use one of {', '.join(MOODS)}.")
    if not settings.adapts:
        return _refused(
            state, before, f"The persona's mood does not adapt, it stays {settings.default!r}."
        )
    if word not in settings.allowed:
        allowed = ", ".join(settings.allowed)
        return _refused(state, before, f"The persona may not be {word!r}, only {allowed}.")
    pad = _towards(before.pad, PAD[word], settings.sensitivity if share is None else share)
    after = _at(before, pad, word, max(now, before.at), settings)
    return Moved(after, after.word != state.word)


def _refused(state: MoodState, now: MoodState, why: str) -> Moved:
    return Moved(now, now.word != state.word, why)


def _at(state: MoodState, pad: Vad, aim: str, now: datetime, settings: MoodSettings) -> MoodState:
    """The state with its point moved; its word becomes the aim where no mood is nearer."""
    nearest = _distance(pad, PAD[mood_of(pad, settings.allowed)])
    arrived = _distance(pad, PAD[aim]) <= nearest
    if aim == state.word or not arrived:
        return state.model_copy(update={"pad": pad, "at": now})
    return MoodState(word=aim, pad=pad, since=now, at=now)


def _towards(start: Vad, end: Vad, share: float) -> Vad:
    share = limited(share, 0.0, 1.0)
    valence, arousal, dominance = (
        a + share * (b - a) for a, b in zip(start.point, end.point, strict=True)
    )
    return Vad.at((valence, arousal, dominance))


def _distance(a: Vad, b: Vad) -> float:
    # Rounded, so that a tie is a tie.
    return round(math.dist(a.point, b.point), DECIMALS)
