import json
from pathlib import Path
from typing import Any

import pytest

from gmi.personas import HEXACO, personality_pairs, personality_section

ROWS = json.loads((Path(__file__).parent / "data" / "personality.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: json.dumps(row["traits"]))
def test_traits_show_in_order_and_direction(row: dict[str, Any]) -> None:
    assert [list(pair) for pair in personality_pairs(row["traits"])] == row["pairs"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: json.dumps(row["traits"]))
def test_the_section_has_one_directive_for_each_trait_that_shows(row: dict[str, Any]) -> None:
    section = personality_section(row["traits"])
    if not row["pairs"]:
        assert section is None
    else:
        lines = (section or "").split("\n")
        assert lines[0] == "## Personality & Communication Style"
        assert len(lines) == 1 + len(row["pairs"])
        assert all(line.startswith("- ") for line in lines[1:])


def test_the_twelve_directives_differ() -> None:
    directives = [personality_section({trait: value}) for trait in HEXACO for value in (0.0, 1.0)]
    assert None not in directives
    assert len(set(directives)) == 12


def test_a_truth_value_is_no_trait() -> None:
    assert personality_pairs({"openness": True, "honesty": float("nan")}) == []
