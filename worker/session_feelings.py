"""What a session's client tells the mind and asks of it: events, feedback, traits, feelings."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..personas.emotion import AppraisalVector, Interlocutor, Relationship, Stimulus
from ..personas.mind import Mind
from ..workflows.decode import parse
from ..workflows.mind_calls import (
    Feedback,
    FeedbackAck,
    MindShown,
    Perceive,
    Reflected,
    SetTrait,
    TraitsView,
)
from ..workflows.turns import AwaitTurn, TurnOutput, TurnTicket
from .session_intentions import SessionIntentions

Speaker = Interlocutor | str | Mapping[str, Any]
"""Who speaks or acts: a name, or a name with a description and extensions."""


class SessionFeelings(SessionIntentions):
    """The mind as it feels and changes, beside what it remembers and means to do."""

    async def _completed(self, ticket: TurnTicket) -> TurnOutput:
        """The output of an accepted turn, once it ended or paused."""
        self.key = ticket.session_key
        output = ticket.output or await self.wait(ticket.turn)
        return await self.complete(output)

    async def perceive(
        self,
        message: str,
        *,
        type: str = "event",
        from_: Speaker | None = None,
        appraisal: AppraisalVector | Mapping[str, Any] | None = None,
        stimulus: Stimulus | Mapping[str, Any] | None = None,
        relationship: Relationship | Mapping[str, Any] | None = None,
        prior_episodes: Sequence[str | Mapping[str, Any]] = (),
        payload: Mapping[str, Any] | None = None,
        skip_memory: bool = False,
        request_id: str | None = None,
    ) -> TurnOutput:
        """Let something happen to a persona that has emotions; no model is asked to answer.

        An event is a turn of its own: it waits its turn, and the output's ``perception`` says what
        it left. Numbers beyond their range count as its end.

        Args:
            message: What happens, in at most 4,000 characters.
            type: What kind of event it is, such as ``news`` or ``exhaustion``.
            from_: Who or what it comes from; ``user`` without.
            appraisal: What it means to the persona; see the table in ``docs/mind.md``. A persona
                with ``emotionConfig.appraise`` asks a model for it, where ``stimulus`` is left out
                as well.
            stimulus: What acts on the persona's state itself.
            relationship: What the persona has with whoever it comes from.
            prior_episodes: What the persona remembers that bears on it: texts, or
                ``{"content": ..., "at": ...}``; at most 8, and 4 KB as JSON. A model that is asked
                for the appraisal is shown them; nothing else reads them.
            payload: Anything that belongs to the event, kept with it; at most 4 KB as JSON. It
                never replaces ``message``.
            skip_memory: It becomes no memory, however much it moves the persona.
            request_id: Repeating a call with the same one makes no second event.

        Raises:
            ValidationError: The persona has no emotions, or an argument does not fit.
            ConversationBusyError: A turn waits for the host.
        """
        self._check_open()
        asked = parse(
            {
                "message": message,
                "type": type,
                "source": Interlocutor.of(from_),
                "appraisal": None if appraisal is None else AppraisalVector.of(appraisal),
                "stimulus": None if stimulus is None else Stimulus.of(stimulus),
                "relationship": None if relationship is None else Relationship.of(relationship),
                "prior_episodes": prior_episodes,
                "payload": {} if payload is None else payload,
                "skip_memory": skip_memory,
                "request_id": request_id or str(uuid.uuid4()),
                "user_id": self.user_id,
            },
            Perceive,
        )
        return await self._completed(await self._update("perceive", asked, TurnTicket))

    async def set_personality_trait(self, trait: str, value: float | None) -> dict[str, float]:
        """Set a trait for this session, over the persona's; the next turn's prompt has it.

        Args:
            trait: A HEXACO trait: ``honesty_humility``, ``emotionality``, ``extraversion``,
                ``agreeableness``, ``conscientiousness`` or ``openness``, also in ``camelCase``.
            value: In [0, 1]; ``None`` goes back to the persona's own.

        Returns:
            The traits that are in force now.

        Raises:
            ValidationError: There is no such trait, or the value is out of range.
        """
        asked = parse({"trait": trait, "value": value}, SetTrait)
        return dict((await self._update("set_trait", asked, TraitsView)).traits)

    async def record_user_feedback(
        self,
        sentiment: Literal["positive", "negative", "neutral"] = "neutral",
        text: str | None = None,
        correction: str | None = None,
        *,
        turn: str | None = None,
        request_id: str | None = None,
    ) -> FeedbackAck:
        """Tell the mind what the user said of an answer.

        It is kept in the reasoning trace, and remembered where the persona remembers: the text as
        something that happened, the correction as a fact.

        Args:
            sentiment: Whether the user was content.
            text: What the user said of it, in at most 2,000 characters.
            correction: What would have been right, in at most 2,000 characters.
            turn: The turn that is meant; the newest without.
            request_id: Repeating a call with the same one leaves no second memory.

        Returns:
            The turn and the ids of the memories.
        """
        asked = parse(
            {
                "sentiment": sentiment,
                "text": text,
                "correction": correction,
                "turn": turn,
                "request_id": request_id or str(uuid.uuid4()),
            },
            Feedback,
        )
        return await self._update("record_feedback", asked, FeedbackAck)

    async def reflect(self) -> Reflected:
        """Run the persona's self-reflection beside whatever comes next.

        :meth:`settle` waits for its end; what it changed is in the reasoning trace. A persona
        reflects when it has a metaprompt ``gmi_self_trait_adjustment``.
        """
        return await self._update("reflect", None, Reflected)

    async def _trigger_and_process_self_reflection(self) -> Reflected:
        """See :meth:`reflect`, and wait until what it changes has changed."""
        found = await self.reflect()
        if found.started:
            await self.settle()
        return found

    async def mind(self) -> MindShown:
        """What the mind feels, counts and knows now, as time has left it."""
        return await self._query("mind", None, MindShown)

    async def mind_of(self, turn: str) -> Mind | None:
        """The mind that a turn left, from the store; call :meth:`settle` first for a new turn.

        ``None`` where the turn left none: it did not end well, it changed nothing, or the
        persona's mind never changes.

        Raises:
            TurnNotFoundError: The store has no such turn.
        """
        page = await self._read("mind", turn=parse({"turn": turn}, AwaitTurn).turn)
        return Mind.model_validate(page.items[0]["mind"]) if page.items else None
