"""Consolidation: tidying the memories of a persona, scope by scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ...personas.memory import MemorySettings
from ...workflows.memory import MaintenanceReport
from ..embedders.embedder import Embedder
from .mechanisms.persona_drift import proposals
from .ranges import trait
from .reembedding import Reembedder
from .scope_tidying import Caretaker, ScopeTidying, is_quiet
from .store import Find, MemoryStore
from .traces import Scope
from .view import scope_name
from .wording import Wording

Said = Callable[[int], None]


class Maintainer:
    """Tidies one persona's memories.

    Args:
        store: The memories.
        persona_id: Whose memories.
        settings: The persona's, its mechanisms scaled by its traits.
        traits: HEXACO values in [0, 1].
        embedder: The persona's embedding model; without one nothing is grouped or embedded.
        wording: Asks the model that the settings name; without it no text is made up.
    """

    def __init__(
        self,
        store: MemoryStore,
        persona_id: str,
        settings: MemorySettings,
        traits: Mapping[str, float],
        embedder: Embedder | None = None,
        wording: Wording | None = None,
    ) -> None:
        honesty = trait(traits, "honesty")
        self._by = Caretaker(store, persona_id, settings, honesty, embedder, wording)

    async def scopes(self) -> list[Scope]:
        """The scopes in which the persona has memories, in order."""
        return await self._by.store.scopes_of(self._by.persona_id)

    async def tidy(
        self, scope: Scope, now: float, run: str, said: Said = lambda embedded: None
    ) -> MaintenanceReport:
        """Tidy the persona's memories in a scope, once a run.

        A scope in which nothing was written since the last time and nothing is due is passed
        over: a persona has one for each of its sessions. The vectors are those of all personas'
        memories there, since all of them are searched.

        Args:
            scope: The scope.
            now: Seconds since the epoch.
            run: Names the run: a scope that it tidied is not tidied again, and the report is that
                of the first time.
            said: Told how many memories have got a vector, as they get them.

        Raises:
            StoreError: The store does not answer.
        """
        before = await self._embed(scope, now, said)
        kept = await self._kept(scope)
        if kept.get("run") != run:
            version = (await self._by.store.versions([scope]))[scope]
            if is_quiet(kept, self._by, now, version):
                clusters = len(kept.get("clusters", []))
                return before.model_copy(update={"scopes": 1, "clusters": clusters})
            await ScopeTidying(self._by, scope, now, run, kept).run()
            kept = await self._kept(scope)
        report = MaintenanceReport.model_validate(kept.get("report", {}))
        # What was shrunk or put into words needs a vector of its new text.
        after = await self._embed(scope, now, lambda done: said(before.embedded + done))
        return report.model_copy(
            update={
                "scopes": 1,
                "embedded": before.embedded + after.embedded,
                "waiting_for_vectors": after.waiting_for_vectors,
                "warnings": [*report.warnings, *after.warnings],
            }
        )

    async def suggest(self) -> list[dict[str, Any]]:
        """Changes of traits that the persona's newest memories suggest; nothing applies them."""
        mechanisms = self._by.settings.mechanisms
        if mechanisms is None or not mechanisms.persona_drift.enabled:
            return []
        most = self._by.settings.consolidation.max_traces
        traces = await self._by.store.find(Find(persona_id=self._by.persona_id, limit=most))
        return [asdict(found) for found in proposals(traces, mechanisms.persona_drift)]

    async def _kept(self, scope: Scope) -> dict[str, Any]:
        return await self._by.store.consolidated(self._by.persona_id, scope) or {}

    async def _embed(self, scope: Scope, now: float, said: Said) -> MaintenanceReport:
        embedder = self._by.embedder
        if embedder is None:
            return MaintenanceReport()
        found = await Reembedder(self._by.store, embedder).embed(scope, now, said)
        warnings = []
        if found.problem:
            warnings.append(
                f"EMBEDDED_LATER: {embedder.model} left {found.waiting} memories of "
                f"{scope_name(scope)} without a vector: {found.problem}"
            )
        return MaintenanceReport(
            embedded=found.done, waiting_for_vectors=found.waiting, warnings=warnings
        )
