"""A worker's long-term memory: what a turn's opening brings to mind, and what a turn leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...personas.errors import GMIError, StoreError
from ...personas.memory import MemorySettings
from ...personas.messages import Message
from ...personas.mind import Slot
from ...personas.schema import Persona
from ...workflows.memory import Encode, Encoded, user_scope_id
from ...workflows.mind_calls import Perceive
from ...workflows.steps import Feeling, Opened, RecallOrder, Reminder, RunStep
from ..asking import Asker, Bill
from ..beside import ASK_SECONDS
from ..embedders.embedder import Embedder
from ..embedders.watched import WatchedEmbedder
from ..store.protocol import History
from . import slots as working
from .cache import ScopeCache
from .context import MemoryContext, Shown, assemble_context
from .cues import Cues
from .encode import Encoder, Happened, Moment, Owner
from .hyde import imagining
from .index import SearchFilter
from .modulation import modulated
from .provider import ContextRequest, MemoryProvider, Observation, Reranker
from .recall import Recaller, RecallQuery, Recollection
from .store import Find, FinishedTurn, Marker, MemoryStore, Writing
from .traces import Affect, Scope, Trace

PROVIDER_SECONDS = 2.0
OBSERVE_SECONDS = 30.0
OBSERVE_ATTEMPTS = 5

RECALL_SECONDS = 10.0
"""A recall that takes longer is given up; the turn goes on without it."""

RECALLS = 3
"""Recalls of a turn at most: one whose memories are erased before it is kept is made anew."""


@dataclass(frozen=True, slots=True)
class Reminded:
    """What a step's prompt shows of the memory.

    Attributes:
        text: Goes ahead of the user's message; the same for every step of the turn.
        opened: What the opening brought to mind; of the turn's first step.
    """

    text: str = ""
    opened: Opened | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """Recall, encoding and cues with one embedding model.

    Attributes:
        problem: Why the model that was asked for is not there; words alone are used then.
    """

    recaller: Recaller
    encoder: Encoder
    cues: Cues
    embedder: Embedder | None
    problem: str | None = None


class Memories:
    """Long-term memory.

    Args:
        store: The memories.
        embedder: The embedding model of a name, ``None`` for the worker's own; ``None`` where
            there is none.
        asker: Asks a model for imagined memories; without it no persona gets them.
        reranker: A host's own, for personas that want it.
        provider: A host's own memory, for personas that have none of ours.
        provider_timeout: Seconds that its context is waited for.
    """

    def __init__(
        self,
        store: MemoryStore,
        embedder: Callable[[str | None], Embedder | None] = lambda name: None,
        asker: Asker | None = None,
        reranker: Reranker | None = None,
        provider: MemoryProvider | None = None,
        provider_timeout: float = PROVIDER_SECONDS,
    ) -> None:
        self.store = store
        self.provider = provider
        self._provider_timeout = provider_timeout
        self.cache = ScopeCache(store)
        self._embedder = embedder
        self._asker = asker
        self._reranker = reranker
        self._engines: dict[str | None, Engine] = {}
        self._watched: dict[str, WatchedEmbedder] = {}

    def engine(self, settings: MemorySettings) -> Engine:
        """Recall and encoding for a persona's settings."""
        known = self._engines.get(settings.embedding)
        if known is None:
            embedder, problem = None, None
            try:
                embedder = self._watch(self._embedder(settings.embedding))
            except GMIError as error:
                problem = f"NO_EMBEDDING_MODEL: words alone find memories: {error.message}"
            known = self._engines[settings.embedding] = Engine(
                Recaller(self.store, self.cache, embedder, self._reranker),
                Encoder(self.store, self.cache, embedder),
                Cues(embedder),
                embedder,
                problem,
            )
        return known

    def _watch(self, embedder: Embedder | None) -> Embedder | None:
        """The model as everybody uses it: if it hangs for one, nobody else waits for it."""
        if embedder is None:
            return None
        return self._watched.setdefault(embedder.model, WatchedEmbedder(embedder))

    def close(self) -> None:
        """Let go of what is held in memory."""
        self.cache.close()

    async def for_step(
        self,
        request: RunStep,
        attempt: int,
        persona: Persona,
        history: History,
        bills: list[Bill],
    ) -> Reminded:
        """What a step's prompt shows of the memory; recalled once a turn, and kept with it.

        Args:
            request: The step.
            attempt: Its attempt.
            persona: Who remembers.
            history: The conversation.
            bills: Takes what the questions asked for it were billed, also where it fails.

        Raises:
            StoreError: What was recalled cannot be kept or read.
        """
        if not request.remembers:
            return Reminded()
        at, opening = request.at, request.opening
        if opening is None or opening.recall is None or attempt > 1:
            kept = await self.store.context(at.session, at.turn)
            if kept is not None:
                opened = Opened.model_validate(kept["opened"]) if opening is not None else None
                return Reminded(kept["text"], opened)
        if opening is None or opening.recall is None:
            return Reminded()
        for _ in range(RECALLS):
            data = await self._remind(request, opening.recall, persona, history, bills)
            kept = await self.store.keep_context(at, attempt, data)
            if kept is not None:
                return Reminded(kept["text"], Opened.model_validate(kept["opened"]))
        why = f"what came to mind was erased meanwhile, {RECALLS} times"
        text, opened = failed(request, opening.recall, persona, why)
        data = {"text": text, "opened": opened.model_dump(mode="json")}
        kept = await self.store.keep_context(at, attempt, data) or data
        return Reminded(kept["text"], Opened.model_validate(kept["opened"]))

    async def encode(self, request: Encode, persona: Persona, attempt: int) -> Encoded:
        """Make a done turn into memories, once; or tell the host's own memory of it.

        Raises:
            EmbedderDownError: The embedding model cannot be reached, and the request is patient.
            StoreError: The store does not answer.
        """
        at = request.at
        settings = settings_of(persona)
        turn = await self.store.finished_turn(at.session, at.turn)
        if turn is None or turn.status != "done":
            return Encoded()
        if not settings.enabled:
            return await self._tell(request, persona, turn, attempt)
        domain = request.domain or next(iter(persona.strengths), "")
        owner = Owner(request.user_id, request.org, persona.id, domain)
        moment = Moment(settings, persona.hexaco, affect_of(request.feeling), request.feeling.mood)
        if turn.event is not None:
            event = Perceive.model_validate(turn.event)
            turn = replace(turn, said=event.message)
            happened = Happened(event.type, event.source.name, turn.importance)
            moment = replace(moment, happened=happened)
        encoder = self.engine(settings).encoder
        done = await encoder.encode(at, turn, owner, moment, patient=request.patient)
        return Encoded(
            traces=done.ids,
            applied=done.applied,
            changed=done.changed,
            links=done.links,
            warnings=done.warnings,
        )

    async def _tell(
        self, request: Encode, persona: Persona, turn: FinishedTurn, attempt: int
    ) -> Encoded:
        """Let the host's own memory observe a turn."""
        if self.provider is None:
            return Encoded()
        observation = Observation(
            key=f"{turn.session}:{turn.turn}",
            session_id=request.session_id,
            user_id=request.user_id,
            persona_id=persona.id,
            turn=turn.turn,
            said=turn.said,
            answered=turn.answered,
            ended_at=turn.ended_at,
        )
        try:
            async with asyncio.timeout(OBSERVE_SECONDS):
                await self.provider.observe(observation)
        except Exception as error:
            # A host's own code: whatever it raises, it is not asked for ever.
            if attempt < OBSERVE_ATTEMPTS:
                raise
            why = f"{type(error).__name__}: {error}"
            return Encoded(warnings=[f"MEMORY_PROVIDER_FAILED: the turn was not observed: {why}"])
        # Told: whoever takes the session over does not tell it again.
        await self.store.write(Writing(now=turn.ended_at, marker=Marker(request.at, "encode")))
        return Encoded(applied=True)

    async def _provided(self, request: RunStep, persona: Persona, said: str) -> tuple[str, Opened]:
        """The context of the host's own memory."""
        order = request.opening.recall if request.opening is not None else None
        if self.provider is None or order is None or not said:
            return "", Opened()
        try:
            async with asyncio.timeout(self._provider_timeout):
                text = await self.provider.get_context(
                    ContextRequest(
                        session_id=request.session_id,
                        user_id=request.user_id,
                        persona_id=persona.id,
                        turn=request.at.turn,
                        text=said,
                        token_budget=persona.memory.token_budget,
                    )
                )
        except Exception as error:
            late = isinstance(error, TimeoutError)
            why = (
                f"it took longer than {self._provider_timeout:g} s"
                if late
                else f"{type(error).__name__}: {error}"
            )
            return "", Opened(warnings=[f"MEMORY_PROVIDER_FAILED: no context came: {why}"])
        return (text or "").strip(), Opened()

    async def _remind(
        self,
        request: RunStep,
        order: RecallOrder,
        persona: Persona,
        history: History,
        bills: list[Bill],
    ) -> dict[str, Any]:
        """Recall, and turn it into what the prompt shows; a failure is a warning."""
        began = time.monotonic()
        facts: dict[str, Any] = {}
        # A model that does not answer leaves the recall its time.
        limit = RECALL_SECONDS + (ASK_SECONDS if persona.memory.hyde else 0.0)
        try:
            async with asyncio.timeout(limit):
                text, opened, facts = await self._recall(request, order, persona, history, bills)
        except TimeoutError:
            why = f"it took longer than {limit:.0f} s"
            text, opened = failed(request, order, persona, why)
        except StoreError:
            raise
        except GMIError as error:
            text, opened = failed(request, order, persona, error.message)
        except Exception as error:
            text, opened = failed(request, order, persona, f"{type(error).__name__}: {error}")
        opened = opened.model_copy(update={"seconds": round(time.monotonic() - began, 3)})
        return {"text": text, "opened": opened.model_dump(mode="json"), **facts}

    async def _recall(
        self,
        request: RunStep,
        order: RecallOrder,
        persona: Persona,
        history: History,
        bills: list[Bill],
    ) -> tuple[str, Opened, dict[str, Any]]:
        at = request.at
        settings = settings_of(persona)
        said = said_now(history.turn)
        if not settings.enabled and self.provider is not None:
            text, opened = await self._provided(request, persona, said)
            meant, warnings = await self._meant(order, settings, said)
            context = reminding(request, persona, meant)
            opened = opened.model_copy(
                update={
                    "reminded": [meant[place].id for place in context.reminded],
                    "warnings": [*opened.warnings, *warnings],
                }
            )
            return "\n\n".join(part for part in (context.text, text) if part), opened, {}
        now = at.now.timestamp()
        query = RecallQuery(
            text=said,
            scopes=scopes_read(settings, at.session, request.user_id, order.org, persona.id),
            now=now,
            settings=settings,
            mood=affect_of(order.feeling),
            where=SearchFilter(
                session=at.session,
                path=[(segment.branch, segment.depth) for segment in request.path],
                # What the prompt shows anyway needs no remembering.
                exclude_turns=[(at.session, turn) for turn in (*history.turns, at.turn)],
            ),
            seed=at.turn,
        )
        imagine = None
        if settings.hyde and self._asker is not None:
            imagine = imagining(self._asker, persona, request, bills)
        found = Recollection()
        if settings.enabled:
            engine = self.engine(settings)
            found = await engine.recaller.recall(query, imagine)
            if engine.problem is not None:
                found.warnings.append(engine.problem)
        held = await self._held(order.slots)
        meant, warnings = await self._meant(order, settings, said)
        context = assemble_context(
            [
                Shown(item.trace, item.score, linked=item.relevance == 0 and item.activation > 0)
                for item in found.items
            ],
            now=now,
            token_budget=settings.token_budget,
            working=[trace for _, trace in held],
            half=found.feelings,
            partial=found.half,
            involuntary=found.involuntary,
            reminders=[reminder.content for reminder in meant],
            user_name=request.opening.sender if request.opening is not None else None,
        )
        accessed = found.accessed
        opened = Opened(
            recalled=[item.trace.id for item in found.items],
            feelings=len(found.feelings),
            involuntary=found.involuntary.id if found.involuntary is not None else None,
            slots=slots_after(order.slots, held, found, persona.hexaco),
            reminded=[meant[place].id for place in context.reminded],
            warnings=[*found.warnings, *warnings],
        )
        facts = {
            "recalled": [
                {
                    "id": item.trace.id,
                    "score": round(item.score, 6),
                    "accessed": item.trace.id in accessed,
                }
                for item in found.items
            ],
            "suppressed": found.suppressed,
            "shown": context.shown,
            "hinted": context.hinted,
        }
        return context.text, opened, facts

    async def _meant(
        self, order: RecallOrder, settings: MemorySettings, said: str
    ) -> tuple[list[Reminder], list[str]]:
        """What is due and what its cue brings up, the most important first; and warnings."""
        due = [reminder for reminder in order.reminders if reminder.cue is None]
        if len(due) == len(order.reminders):
            return due, []
        met, warnings = await self.engine(settings).cues.met(order.reminders, said)
        return sorted([*due, *met], key=lambda reminder: -reminder.importance), warnings

    async def _held(self, slots: Sequence[Slot]) -> list[tuple[Slot, Trace]]:
        """What working memory holds, the most active first; what was erased is gone."""
        if not slots:
            return []
        ids = [slot.trace for slot in slots]
        traces = await self.store.find(Find(ids=ids, faded=True, limit=len(ids)))
        found = {trace.id: trace for trace in traces}
        held = [(slot, found[slot.trace]) for slot in slots if slot.trace in found]
        return sorted(held, key=lambda pair: -pair[0].activation)


