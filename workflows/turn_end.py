"""How a turn ends or pauses: its output, its last chunk, its card, and its closing in the store."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError

from ..personas.messages import Message
from .core import Core
from .decode import encoded_size
from .drafts import joined_text
from .failures import info_from_activity
from .intentions import turn_ended
from .policies import STORE
from .ports import StorePort
from .state import TurnRecord
from .steps import OpenTurn, PlannedCall, Segment, StoredMessage
from .tool_round import answer_open_calls, result_messages
from .turns import ErrorInfo, PendingCall, ToolCallView, TurnCard, TurnOutput, TurnStatus
from .writes import CloseTurn, PlacedMessage

MAX_CALL_ARGUMENTS = 2048
MAX_MADE_ARGUMENTS = 8 * 1024
MAX_MADE = 200

MAX_CUT_BYTES = 500_000
"""Bytes of a stopped step's text that are kept: more does not fit one activity's input."""
MAX_PARTIALS = 4


class TurnEnd:
    """Ends turns.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def done(self, record: TurnRecord, recorded: int | None = None) -> None:
        """The model answered; ``recorded`` is the counter under which its step ended the turn."""
        state = self._core.state
        state.head, state.depth = record.turn, record.depth
        state.partials = []
        if recorded is None:
            self._finish(record, "done", messages=[], layout=record.layout)
        else:
            self._settle(record, "done", recorded, None)

    def failed(self, record: TurnRecord, error: ErrorInfo) -> None:
        """The turn cannot go on; its finished steps stay."""
        core = self._core
        core.trace.add(
            "ERROR", error.message, record.turn, error.model_dump(mode="json", exclude={"message"})
        )
        if record.phase == "tools":
            answer_open_calls(core, record, "the turn failed")
        core.chunks.say(
            "error",
            turn=record.turn,
            step=record.step,
            content=error.message,
            error_details=error.model_dump(mode="json"),
        )
        self._cut(record, "failed", "the turn failed", "", error)

    def stopped(self, record: TurnRecord, text: str = "") -> None:
        """The turn was asked to stop; ``text`` is what its running step had said."""
        status: TurnStatus = "abandoned" if record.phase == "paused" else "stopped"
        self._cut(record, status, "the turn was stopped", text, None)

    def mismatched(self, record: TurnRecord, error: ErrorInfo) -> None:
        """The turn's request id had been used long ago: the store's turn stays as it is."""
        core = self._core
        core.trace.add(
            "ERROR", error.message, None, error.model_dump(mode="json", exclude={"message"})
        )
        core.chunks.say(
            "error",
            turn=record.turn,
            content=error.message,
            error_details=error.model_dump(mode="json"),
        )
        self.known(record, self._output(record, "failed", [], error))

    def known(self, record: TurnRecord, output: TurnOutput) -> None:
        """The turn had ended long ago: the store's output is the answer, nothing is recorded."""
        core = self._core
        core.state.active = None
        core.state.put_output(output)
        core.state.cards = [card for card in core.state.cards if card.turn != record.turn]
        core.stopping.discard(record.turn)
        turn_ended(core.state, record, output.status, workflow.now())
        core.chunks.say(
            "final_response_marker",
            turn=record.turn,
            content=output.model_dump(mode="json", exclude_defaults=True),
            is_final=True,
        )
        core.state.trim()

    def paused(self, record: TurnRecord) -> None:
        """The turn waits for the host; the lane is free."""
        core = self._core
        calls = pending_calls(record)
        core.chunks.say(
            "tool_call_request",
            turn=record.turn,
            step=max(0, record.step - 1),
            content=[
                {
                    "id": c.call.id,
                    "name": c.call.name,
                    "arguments": c.call.arguments,
                    "reason": c.call.reason,
                }
                for c in calls
            ],
            metadata={"execution_mode": "external", "requires_external_tool_result": True},
        )
        output = self._output(record, "waiting", [c.call for c in calls], None)
        core.state.active = None
        core.state.paused.append(record)
        core.state.put_output(output)
        core.trace.add(
            "STATE_CHANGE",
            "The turn waits for the host.",
            record.turn,
            {"pending": [c.call.id for c in calls]},
        )
        self.show(record, "waiting")
        core.chunks.say(
            "final_response_marker",
            turn=record.turn,
            content=output.model_dump(mode="json", exclude_defaults=True),
            is_final=False,
        )
        core.state.trim()

    def show(self, record: TurnRecord, status: TurnStatus) -> None:
        """Bring the turn's card up to date."""
        ended = status not in ("queued", "running", "waiting")
        self._core.state.put_card(
            TurnCard(
                turn=record.turn,
                seq=record.seq,
                request_id=record.request_id,
                kind=record.kind,
                status=status,
                parent=record.parent,
                branch=record.branch,
                depth=record.depth,
                created_at=record.created_at,
                ended_at=workflow.now() if ended else None,
                messages=record.messages,
                steps=len(record.layout),
                usage=record.usage,
                preview=record.preview,
            )
        )

    def _cut(
        self,
        record: TurnRecord,
        status: TurnStatus,
        why: str,
        text: str,
        error: ErrorInfo | None,
    ) -> None:
        """End a turn that did not finish: keep its steps, answer its calls, mark what was cut."""
        core, state = self._core, self._core.state
        if record.phase == "queued":
            record.parent, record.branch = state.head, state.branch
            record.depth = state.depth + 1
            record.new = [input_message(record)]
        if record.phase in ("tools", "paused"):
            answer_open_calls(core, record, why)
            record.new = result_messages(record)
        placed = [
            PlacedMessage(step=record.step, index=i, stored=stored)
            for i, stored in enumerate(record.new)
        ]
        if text:
            if len(text.encode()) > MAX_CUT_BYTES:
                text = text.encode()[:MAX_CUT_BYTES].decode(errors="ignore")
                core.trace.add(
                    "WARNING", "The cut text is long; only its beginning is kept.", record.turn
                )
            cut = Message(role="assistant", content=text, partial=True)
            placed.append(
                PlacedMessage(
                    step=record.step, index=len(placed), stored=StoredMessage(message=cut)
                )
            )
            record.texts = joined_text(record.texts, text)
        layout = [*record.layout, *([len(placed)] if placed else [])]
        if record.layout:
            state.partials = [*state.partials, record.turn][-MAX_PARTIALS:]
        self._finish(record, status, messages=placed, layout=layout, error=error)

    def _finish(
        self,
        record: TurnRecord,
        status: TurnStatus,
        *,
        messages: list[PlacedMessage],
        layout: list[int],
        error: ErrorInfo | None = None,
    ) -> None:
        """End a turn and record its end."""
        core, state = self._core, self._core.state
        at = core.at(record.turn)
        output = self._settle(record, status, at.counter, error)
        trace = core.trace.pending()
        close = CloseTurn(
            at=at,
            status=status,
            output=output,
            opening=None if record.opened else opened_turn(record),
            step_counter=record.step_counter,
            layout=layout,
            messages=messages,
            trace=trace,
            head=state.head,
        )

        async def write() -> None:
            try:
                await workflow.execute_activity_method(
                    StorePort.close_turn, close, summary=f"close turn {record.seq}", **STORE
                )
            except ActivityError as error:
                # Not a reason for the session to die: the next step finds the store behind.
                info = info_from_activity(error)
                core.trace.add("ERROR", f"The turn was not recorded: {info.message}", record.turn)
                return
            core.trace.flushed(trace)

        core.run_after(write)

    def _settle(
        self, record: TurnRecord, status: TurnStatus, counter: int, error: ErrorInfo | None
    ) -> TurnOutput:
        """Bring the session's state up to a turn's end, and tell everybody who waits for it."""
        core, state = self._core, self._core.state
        output = self._output(record, status, record.made, error).model_copy(
            update={"write_counter": counter}
        )
        state.active = None if state.active is record else state.active
        state.paused = [other for other in state.paused if other is not record]
        state.queue = [other for other in state.queue if other is not record]
        state.put_output(output)
        model = f"{record.provider}:{record.model}" if record.model is not None else None
        state.bill(record.usage, model)
        state.turns += 1
        core.stopping.discard(record.turn)
        turn_ended(state, record, status, workflow.now())
        core.trace.add(
            "INTERACTION_END",
            f"The turn ended {status}.",
            record.turn,
            {"status": status, "steps": len(record.layout)},
        )
        self.show(record, status)
        core.chunks.say(
            "final_response_marker",
            turn=record.turn,
            step=record.step,
            content=output.model_dump(mode="json", exclude_defaults=True),
            is_final=True,
            usage=output.usage,
        )
        state.trim()
        return output

    def _output(
        self,
        record: TurnRecord,
        status: TurnStatus,
        calls: list[ToolCallView],
        error: ErrorInfo | None,
    ) -> TurnOutput:
        return TurnOutput(
            session_key=self._core.state.session,
            turn=record.turn,
            request_id=record.request_id,
            status=status,
            is_final=status != "waiting",
            response_text=None if status == "failed" else (record.texts or None),
            text_stored=record.texts is None and status != "failed",
            tool_calls=calls,
            usage=record.usage,
            error=error,
            limit_reached=record.limit_reached,
            finish_reason=record.finish_reason,
            provider=record.provider,
            model=record.model,
            hop=record.start_hop,
            steps=len(record.layout),
            warnings=record.warnings,
            event=record.input.event,
            perception=record.perception,
        )


