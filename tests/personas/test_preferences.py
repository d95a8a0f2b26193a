import json
from pathlib import Path
from typing import Any

import pytest

from gmi.personas.preferences import (
    format_text,
    normalize_verbosity,
    preferred_format,
    verbosity_text,
)

ROWS = json.loads((Path(__file__).parent / "data" / "preferences.json").read_text())


@pytest.mark.parametrize("row", ROWS["verbosity"], ids=lambda r: repr(r["value"]))
def test_many_words_mean_three_lengths(row: dict[str, Any]) -> None:
    assert normalize_verbosity(row["value"]) == row["normalized"]
    text = verbosity_text({"verbosity": row["value"]})
    assert (text is None) == (row["normalized"] is None)


@pytest.mark.parametrize("row", ROWS["format"], ids=lambda r: json.dumps(r["preferences"]))
def test_the_first_format_that_is_set_decides(row: dict[str, Any]) -> None:
    assert preferred_format(row["preferences"]) == row["format"]
    text = format_text(row["preferences"])
    assert (text is None) == (row["format"] is None)
    assert row["format"] is None or row["format"] in (text or "")


def test_what_is_no_word_means_nothing() -> None:
    assert normalize_verbosity(3) is None
    assert preferred_format({"format": 3, "preferredFormats": "md"}) is None
