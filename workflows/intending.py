"""Remembering what was meant to be done: the session notes it, and says so when it is due."""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from ..personas.errors import GMIError
from ..personas.prospective import Intention
from . import intentions
from .core import Core
from .decode import short_digest
from .failures import info_from_activity
from .history import History
from .intention_calls import (
    CancelIntention,
    CancelledIntention,
    Intend,
    IntentionAck,
    IntentionList,
    Notice,
    NoticeAck,
)
from .policies import STORE
from .ports import StorePort
from .requests import OWN_REQUESTS, Requests
from .turns import SubmitTurn
from .writes import KeepIntentions, KeptIntentions

LONGEST_WAIT = timedelta(days=365)
"""One timer's; a time further ahead takes several, since servers cannot wait for centuries."""


class Intending:
    """Keeps a session's intentions, and starts turns for those that ask for one.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._requests = Requests(core)
        self._history = History(core)

    def intend(self, asked: Intend) -> IntentionAck:
        """Note something to remember later."""
        core = self._core
        core.check_open()
        ack = intentions.add(core.state, asked, str(workflow.uuid4()), workflow.now())
        if ack.added:
            core.trace.add(
                "STATE_CHANGE",
                "An intention was noted.",
                details={"intention": ack.id, "kind": asked.kind, "then": asked.then},
            )
            self.keep()
        return ack

    def cancel(self, asked: CancelIntention) -> CancelledIntention:
        """Drop an intention."""
        cancelled = intentions.cancel(self._core.state, asked.id)
        if cancelled:
            self._core.trace.add(
                "STATE_CHANGE", "An intention was cancelled.", details={"intention": asked.id}
            )
            self.keep()
        return CancelledIntention(cancelled=cancelled)

    async def notice(self, asked: Notice) -> NoticeAck:
        """An event happened."""
        core = self._core
        core.check_open()
        found = intentions.notice(core.state, asked.event)
        due = [item.id for item in found]
        core.trace.add("STATE_CHANGE", f"The event {asked.event!r} happened.", details={"due": due})
        for item in found:
            if item.then == "turn":
                await self._start(item)
        self.keep()
        return NoticeAck(due=due)

    def keep(self) -> None:
        """Have the store keep a copy, where there is something new to keep."""
        core, state = self._core, self._core.state
        if not (state.intentions_kept or state.intentions or state.intention_digests):
            return
        held = KeptIntentions(waiting=state.intentions, digests=state.intention_digests)
        # Without defaults, so that what a later release adds changes nothing.
        digest = short_digest(held.model_dump_json(exclude_defaults=True))
        # Sessions that run since before the store kept them go on without.
        if digest == state.intentions_kept or not workflow.patched("keep-intentions"):
            return
        state.intentions_kept = digest
        request = KeepIntentions(at=core.at(), held=held)

        async def write() -> None:
            try:
                await workflow.execute_activity_method(
                    StorePort.keep_intentions, request, summary="keep the intentions", **STORE
                )
            except ActivityError as error:
                info = info_from_activity(error)
                core.trace.add("WARNING", f"The intentions were not kept: {info.message}")

        core.run_after(write)

    def listed(self) -> IntentionList:
        """All that there are."""
        return IntentionList(intentions=self._core.state.intentions)

    @property
    def next_start(self) -> datetime | None:
        """When a turn has to be started next."""
        return intentions.next_start(self._core.state)

    def left(self) -> timedelta | None:
        """How long that is from now, within what one timer can wait."""
        at = self.next_start
        if at is None:
            return None
        return min(max(at - workflow.now(), timedelta(0)), LONGEST_WAIT)

    async def start_due(self) -> None:
        """Start the turns whose time has come."""
        for item in intentions.to_start(self._core.state, workflow.now()):
            await self._start(item)

    def drop(self) -> None:
        """The session closes: nothing is remembered any longer."""
        dropped = intentions.drop_all(self._core.state)
        if dropped:
            self._core.trace.add(
                "STATE_CHANGE",
                f"{len(dropped)} intentions were dropped.",
                details={"intentions": dropped},
            )

    async def _start(self, item: Intention) -> None:
        core = self._core
        if not intentions.stands(core.state, item):
            # It was cancelled, or got its turn, while another's input was put into the store.
            return
        # Made of the intention and of how often it came, so that it is one turn however often
        # this is decided; and of when it was noted, since its id may have been used before.
        noted = item.created_at.isoformat()
        submit = SubmitTurn(
            content=said(item),
            request_id=f"{OWN_REQUESTS}intention {item.id} {noted} {item.fired}",
            user_id=core.start.user_id,
            kind="system",
        )
        try:
            record, turn, _ = self._requests.accept(submit)
        except GMIError as error:
            # Nothing that stands in its way may hold the session up.
            intentions.passed(core.state, item, workflow.now())
            core.trace.add(
                "WARNING",
                f"The intention could not start its turn: {error.message}",
                details={"intention": item.id, "code": error.code},
            )
            return
        if record is None:
            intentions.passed(core.state, item, workflow.now())
            return
        intentions.started(core.state, item, turn, workflow.now())
        core.trace.add(
            "STATE_CHANGE",
            "An intention is due.",
            turn,
            {"intention": item.id, "kind": item.kind, "fired": item.fired + 1},
        )
        await self._history.take_input(record)


def said(item: Intention) -> str:
    """What the turn is told that an intention starts."""
    if item.kind == "event":
        why = f"the event {item.event!r} happened"
    else:
        why = f"its time, {item.at.isoformat(timespec='seconds')}, has come" if item.at else ""
    return f"You meant to remember this, and {why}: {item.content}"
