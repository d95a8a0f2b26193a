"""Ten years of remembering and forgetting, under a clock that the test moves."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from gmi.activities.memory.decay import LONGEST, after_retrieval, is_prunable, strength_at
from gmi.activities.memory.encoding import encode
from gmi.activities.memory.features import Features, attention_features
from gmi.activities.memory.mechanisms.emotion_regulation import regulated
from gmi.activities.memory.mechanisms.reconsolidation import reconsolidated
from gmi.activities.memory.mechanisms.source_confidence_decay import faded
from gmi.activities.memory.mechanisms.temporal_gist import due, gisted
from gmi.activities.memory.modulation import modulated
from gmi.activities.memory.traces import DAY, HOUR, Affect, Trace
from gmi.personas.memory import DecaySettings, MechanismSettings

from .making import NOW, trace

YEARS = 10
WEEK = 7 * DAY
KEEP = DecaySettings().keep_days * DAY
TRAITS = {"emotionality": 0.7, "openness": 0.6}


@dataclass
class Life:
    """A mind that lives by the pieces alone: each change is one of theirs."""

    chance: random.Random = field(default_factory=lambda: random.Random(1885))
    now: float = NOW
    memories: dict[str, Trace] = field(default_factory=dict)
    given_up: dict[str, float] = field(default_factory=dict)
    settings: MechanismSettings = field(
        default_factory=lambda: modulated(MechanismSettings(), TRAITS)
    )

    def live(self, name: str, content: str, mood: Affect, sentiment: float, source: str) -> None:
        encoded = encode(mood, sentiment, attention_features(content), TRAITS)
        self.memories[name] = trace(
            name,
            content=content,
            source=source,
            affect=encoded.affect,
            intensity=encoded.intensity,
            strength=encoded.strength,
            stability=encoded.stability,
            importance=encoded.importance,
            created_at=self.now,
            last_access=self.now,
        )

    def recall(self, name: str, mood: Affect) -> None:
        recalled = after_retrieval(self.memories[name], self.now)
        drifted = reconsolidated(recalled, mood, self.settings.reconsolidation)
        self.memories[name] = drifted or recalled

    def tidy(self) -> None:
        active = [memory for memory in self.memories.values() if memory.active]
        for memory in active:
            if is_prunable(memory, self.now, keep=KEEP):
                self.memories[memory.id] = replace(memory, active=False)
                self.given_up[memory.id] = self.now - memory.last_access
        for memory in due(self.memories.values(), self.now, self.settings.temporal_gist):
            self.memories[memory.id] = gisted(memory, None, self.now, self.settings.temporal_gist)
        for memory in list(self.memories.values()):
            doubtful = faded(memory, self.now, self.settings.source_confidence_decay)
            if doubtful:
                self.memories[memory.id] = doubtful
        for memory in regulated(self.memories.values(), self.settings.emotion_regulation):
            self.memories[memory.id] = memory

    def mood(self) -> Affect:
        return Affect(
            self.chance.uniform(-0.6, 0.6),
            self.chance.uniform(-0.4, 0.4),
            self.chance.uniform(-0.3, 0.3),
        )


@pytest.fixture(scope="module")
def life() -> Life:
    """Ten years: a remark a day, a reply a week, a joy or a grief a month."""
    mind = Life()
    mind.live("cat", "My cat is called Ada", Affect(), 0.3, "user_statement")
    mind.live("trip", "We went to Lyon " + "and ate well " * 20, Affect(), 0.0, "user_statement")
    mind.live("plain", "The tram was late", Affect(), 0.0, "user_statement")
    grief = Affect(-0.9, 0.9, -0.5)
    mind.live("grief", "My father died and I cannot stop crying", grief, -1.0, "user_statement")
    for day in range(365 * YEARS):
        mind.now = NOW + (day + 1) * DAY
        mind.live(f"day{day}", f"On day {day} it rained", mind.mood(), 0.0, "user_statement")
        if day % 30 == 10:
            shaken = Affect(mind.chance.choice([-0.8, 0.8]), 0.7, 0.0)
            sign = 1.0 if shaken.valence > 0 else -1.0
            mind.live(f"felt{day}", "I was so happy or so sad!!", shaken, sign, "user_statement")
        if day % 7 == 0:
            mind.live(f"reply{day}", "Perhaps it will rain", Affect(), 0.0, "agent_inference")
            mind.tidy()
        if day in (5, 20):
            mind.recall("trip", mind.mood())
        cat = mind.memories["cat"]
        if cat.next_at is None or mind.now >= min(cat.next_at, cat.last_access + 60 * DAY):
            mind.recall("cat", mind.mood())
    mind.tidy()
    return mind


def test_every_number_stays_in_its_range_for_ten_years(life: Life) -> None:
    assert len(life.memories) > 4000
    for memory in life.memories.values():
        assert 0 <= memory.strength <= 1
        assert 0 < memory.stability <= LONGEST
        assert 0 < memory.interval <= LONGEST
        assert 0 <= memory.intensity <= 1
        assert 0 <= memory.importance <= 1
        for part in (memory.affect.valence, memory.affect.arousal, memory.affect.dominance):
            assert -1 <= part <= 1


def test_what_is_rehearsed_lives(life: Life) -> None:
    cat = life.memories["cat"]
    assert cat.active
    assert cat.retrievals > 60
    assert strength_at(cat, life.now) > 0.7
    assert cat.stability > 90 * DAY


def test_what_is_rehearsed_drifts_no_further_than_its_limit(life: Life) -> None:
    assert life.memories["cat"].mechanisms["reconsolidation"]["drift"] == pytest.approx(0.4)


def test_what_was_recalled_a_few_times_shrinks_to_its_gist(life: Life) -> None:
    trip = life.memories["trip"]
    assert len(trip.content.split()) == 31
    assert trip.content.startswith("We went to Lyon")
    at = trip.mechanisms["temporal_gist"]["at"]
    assert 60 * DAY <= at - trip.created_at <= 60 * DAY + WEEK
    assert not trip.active
    assert KEEP <= life.given_up["trip"] <= KEEP + WEEK


def test_what_is_known_by_heart_keeps_its_words(life: Life) -> None:
    assert "temporal_gist" not in life.memories["cat"].mechanisms


def test_what_is_never_recalled_fades_and_is_given_up_in_time(life: Life) -> None:
    plain = life.memories["plain"]
    assert not plain.active
    assert strength_at(plain, plain.created_at + 2 * DAY) < 0.05
    assert KEEP <= life.given_up["plain"] <= KEEP + WEEK
    assert all(pause >= KEEP for pause in life.given_up.values())


def test_the_number_of_plain_memories_in_use_is_bounded(life: Life) -> None:
    plain = [
        memory
        for memory in life.memories.values()
        if memory.active and memory.id.startswith(("day", "reply"))
    ]
    kept_days = (KEEP + WEEK) / DAY
    assert len(plain) <= kept_days * (1 + 1 / 7) + 1


def test_emotional_memories_outlive_neutral_ones(life: Life) -> None:
    old = [memory for memory in life.memories.values() if life.now - memory.created_at > 365 * DAY]
    felt = [memory for memory in old if memory.id.startswith("felt")]
    plain = [memory for memory in old if memory.id.startswith("day")]
    assert len(felt) > 100
    assert all(memory.active for memory in felt)
    assert not any(memory.active for memory in plain)


def test_a_grief_is_kept_and_calmed_a_little(life: Life) -> None:
    grief = life.memories["grief"]
    assert grief.active
    assert grief.affect.valence < -0.3
    assert grief.affect.arousal < 0.9
    assert grief.intensity >= 0.3


def test_a_doubtful_reply_fades_faster_than_what_the_user_said(life: Life) -> None:
    last = max(name for name in life.memories if name.startswith("reply") and name != "reply0")
    reply = life.memories[last]
    plain = life.memories["plain"]
    assert reply.stability < plain.stability


def test_the_same_life_leaves_the_same_memories() -> None:
    def short() -> dict[str, Trace]:
        mind = Life()
        for day in range(200):
            mind.now = NOW + day * DAY
            mind.live(f"day{day}", "It rained", mind.mood(), 0.0, "user_statement")
            if day % 7 == 0:
                mind.tidy()
            if day % 3 == 0:
                mind.recall("day0", mind.mood())
        return mind.memories

    assert short() == short()


def test_recalls_that_are_spread_out_hold_longer_than_the_same_number_at_once() -> None:
    encoded = encode(Affect(), 0.0, Features())
    start = trace(strength=encoded.strength, stability=encoded.stability)
    crammed = spaced = start
    for step in range(6):
        crammed = after_retrieval(crammed, NOW + 60 * step)
        spaced = after_retrieval(spaced, NOW + 6 * HOUR * 2**step)
    assert spaced.retrievals == crammed.retrievals
    assert spaced.stability > 2 * crammed.stability
