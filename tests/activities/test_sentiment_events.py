"""What whole conversations raise when the English scorer judges them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from gmi.activities.sentiment import english_sentiment
from gmi.personas.parts import SentimentTracking
from gmi.personas.sentiment import SentimentSettings, SentimentState, observed

NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)

FRUSTRATED = "user_frustrated medium"
FURIOUS = "user_frustrated high"
CONFUSED = "user_confused medium"
LOST = "user_confused high"
PLEASED = "user_satisfied low"
ABSENT = "low_engagement medium"


def raised(texts: list[str], tracking: SentimentTracking | None = None) -> list[list[str]]:
    """The events of each turn, as type and severity."""
    settings = SentimentSettings.from_tracking(tracking or SentimentTracking(enabled=True))
    state, found = SentimentState(), list[list[str]]()
    for place, text in enumerate(texts):
        state, events = observed(
            state,
            english_sentiment(text),
            turn=str(place),
            text=text,
            now=NOW,
            settings=settings,
            recent_user_lengths=[len(said) for said in texts[max(0, place - 2) : place + 1]],
        )
        found.append([f"{event.type} {event.severity}" for event in events])
    return found


SICK = "My {} is a bit sick and tired of the long waiting in the hospital lobby today"
OKAY = "the {} over there in the city was okay and I guess that it was good for the kids"

CONVERSATIONS: dict[str, list[tuple[str, list[str]]]] = {
    "bad turns in a row": [
        ("I hate this", [FRUSTRATED]),
        ("This is terrible", [FURIOUS]),
        ("This sucks", [FURIOUS]),
    ],
    "one very bad turn": [("terrible", [FRUSTRATED])],
    "mildly bad turns": [(SICK.format("mother"), []), (SICK.format("dog"), [FURIOUS])],
    "mildly good turns": [
        (OKAY.format("weather"), []),
        (OKAY.format("trip"), []),
        (OKAY.format("food"), [PLEASED]),
    ],
    "another kind of turn between": [
        ("I hate this", [FRUSTRATED]),
        ("the table", []),
        ("I hate this", [FRUSTRATED]),
        ("good", [PLEASED]),
        ("terrible", [FRUSTRATED]),
    ],
    "short questions": [
        ("Where?", []),
        ("Which one?", []),
        ("Who?", []),
        ("How long?", [ABSENT]),
    ],
    "emoji": [("😡", [FRUSTRATED]), ("😡😡", [FURIOUS]), ("😊", [PLEASED])],
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_raises_its_events(name: str) -> None:
    turns = CONVERSATIONS[name]
    assert raised([text for text, _ in turns]) == [events for _, events in turns]


class Difference(NamedTuple):
    """A conversation whose events another way of counting would tell otherwise.

    Attributes:
        elsewhere: Events of each turn where negation is ignored, phrases are looked for inside
            words, every turn between the thresholds is called confused, and a request or an assent
            pleases.
        here: Events of each turn here.
        why: What makes the difference.
    """

    texts: list[str]
    elsewhere: list[list[str]]
    here: list[list[str]]
    why: str


DIFFERENCES = [
    Difference(["not good"], [[PLEASED]], [[FRUSTRATED]], "what is not good pleases nobody"),
    Difference(
        ["never bad", "I do not hate it"],
        [[FRUSTRATED], [FURIOUS]],
        [[PLEASED], []],
        "what is never bad frustrates nobody",
    ),
    Difference(["explain please"], [[CONFUSED, PLEASED]], [[]], "a plain request is neither"),
    Difference(["Thus, uhhuh"], [[CONFUSED]], [[]], "phrases are matched as words"),
    Difference(["I don’t understand"], [[]], [[CONFUSED]], "typographic apostrophes count"),
    Difference(
        ["huh", "What?? Where?", "not sure"],
        [[CONFUSED], [CONFUSED], [CONFUSED]],
        [[CONFUSED], [LOST], [LOST]],
        "turns are counted as confused by what they say",
    ),
    Difference(
        ["the table", "I don't understand"],
        [[], [LOST]],
        [[], [CONFUSED]],
        "a neutral turn is not a confused one",
    ),
    Difference(
        ["ok then", "on it", "the cat", "a table", "a chair"],
        [[PLEASED], [], [], [], [ABSENT]],
        [[], [], [], [ABSENT], [ABSENT]],
        "assent pleases nobody and is listless",
    ),
    Difference(
        ["😀", "😀", "😀", "😀"],
        [[], [], [], [ABSENT]],
        [[PLEASED], [PLEASED], [PLEASED], [PLEASED]],
        "emoji count",
    ),
    Difference(
        ["bad good bad good bad good the table"],
        [[CONFUSED]],
        [[FRUSTRATED]],
        "bad words outweigh as many good ones, so the text is not neutral",
    ),
]


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.why)
def test_the_differences_to_another_way_of_counting_are_meant(row: Difference) -> None:
    assert raised(row.texts) == row.here
    assert row.here != row.elsewhere


def test_thresholds_beyond_the_scale_are_never_crossed() -> None:
    tracking = SentimentTracking(
        enabled=True, frustration_threshold=-5, satisfaction_threshold=5, history_window=2
    )
    assert raised(["bad", "bad", "bad", "good"], tracking)[:3] == [[], [], []]
    assert raised(["great"] * 3, tracking) == [[], [], []]