def input_message(record: TurnRecord) -> StoredMessage:
    """The turn's input as a message."""
    return StoredMessage(
        message=Message(
            role="system" if record.kind == "system" else "user",
            content=record.input.content,
            name=record.input.sender,
        ),
        content_ref=record.input.content_ref,
    )


def opened_turn(record: TurnRecord) -> OpenTurn:
    """The turn as the store records it when it opens."""
    return OpenTurn(
        seq=record.seq,
        request_id=record.request_id,
        digest=record.digest,
        kind=record.kind,
        parent=record.parent,
        segment=Segment(branch=record.branch, depth=record.depth),
        sender=record.input.sender,
        options=record.input.options,
        reads=record.reads,
        persona_digest=record.persona_digest,
        toolset_digest=record.toolset_digest,
        created_at=record.created_at,
    )


def add_made(record: TurnRecord, calls: list[PlannedCall]) -> None:
    """Add calls to those that the turn's output shows, within its bounds."""
    room = MAX_MADE_ARGUMENTS - sum(encoded_size(view.arguments) for view in record.made)
    for call in calls[: MAX_MADE - len(record.made)]:
        view = call_view(call)
        size = encoded_size(view.arguments)
        if size > room:
            view = view.model_copy(update={"arguments": {}})
        else:
            room -= size
        record.made.append(view)


def call_view(call: PlannedCall) -> ToolCallView:
    """A call as clients see it; large arguments are left to the store."""
    large = call.arguments_ref is not None or encoded_size(call.arguments) > MAX_CALL_ARGUMENTS
    return ToolCallView(
        id=call.id,
        name=call.name,
        arguments={} if large else call.arguments,
        arguments_ref=call.arguments_ref,
    )


def pending_calls(record: TurnRecord) -> list[PendingCall]:
    """The calls that a paused turn waits for."""
    if record.pause is None:
        return []
    return [
        PendingCall(
            turn=record.turn,
            call=ToolCallView(
                id=call.id,
                name=call.name,
                arguments=call.arguments,
                arguments_ref=call.arguments_ref,
                reason=record.pause.reasons.get(call.id, "external"),
            ),
            since=record.pause.since,
            expires_at=record.pause.expires_at,
        )
        for call in record.open_calls()
        if call.id in record.pause.reasons
    ]
