"""A memory as lists and programs see it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from ...personas.errors import ValidationError
from .ago import ago
from .decay import strength_at
from .provenance import is_gist, source_of
from .traces import Scope, ScopeKind, Trace
from .trust import PURPOSES, needs_verifying, policy_of

SCOPE_KINDS: tuple[ScopeKind, ...] = get_args(ScopeKind)

PREVIEW_CHARS = 200

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()
_LAST = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds()


def item_of(trace: Trace, now: float) -> dict[str, Any]:
    """A memory as JSON.

    Args:
        trace: The memory.
        now: Seconds since the epoch; the strength is that of this moment.
    """
    policy = policy_of(trace.source, trace.policy)
    return {
        "id": trace.id,
        "scope": scope_name(trace.scope),
        "type": trace.type,
        "role": trace.role,
        "source": trace.source,
        "said_by": source_of(trace),
        "content": trace.content,
        "session": trace.session or None,
        "turn": trace.about or None,
        "persona": trace.persona_id or None,
        "strength": round(strength_at(trace, now), 6),
        "stability_seconds": round(trace.stability, 3),
        "importance": round(trace.importance, 6),
        "confidence": round(trace.confidence, 6),
        "usable_for": [name for name in PURPOSES if policy.allows(name)],
        "verifications": trace.verifications,
        "verified_at": iso(trace.verified_at) if trace.verified_at is not None else None,
        "needs_verifying": needs_verifying(policy, trace.verified_at or trace.created_at, now),
        "contradicted_by": trace.contradicted_by,
        "retrievals": trace.retrievals,
        "mood": trace.mood,
        "valence": round(trace.affect.valence, 6),
        "arousal": round(trace.affect.arousal, 6),
        "tags": list(trace.tags),
        "entities": list(trace.entities),
        "created_at": iso(trace.created_at),
        "last_access": iso(trace.last_access),
        "age": ago(now - trace.created_at),
        "active": trace.active,
        "gist": is_gist(trace),
        "corrected": "corrected" in trace.mechanisms,
    }


def preview(trace: Trace) -> str:
    """The beginning of a memory, on one line."""
    text = " ".join(trace.content.split())
    return text if len(text) <= PREVIEW_CHARS else text[: PREVIEW_CHARS - 1] + "…"


def iso(seconds: float) -> str:
    """A time in seconds since the epoch as ISO 8601 in UTC.

    One that no calendar names is told as the first or the last moment that one does.
    """
    # In this order a time that is not a number is the first one.
    named = min(_LAST, max(_FIRST, seconds))
    return (_EPOCH + timedelta(seconds=named)).isoformat(timespec="milliseconds")


def scope_name(scope: Scope) -> str:
    """``kind:id``."""
    return f"{scope.kind}:{scope.id}"


def parse_scope(name: str) -> Scope:
    """The scope of a ``kind:id``.

    Raises:
        ValidationError: It has another form.
    """
    kind, colon, id_ = name.partition(":")
    if kind not in SCOPE_KINDS or not colon or not id_:
        raise ValidationError(
            f"{name[:200]!r} names no scope; write kind:id with one of the kinds "
            f"{', '.join(SCOPE_KINDS)}, such as user:anna."
        )
    return Scope(kind, id_)
