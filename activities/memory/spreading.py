"""How a recalled memory wakes those linked with it, and how links grow.

Activation spreads along links and weakens at each (after Collins & Loftus 1975 and Anderson
1983); what is recalled together is linked more strongly (Hebb 1949). The gains are conventions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...personas.memory import SpreadingSettings
from .ranges import within

Neighbours = Callable[[str], Iterable[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class Activated:
    """A memory that was woken.

    Attributes:
        id: Which.
        activation: In (0, 1].
        depth: Links from the nearest seed.
        activated_by: The seeds that it was woken by, in the order in which they did.
    """

    id: str
    activation: float
    depth: int
    activated_by: tuple[str, ...]


def spread(
    neighbours: Neighbours, seeds: Sequence[str], settings: SpreadingSettings
) -> list[Activated]:
    """The memories that the seeds wake, the most active first; the seeds are not among them.

    Each seed starts with an activation of 1. A memory passes on its activation once, when its
    turn comes: to each neighbour its activation times the link's weight times the decay.
    Contributions under the threshold are dropped; several add up, to 1 at most.

    Args:
        neighbours: The linked memories of one, each with the link's weight.
        seeds: Ids of the memories to start from.
        settings: How far and how strongly it spreads.

    Raises:
        ValidationError: A weight is no finite number.
    """
    woken = _spread(neighbours, seeds, settings)
    return woken[: settings.max_results]


def activations(
    neighbours: Neighbours, seeds: Sequence[str], settings: SpreadingSettings
) -> dict[str, float]:
    """The activation of every memory that is woken, the seeds among them.

    A seed counts as woken by the other seeds alone, so that it can rise above another seed as
    well as be overtaken by a memory that was no seed. The number of results has no limit but the
    settings' for those that are no seeds.

    Raises:
        ValidationError: A weight is no finite number.
    """
    # Each memory's links are read once, however many seeds there are.
    read: dict[str, tuple[tuple[str, float], ...]] = {}

    def remembered(node: str) -> tuple[tuple[str, float], ...]:
        if node not in read:
            read[node] = tuple(neighbours(node))
        return read[node]

    found = {woken.id: woken.activation for woken in spread(remembered, seeds, settings)}
    starts = list(dict.fromkeys(seeds))
    for seed in starts:
        others = [other for other in starts if other != seed]
        for woken in _spread(remembered, others, settings):
            if woken.id == seed:
                found[seed] = woken.activation
    return found


def _spread(
    neighbours: Neighbours, seeds: Sequence[str], settings: SpreadingSettings
) -> list[Activated]:
    activation: dict[str, float] = {}
    depth: dict[str, int] = {}
    origins: dict[str, dict[str, None]] = {}
    for seed in seeds:
        activation[seed] = 1.0
        depth[seed] = 0
        origins[seed] = {seed: None}
    starts = frozenset(activation)
    waiting = deque(activation)
    while waiting:
        node = waiting.popleft()
        if depth[node] >= settings.max_depth:
            continue
        for neighbour, weight in neighbours(node):
            weight = within("weight", weight, 0.0, float("1e9"))
            passed = activation[node] * weight * settings.decay_per_hop
            if passed < settings.activation_threshold or passed == 0:
                continue
            if neighbour not in depth:
                depth[neighbour] = depth[node] + 1
                activation[neighbour] = 0.0
                origins[neighbour] = {}
                waiting.append(neighbour)
            activation[neighbour] = min(1.0, activation[neighbour] + passed)
            origins[neighbour].update(origins[node])
    woken = [
        Activated(node, activation[node], depth[node], tuple(origins[node]))
        for node in depth
        if node not in starts
    ]
    return sorted(woken, key=lambda found: -found.activation)