def failed(request: RunStep, order: RecallOrder, persona: Persona, why: str) -> tuple[str, Opened]:
    """What the prompt shows when the recall failed: what is due is told all the same."""
    due = [reminder for reminder in order.reminders if reminder.cue is None]
    context = reminding(request, persona, due)
    return context.text, Opened(
        slots=order.slots,
        reminded=[due[place].id for place in context.reminded],
        warnings=[f"RECALL_FAILED: nothing was recalled: {why}"],
    )


def reminding(request: RunStep, persona: Persona, meant: Sequence[Reminder]) -> MemoryContext:
    """The context that tells of nothing but what was meant to be done."""
    return assemble_context(
        [],
        now=request.at.now.timestamp(),
        token_budget=persona.memory.token_budget,
        reminders=[reminder.content for reminder in meant],
    )


def settings_of(persona: Persona) -> MemorySettings:
    """A persona's memory settings, its mechanisms scaled by its traits."""
    settings = persona.memory
    if settings.mechanisms is None:
        return settings
    scaled = modulated(settings.mechanisms, persona.hexaco or None)
    return settings.model_copy(update={"mechanisms": scaled})


def scopes_read(
    settings: MemorySettings, session: str, user_id: str, org: str, persona_id: str
) -> list[Scope]:
    """The scopes that the recall of a session, named by its key, reads."""
    every = {
        "user": Scope("user", user_scope_id(user_id or session, org)),
        "thread": Scope("thread", session),
        "persona": Scope("persona", persona_id),
        "organization": Scope("organization", org) if org else None,
    }
    return [scope for name in settings.scopes if (scope := every[name]) is not None]


def affect_of(feeling: Feeling) -> Affect:
    """A feeling as the mathematics takes it."""
    return Affect(feeling.valence, feeling.arousal, feeling.dominance)


def said_now(turn: Sequence[Message]) -> str:
    """What the user says in a turn."""
    return "\n".join(m.text for m in turn if m.role in ("user", "system") and m.text.strip())


def slots_after(
    before: Sequence[Slot],
    held: Sequence[tuple[Slot, Trace]],
    found: Recollection,
    traits: Mapping[str, float],
) -> list[Slot]:
    """Working memory after a recall: what was remembered comes in, everything fades a little."""
    alive = {trace.id: trace for _, trace in held}
    view = working.WorkingMemory(
        working.capacity(traits),
        tuple(
            working.Slot(slot.trace, alive[slot.trace].content, slot.activation, slot.rehearsals)
            for slot in before
            if slot.trace in alive
        ),
    )
    for item in found.items[:5]:
        view = working.focus(view, item.trace.id, item.trace.content, min(1.0, item.score))
    view, _ = working.decayed(view)
    return [
        Slot(trace=slot.key, activation=round(slot.activation, 9), rehearsals=slot.rehearsals)
        for slot in view.slots
    ]
