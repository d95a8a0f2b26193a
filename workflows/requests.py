"""Accepting turns: checks, identities, and the memory of requests.

The checks run twice: in the update's validator, before anything is recorded, and again in the
handler, since a handler may wait between the two.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from temporalio import workflow

from ..personas.contexts import check_context
from ..personas.errors import (
    ConversationBusyError,
    CredentialRefusedError,
    MessageTooLargeError,
    PersonaMismatchError,
    RequestMismatchError,
    SessionBusyError,
    SessionClosedError,
    SessionUserMismatchError,
    ValidationError,
)
from ..personas.mind import TaskContext, UserContext
from ..personas.overlays import OverlayRule
from .core import Core
from .decode import encoded_size, parse, short_digest
from .mind_calls import Perceive
from .session_records import SessionConfig
from .state import MAX_QUEUE, RequestMemo, SessionState, TurnInput, TurnRecord
from .turn_end import pending_calls
from .turns import SubmitTurn

_TURNS = uuid.UUID("5b0ad5a2-5bb1-5f0c-9a3f-1f6f5f3b9c55")

MAX_SETTINGS_BYTES = 8 * 1024
MAX_EVENT_PART_BYTES = 4096

OWN_REQUESTS = "gmi-"
"""Beginning of the request ids of turns that a session starts by itself."""

MAX_CONFIG_BYTES = 16 * 1024
MAX_QUEUE_BYTES = 96 * 1024
"""Bytes of all queued inputs together; content beyond half of it goes to the store at once."""

_NOT_PART_OF_THE_INPUT = {
    "request_id",
    "session_key",
    "persona",
    "sends",
    "on_pause",
    "stream",
    "hold",
    "ceiling",
    "org",
}

_LATER_FIELDS = {"interlocutor", "event", "user_context", "task_context"}


def turn_id(session: str, request_id: str) -> str:
    """The id of the turn that a request makes in a session."""
    return str(uuid.uuid5(_TURNS, f"{session}\n{request_id}"))


def input_digest(submit: SubmitTurn) -> str:
    """Digest of what a request asks for; 16 hex characters."""
    data: dict[str, Any] = submit.model_dump(mode="json", exclude=_NOT_PART_OF_THE_INPUT)
    # Requests of a release that did not know them have to keep their digest.
    data = {k: v for k, v in data.items() if v is not None or k not in _LATER_FIELDS}
    if submit.event is not None and not submit.event.prior_episodes:
        del data["event"]["prior_episodes"]
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return short_digest(text)


def check_form(submit: SubmitTurn) -> None:
    """Refuse an input that no session could take.

    Raises:
        ValidationError: The message is empty, an image names neither or both of its sources, a
            context does not fit, or the request id is too long.
        MessageTooLargeError: A context is over 2 KB, or all that the message carries beside its
            content over 8 KB.
    """
    if isinstance(submit.content, str):
        if not submit.content.strip():
            raise ValidationError("The message is empty; send some text.")
    else:
        if not submit.content:
            raise ValidationError("The message has no parts; send at least one.")
        for part in submit.content:
            if part.type == "image" and (part.url is None) == (part.blob is None):
                raise ValidationError("An image part takes exactly one of `url` and `blob`.")
        if not any(part.type == "image" or part.text.strip() for part in submit.content):
            raise ValidationError("The message is empty; send some text or an image.")
    check_context(submit.user_context, UserContext)
    check_context(submit.task_context, TaskContext)
    if (submit.kind == "event") != (submit.event is not None):
        raise ValidationError("A turn of kind 'event' carries the event, and no other one does.")
    if submit.event is not None:
        check_event(submit.event)
    size = encoded_size(settings_of(submit))
    if size > MAX_SETTINGS_BYTES:
        raise MessageTooLargeError(
            f"The suffix, interlocutor, contexts, options, models and sender of the message have "
            f"{size} bytes and the limit is {MAX_SETTINGS_BYTES}; put long text into the message "
            "or the persona.",
            details={"bytes": size, "limit": MAX_SETTINGS_BYTES},
        )
    if submit.request_id is not None and submit.request_id.startswith(OWN_REQUESTS):
        raise ValidationError(
            f"Request ids that begin with {OWN_REQUESTS!r} are the session's own; use another one."
        )
    if submit.request_id is not None and not 0 < len(submit.request_id) <= 200:
        raise ValidationError(
            f"The request id has {len(submit.request_id)} characters; use 1 to 200."
        )


def check_event(event: Perceive) -> None:
    """Refuse an event that says nothing, or carries too much.

    Raises:
        ValidationError: It is blank, or one of its parts is over 4 KB.
    """
    if not event.message.strip():
        raise ValidationError("The event says nothing; tell in words what happens.")
    episodes = [episode.model_dump(mode="json") for episode in event.prior_episodes]
    parts = {"payload": event.payload, "source": event.source, "prior episodes": episodes}
    for name, part in parts.items():
        size = encoded_size(part)
        if size > MAX_EVENT_PART_BYTES:
            raise ValidationError(
                f"The event's {name} take {size} bytes and the limit is {MAX_EVENT_PART_BYTES}; "
                "keep large things elsewhere and name them."
            )


def settings_of(submit: SubmitTurn) -> dict[str, Any]:
    """What a turn carries beside its content, as JSON."""
    taken = {"suffix", "sender", "options", "model", "fallback", "interlocutor", "event"}
    taken |= {"user_context", "task_context"}
    return submit.model_dump(mode="json", include=taken, exclude_none=True)


def queued_bytes(state: SessionState) -> int:
    """Bytes that the queue's inputs take in the state."""
    return sum(encoded_size(record.input) for record in state.queue)


