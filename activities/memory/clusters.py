"""Groups of similar memories: what a scope's memories are often about.

Each is known by its centre, which new memories are compared with when they are encoded. A memory
belongs to one group at most, and says so itself; so a group can grow without its members being
looked at again.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .vectors import usual_size

Numbers = NDArray[np.float32]

NAME = "schema"
MIN_MEMBERS = 5
MAX_BYTES = 256_000
"""Of all centres of a scope together: every encoding reads them."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A group of similar memories.

    Attributes:
        id: Of the group; it stays while the group grows.
        centroid: The mean of the members' vectors, of length 1.
        members: How many have joined it.
        worded: How many there were when a model last put it into words; 0 for never.
    """

    id: str
    centroid: Numbers
    members: int
    worded: int = 0


@dataclass(frozen=True, slots=True)
class Grouping:
    """Memories put into groups.

    Attributes:
        clusters: The groups as they are afterwards.
        joined: The group of each memory that joined one now.
    """

    clusters: list[Cluster]
    joined: dict[str, str]


def centroids(kept: Mapping[str, Any] | None, model: str) -> dict[str, Numbers]:
    """The centres that the last consolidation of a scope kept, by cluster.

    Args:
        kept: What :meth:`MemoryStore.consolidated` gave.
        model: The embedding model; centres of another one are left out.
    """
    return {cluster.id: cluster.centroid for cluster in restored(kept, model)}


def restored(kept: Mapping[str, Any] | None, model: str) -> list[Cluster]:
    """The clusters of one embedding model that the last consolidation of a scope kept."""
    if kept is None or kept.get("model") != model:
        return []
    return [
        Cluster(item["id"], _unpacked(item["centroid"]), item["members"], item["worded"])
        for item in kept.get("clusters", [])
    ]


def dumped(clusters: Sequence[Cluster]) -> list[dict[str, Any]]:
    """Clusters as JSON, the largest ones, so that their centres fit :data:`MAX_BYTES`."""
    found: list[dict[str, Any]] = []
    left = MAX_BYTES
    for cluster in sorted(clusters, key=lambda c: (-c.members, c.id)):
        packed = _packed(cluster.centroid)
        left -= len(packed)
        if left < 0:
            break
        found.append(
            {
                "id": cluster.id,
                "centroid": packed,
                "members": cluster.members,
                "worded": cluster.worded,
            }
        )
    return found


def grouped(
    vectors: Mapping[str, Numbers],
    known: Sequence[Cluster],
    threshold: float,
    size: int | None = None,
) -> Grouping:
    """Put memories into the known groups, and what is left into new ones.

    A memory joins the known group whose centre is nearest, if it is near enough. Of the rest, the
    memory with the most others near it makes a group with them, as long as there are
    :data:`MIN_MEMBERS`; then the next one.

    Args:
        vectors: Of memories that belong to no group yet, each of length 1.
        known: Groups of the same embedding model.
        threshold: Least cosine of what counts as near.
        size: Numbers in a vector; what has another size is left out. The size of the known
            groups without it, or of most vectors.
    """
    if size is None:
        size = usual_size(cluster.centroid for cluster in known) or usual_size(vectors.values())
    known = [cluster for cluster in known if len(cluster.centroid) == size]
    ids = sorted(id_ for id_, vector in vectors.items() if len(vector) == size)
    if not ids:
        return Grouping(list(known), {})
    matrix = np.stack([vectors[id_] for id_ in ids])
    clusters, joined = _join(ids, matrix, known, threshold)
    rest = [row for row, id_ in enumerate(ids) if id_ not in joined]
    for members in _stars(matrix[rest], threshold):
        inside = [rest[place] for place in members]
        names = [ids[row] for row in inside]
        cluster = Cluster(
            id=str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(["cluster", *names]))),
            centroid=_unit(matrix[inside].sum(axis=0)),
            members=len(inside),
        )
        clusters.append(cluster)
        joined |= dict.fromkeys(names, cluster.id)
    return Grouping(clusters, joined)


def _join(
    ids: Sequence[str], matrix: Numbers, known: list[Cluster], threshold: float
) -> tuple[list[Cluster], dict[str, str]]:
    if not known:
        return known, {}
    near = matrix @ np.stack([cluster.centroid for cluster in known]).T
    best = near.argmax(axis=1)
    joined: dict[str, str] = {}
    for place, cluster in enumerate(known):
        rows = np.flatnonzero((best == place) & (near[:, place] >= threshold))
        if not len(rows):
            continue
        joined |= {ids[int(row)]: cluster.id for row in rows}
        total = cluster.centroid * np.float32(cluster.members) + matrix[rows].sum(axis=0)
        known[place] = replace(cluster, centroid=_unit(total), members=cluster.members + len(rows))
    return known, joined


def _stars(matrix: Numbers, threshold: float) -> list[list[int]]:
    """Rows of each new group, in ascending order."""
    near = matrix @ matrix.T >= threshold
    free = np.ones(len(matrix), np.bool_)
    found: list[list[int]] = []
    while free.any():
        around = near[:, free].sum(axis=1) * free
        middle = int(around.argmax())
        if around[middle] < MIN_MEMBERS:
            break
        members = np.flatnonzero(near[middle] & free)
        free[members] = False
        found.append([int(row) for row in members])
    return found


def _unit(vector: Numbers) -> Numbers:
    length = float(np.linalg.norm(vector))
    unit: Numbers = (vector / np.float32(length or 1.0)).astype(np.float32)
    return unit


def _packed(vector: Numbers) -> str:
    return base64.b64encode(vector.astype("<f2").tobytes()).decode()


def _unpacked(text: str) -> Numbers:
    return _unit(np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float32))
