"""What a turn has come to so far, so that its last step can record its end with its reply.

A plain turn then costs one activity: the reply, the bill and the end of the turn are one write.
The workflow still decides: a stop that it accepted meanwhile is a later write, and wins.
"""

from __future__ import annotations

from .decode import encoded_size
from .state import TurnRecord
from .steps import At, StepResult, TurnDraft
from .turns import TurnOutput

MAX_RESPONSE_TEXT = 16 * 1024
MAX_WARNINGS = 8
MAX_DRAFT_BYTES = 1024
"""Sent along with every step, so a turn of many calls must not drag them all behind it."""


def draft_of(record: TurnRecord) -> TurnDraft | None:
    """The turn before its next step, or ``None`` when it is too large to be sent along."""
    if record.texts is None:
        return None
    draft = TurnDraft(
        request_id=record.request_id,
        text=record.texts,
        tool_calls=record.made,
        usage=record.usage,
        warnings=record.warnings,
        limit_reached=record.limit_reached,
        steps=len(record.layout),
    )
    return draft if encoded_size(draft) <= MAX_DRAFT_BYTES else None


def closing_output(draft: TurnDraft, at: At, result: StepResult) -> TurnOutput:
    """The turn's output when the step that ``result`` describes is its last."""
    text = joined_text(draft.text, result.text)
    usage = draft.usage
    for failure in result.failures:
        if failure.usage is not None:
            usage = usage + failure.usage
    return TurnOutput(
        session_key=at.session,
        turn=at.turn,
        request_id=draft.request_id,
        status="done",
        is_final=True,
        response_text=text or None,
        text_stored=text is None,
        tool_calls=draft.tool_calls,
        usage=usage + result.usage,
        limit_reached=draft.limit_reached,
        finish_reason=result.finish_reason,
        provider=result.provider,
        model=result.model,
        hop=result.hop,
        steps=draft.steps + 1,
        warnings=with_warnings(draft.warnings, result.warnings),
        write_counter=at.counter,
    )


def joined_text(before: str | None, more: str | None) -> str | None:
    """A turn's text so far, or ``None`` once it is only in the store."""
    if before is None or more is None:
        return None
    joined = before + more
    return joined if len(joined.encode()) <= MAX_RESPONSE_TEXT else None


def with_warnings(known: list[str], more: list[str]) -> list[str]:
    """A turn's warnings; the first eight are kept."""
    return [*known, *more][:MAX_WARNINGS]
