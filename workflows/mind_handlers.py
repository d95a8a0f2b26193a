"""Handlers of a session's mind and memory: what it perceives, feels, means to do and remembers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from temporalio import workflow
from temporalio.common import RawValue

from ..personas.memory_health import MemoryHealth
from ..personas.memory_lifecycle import LifecycleActionResponse, MemoryLifecycleEvent
from . import memory_talk, mind_talk, views
from .core import Core
from .decode import MISSING, decode, nothing
from .failures import refusing
from .intending import Intending
from .intention_calls import (
    CancelIntention,
    CancelledIntention,
    Intend,
    IntentionAck,
    IntentionList,
    Notice,
    NoticeAck,
)
from .lane import Lane
from .mind_calls import (
    Feedback,
    FeedbackAck,
    MindShown,
    Perceive,
    Reflected,
    SetTrait,
    TraitsView,
)
from .minding import Minding
from .requests import Requests, check_form
from .turn_end import TurnEnd
from .turns import TurnTicket, WorkingMemoryView


class MindHandlers(ABC):
    """The part of a session's handlers that is about its mind."""

    _intending: Intending
    _lane: Lane
    _minding: Minding
    _requests: Requests

    @abstractmethod
    async def _opened(self) -> Core:
        """The session once it is open."""

    @abstractmethod
    def _ready(self) -> Core:
        """The session, or an error while it is not open."""

    @workflow.update
    async def lifecycle_event(self, raw: RawValue = MISSING) -> LifecycleActionResponse:
        """Say what may happen to a memory."""
        with refusing():
            event = decode(raw, MemoryLifecycleEvent)
            return memory_talk.respond_to(await self._opened(), event)

    @workflow.update
    async def memory_health(self, raw: RawValue = MISSING) -> MemoryHealth:
        """Look how the long-term memory fares."""
        with refusing():
            nothing(raw, "memory_health")
            return await memory_talk.check_health(await self._opened())

    @workflow.update
    async def intend(self, raw: RawValue = MISSING) -> IntentionAck:
        """Note something to remember later."""
        with refusing():
            asked = decode(raw, Intend)
            await self._opened()
            return self._intending.intend(asked)

    @workflow.update
    async def cancel_intention(self, raw: RawValue = MISSING) -> CancelledIntention:
        """Drop something that was to be remembered later."""
        with refusing():
            asked = decode(raw, CancelIntention)
            await self._opened()
            return self._intending.cancel(asked)

    @workflow.update
    async def notice(self, raw: RawValue = MISSING) -> NoticeAck:
        """An event happened: what was to be remembered at it is due."""
        with refusing():
            asked = decode(raw, Notice)
            await self._opened()
            return await self._intending.notice(asked)

    @workflow.update
    async def perceive(self, raw: RawValue = MISSING) -> TurnTicket:
        """Something happens to the persona: a turn in which no model answers."""
        with refusing():
            asked = decode(raw, Perceive)
            core = await self._opened()
            submit = mind_talk.as_turn(core, asked)
            check_form(submit)
            self._requests.check(submit)
            record, turn, request_id = self._requests.accept(submit)
            if record is not None:
                TurnEnd(core).show(record, "queued")
            return await self._lane.hold(turn, request_id)

    @workflow.update
    async def set_trait(self, raw: RawValue = MISSING) -> TraitsView:
        """Set a trait for this session."""
        with refusing():
            asked = decode(raw, SetTrait)
            await self._opened()
            return self._minding.set_trait(asked)

    @workflow.update
    async def record_feedback(self, raw: RawValue = MISSING) -> FeedbackAck:
        """Take what the user says of an answer."""
        with refusing():
            asked = decode(raw, Feedback)
            return await mind_talk.take_feedback(await self._opened(), asked)

    @workflow.update
    async def reflect(self, raw: RawValue = MISSING) -> Reflected:
        """Run the persona's self-reflection now."""
        with refusing():
            nothing(raw, "reflect")
            await self._opened()
            return self._lane.reflect()

    @workflow.query
    def working_memory(self) -> WorkingMemoryView:
        """What the mind holds ready."""
        return views.working_memory(self._ready())

    @workflow.query
    def list_intentions(self) -> IntentionList:
        """What is to be remembered later."""
        self._ready()
        return self._intending.listed()

    @workflow.query
    def mind(self) -> MindShown:
        """What the mind is, and why."""
        return views.mind(self._ready(), self._minding.present(), self._minding.traits())
