"""After a turn: the metaprompts that are due run beside whatever comes next, one at a time.

What one wants to change is applied between turns. One that waits or runs is part of the session's
state, so that the next run or worker carries it on; none can hold up a turn.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from ..personas.metaprompts.reflection import SELF_REFLECTION
from ..personas.metaprompts.triggers import DueKind
from .core import Core
from .failures import info_from_activity, let_go
from .mind_calls import Reflected
from .minding import Minding
from .model_calls import CALL_DEADLINE, CallResult, ModelCall
from .policies import model_call_options
from .ports import ModelPort
from .state import PendingMetaprompt, PendingPatch, TurnRecord
from .steps import Segment

MAX_PENDING = 8
"""Metaprompts that wait; beyond it the newest are dropped, with a warning."""

MAX_PATCHES = 4
"""Changes that wait for the running turn's end; no metaprompt is asked while so many do."""

WAITING_SECONDS = 10
"""Once another turn came, a metaprompt gets no longer than this."""


class Reflecting:
    """Runs a session's metaprompts.

    Args:
        core: The session.
        minding: Its mind.
    """

    def __init__(self, core: Core, minding: Minding) -> None:
        self._core = core
        self._minding = minding
        self._work: asyncio.Task[None] | None = None
        self._paused = False

    @property
    def waiting(self) -> bool:
        """Whether a metaprompt waits, runs, or has not been applied."""
        state = self._core.state
        return bool(state.metaprompts or state.patches)

    def after(self, record: TurnRecord) -> None:
        """A turn is done: see which metaprompts are due."""
        for found in self._minding.fired(record).due:
            self._queue(found.id, found.kind, record.turn, record)
        self.start()

    def reflect(self) -> Reflected:
        """Run the persona's self-reflection now."""
        core, state = self._core, self._core.state
        skipped = None
        if not state.rules.mind.reflects:
            skipped = f"the persona has no metaprompt {SELF_REFLECTION}"
        elif any(item.id == SELF_REFLECTION for item in state.metaprompts):
            skipped = "a self-reflection runs already"
        elif state.head is None:
            skipped = "there is nothing to reflect on before the first turn is done"
        if skipped is not None:
            core.trace.add("SELF_REFLECTION_SKIPPED", f"No self-reflection: {skipped}.")
            return Reflected(started=False, skipped=skipped)
        assert state.head is not None
        self._queue(SELF_REFLECTION, "manual", state.head, None)
        self.start()
        return Reflected(started=True)

    def start(self) -> None:
        """Go on with what waits."""
        if self._core.rolling:
            return
        self._paused = False
        if self._core.state.metaprompts and (self._work is None or self._work.done()):
            self._work = asyncio.create_task(self._run_all())

    async def pause(self) -> None:
        """Stop before the run continues as new, or ends; what is left is in the state."""
        self._paused = True
        if self._work is not None and not self._work.done():
            self._work.cancel()
            await workflow.wait_condition(self._work.done)

    def apply(self) -> None:
        """Between two turns: apply what came meanwhile."""
        state = self._core.state
        for item in state.patches:
            self._minding.apply(item.patch, item.turn, item.cause)
        if state.patches and state.head is not None:
            # The newest done turn is the one that everything after it goes on from.
            self._minding.keep(state.head)
        state.patches = []

    def _queue(self, id: str, kind: DueKind, turn: str, record: TurnRecord | None) -> None:
        core, state = self._core, self._core.state
        if len(state.metaprompts) >= MAX_PENDING:
            core.trace.add("WARNING", f"{MAX_PENDING} metaprompts wait; {id} was not run.", turn)
            return
        core.trace.add(
            "SELF_REFLECTION_TRIGGERED", f"{id} is due.", turn, {"metaprompt": id, "by": kind}
        )
        state.metaprompts.append(
            PendingMetaprompt(
                id=id,
                kind=kind,
                turn=turn,
                branch=state.branch if record is None else record.branch,
                depth=state.depth if record is None else record.depth,
                seq=state.seq if record is None else record.seq,
                persona_digest=state.persona_digest,
                view=self._minding.view(),
                since=workflow.now(),
            )
        )

    async def _run_all(self) -> None:
        state = self._core.state
        try:
            while state.metaprompts and not self._paused:
                item = state.metaprompts[0]
                # The conversation is read from the store: the turn has to stand there.
                await self._core.settled()
                await workflow.wait_condition(lambda: len(state.patches) < MAX_PATCHES)
                if not any(other is item for other in state.metaprompts):
                    # Its turn was forgotten meanwhile.
                    continue
                if self._stale(item):
                    self._core.trace.add(
                        "SELF_REFLECTION_SKIPPED",
                        f"{item.id} was not run: a newer message came first.",
                        item.turn,
                    )
                else:
                    await self._run(item)
                state.metaprompts = [other for other in state.metaprompts if other is not item]
        except asyncio.CancelledError:
            return

    def _stale(self, item: PendingMetaprompt) -> bool:
        """An answer to an event is worth nothing once the user has said more."""
        if item.kind != "event":
            return False
        return any(
            card.seq > item.seq and card.kind == "text" and card.status in ("running", "done")
            for card in self._core.state.cards
        )

    async def _run(self, item: PendingMetaprompt) -> None:
        core, state = self._core, self._core.state
        left = CALL_DEADLINE - (workflow.now() - item.since).total_seconds()
        if left <= 0:
            self._failed(item, "METAPROMPT_DEADLINE", "its time was over before it could run")
            return
        core.trace.add("SELF_REFLECTION_START", f"{item.id} runs.", item.turn)
        handle = workflow.start_activity_method(
            ModelPort.call,
            ModelCall(
                at=core.at(item.turn, counter=state.counter),
                purpose="reflect" if item.kind == "manual" else "metaprompt",
                # Not the write counter: the store does not have it until something else is
                # written, and whoever reads after it would wait for that.
                number=state.trace_seq,
                id=item.id,
                persona_digest=item.persona_digest,
                path=[Segment(branch=item.branch, depth=item.depth)],
                view=item.view,
                model=state.config.model,
                fallback=state.config.fallback,
                credentials=state.config.credentials,
                user_id=core.start.user_id,
                deadline=left,
            ),
            summary=f"metaprompt {item.id}",
            cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
            **model_call_options(left),
        )
        try:
            await workflow.wait_condition(lambda: handle.done() or self._turn_waits(item))
            if not handle.done():
                await workflow.wait_condition(
                    handle.done, timeout=timedelta(seconds=WAITING_SECONDS)
                )
        except (TimeoutError, asyncio.CancelledError) as error:
            # The run rests, or nobody waits any longer: the model is not asked in vain.
            let_go(handle)
            if isinstance(error, asyncio.CancelledError):
                raise
            self._failed(item, "METAPROMPT_LATE", "a turn came, and it took too long")
            return
        try:
            result = await handle
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            info = info_from_activity(error)
            self._failed(item, info.code, info.message)
            return
        self._took(item, result)

    def _turn_waits(self, item: PendingMetaprompt) -> bool:
        state = self._core.state
        return bool(state.queue) or (state.active is not None and state.active.seq > item.seq)

    def _took(self, item: PendingMetaprompt, result: CallResult) -> None:
        core, state = self._core, self._core.state
        for model, usage in result.by_model.items():
            state.bill(usage, model)
        if not result.by_model:
            state.bill(result.usage, None)
        if not any(other is item for other in state.metaprompts):
            core.trace.add(
                "SELF_REFLECTION_SKIPPED",
                f"{item.id} changed nothing: its turn was forgotten meanwhile.",
                item.turn,
            )
            return
        if result.patch is None:
            why = result.refused or "it came to nothing"
            self._failed(item, result.code or "METAPROMPT_FAILED", why, result.reasons)
            return
        core.trace.add(
            "SELF_REFLECTION_COMPLETE",
            f"{item.id} answered.",
            item.turn,
            {
                "metaprompt": item.id,
                "model": f"{result.provider}:{result.model}",
                "attempts": result.attempts,
                "patch": result.patch.model_dump(mode="json", exclude_defaults=True),
            },
        )
        patch = PendingPatch(turn=item.turn, cause=item.id, patch=result.patch)
        state.patches.append(patch)
        if state.active is None:
            self.apply()

    def _failed(
        self, item: PendingMetaprompt, code: str, why: str, reasons: list[str] | None = None
    ) -> None:
        # No error of the turn's: what counts errors must not be set off by what it set off.
        self._core.trace.add(
            "WARNING",
            f"The metaprompt {item.id} changed nothing: {why}",
            item.turn,
            {"metaprompt": item.id, "code": code, "reasons": reasons or []},
        )
