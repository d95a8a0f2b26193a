"""What is told to a session's mind: events, and what the user says of an answer."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from ..personas.errors import RequestMismatchError, TurnNotFoundError, ValidationError
from .core import Core
from .decode import parse, short_digest
from .failures import info_from_activity
from .memory import Care, user_scope_id
from .mind_calls import Feedback, FeedbackAck, Perceive
from .pages import Read
from .policies import READ, STORE
from .ports import MemoryPort, StorePort
from .state import TakenFeedback
from .turns import SubmitTurn


def as_turn(core: Core, asked: Perceive) -> SubmitTurn:
    """An event as a turn of its own kind."""
    event = asked.model_copy(update={"request_id": None, "user_id": None})
    return SubmitTurn(
        content=asked.message,
        request_id=asked.request_id,
        user_id=asked.user_id or core.start.user_id,
        kind="event",
        event=event,
    )


async def take_feedback(core: Core, asked: Feedback) -> FeedbackAck:
    """Note what the user says of an answer, and remember it.

    Raises:
        TurnNotFoundError: The session never made the turn that is meant.
        RequestMismatchError: The request was another feedback before.
    """
    if asked.turn is not None:
        await _check_turn(core, asked.turn)
    digest = short_digest(asked.model_dump_json(exclude={"request_id"}))
    known = core.state.feedback
    taken = known.get(asked.request_id) if asked.request_id is not None else None
    if taken is not None and taken.digest != digest:
        raise RequestMismatchError(
            f"The request id {asked.request_id!r} was used for another feedback; use a new id.",
            details={"request_id": asked.request_id},
        )
    if taken is not None:
        await workflow.wait_condition(
            lambda: taken.memories is not None or known.get(asked.request_id or "") is not taken
        )
        return FeedbackAck(turn=taken.turn, memories=taken.memories or [])
    turn = asked.turn or core.state.head
    core.trace.add(
        "WARNING" if asked.sentiment == "negative" else "DEBUG",
        f"The user's feedback is {asked.sentiment}.",
        turn,
        {"text": asked.text, "correction": asked.correction},
    )
    taking = TakenFeedback(digest=digest, turn=turn)
    if asked.request_id is not None and workflow.patched("feedback-memo"):
        core.state.take_feedback(asked.request_id, taking)
    ack = await _remembered(core, asked, turn)
    taking.memories = ack.memories
    return ack


async def _remembered(core: Core, asked: Feedback, turn: str | None) -> FeedbackAck:
    if not core.state.rules.memory:
        return FeedbackAck(turn=turn)
    request_id = asked.request_id or str(workflow.uuid4())
    left: list[str] = []
    notes = [("feedback", "episodic", asked.text), ("correction", "semantic", asked.correction)]
    for what, type, text in notes:
        if text is not None and text.strip():
            found = await remember(core, f"{request_id} {what}", type, text, what, turn)
            left += [] if found is None else [found]
    return FeedbackAck(turn=turn, memories=left)


async def _check_turn(core: Core, turn: str) -> None:
    """Refuse a turn that the session never made; one that nobody can look up is believed."""
    if core.state.card(turn) is not None or not workflow.patched("feedback-turn"):
        return
    start = core.start
    wanted = Read(
        what="turn", session_id=start.session_id, session_key=core.state.session, turn=turn
    )
    try:
        await workflow.execute_activity_method(
            StorePort.read, wanted, summary="look the turn up", **READ
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        info = info_from_activity(error)
        if info.code == TurnNotFoundError.default_code:
            raise TurnNotFoundError(info.message, details=info.details) from None


async def remember(
    core: Core, request_id: str, type: str, text: str, what: str, turn: str | None
) -> str | None:
    """Put a memory into the user's scope, where the memory is ours; a failure is a warning.

    Args:
        core: The session.
        request_id: Makes one memory, however often it is asked.
        type: Its kind.
        text: What to remember.
        what: What it is: what a persona concluded about itself is its ``reflection``, all else
            the user said.
        turn: The turn that it is about.

    Returns:
        The memory's id.
    """
    start, session = core.start, core.state.session
    asked = {
        "kind": "remember",
        "scopes": [f"user:{user_scope_id(start.user_id or session, start.org)}"],
        "session_id": start.session_id,
        "persona": core.state.rules.persona,
        "type": type,
        "text": text,
        "tags": [what],
        "source": "reflection" if what == "reflection" else "user_statement",
        "request_id": f"{session} {request_id}",
        "turn": turn,
        "now": workflow.now().timestamp(),
    }
    try:
        care = parse(asked, Care)
    except ValidationError as error:
        core.trace.add("WARNING", f"The {what} was not remembered: {error.message}", turn)
        return None
    try:
        answer = await workflow.execute_activity_method(
            MemoryPort.care, care, summary=f"remember a {what}", **STORE
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        core.trace.add(
            "WARNING", f"The {what} was not remembered: {info_from_activity(error).message}", turn
        )
        return None
    return str(answer.items[0]["id"]) if answer.items else None
