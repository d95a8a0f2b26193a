from __future__ import annotations

import math

import pytest

from gmi.activities.memory.ago import DAY, HOUR, MINUTE, MONTH, WEEK, YEAR, ago
from gmi.personas.errors import ValidationError


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (59, "just now"),
        (MINUTE, "a minute ago"),
        (5 * MINUTE, "5 minutes ago"),
        (59.4 * MINUTE, "59 minutes ago"),
        (59.6 * MINUTE, "an hour ago"),
        (3 * HOUR, "3 hours ago"),
        (23.6 * HOUR, "yesterday"),
        (DAY, "yesterday"),
        (2 * DAY, "two days ago"),
        (7 * DAY, "a week ago"),
        (10 * DAY, "ten days ago"),
        (13 * DAY, "13 days ago"),
        (2 * WEEK, "two weeks ago"),
        (20 * DAY, "three weeks ago"),
        (61 * DAY, "two months ago"),
        (11 * MONTH, "eleven months ago"),
        (YEAR, "a year ago"),
        (18 * MONTH, "18 months ago"),
        (2 * YEAR, "two years ago"),
        (10 * YEAR, "ten years ago"),
        (200 * YEAR, "200 years ago"),
    ],
)
def test_a_span_is_told_in_the_unit_that_people_would_use(seconds: float, words: str) -> None:
    assert ago(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "in a moment"),
        (-HOUR, "in an hour"),
        (-DAY, "tomorrow"),
        (-2 * DAY, "in two days"),
        (-3 * WEEK, "in three weeks"),
    ],
)
def test_what_is_still_to_come_is_told_as_such(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_a_longer_time_never_takes_a_smaller_unit() -> None:
    units = ["now", "minute", "hour", "yesterday", "day", "week", "month", "year"]

    def place(words: str) -> tuple[int, str]:
        found = [i for i, unit in enumerate(units) if unit in words.replace("yesterday", "YDAY")]
        return ((3 if words == "yesterday" else found[0]), words)

    # A week is told by its own name between six and eight days, and a year between months.
    told = [ago(minutes * MINUTE) for minutes in range(0, 60 * 24 * 900, 97)]
    places = [place(words)[0] for words in told if words not in ("a week ago", "a year ago")]
    assert places == sorted(places)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_not_finite_is_refused(seconds: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        ago(seconds)
