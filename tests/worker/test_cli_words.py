"""What the command line prints of other people's words, and what numbers it takes."""

from __future__ import annotations

import argparse
import json

import pytest

from gmi.worker.cli.arguments import at_least
from gmi.worker.cli.output import Output, one_line, printable

OBEYED = "\x1b\x9b\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ud800"


@pytest.mark.parametrize("sign", OBEYED)
def test_a_sign_that_a_terminal_obeys_is_left_out(
    sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printable(f"a{sign}b\tc\nd") == "ab\tc\nd"
    assert one_line(f"a{sign}b\tc\nd") == "ab c d"
    Output(as_json=False).table(["what"], [[f"a{sign}b"]])
    assert capsys.readouterr().out == "what\nab\n"


@pytest.mark.parametrize("sign", OBEYED)
def test_json_holds_it_as_an_escape_and_stays_the_same_value(
    sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {f"k{sign}": [f"a{sign}b", "grün 👩\u200d👧"]}
    Output(as_json=True).json(value)
    out = capsys.readouterr().out
    assert sign not in out
    assert "grün 👩\u200d👧" in out
    assert json.loads(out) == value


def test_a_number_below_its_least_or_none_at_all_is_refused() -> None:
    assert [at_least(0)(text) for text in ("0", "7", " +3 ")] == [0, 7, 3]
    for text in ("0", "-1", "many", "", "1.5", "--2", "+-3"):
        with pytest.raises(argparse.ArgumentTypeError):
            at_least(1)(text)