def check_config(config: SessionConfig) -> None:
    """Refuse settings that are too large to be carried, and overlays that are none.

    Raises:
        MessageTooLargeError: They are over 16 KB.
        ValidationError: An overlay is no rule.
    """
    size = encoded_size(config)
    if size > MAX_CONFIG_BYTES:
        raise MessageTooLargeError(
            f"The session's configuration has {size} bytes and the limit is {MAX_CONFIG_BYTES}; "
            "put long text into the persona.",
            details={"bytes": size, "limit": MAX_CONFIG_BYTES},
        )
    for rule in config.overlays:
        parse(rule, OverlayRule)


def check_credentials(credentials: dict[str, str]) -> None:
    """Refuse raw keys: only names of the worker's variables may enter history.

    Raises:
        CredentialRefusedError: A value does not have the form ``env:NAME``.
    """
    for provider, value in credentials.items():
        if not value.startswith("env:") or not value[4:].replace("_", "").isalnum():
            raise CredentialRefusedError(
                f"The credential for {provider!r} is not of the form 'env:NAME'. Raw keys are "
                "refused since everything sent to a session is kept in its history; set the key "
                "on the worker and name its variable.",
                details={"provider": provider},
            )


class Requests:
    """Accepts and finds turns.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def check(self, submit: SubmitTurn) -> None:
        """Refuse what this session cannot take now.

        Raises:
            SessionClosedError: The session is closing, or the sender means another one.
            SessionUserMismatchError: The session serves another user.
            PersonaMismatchError: The session runs another persona.
            RequestMismatchError: The request id was used with another input.
            ConversationBusyError: A turn waits for the host.
            SessionBusyError: The queue is full, or a turn runs and the sender will not wait.
        """
        core, state = self._core, self._core.state
        core.check_open()
        if submit.session_key is not None and submit.session_key != state.session:
            raise SessionClosedError(
                f"The session {submit.session_key!r} is closed; the id now belongs to "
                f"{state.session!r}. Open the session again.",
                details={"session_key": state.session},
            )
        if submit.user_id != core.start.user_id or submit.org not in (None, core.start.org):
            raise SessionUserMismatchError(
                "The session belongs to another user; use a session of your own.",
            )
        if submit.persona is not None and submit.persona != state.rules.persona:
            raise PersonaMismatchError(
                f"The session runs persona {state.rules.persona!r}, not {submit.persona!r}; "
                "change it with refresh_persona.",
                details={"persona": state.rules.persona},
            )
        if submit.event is not None and state.rules.mind.emotion is None:
            raise ValidationError(
                f"The persona {state.rules.persona!r} has no emotions; set its "
                "emotionConfig.enabled."
            )
        if self._known(submit) is not None:
            return
        pending = [call.call.id for record in state.paused for call in pending_calls(record)]
        if pending and submit.on_pause == "refuse":
            raise ConversationBusyError(
                "A turn waits for tool results; answer its calls, or send with on_pause='answer'.",
                details={"pending": pending},
            )
        if submit.sends == "refuse" and (state.active or state.queue or state.paused):
            raise SessionBusyError("A turn is running; wait for it, or send with sends='queue'.")
        if queued_bytes(state) + encoded_size(settings_of(submit)) > MAX_QUEUE_BYTES:
            raise SessionBusyError(
                f"The {len(state.queue)} queued turns fill the queue; send again when some have "
                "ended.",
                details={"queued": len(state.queue), "limit_bytes": MAX_QUEUE_BYTES},
            )
        if len(state.queue) >= MAX_QUEUE:
            raise SessionBusyError(
                f"{len(state.queue)} turns are queued and the limit is {MAX_QUEUE}; "
                "send again when some have ended.",
                details={"queued": len(state.queue), "limit": MAX_QUEUE},
            )

    def accept(self, submit: SubmitTurn) -> tuple[TurnRecord | None, str, str]:
        """Queue a new turn, or find the one that the request made.

        Returns:
            The new record, or ``None`` when the request is known; the turn's id; the request id.
        """
        state = self._core.state
        request_id = submit.request_id or str(workflow.uuid4())
        known = self._known(submit)
        turn = turn_id(state.session, request_id)
        if known is not None:
            return None, turn, request_id
        state.seq += 1
        digest = input_digest(submit)
        record = TurnRecord(
            turn=turn,
            seq=state.seq,
            request_id=request_id,
            digest=digest,
            kind=submit.kind,
            input=TurnInput(
                content=submit.content,
                history=submit.history,
                sender=submit.sender,
                suffix=submit.suffix,
                options=submit.options,
                model=submit.model,
                fallback=submit.fallback,
                stream=submit.stream,
                max_tool_iterations=submit.max_tool_iterations,
                interlocutor=submit.interlocutor,
                event=submit.event,
                ceiling=submit.ceiling,
                user_context=submit.user_context,
                task_context=submit.task_context,
            ),
            created_at=workflow.now(),
        )
        state.requests.append(RequestMemo(turn=short(turn), digest=digest))
        state.queue.append(record)
        return record, turn, request_id

    def _known(self, submit: SubmitTurn) -> RequestMemo | None:
        if submit.request_id is None:
            return None
        turn = short(turn_id(self._core.state.session, submit.request_id))
        memo = next((m for m in self._core.state.requests if m.turn == turn), None)
        if memo is not None and memo.digest != input_digest(submit):
            raise RequestMismatchError(
                f"The request id {submit.request_id!r} was used with another input; "
                "use a new id for a new message.",
                details={"request_id": submit.request_id},
            )
        return memo


def short(turn: str) -> str:
    """A turn id's first half, enough to recognise it among a session's last requests."""
    return turn.replace("-", "")[:16]
