"""Large inputs, and replacing the history by a given one."""

from __future__ import annotations

from temporalio import workflow

from ..personas.messages import Message
from .core import Core, dump_content
from .decode import encoded_size
from .policies import STORE
from .ports import StorePort
from .requests import MAX_QUEUE_BYTES, queued_bytes
from .state import TurnInput, TurnRecord
from .steps import INLINE_TEXT_BYTES, OpenTurn, Segment
from .turn_end import TurnEnd
from .turns import ReplaceHistory, TurnOutput, TurnTicket
from .writes import ImportHistory

FULL_QUEUE_TEXT = 512
"""Bytes of content that a turn keeps in the state when the queue is half full."""


class History:
    """Changes what later turns are shown.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._end = TurnEnd(core)

    async def take_input(self, record: TurnRecord) -> None:
        """Show a queued turn, and move its large content to the store before it runs."""
        self._end.show(record, "queued")
        taken = record.input
        content = Message(role="user", content=taken.content)
        size = encoded_size(content)
        full = size > FULL_QUEUE_TEXT and queued_bytes(self._core.state) > MAX_QUEUE_BYTES // 2
        large = full or size > INLINE_TEXT_BYTES
        if not large and taken.history is None:
            return
        record.ready = False
        values = [dump_content(content)] if large else []
        if taken.history is not None:
            values.append([m.model_dump(mode="json", exclude_defaults=True) for m in taken.history])
        digests = await self._core.put_blobs(values)
        if large:
            taken.content, taken.content_ref = None, digests[0]
        if taken.history is not None:
            taken.history, taken.history_ref = None, digests[-1]
        record.ready = True

    async def replace(self, request: ReplaceHistory) -> TurnTicket:
        """Start a new root that holds the given messages; an empty list starts with nothing."""
        core, state = self._core, self._core.state
        await core.settled()
        state.seq += 1
        request_id = str(workflow.uuid4())
        turn = str(workflow.uuid4())
        record = TurnRecord(
            turn=turn,
            seq=state.seq,
            request_id=request_id,
            digest="",
            kind="import",
            input=TurnInput(content=""),
            created_at=workflow.now(),
            branch=f"root-{state.seq}",
            depth=1,
            persona_digest=state.persona_digest,
            toolset_digest=state.toolset_digest,
        )
        core.trace.add(
            "STATE_CHANGE",
            "The history was replaced." if request.messages else "The history was emptied.",
            turn,
            {"messages": len(request.messages), "forget": request.forget},
        )
        at = core.at(turn)
        trace = core.trace.pending()
        output = TurnOutput(
            session_key=state.session,
            turn=turn,
            request_id=request_id,
            status="done",
            is_final=True,
            write_counter=at.counter,
        )
        given = [
            message.model_dump(mode="json", exclude_defaults=True) for message in request.messages
        ]
        large = encoded_size(given) > INLINE_TEXT_BYTES
        [ref] = await core.put_blobs([given]) if large else [None]
        result = await workflow.execute_activity_method(
            StorePort.import_history,
            ImportHistory(
                at=at,
                opening=OpenTurn(
                    seq=record.seq,
                    request_id=request_id,
                    digest="",
                    kind="import",
                    parent=None,
                    segment=Segment(branch=record.branch, depth=record.depth),
                    persona_digest=record.persona_digest,
                    toolset_digest=record.toolset_digest,
                    created_at=record.created_at,
                ),
                messages=[] if large else request.messages,
                messages_ref=ref,
                forget=request.forget,
                output=output,
                trace=trace,
            ),
            summary="replace the history",
            **STORE,
        )
        core.trace.flushed(trace)
        record.layout = [result.messages]
        state.head, state.branch, state.depth = turn, record.branch, record.depth
        state.partials = []
        if request.forget:
            forgotten = set(result.forgotten)
            state.trace = [
                entry.model_copy(update={"details": {}}) if entry.turn in forgotten else entry
                for entry in state.trace
            ]
            if workflow.patched("forget-pending"):
                state.forget_words(forgotten)
            else:
                state.mind = state.mind.without_words_of(forgotten)
            state.cards = [
                card.model_copy(update={"preview": ""}) if card.turn in forgotten else card
                for card in state.cards
            ]
        self._end.show(record, "done")
        state.put_output(output)
        state.trim()
        return TurnTicket(
            session_key=state.session,
            turn=turn,
            request_id=request_id,
            status="done",
            output=output,
        )
