from __future__ import annotations

import pytest

from gmi.activities.tools.docstrings import parse_docstring


def test_entries_go_on_over_indented_lines_and_lose_their_types() -> None:
    found = parse_docstring(
        "Do it.\n\nArgs:\n    a (list[int], optional): First\n        and more: of it.\n"
        "\n    *names: Others.\n    b: Last.\n\nRaises:\n    c: not a parameter.\n"
    )
    assert found.description == "Do it."
    assert found.parameters == {"a": "First and more: of it.", "names": "Others.", "b": "Last."}


@pytest.mark.parametrize("text", ["", "Args:", "Args:\n\n"])
def test_a_docstring_may_say_nothing(text: str) -> None:
    found = parse_docstring(text)
    assert found.description == ""
    assert found.parameters == {}


def test_a_sentence_that_ends_with_a_colon_is_no_section() -> None:
    found = parse_docstring("Choose one of these:\n    red: stop\n    green: go")
    assert found.description == "Choose one of these:\n    red: stop\n    green: go"
    assert found.parameters == {}
