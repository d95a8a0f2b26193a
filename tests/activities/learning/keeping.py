"""Stores of changes for tests: one in memory, and those that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from gmi.activities.learning.store import Call, Decide, StepRecord
from gmi.personas.errors import StoreError
from gmi.personas.learning import LearnerKey
from gmi.personas.self_changes import ChangeKind, Holder, SelfChange


class MemoryLearning:
    """A :class:`LearningStore` in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, SelfChange] = {}
        self.steps: dict[tuple[str, int], StepRecord] = {}
        self.reads = 0

    async def changes(
        self, holder: Holder, kinds: Sequence[ChangeKind] | None = None
    ) -> list[SelfChange]:
        self.reads += 1
        return self._changes(holder, kinds)

    def _changes(self, holder: Holder, kinds: Sequence[ChangeKind] | None) -> list[SelfChange]:
        return [
            change
            for change in self.kept.values()
            if (kinds is None or change.kind in kinds)
            and (
                (change.learner is None and change.session == holder.session)
                or (change.learner is not None and change.learner == holder.learner)
            )
        ]

    async def made(self, key: str) -> SelfChange | None:
        return self.kept.get(key)

    async def make(
        self, call: Call, decide: Decide, kinds: Sequence[ChangeKind] | None = None
    ) -> SelfChange | None:
        if call.key in self.kept:
            return self.kept[call.key]
        draft = decide(self._changes(call.holder, kinds))
        if draft is None:
            return None
        self.kept[call.key] = SelfChange(
            id=f"id of {call.key}",
            kind=draft.kind,
            name=draft.name,
            data=draft.data,
            learner=call.holder.learner if draft.kept else None,
            session=call.holder.session,
            turn=call.turn,
            step=call.step,
            at=call.now,
            delta=draft.delta,
            rate=draft.rate,
        )
        return self.kept[call.key]

    async def undo(self, id_: str, now: float, key: LearnerKey | None = None) -> bool:
        return False

    async def forget(self, user_id: str, namespace: str | None = None) -> int:
        return 0

    async def begin_step(self, call: Call, step: int) -> StepRecord | None:
        known = self.steps.get((call.key, step))
        self.steps.setdefault((call.key, step), StepRecord(False))
        return known

    async def end_step(self, key: str, step: int, result: Any) -> None:
        self.steps[key, step] = StepRecord(True, result)


class SilentLearning(MemoryLearning):
    """Never answers."""

    async def changes(
        self, holder: Holder, kinds: Sequence[ChangeKind] | None = None
    ) -> list[SelfChange]:
        await asyncio.Event().wait()
        return []


class BrokenLearning(MemoryLearning):
    """Always fails."""

    async def changes(
        self, holder: Holder, kinds: Sequence[ChangeKind] | None = None
    ) -> list[SelfChange]:
        raise StoreError("the database is down")
