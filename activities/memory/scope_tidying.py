"""One consolidation of one scope.

What is worked out slowly (groups, a model's words, contradictions) is worked out ahead; then one
transaction changes the memories as they stand, and records that the run has tidied the scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...personas.errors import GMIError
from ...personas.memory import MemorySettings
from ...personas.messages import Usage
from ..embedders.embedder import Embedder
from . import clusters
from .cache import array_of
from .clusters import Grouping
from .contradictions import Contradiction, contradictions
from .likeness import cosine_at
from .links import between, new_links
from .mechanisms.temporal_gist import due
from .schemas import (
    ROLE,
    cluster_of,
    member_links,
    members_of,
    schema_id,
    schema_trace,
    wanting_words,
)
from .store import Find, Link, MemoryStore, Tidied, Writing
from .tidying import PRUNED, Gist, Plan, Tidying, digest, shrinkable
from .traces import DAY, HOUR, Scope, Trace
from .wording import MAX_MEMBERS, Wording

MAX_SCHEMAS = 5
"""Groups that one run puts into words."""

MAX_SCOPE_SCHEMAS = 1000
CONTRADICTION_WEIGHT = 0.5

QUIET_HOURS = 24
"""For so long a scope may be passed over in which nothing is written and nothing is due."""


@dataclass(frozen=True, slots=True)
class Caretaker:
    """Who tidies: what is the same for all scopes of a persona.

    Attributes:
        settings: The persona's, its mechanisms scaled by its traits.
        honesty: The persona's trait, in [0, 1].
        embedder: The persona's embedding model; without one nothing is grouped.
        wording: Asks the model that the settings name; without it no text is made up.
    """

    store: MemoryStore
    persona_id: str
    settings: MemorySettings
    honesty: float
    embedder: Embedder | None = None
    wording: Wording | None = None

    @property
    def digest(self) -> str:
        """Of everything that decides what a consolidation does."""
        model = self.embedder.model if self.embedder is not None else None
        parts = [self.settings.model_dump_json(), repr(self.honesty), repr(model)]
        return digest("\n".join([*parts, repr(self.wording is not None)]))


@dataclass(frozen=True, slots=True)
class _Words:
    """A schema that a model put into words."""

    cluster: str
    members: Sequence[Trace]
    text: str


class ScopeTidying:
    """Tidies the memories that a persona has in a scope.

    Args:
        by: Who tidies.
        scope: The scope.
        now: Seconds since the epoch.
        run: Names the run.
        kept: What the last consolidation of the scope left.
    """

    def __init__(
        self, by: Caretaker, scope: Scope, now: float, run: str, kept: Mapping[str, Any]
    ) -> None:
        self._by = by
        self._scope = scope
        self._now = now
        self._run = run
        self._kept = kept
        self._version = 0
        self._traces: list[Trace] = []
        self._cursor: list[Any] | None = None
        self._schemas: dict[str, Trace] = {}
        self._grouping: Grouping | None = None
        self._gists: dict[str, Gist] | None = None
        self._words: dict[str, _Words] = {}
        self._written: set[str] = set()
        self._lost: set[str] = set()
        self._contradictions: list[Contradiction] = []
        self._links: list[Link] = []
        self._quiet_for = 0.0
        self._usage = Usage()
        self._warnings: list[str] = []

    async def run(self) -> None:
        """Tidy; nothing is written when this run has tidied the scope before.

        Raises:
            StoreError: The store does not answer.
        """
        await self._look()
        await self._group()
        await self._shorten()
        await self._put_into_words()
        standing = await self._by.store.links([trace.id for trace in self._traces])
        await asyncio.to_thread(self._compare, standing)
        await self._write()

    async def _look(self) -> None:
        """The newest half of what a run looks at, and as many older ones where the last ended."""
        most = self._by.settings.consolidation.max_traces
        # First, so that what is written meanwhile counts as a change.
        self._version = (await self._by.store.versions([self._scope]))[self._scope]
        found = await self._find(most + 1)
        if len(found) > most:
            found = found[: most // 2]
            start = (found[-1].created_at, found[-1].id)
            cursor = self._kept.get("cursor")
            if cursor is not None:
                start = min(start, (float(cursor[0]), str(cursor[1])))
            wanted = most - len(found)
            older = await self._find(wanted, start)
            if len(older) == wanted:
                self._cursor = [older[-1].created_at, older[-1].id]
            found += older
        self._traces = found
        schemas = await self._by.store.find(
            Find(scopes=[self._scope], roles=[ROLE], faded=True, limit=MAX_SCOPE_SCHEMAS)
        )
        self._schemas = {schema.id: schema for schema in schemas}

    async def _find(self, limit: int, before: tuple[float, str] | None = None) -> list[Trace]:
        wanted = Find(
            scopes=[self._scope],
            persona_id=self._by.persona_id,
            before=before,
            faded=True,
            limit=limit,
        )
        return await self._by.store.find(wanted)

    async def _group(self) -> None:
        mechanisms, embedder = self._by.settings.mechanisms, self._by.embedder
        if embedder is None or mechanisms is None or not mechanisms.schema_encoding.enabled:
            return
        size = embedder.dimension
        known = [
            cluster
            for cluster in clusters.restored(self._kept, embedder.model)
            if size in (None, len(cluster.centroid))
        ]
        names = {cluster.id for cluster in known}
        open_ = [
            trace.id
            for trace in self._traces
            if trace.active and trace.role != ROLE and cluster_of(trace, {}) not in names
        ]
        kept = await self._by.store.vectors(open_, embedder.model)
        vectors = {id_: array_of(vector) for id_, vector in kept.items()}
        threshold = cosine_at(
            mechanisms.schema_encoding.cluster_similarity_threshold, embedder.model
        )
        self._grouping = await asyncio.to_thread(clusters.grouped, vectors, known, threshold, size)

    async def _shorten(self) -> None:
        """Ask a model for the gists that are due."""
        mechanisms, wording = self._by.settings.mechanisms, self._by.wording
        if mechanisms is None or wording is None:
            return
        self._gists = {}
        for trace in self._due(self._now):
            try:
                asked = await wording.gist(trace)
            except GMIError as error:
                self._warnings.append(f"GIST_LATER: no gist was written: {error.message}")
                return
            self._usage = self._usage + asked.usage
            self._gists[trace.id] = Gist(digest(trace.content), asked.text)

    async def _put_into_words(self) -> None:
        """Ask a model what the members of new and grown clusters have in common."""
        wording, grouping = self._by.wording, self._grouping
        if wording is None or grouping is None:
            return
        for cluster in wanting_words(grouping.clusters):
            if len(self._words) == MAX_SCHEMAS:
                return
            members = members_of(cluster.id, self._traces, grouping.joined, MAX_MEMBERS)
            if not members:
                continue
            try:
                asked = await wording.schema(members)
            except GMIError as error:
                self._warnings.append(f"SCHEMA_LATER: no schema was written: {error.message}")
                return
            self._usage = self._usage + asked.usage
            if asked.text:
                name = schema_id(self._by.persona_id, self._scope, cluster.id)
                self._words[name] = _Words(cluster.id, members, asked.text)

    def _compare(self, standing: Sequence[Link]) -> None:
        known = {(link.a, link.b) for link in standing if link.kind == "contradicts"}
        links = new_links(self._traces, self._now, standing)
        for pair in contradictions(self._traces, self._by.honesty):
            link = between(pair.older, pair.newer, "contradicts", CONTRADICTION_WEIGHT)
            if (link.a, link.b) not in known:
                self._contradictions.append(pair)
                links.append(link)
        self._links = links
        self._quiet_for = self._peaceful()

    def _peaceful(self) -> float:
        """Seconds in which nothing is due unless something is written; 0 where there is work."""
        joined = self._grouping.joined if self._grouping is not None else {}
        unfinished = self._cursor or self._warnings or self._words
        if unfinished or joined or self._links or self._contradictions:
            return 0.0
        quiet = 0.0
        # Hour by hour: a rehearsal may be due at one and too late at the next.
        for hours in range(QUIET_HOURS + 1):
            later = self._now + hours * HOUR
            changed = Tidying(Plan(later, self._by.settings, self._gists))(
                {trace.id: trace for trace in self._traces}
            )
            if changed or self._due(later) or self._removable(later):
                break
            quiet = hours * HOUR
        return quiet

    def _due(self, now: float) -> list[Trace]:
        mechanisms = self._by.settings.mechanisms
        if mechanisms is None:
            return []
        return due(shrinkable(self._traces), now, mechanisms.temporal_gist)

    def _removable(self, now: float) -> list[str]:
        return removable(self._traces, self._schemas.values(), now, self._by.settings)

    async def _write(self) -> None:
        joined = self._grouping.joined if self._grouping is not None else {}
        tidying = Tidying(
            Plan(self._now, self._by.settings, self._gists, joined, self._contradictions)
        )
        gone = self._removable(self._now)

        seen = {trace.id: trace.content for trace in self._traces}

        def change(standing: Mapping[str, Trace]) -> list[Trace]:
            changed = {
                trace.id: replace(trace, consolidated_at=self._now) for trace in tidying(standing)
            }
            as_seen = {id_ for id_, trace in standing.items() if seen.get(id_) == trace.content}
            # A centre is made of its members: of one that was erased or got other words as well.
            self._lost = {cluster for id_, cluster in joined.items() if id_ not in as_seen}
            schemas = self._made_of({**standing, **changed}, as_seen)
            self._written = {schema.id for schema in schemas}
            return [*(t for t in changed.values() if t.id not in self._written), *schemas]

        def data(standing: Mapping[str, Any] | None) -> dict[str, Any]:
            model, kept = self._clusters(standing)
            report = tidying.report.model_copy(
                update={
                    "removed": len(gone),
                    "clusters": len(kept),
                    "schemas": len(self._written),
                    "contradictions": len(self._contradictions),
                    "links": len(self._links),
                    "usage": self._usage,
                    "warnings": self._warnings,
                }
            )
            return {
                "report": report.model_dump(mode="json"),
                "cursor": self._cursor,
                "version": self._version,
                "settings": self._by.digest,
                "quiet_until": self._now + self._quiet_for,
                "model": model,
                "clusters": kept,
            }

        touched = {trace.id for trace in self._traces} | self._words.keys()
        derived = [link for id_ in self._words for link in self._planned_links(id_)]
        await self._by.store.write(
            Writing(
                now=self._now,
                touched=sorted(touched - set(gone)),
                change=change,
                at_least=[*self._links, *derived],
                removed=gone,
                tidied=Tidied(self._by.persona_id, self._scope, self._run, data),
            )
        )

    def _made_of(self, standing: Mapping[str, Trace], as_seen: Collection[str]) -> list[Trace]:
        """The schemas whose members all stand as they were: what was erased is not told."""
        return [
            self._schema(words, standing.get(id_))
            for id_, words in self._words.items()
            if words.cluster not in self._lost
            and all(member.id in as_seen for member in words.members)
        ]

    def _schema(self, words: _Words, standing: Trace | None) -> Trace:
        return schema_trace(
            words.cluster,
            words.members,
            words.text,
            persona_id=self._by.persona_id,
            scope=self._scope,
            now=self._now,
            standing=standing,
        )

    def _planned_links(self, id_: str) -> list[Link]:
        return member_links(self._schema(self._words[id_], None))

    def _clusters(
        self, standing: Mapping[str, Any] | None
    ) -> tuple[str | None, list[dict[str, Any]]]:
        """The clusters as they are kept, and the embedding model that they are of.

        Args:
            standing: What is kept in the transaction: an erasure since this run began has dropped
                the clusters of what it erased.
        """
        before = {cluster["id"] for cluster in self._kept.get("clusters", [])}
        still = {cluster["id"] for cluster in (standing or {}).get("clusters", [])}
        gone = self._lost | (before - still)
        if self._grouping is None or self._by.embedder is None:
            kept = self._kept.get("clusters", [])
            return self._kept.get("model"), [c for c in kept if c["id"] not in gone]
        worded = {self._words[id_].cluster for id_ in self._written}
        found = [
            replace(cluster, worded=cluster.members) if cluster.id in worded else cluster
            for cluster in self._grouping.clusters
            if cluster.id not in gone
        ]
        return self._by.embedder.model, clusters.dumped(found)


def is_quiet(kept: Mapping[str, Any], by: Caretaker, now: float, version: int) -> bool:
    """Whether there is nothing to do in a scope.

    Args:
        kept: What the last consolidation of the scope left.
        by: Who tidies.
        now: Seconds since the epoch.
        version: The scope's version.
    """
    return (
        kept.get("version") == version
        and kept.get("settings") == by.digest
        and kept["at"] <= now < kept["quiet_until"]
    )


def removable(
    traces: Sequence[Trace], schemas: Collection[Trace], now: float, settings: MemorySettings
) -> list[str]:
    """Ids of the traces that were given up long ago.

    One that a schema was made of stays, unseen: whoever has it erased has the schema erased too.
    """
    before = now - settings.consolidation.removal_days * DAY
    needed = {id_ for s in schemas for id_ in s.mechanisms.get("derived_from", [])}
    return [
        trace.id
        for trace in traces
        if not trace.active
        and trace.id not in needed
        and float((trace.mechanisms.get(PRUNED) or {}).get("at", trace.updated_at)) <= before
    ]
