"""How long ago something was, in words."""

from __future__ import annotations

from .ranges import finite
from .traces import DAY, HOUR

MINUTE = 60.0
WEEK = 7 * DAY
MONTH = 365.25 / 12 * DAY
YEAR = 365.25 * DAY

_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


def ago(seconds: float) -> str:
    """How long ago something was: ``just now``, ``5 minutes ago``, ``three weeks ago``.

    Rounded to the unit that people would use. Days are spans of 24 hours, since nobody told the
    time zone: ``yesterday`` is a day ago, not the last calendar day.

    Args:
        seconds: Since then; negative for what is still to come (``in two days``, ``tomorrow``).

    Raises:
        ValidationError: The number is not finite.
    """
    past = finite("seconds", seconds) >= 0
    span = _span(abs(seconds))
    if span == "":
        return "just now" if past else "in a moment"
    if span == "a day":
        return "yesterday" if past else "tomorrow"
    return f"{span} ago" if past else f"in {span}"


def _span(seconds: float) -> str:
    if seconds < MINUTE:
        return ""
    if (minutes := round(seconds / MINUTE)) < 60:
        return "a minute" if minutes == 1 else f"{minutes} minutes"
    if (hours := round(seconds / HOUR)) < 24:
        return "an hour" if hours == 1 else f"{hours} hours"
    days = round(seconds / DAY)
    if days == 7:
        return "a week"
    if days < 14:
        return _several(days, "day")
    if days < 50:
        return _several(round(seconds / WEEK), "week")
    if (months := round(seconds / MONTH)) < 24 and months != 12:
        return _several(months, "month")
    return _several(round(seconds / YEAR), "year")


def _several(number: int, unit: str) -> str:
    if number == 1:
        return f"a {unit}"
    word = _NUMBERS[number - 2] if number - 2 < len(_NUMBERS) else str(number)
    return f"{word} {unit}s"
