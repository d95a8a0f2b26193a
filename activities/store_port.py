"""The store port: sessions, endings, imports, blobs and reads as activities."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity

from ..personas.errors import (
    GMIError,
    PersonaMismatchError,
    SessionClosedError,
    SessionUserMismatchError,
    StoreUnknownSessionError,
    ValidationError,
)
from ..personas.history import told_summary
from ..personas.messages import Message
from ..personas.mind import Mind, affect
from ..workflows.decode import lenient
from ..workflows.failures import refusal
from ..workflows.intentions import still_meant
from ..workflows.pages import Page, Read
from ..workflows.ports import StorePort, implements
from ..workflows.session_records import (
    Frozen,
    OpenedSession,
    OpenSession,
    RefreshInput,
    SaveSession,
    SessionConfig,
    Unremembered,
)
from ..workflows.steps import Feeling
from ..workflows.turns import TurnOutput
from ..workflows.writes import (
    BlobRefs,
    CloseTurn,
    Done,
    ImportHistory,
    ImportResult,
    KeepIntentions,
    KeepMind,
    Kept,
    KeptIntentions,
    KnownOutput,
    KnownTurn,
    PutBlobs,
)
from .blobs import dump_value, load_value
from .catalog import Catalog
from .content import ContentLoader
from .gateway.registry import ProviderRegistry
from .heartbeats import beating
from .store.protocol import LeftTurn, SessionRow, Store


@implements(StorePort)
class StoreActivities(StorePort):
    """Reads and writes the store.

    Args:
        store: The store.
        catalog: Freezes personas and tools.
        providers: Knows which model strings can be served.
    """

    def __init__(self, store: Store, catalog: Catalog, providers: ProviderRegistry) -> None:
        self._store = store
        self._catalog = catalog
        self._providers = providers
        self._content = ContentLoader(store)

    async def open_session(self, request: OpenSession) -> OpenedSession:
        """Find or make the session's row, and freeze its persona and tools."""
        async with serving():
            known = await self._store.find_session(request.session_id)
            if known is not None and known.closed_at is not None:
                known = None
            key = known.session if known is not None else request.new_key
            if request.expect_key is not None and request.expect_key != key:
                raise SessionClosedError(
                    f"The session {request.expect_key!r} is closed; open it again to start anew.",
                    details={"session_key": request.expect_key},
                )
            if known is not None:
                return await self._reopen(known, request)
            self._check_models(request.config)
            frozen = await self._catalog.freeze(request.persona, request.user_id, request.config)
            row = SessionRow(
                session=key,
                session_id=request.session_id,
                user_id=request.user_id,
                org=request.org,
                persona_digest=frozen.persona_digest,
                toolset_digest=frozen.toolset_digest,
                config=request.config.model_dump(mode="json"),
                state=None,
                counter=0,
                created_at=request.now,
                closed_at=None,
            )
            opened = await self._store.open_session(row, request.run)
            return self._opened(opened, frozen, request.config)

    async def refresh_persona(self, request: RefreshInput) -> Frozen:
        """Freeze another persona, or a newer version, for the turns to come."""
        async with serving():
            row = await self._store.get_session(request.at.session)
            if row is None:
                raise StoreUnknownSessionError(
                    f"The store has no session {request.at.session!r}; was it restored to an "
                    "older state?"
                )
            await self._catalog.reload()
            frozen = await self._catalog.freeze(request.persona, row.user_id, request.config)
            await self._store.set_persona(request.at, frozen.persona_digest, frozen.toolset_digest)
            return frozen

    async def close_turn(self, request: CloseTurn) -> Done:
        """Record how a turn ended."""
        async with serving():
            messages = [
                (placed, await self._content.message(placed.stored)) for placed in request.messages
            ]
            await self._store.close_turn(
                request.at,
                status=request.status,
                output=request.output,
                opening=request.opening,
                step_counter=request.step_counter,
                layout=request.layout,
                messages=messages,
                trace=request.trace,
                head=request.head,
            )
            return Done()

    async def import_history(self, request: ImportHistory) -> ImportResult:
        """Record a given history as a new root turn."""
        async with serving():
            messages = request.messages
            if request.messages_ref is not None:
                raw = load_value(await self._store.get_blob(request.messages_ref))
                messages = [Message.model_validate(item) for item in raw]
            messages = [m for given in messages if (m := importable(given)) is not None]
            forgotten = await self._store.import_history(
                request.at,
                opening=request.opening,
                messages=messages,
                forget=request.forget,
                output=request.output,
                trace=request.trace,
            )
            return ImportResult(forgotten=forgotten, messages=len(messages))

    async def put_blobs(self, request: PutBlobs) -> BlobRefs:
        """Keep large values under their digests."""
        async with serving():
            values = [dump_value(value) for value in request.values]
            data = [base64.b64decode(piece) for piece in request.data]
            return BlobRefs(
                digests=[
                    *await self._store.put_blobs("json", values),
                    *await self._store.put_blobs("data", data),
                ]
            )

    async def save_session(self, request: SaveSession) -> Done:
        """Record that the session is released or closed."""
        async with serving():
            await self._store.save_session(
                request.at, closed=request.closed, state=request.state, trace=request.trace
            )
            return Done()

    async def keep_mind(self, request: KeepMind) -> Kept:
        """Keep the mind that a turn left."""
        async with serving():
            mind = request.mind.model_dump(mode="json")
            return Kept(forgotten=sorted(await self._store.keep_mind(request.at, mind)))

    async def known_turn(self, request: KnownTurn) -> KnownOutput:
        """Look up what a turn came to that may have been made before."""
        async with serving():
            found = await self._store.known_turn(request.at, request.opening)
            return KnownOutput(output=found)

    async def keep_intentions(self, request: KeepIntentions) -> Done:
        """Keep what the session means to do later."""
        async with serving():
            held = request.held.model_dump(mode="json")
            await self._store.keep_intentions(request.at, held)
            return Done()

    async def read(self, request: Read) -> Page:
        """Read a page of what the store holds."""
        async with serving():
            return await self._store.read(request)

    async def _reopen(self, known: SessionRow, request: OpenSession) -> OpenedSession:
        """Go on with a session that was released, or whose workflow was ended from outside."""
        if (known.user_id, known.org) != (request.user_id, request.org):
            raise SessionUserMismatchError(
                "The session belongs to another user; use a session of your own."
            )
        persona = await self._catalog.persona(known.persona_digest)
        if request.persona is not None and request.persona != persona.id:
            raise PersonaMismatchError(
                f"The session runs persona {persona.id!r}, not {request.persona!r}; "
                "change it with refresh_persona.",
                details={"persona": persona.id},
            )
        opened = await self._store.open_session(known, request.run)
        frozen = Frozen(
            persona_digest=known.persona_digest,
            toolset_digest=known.toolset_digest,
            rules=self._catalog.rules(persona),
        )
        found = self._opened(opened, frozen, SessionConfig.model_validate(known.config))
        if opened.state is not None:
            return found
        left = await self._store.left_behind(opened)
        unremembered = []
        for turn in left.turns:
            try:
                waiting = await self._unremembered(turn)
            except GMIError as error:
                if error.retryable:
                    raise
                # The session opens all the same: one old turn is not worth all the others.
                frozen.warnings.append(f"Turn {turn.turn!r} is not remembered: {error.message}")
                continue
            if waiting is not None:
                unremembered.append(waiting)
        kept = lenient(left.intentions or {}, KeptIntentions)
        mind = kept_mind(left.mind)
        if mind is not None and left.hidden:
            mind = mind.without_words_of(left.hidden)
        return found.model_copy(
            update={
                "mind": mind,
                "unremembered": unremembered,
                "intentions": still_meant(kept, left.done),
                "usage": left.usage,
                "usage_by_model": dict(left.usage_by_model),
                "turns": left.ended,
            }
        )

    async def _unremembered(self, left: LeftTurn) -> Unremembered | None:
        """A turn as it is encoded later; ``None`` for one that is not to be remembered."""
        persona = await self._catalog.persona(left.persona_digest)
        if not self._catalog.rules(persona).memory:
            return None
        output = lenient(left.output, TurnOutput)
        felt_so = output.perception
        if output.event is not None and not (felt_so is not None and felt_so.remembered):
            return None
        mind = kept_mind(left.mind) or Mind()
        felt = affect(mind)
        return Unremembered(
            turn=left.turn,
            persona_digest=left.persona_digest,
            feeling=Feeling(
                valence=felt.valence,
                arousal=felt.arousal,
                dominance=felt.dominance,
                mood=mind.mood_word,
            ),
        )

    def _check_models(self, config: SessionConfig) -> None:
        """Refuse a model string that no provider serves, before anything is recorded."""
        for model in [config.model, *(hop.model for hop in config.fallback or [])]:
            if model is not None:
                self._providers.parse(model)

    def _opened(self, row: SessionRow, frozen: Frozen, config: SessionConfig) -> OpenedSession:
        return OpenedSession(
            session=row.session,
            created_at=row.created_at,
            frozen=frozen,
            state=row.state,
            config=config,
            counter=row.counter,
            seq=row.seq,
            trace_seq=row.trace_seq,
            head=row.head,
            head_branch=row.head_branch,
            head_depth=row.head_depth,
        )


@asynccontextmanager
async def serving(beat: Callable[[], None] = activity.heartbeat) -> AsyncIterator[None]:
    """Beat while the store works, and turn the project's errors into failures.

    A store that is down is waited for.

    Args:
        beat: Sends one heartbeat.
    """
    try:
        async with beating(beat):
            yield
    except GMIError as error:
        raise refusal(error) from error


def kept_mind(data: dict[str, Any] | None) -> Mind | None:
    """A mind as it was kept; ``None`` where there is none, or none that can be read."""
    if data is None:
        return None
    try:
        return lenient(data, Mind)
    except ValidationError:
        # A session without its feelings still serves.
        return None


def importable(message: Message) -> Message | None:
    """A message as a history takes it: a summary as a system message, no error, no thought."""
    if message.role in ("error", "thought"):
        return None
    return told_summary(message) if message.role == "summary" else message
