from __future__ import annotations

import math
from typing import Any

import pytest

from gmi.activities.memory.spreading import Neighbours, activations, spread
from gmi.personas.errors import ValidationError
from gmi.personas.memory import SpreadingSettings

from .rows import rows, table

GRAPHS = table("spreading")["graphs"]
SETTINGS = SpreadingSettings()


def links(graph: dict[str, list[Any]]) -> Neighbours:
    return lambda node: [(other, weight) for other, weight in graph.get(node, [])]


@pytest.mark.parametrize("row", rows("spreading", "spread"))
def test_activation_spreads_along_links(row: dict[str, Any]) -> None:
    settings = SpreadingSettings(**row["settings"])
    found = spread(links(GRAPHS[row["graph"]]), row["seeds"], settings)
    assert [woken.id for woken in found] == [line[0] for line in row["woken"]]
    for woken, line in zip(found, row["woken"], strict=True):
        assert woken.activation == pytest.approx(line[1])
        assert woken.depth == line[2]
        assert list(woken.activated_by) == line[3]


def test_a_seed_is_woken_by_the_other_seeds_only() -> None:
    graph = {"a": [("b", 1.0)], "b": [("a", 1.0)], "c": []}
    found = activations(links(graph), ["a", "b", "c"], SETTINGS)
    assert found == {"a": 0.5, "b": 0.5}
    assert activations(links(graph), ["a"], SETTINGS)["b"] == 0.5
    assert "a" not in activations(links(graph), ["a"], SETTINGS)


def test_each_memorys_links_are_read_once_for_all_seeds() -> None:
    graph = {"a": [("b", 1.0), ("m", 1.0)], "b": [("m", 1.0)], "m": [("a", 1.0)]}
    asked: list[str] = []

    def neighbours(node: str) -> list[tuple[str, float]]:
        asked.append(node)
        return graph.get(node, [])

    activations(neighbours, ["a", "b"], SETTINGS)
    assert sorted(asked) == sorted(set(asked))


def test_a_contribution_at_the_threshold_counts_and_one_below_does_not() -> None:
    graph = {"a": [("at", 0.2), ("below", 0.1999)]}
    assert [woken.id for woken in spread(links(graph), ["a"], SETTINGS)] == ["at"]


def test_a_cycle_ends() -> None:
    graph = {str(n): [(str((n + 1) % 5), 1.0), (str(n), 1.0)] for n in range(5)}
    settings = SpreadingSettings(max_depth=10, decay_per_hop=1.0)
    found = spread(links(graph), ["0"], settings)
    assert {woken.id for woken in found} == {"1", "2", "3", "4"}
    assert all(woken.activation <= 1.0 for woken in found)


def test_a_weight_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValidationError, match="weight"):
        spread(links({"a": [("b", math.nan)]}), ["a"], SETTINGS)
