"""What is told to a session's mind: events, and what the user says of an answer."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from ..personas.errors import ValidationError
from .core import Core
from .decode import encoded_size
from .failures import info_from_activity
from .memory import Care
from .mind_calls import Feedback, FeedbackAck, Perceive
from .policies import STORE
from .ports import MemoryPort
from .turns import SubmitTurn

MAX_PAYLOAD_BYTES = 4096
MAX_SOURCE_BYTES = 4096


def as_turn(core: Core, asked: Perceive) -> SubmitTurn:
    """An event as a turn of its own kind.

    Raises:
        ValidationError: The persona has no emotions, nothing is said, or the payload or the
            source is too large.
    """
    rules = core.state.rules
    if rules.mind.emotion is None:
        raise ValidationError(
            f"The persona {rules.persona!r} has no emotions; set its emotionConfig.enabled."
        )
    if not asked.message.strip():
        raise ValidationError("The event says nothing; put into words what happens.")
    if encoded_size(asked.payload) > MAX_PAYLOAD_BYTES:
        raise ValidationError(
            f"The event's payload has {encoded_size(asked.payload)} bytes and the limit is "
            f"{MAX_PAYLOAD_BYTES}; keep large things elsewhere and name them."
        )
    if encoded_size(asked.source) > MAX_SOURCE_BYTES:
        raise ValidationError(
            f"The event's source has {encoded_size(asked.source)} bytes and the limit is "
            f"{MAX_SOURCE_BYTES}; say less about them."
        )
    event = asked.model_copy(update={"request_id": None, "user_id": None})
    return SubmitTurn(
        content=asked.message,
        request_id=asked.request_id,
        user_id=asked.user_id or core.start.user_id,
        kind="event",
        event=event,
    )


async def take_feedback(core: Core, asked: Feedback) -> FeedbackAck:
    """Note what the user says of an answer, and remember it."""
    turn = asked.turn or core.state.head
    core.trace.add(
        "WARNING" if asked.sentiment == "negative" else "DEBUG",
        f"The user's feedback is {asked.sentiment}.",
        turn,
        {"text": asked.text, "correction": asked.correction},
    )
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


async def remember(
    core: Core, request_id: str, type: str, text: str, what: str, turn: str | None
) -> str | None:
    """Put a memory into the user's scope; a failure is a warning."""
    care = Care.model_validate(
        {
            "kind": "remember",
            "scopes": [f"user:{core.start.user_id or core.state.session}"],
            "persona": core.state.rules.persona,
            "type": type,
            "text": text,
            "tags": [what],
            "request_id": f"{core.state.session} {request_id}",
            "now": workflow.now().timestamp(),
        }
    )
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
