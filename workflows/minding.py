"""The session's mind: how the user's words felt, what follows from that, and what time does.

Pure rules in :mod:`gmi.personas` say what changes; here it happens to the session's state, and
each change is said in the reasoning trace.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from ..personas.emotion import Event as Stimulation
from ..personas.emotion import Traits, advanced, felt, initial, label, perceived
from ..personas.errors import ValidationError
from ..personas.learning import TurnLearning
from ..personas.messages import Message
from ..personas.metaprompts.answers import MindPatch
from ..personas.metaprompts.fields import COMPLEXITIES, SKILL_LEVELS
from ..personas.metaprompts.triggers import Firings, due
from ..personas.metaprompts.variables import MindView, TraceLine
from ..personas.mind import Mind, affect, traits_in_force
from ..personas.mood import MoodState, decayed, moved
from ..personas.sentiment import LONG_CHARS, Sentiment, observed
from ..personas.traits import HEXACO, normalize_traits
from .core import Core
from .decode import short_digest
from .failures import info_from_activity
from .mind_calls import Perceive, Perception, SetTrait, TraitsView
from .mind_talk import remember
from .policies import STORE
from .ports import StorePort
from .session_records import Frozen
from .state import TurnRecord
from .steps import Feeling, LearnOrder, MindBrief, MindFacts
from .writes import KeepMind

RECENT_ENTRIES = 10
RECENT_MESSAGES = 5
TRACE_LINES = 20

CLEAR, STRONG = 0.2, 0.5
"""Intensities from which a feeling is told as clear, and as strong."""


class Minding:
    """Keeps a session's mind.

    Args:
        core: The session.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def feels(self) -> bool:
        """Whether the persona has emotions."""
        state = self._core.state
        return state.rules.mind.emotion is not None and state.mind.emotion is not None

    @property
    def active(self) -> bool:
        """Whether the session has a mind that changes, so that each turn keeps its own."""
        state = self._core.state
        rules = state.rules.mind
        return bool(state.moved or rules.sentiment.enabled or rules.triggers or rules.emotion)

    def wake(self) -> None:
        """Give a new session its mind, and one of an older release what it lacks."""
        state = self._core.state
        rules, now = state.rules.mind, workflow.now()
        if state.mind.mood is None:
            resting = MoodState.resting(rules.mood, now)
            state.mind = state.mind.but(mood=resting, user=rules.user, task=rules.task)
        character = self._character
        if character is not None and state.mind.emotion is None:
            state.mind = state.mind.but(emotion=initial(character, now.timestamp()))
        elif character is None and state.mind.emotion is not None:
            state.mind = state.mind.but(emotion=None)

    def present(self) -> Mind:
        """The mind as time has left it; computed when it is looked at, without timers."""
        state = self._core.state
        rules, now = state.rules.mind, workflow.now()
        mind = state.mind
        if mind.mood is not None:
            mind = mind.but(mood=decayed(mind.mood, now, rules.mood))
        if mind.emotion is not None and (character := self._character) is not None:
            mind = mind.but(emotion=advanced(mind.emotion, now.timestamp(), character))
        return mind

    def brief(self, overlaid: dict[str, float] | None = None) -> MindBrief | None:
        """What a turn's prompts are told of the mind; nothing where there is nothing to tell.

        Args:
            overlaid: Traits that the situation changes for this turn, over the persona's.
        """
        mind = self.present()
        rules = self._core.state.rules.mind
        told = MindBrief(
            feeling=in_words(mind, rules.emotion is not None, rules.mood.default),
            mood=mind.mood_word,
            skill_level=mind.user.skill_level,
            complexity=mind.task.complexity,
            domain=mind.task.domain,
            preferences=mind.user.preferences,
            traits={**(overlaid or {}), **mind.traits},
            happened=list(mind.happened),
            source=mind.source,
        )
        return None if told == MindBrief() else told

    def answered(self) -> None:
        """A message was answered: what happened before it has been told."""
        state = self._core.state
        if state.mind.happened:
            state.mind = state.mind.but(happened=(), source=None)

    def feeling(self) -> Feeling:
        """What the mind feels."""
        mind = self.present()
        felt = affect(mind)
        return Feeling(
            valence=felt.valence,
            arousal=felt.arousal,
            dominance=felt.dominance,
            mood=mind.mood_word,
        )

    def learn_order(self, record: TurnRecord) -> LearnOrder:
        """What learning has to know to prepare a turn."""
        return LearnOrder(
            org=self._core.start.org,
            binding=self._core.state.learner,
            overrides=record.brief.traits if record.brief is not None else {},
            seat=record.kind == "system",
        )

    def took_learning(self, record: TurnRecord, learning: TurnLearning) -> None:
        """Learning prepared the turn: what the store has learned is the truth."""
        state = self._core.state
        record.learning = learning
        if not self._still(record):
            return
        state.learner = learning.binding
        self._change(learned=learning.learned, params=learning.params)

    def patch(self, record: TurnRecord) -> None:
        """Apply what a round's tools change in the mind, in the order of their calls."""
        core, state = self._core, self._core.state
        for call in record.calls:
            result = record.results.get(call.id)
            if result is None or result.patch is None:
                continue
            mind, patch = state.mind, result.patch
            learned = dict(mind.learned)
            for trait, delta in patch.traits.items():
                learned[trait] = round(learned.get(trait, 0.0) + delta, 9)
            params = mind.params | {str(name): value for name, value in patch.params.items()}
            if self._still(record):
                self._change(learned=learned, params=params)
            if patch.usage is not None:
                record.usage = record.usage + patch.usage
            core.trace.add(
                "STATE_CHANGE",
                f"The mind changed by {call.name}.",
                record.turn,
                {"call_id": call.id, "traits": patch.traits, "params": patch.params},
            )
            if patch.remember and patch.remember.strip() and state.rules.memory:
                self._remember(record, call.id, patch.remember)
            result.patch = None

    def _still(self, record: TurnRecord) -> bool:
        """Whether the session still runs the persona that the turn began with."""
        return record.persona in ("", self._core.state.rules.persona)

    def become(self, frozen: Frozen) -> None:
        """Run another persona, or another version of the one that runs."""
        state = self._core.state
        careful = workflow.patched("keep-refreshed")
        if careful:
            # Until now emotions went on as the one before had them.
            state.mind = state.mind.but(emotion=self.present().emotion)
        if careful and frozen.rules.persona != state.rules.persona:
            # What this one has learned and set of itself is not the next one's.
            state.learner = None
            state.mind = state.mind.but(learned={}, params={})
        state.persona_digest = frozen.persona_digest
        state.toolset_digest = frozen.toolset_digest
        state.rules = frozen.rules
        self.wake()
        if careful and state.head is not None:
            self.keep(state.head)

    def _remember(self, record: TurnRecord, call_id: str, note: str) -> None:
        """Remember what a tool found worth it, beside whatever comes next."""
        core = self._core

        async def write() -> None:
            request_id = f"{record.turn} {call_id}"
            await remember(core, request_id, "episodic", note, "reflection", record.turn)

        core.run_after(write)

    def tool_mind(self, record: TurnRecord) -> MindFacts:
        """What a tool is told that changes the mind."""
        core, config = self._core, self._core.state.config
        return MindFacts(
            session=core.state.session,
            now=workflow.now(),
            at=core.at(record.turn, counter=core.state.counter),
            org=core.start.org,
            persona_digest=record.persona_digest,
            toolset_digest=record.toolset_digest,
            traits=self.traits(),
            model=config.model,
            fallback=config.fallback,
            credentials=config.credentials,
        )

    def heard(self, record: TurnRecord, sentiment: Sentiment) -> None:
        """The user's words were scored: count, and see what follows."""
        core, state = self._core, self._core.state
        # What the mind says of itself must not push the errors out of sight.
        told = [entry.type for entry in state.trace if entry.type != "DEBUG"]
        errors = told[-RECENT_ENTRIES:].count("ERROR")
        text, length = said_in(record)
        before = reversed(state.mind.sentiment.trends)
        lengths = [length, *(trend.length for trend in before)]
        found = observed(
            state.mind.sentiment,
            sentiment,
            turn=record.turn,
            text=text,
            now=workflow.now(),
            settings=state.rules.mind.sentiment,
            length=length,
            recent_errors=errors,
            # Every other one of the last messages is the user's.
            recent_user_lengths=lengths[: (RECENT_MESSAGES + 1) // 2],
        )
        state.mind = state.mind.but(
            sentiment=found.state,
            events=tuple(dict.fromkeys((*state.mind.events, *(e.type for e in found.events)))),
            last_event=found.events[-1].type if found.events else state.mind.last_event,
        )
        core.trace.add(
            "DEBUG",
            f"The user's words felt {sentiment.polarity}.",
            record.turn,
            {
                "score": sentiment.score,
                "intensity": sentiment.intensity,
                "frustration": found.state.frustration,
                "confusion": found.state.confusion,
                "satisfaction": found.state.satisfaction,
            },
        )
        for event in found.events:
            core.trace.add(
                "DEBUG",
                f"The event {event.type} was noticed.",
                record.turn,
                {"event": event.type, "severity": event.severity, **event.metadata},
            )

    def fired(self, record: TurnRecord) -> Firings:
        """What is due after a turn that is done; its events and flags are taken."""
        state = self._core.state
        mind = state.mind
        rules = state.rules.mind.triggers
        if not rules:
            return Firings()
        firings = due(
            rules,
            events=mind.events,
            counters=mind.counters,
            flags=[key for key, value in mind.working.items() if value],
            counts_user_turn=record.kind == "text",
        )
        gone = set(firings.consumed_events)
        state.mind = mind.without_notes(firings.consumed_flags).but(
            events=tuple(event for event in mind.events if event not in gone),
            counters=firings.counters,
        )
        return firings

    def view(self) -> MindView:
        """The mind as its metaprompts see it."""
        state = self._core.state
        mind = self.present()
        counted = mind.sentiment
        last = counted.trends[-1] if counted.trends else None
        lines = [
            TraceLine(type=entry.type, message=entry.message, details=entry.details)
            for entry in state.trace[-TRACE_LINES:]
        ]
        return MindView(
            mood=mind.mood_word,
            skill_level=mind.user.skill_level,
            complexity=mind.task.complexity,
            sentiment=last.polarity if last is not None else "neutral",
            sentiment_score=last.score if last is not None else 0.0,
            consecutive_frustration=counted.frustration,
            consecutive_confusion=counted.confusion,
            consecutive_satisfaction=counted.satisfaction,
            consecutive_neutral=counted.listless,
            confusion_keywords=last.confusing if last is not None else (),
            user_context=mind.user.model_dump(mode="json"),
            task_context=mind.task.model_dump(mode="json"),
            trace=tuple(lines),
        ).fitted()

    def apply(self, patch: MindPatch, turn: str, cause: str) -> dict[str, Any]:
        """Change the mind as a metaprompt wants it; returns what changed."""
        core, state = self._core, self._core.state
        rules = state.rules.mind
        # Not as time has left it: rounded again and again, it would stop short of its rest.
        mind, changed = state.mind, dict[str, Any]()
        if patch.mood is not None and mind.mood is not None:
            result = moved(mind.mood, patch.mood, rules.mood, workflow.now())
            mind = mind.but(mood=result.state)
            if result.refused is not None:
                core.trace.add("WARNING", result.refused, turn, {"metaprompt": cause})
            else:
                changed["mood"] = result.state.word
                changed["pad"] = result.state.pad.model_dump()
        if patch.skill_level in SKILL_LEVELS and patch.skill_level != mind.user.skill_level:
            mind = mind.but(user=mind.user.model_copy(update={"skill_level": patch.skill_level}))
            changed["skill_level"] = patch.skill_level
        if patch.complexity in COMPLEXITIES and patch.complexity != mind.task.complexity:
            mind = mind.but(task=mind.task.model_copy(update={"complexity": patch.complexity}))
            changed["complexity"] = patch.complexity
        if patch.imprints:
            notes = {imprint.key: imprint.value for imprint in patch.imprints}
            mind = mind.noted(notes, turn)
            changed["imprints"] = [imprint.key for imprint in patch.imprints]
        state.mind = mind
        if changed:
            core.trace.add(
                "STATE_CHANGE",
                f"The mind changed by {cause}.",
                turn,
                {"metaprompt": cause, "rationale": patch.rationale, **changed},
            )
        return changed

    def keep(self, turn: str) -> None:
        """Keep the mind with the turn that left it, where it is another than the last one kept."""
        core, state = self._core, self._core.state
        if not self.active:
            return
        digest = mind_digest(state.mind)
        if digest == state.mind_kept:
            return
        state.mind_kept = digest
        request = KeepMind(at=core.at(turn), mind=state.mind)
        card = state.card(turn)

        async def write() -> None:
            try:
                kept = await workflow.execute_activity_method(
                    StorePort.keep_mind,
                    request,
                    summary=f"keep the mind of turn {card.seq if card else turn}",
                    **STORE,
                )
            except ActivityError as error:
                info = info_from_activity(error)
                core.trace.add("WARNING", f"The mind was not kept: {info.message}", turn)
            else:
                state.forget_words(kept.forgotten)

        core.run_after(write)

    def traits(self) -> dict[str, float]:
        """The traits in force."""
        state = self._core.state
        return traits_in_force(state.rules.traits, state.mind)

    @property
    def _character(self) -> Traits | None:
        """The character that feels, by the traits in force; ``None`` without emotions."""
        feels = self._core.state.rules.mind.emotion is not None
        return Traits.of(self.traits()) if feels else None

    def _change(self, **changes: Any) -> None:
        """Change the mind; emotions went on until now as the traits before had them."""
        state, before, emotion = self._core.state, self.traits(), self.present().emotion
        state.mind = state.mind.but(**changes)
        if self.traits() != before:
            state.mind = state.mind.but(emotion=emotion)

    def set_trait(self, asked: SetTrait) -> TraitsView:
        """Set a trait for this session, or go back to the persona's own.

        Raises:
            ValidationError: It is no HEXACO trait.
        """
        core, state = self._core, self._core.state
        known = normalize_traits({asked.trait: 0.5})
        name = next(iter(known), asked.trait)
        if name not in HEXACO:
            raise ValidationError(
                f"{asked.trait!r} is no trait; use one of {', '.join(HEXACO)}.",
                details={"trait": asked.trait},
            )
        traits = {key: value for key, value in state.mind.traits.items() if key != name}
        if asked.value is not None:
            traits[name] = asked.value
        before = self.traits().get(name)
        self._change(traits=traits)
        core.trace.add(
            "STATE_CHANGE",
            f"The trait {name} was set.",
            details={"trait": name, "before": before, "after": self.traits().get(name)},
        )
        # The newest done turn is the one that everything after it goes on from.
        if workflow.patched("keep-traits"):
            state.moved = True
            if state.head is not None:
                self.keep(state.head)
        return TraitsView(traits=self.traits())

    def perceive(self, asked: Perceive, turn: str) -> Perception:
        """What an event leaves in a persona that feels."""
        core, state = self._core, self._core.state
        character = self._character
        assert character is not None
        assert state.mind.emotion is not None
        event = Stimulation(
            appraisal=asked.appraisal, stimulus=asked.stimulus, relationship=asked.relationship
        )
        result = perceived(state.mind.emotion, event, character, workflow.now().timestamp())
        state.mind = state.mind.but(emotion=result.state).told_of(asked.message, asked.source)
        core.trace.add(
            "STATE_CHANGE",
            f"The persona feels {result.label}.",
            turn,
            {
                "event": asked.type,
                "label": result.label,
                "intensity": result.intensity,
                "felt": result.felt.model_dump(),
                "importance": result.importance,
            },
        )
        return Perception(
            vad=result.felt,
            label=result.label,
            intensity=result.intensity,
            dominant=result.dominant,
            importance=result.importance,
            remembered=result.memorable and not asked.skip_memory,
        )


def mind_digest(mind: Mind) -> str:
    """Digest of a mind; parts that an older release does not know count once they are used."""
    unused: dict[str, Any] = {} if mind.noted_in else {"noted_in": True}
    if not any(trend.confusing for trend in mind.sentiment.trends):
        unused["sentiment"] = {"trends": {"__all__": {"confusing"}}}
    return short_digest(mind.model_dump_json(exclude=unused))


def said_in(record: TurnRecord) -> tuple[str, int]:
    """What the user said, as far as the session holds it, and the characters of all of it."""
    content = record.input.content
    if content is None:
        # It is kept elsewhere because it is long.
        return record.preview, LONG_CHARS
    text = content if isinstance(content, str) else Message(role="user", content=content).text
    return text, len(text)


def in_words(mind: Mind, feels: bool, usual: str) -> str | None:
    """What a persona is told of its own feelings; nothing while they are the usual ones."""
    parts: list[str] = []
    if mind.mood_word != usual:
        parts.append(f"Your mood at present is {mind.mood_word}.")
    if feels and mind.emotion is not None:
        word = label(felt(mind.emotion))
        if word.primary != "neutral":
            how = "strongly" if word.intensity > STRONG else "clearly"
            how = how if word.intensity > CLEAR else "a little"
            parts.append(f"You feel {word.primary}, {how}.")
    return " ".join(parts) or None
