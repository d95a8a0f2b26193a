"""Details of a trace entry are cut to size, whatever they hold."""

from __future__ import annotations

from gmi.workflows.trace_log import bounded


def test_long_texts_and_lists_are_cut() -> None:
    found = bounded({"text": "x" * 1000, "list": list(range(100)), "deep": [{"t": "y" * 500}]})
    assert found["text"] == "x" * 399 + "…"
    assert found["list"] == list(range(40))
    assert found["deep"] == [{"t": "y" * 399 + "…"}]


def test_what_is_small_stays_as_it_is() -> None:
    given = {"a": 1, "b": None, "c": [True, 0.5], "d": "x" * 400}
    assert bounded(given) == given


def test_names_become_texts_and_are_limited() -> None:
    found = bounded({n: n for n in range(100)})
    assert list(found) == [str(n) for n in range(40)]
