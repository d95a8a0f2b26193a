"""Memories that a person puts in or puts right."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...personas.errors import (
    GMIError,
    MessageTooLargeError,
    NotFoundError,
    RequestMismatchError,
    ValidationError,
)
from ...workflows.memory import Care
from ..embedders.embedder import Embedder
from ..sentiment import valence
from .cache import vector_of
from .candidates import passage
from .encode import MAX_CONTENT
from .encoding import encode
from .entities import entities_of
from .features import attention_features
from .mechanisms.temporal_gist import NAME as GIST
from .store import Find, MemoryStore, Vector, Writing
from .traces import DAY, Affect, Scope, Trace

CONFIRMED = 0.95
"""Confidence in what a person put in or put right."""

ROLES = {"human_approval": "note", "reflection": "reflection", "user_statement": "user"}
"""Who speaks in a memory of each source that can be put in."""

NOTE_IMPORTANCE = 0.8
NOTE_STABILITY = 365 * DAY
"""A note was meant to stay: it fades a thousand times slower than what was only said."""


async def remember(
    store: MemoryStore,
    embedder: Embedder | None,
    request: Care,
    scope: Scope,
    *,
    persona_id: str,
    session: str = "",
) -> tuple[Trace, list[str]]:
    """Put a memory in; the same request puts in one, however often it is made.

    Only what a person puts in by hand counts as confirmed, and is kept much longer than what was
    said in a turn.

    Args:
        store: The memories.
        embedder: Makes its vector; when it does not answer a consolidation does that later.
        request: With ``now`` and ``request_id`` set.
        scope: Whose memory it is.
        persona_id: The persona that it is meant for, or ``""``.
        session: Key of the session that it is made in, or ``""``.

    Returns:
        The memory, and warnings.

    Raises:
        ValidationError: There is no text.
        MessageTooLargeError: The text is over 4,000 characters.
        RequestMismatchError: The request's id was used for another memory.
        NotFoundError: The request's memory was erased.
    """
    now, request_id = request.now, request.request_id
    if now is None or request_id is None:
        raise ValidationError("The request has no time or id; send it through GMIMemory.")
    words = checked(request.text)
    id_ = str(uuid.uuid5(uuid.NAMESPACE_OID, f"note/{request_id}"))
    standing = await store.find(Find(ids=[id_], faded=True, limit=1))
    if standing:
        found = standing[0]
        if found.scope != scope or ("corrected" not in found.mechanisms and found.content != words):
            raise RequestMismatchError(
                f"The request {request_id!r} put in another memory before; use a new id.",
                details={"request_id": request_id, "memory": id_},
            )
        return found, []
    encoding = encode(Affect(), valence(words), attention_features(words))
    by_hand = request.source == "human_approval"
    usual = NOTE_IMPORTANCE if by_hand else encoding.importance
    importance = usual if request.importance is None else request.importance
    trace = Trace(
        id=id_,
        scope=scope,
        content=words,
        type=request.type,
        source=request.source,
        role=ROLES[request.source],
        session=session,
        persona_id=persona_id,
        source_id=(request.turn or "") if session else "",
        tags=tuple(dict.fromkeys([*(["note"] if by_hand else []), *request.tags])),
        entities=entities_of(words),
        affect=encoding.affect,
        intensity=encoding.intensity,
        strength=encoding.strength,
        stability=encoding.stability,
        importance=importance,
        last_access=now,
        created_at=now,
        updated_at=now,
    )
    if by_hand:
        trace = replace(
            trace,
            confidence=CONFIRMED,
            verifications=1,
            verified_at=now,
            strength=max(trace.strength, importance),
            stability=max(trace.stability, NOTE_STABILITY),
        )
    vectors, warnings = await _vectors(embedder, trace)
    if not await store.write(Writing(now=now, new=[trace], vectors=vectors)):
        raise NotFoundError(
            f"The memory that the request {request_id!r} put in was erased; use a new id to put it "
            "in again.",
            details={"request_id": request_id, "memory": id_},
        )
    return trace, warnings


async def correct(
    store: MemoryStore,
    embedder: Embedder | None,
    trace: Trace,
    words: str,
    derived: Sequence[str],
    now: float,
) -> tuple[Trace, list[str]]:
    """Give a memory other words, which a person vouches for.

    What was made of the old words goes, and so does their vector.

    Args:
        store: The memories.
        embedder: Makes the new vector.
        trace: The memory.
        words: The right words.
        derived: Ids of what was made of it.
        now: Seconds since the epoch.

    Returns:
        The memory as it is now, and warnings.

    Raises:
        NotFoundError: It was erased meanwhile.
    """
    words = checked(words)
    changed = corrected(trace, words, now)
    vectors, warnings = await _vectors(embedder, changed)
    if derived:
        await store.erase(Find(ids=list(derived), faded=True), now)

    written: list[Trace] = []

    def change(standing: Mapping[str, Trace]) -> list[Trace]:
        written.clear()
        written.extend(corrected(old, words, now) for old in standing.values())
        return written

    await store.write(Writing(now=now, touched=[trace.id], change=change, vectors=vectors))
    if not written:
        raise NotFoundError("The memory was erased meanwhile.", details={"ids": [trace.id]})
    return written[0], warnings


def corrected(trace: Trace, words: str, now: float) -> Trace:
    """The memory with the right words; a faded one comes back."""
    noted = {"at": now, "source": trace.mechanisms.get("corrected", {}).get("source", trace.source)}
    kept = {name: note for name, note in trace.mechanisms.items() if name != GIST}
    return replace(
        trace,
        content=words,
        entities=entities_of(words),
        source="human_approval",
        confidence=max(trace.confidence, CONFIRMED),
        verifications=trace.verifications + 1,
        verified_at=now,
        contradicted_by=None,
        strength=max(trace.strength, NOTE_IMPORTANCE),
        stability=max(trace.stability, NOTE_STABILITY),
        last_access=now,
        active=True,
        mechanisms={**kept, "corrected": noted},
    )


def checked(text: str | None) -> str:
    """The text of a memory.

    Raises:
        ValidationError: There is none.
        MessageTooLargeError: It is too long.
    """
    words = (text or "").strip()
    if not words:
        raise ValidationError("A memory needs text; say what to remember.")
    if len(words) > MAX_CONTENT:
        raise MessageTooLargeError(
            f"The memory has {len(words)} characters and the limit is {MAX_CONTENT}; put it in "
            "several.",
            details={"characters": len(words), "limit": MAX_CONTENT},
        )
    return words


async def _vectors(embedder: Embedder | None, trace: Trace) -> tuple[dict[str, Vector], list[str]]:
    if embedder is None:
        return {}, []
    try:
        vectors = await embedder.embed([passage(trace)], "passage")
    except GMIError as error:
        warning = (
            f"KEPT_WITHOUT_VECTOR: the embedding model {embedder.model} did not answer "
            f"({error.message}); a consolidation embeds the memory later."
        )
        return {}, [warning]
    return {trace.id: vector_of(embedder.model, vectors[0])}, []
