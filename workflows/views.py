"""What the session shows: answers of its queries, Temporal's own UI, search attributes."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from ..personas.affect import Vad
from ..personas.emotion import MODEL, felt, label
from ..personas.messages import Usage
from ..personas.mind import Mind, affect
from .chunk_log import ChunkLog
from .core import Core
from .mind_calls import MindShown
from .search_attributes import AWAITING_TOOL, PERSONA, STATUS, USER
from .state import SessionStart
from .turn_end import pending_calls
from .turns import (
    GMIState,
    HeldMemory,
    PendingCall,
    PendingView,
    StateView,
    TurnList,
    TurnStatus,
    TurnTicket,
    TurnView,
    UsageView,
    WorkingMemoryView,
)


def status(core: Core) -> GMIState:
    """The session's state in one word."""
    if core.closed:
        return "shutdown"
    if core.closing:
        return "shutting_down"
    if core.state.active is not None:
        return "processing"
    return "awaiting_tool_result" if core.state.paused else "ready"


def all_pending(core: Core) -> list[PendingCall]:
    """Every call that waits for the host."""
    return [call for record in core.state.paused for call in pending_calls(record)]


def state(core: Core | None, start: SessionStart, chunks: ChunkLog) -> StateView:
    """Answer of ``get_state``."""
    if core is None:
        return StateView(
            session_id=start.session_id,
            session_key=None,
            gmi_id=None,
            user_id=start.user_id,
            persona=start.persona,
            persona_digest=None,
            status="initializing",
            active_turn=None,
            active_step=None,
            queued=0,
            pending=[],
            head=None,
            turns=0,
            usage=Usage(),
            write_counter=0,
            stream_offset=chunks.offset,
            created_at=workflow.now(),
            run=0,
            state_bytes=0,
        )
    known = core.state
    return StateView(
        session_id=start.session_id,
        session_key=known.session,
        gmi_id=f"gmi-{known.session}",
        user_id=start.user_id,
        persona=known.rules.persona,
        persona_digest=known.persona_digest,
        status=status(core),
        active_turn=known.active.turn if known.active else None,
        active_step=known.active.step if known.active else None,
        queued=len(known.queue),
        pending=all_pending(core),
        head=known.head,
        turns=known.turns,
        usage=known.usage,
        write_counter=known.counter,
        stream_offset=chunks.offset,
        created_at=known.created_at,
        run=known.run,
        state_bytes=len(known.model_dump_json()),
        trace_limit=known.rules.trace_max_entries,
    )


def turn(core: Core, wanted: str) -> TurnView:
    """Answer of ``get_turn``."""
    known = core.state
    position = next((i for i, r in enumerate(known.queue) if r.turn == wanted), None)
    return TurnView(card=known.card(wanted), output=known.output(wanted), position=position)


def turns(core: Core) -> TurnList:
    """Answer of ``list_turns``."""
    return TurnList(turns=core.state.cards, queued=[r.turn for r in core.state.queue])


def pending(core: Core) -> PendingView:
    """Answer of ``list_pending``."""
    return PendingView(calls=all_pending(core), warnings=core.state.signal_warnings)


def usage(core: Core) -> UsageView:
    """Answer of ``usage``."""
    return UsageView(
        usage=core.state.usage, turns=core.state.turns, by_model=core.state.usage_by_model
    )


def working_memory(core: Core) -> WorkingMemoryView:
    """Answer of ``working_memory``."""
    return WorkingMemoryView(
        values=core.state.mind.working,
        slots=[
            HeldMemory(trace=slot.trace, activation=slot.activation, rehearsals=slot.rehearsals)
            for slot in core.state.mind.slots
        ],
    )


def ticket(core: Core, wanted: str, request_id: str | None) -> TurnTicket:
    """Where a turn is."""
    known = core.state
    output = known.output(wanted)
    card = known.card(wanted)
    record = known.record(wanted)
    now: TurnStatus
    if output is not None:
        now = output.status
    elif record is not None and record.phase == "queued":
        now = "queued"
    elif record is not None:
        now = "running"
    else:
        now = card.status if card is not None else "done"
    return TurnTicket(
        session_key=known.session,
        turn=wanted,
        request_id=request_id
        or (output.request_id if output else record.request_id if record else ""),
        status=now,
        output=output,
    )


def describe(core: Core) -> None:
    """Show the session in Temporal's own UI."""
    known = core.state
    waiting = ", ".join(c.call.name for c in all_pending(core)) or "none"
    cost = "" if known.usage.cost_usd is None else f", {known.usage.cost_usd:.4f} USD"
    workflow.set_current_details(
        f"**{known.rules.persona_name}** (`{known.rules.persona}`) · {status(core)}\n\n"
        f"- turns: {known.turns}, head `{known.head or 'none'}`\n"
        f"- queued: {len(known.queue)}, waiting for the host: {waiting}\n"
        f"- usage: {known.usage.total_tokens} tokens{cost}\n"
    )


def upsert_search_attributes(core: Core) -> None:
    """Make the session findable, where the server has the attributes."""
    if not core.start.search_attributes:
        return
    known = workflow.info().typed_search_attributes
    changed: list[SearchAttributeUpdate[Any]] = []
    for key, value in (
        (PERSONA, core.state.rules.persona),
        (USER, core.start.user_id),
        (STATUS, status(core)),
    ):
        if known.get(key) != value:
            changed.append(key.value_set(value))
    if known.get(AWAITING_TOOL) != bool(core.state.paused):
        changed.append(AWAITING_TOOL.value_set(bool(core.state.paused)))
    if changed:
        workflow.upsert_search_attributes(changed)


def mind(core: Core, present: Mind, traits: dict[str, float]) -> MindShown:
    """Answer of the query ``mind``.

    Args:
        core: The session.
        present: Its mind as time has left it.
        traits: The traits in force.
    """
    feeling = None
    if present.emotion is not None:
        found = felt(present.emotion)
        word = label(found)
        feeling = {
            "model": MODEL,
            "label": word.primary,
            "intensity": word.intensity,
            "felt": found.model_dump(),
            "body": present.emotion.body,
            "needs": present.emotion.needs.model_dump(),
        }
    return MindShown(
        mood=present.mood_word,
        pad=present.mood.pad if present.mood is not None else Vad(),
        since=present.mood.since if present.mood is not None else None,
        affect=affect(present),
        emotion=feeling,
        sentiment=present.sentiment.model_dump(mode="json"),
        pending=list(present.events),
        running=[item.id for item in core.state.metaprompts],
        counters=present.counters,
        user=present.user.model_dump(mode="json"),
        task=present.task.model_dump(mode="json"),
        working=present.working,
        traits=traits,
    )
