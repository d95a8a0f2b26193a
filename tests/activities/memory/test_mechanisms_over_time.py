from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest

from gmi.activities.memory.decay import after_retrieval
from gmi.activities.memory.mechanisms.emotion_regulation import regulated
from gmi.activities.memory.mechanisms.persona_drift import proposals
from gmi.activities.memory.mechanisms.schema_encoding import fit
from gmi.activities.memory.mechanisms.source_confidence_decay import faded
from gmi.activities.memory.mechanisms.temporal_gist import due, gist_text, gisted
from gmi.activities.memory.modulation import modulated
from gmi.activities.memory.ranges import intensity
from gmi.activities.memory.traces import DAY, HOUR, Affect
from gmi.personas.errors import ValidationError
from gmi.personas.memory import (
    EmotionRegulation,
    MechanismSettings,
    PersonaDrift,
    SchemaEncoding,
    SourceConfidenceDecay,
    TemporalGist,
)

from .making import NOW, everybody, trace
from .rows import rows

SELDOM = TemporalGist(rule="seldom")
OLD = NOW - 61 * DAY
BY_VALENCE = EmotionRegulation(rule="valence")


def of(level: float | None, **settings: Any) -> MechanismSettings:
    return modulated(MechanismSettings(**settings), everybody(level))


@pytest.mark.parametrize("row", rows("mechanisms", "gist"), ids=lambda row: row["name"])
def test_old_memories_seldom_recalled_shrink_by_that_rule(row: dict[str, Any]) -> None:
    content = "the cat sat" if row["name"] != "old31" else " ".join(f"w{n}" for n in range(40))
    memory = trace(
        type=row["type"],
        created_at=NOW - row["age"],
        retrievals=row["retrievals"],
        strength=row["strength"],
        active=row["active"],
        content=content,
    )
    assert bool(due([memory], NOW, SELDOM)) is row["shrinks"]
    if row["shrinks"]:
        after = gisted(memory, None, NOW, SELDOM)
        assert len(after.content.split()) == row["words"]
        assert after.strength == pytest.approx(row["new_strength"])


@pytest.mark.parametrize(("retrievals", "shrinks"), [(0, False), (1, False), (2, True), (9, True)])
def test_old_memories_recalled_twice_shrink_by_default(retrievals: int, shrinks: bool) -> None:
    memory = trace(created_at=OLD, retrievals=retrievals)
    assert bool(due([memory], NOW, TemporalGist())) is shrinks


@pytest.mark.parametrize("kind", ["procedural", "prospective", "relational"])
def test_only_what_happened_or_is_known_shrinks(kind: str) -> None:
    assert due([trace(created_at=OLD, type=kind)], NOW, SELDOM) == []


def test_a_cycle_shrinks_twenty_and_takes_the_oldest() -> None:
    memories = [trace(str(n), created_at=OLD - n) for n in range(25)]
    found = due(memories, NOW, SELDOM)
    assert [memory.id for memory in found] == [str(n) for n in range(24, 4, -1)]
    assert due(memories, NOW, TemporalGist(enabled=False)) == []


def test_a_gist_keeps_the_beginning_the_names_and_the_mood() -> None:
    words = [f"w{n}" for n in range(31)]
    memory = trace(content=" ".join(words), entities=("Ann", "w3"), mood="curious")
    text = " ".join(words[:30]) + "..."
    assert gist_text(memory, TemporalGist()) == f"{text} (Ann) [curious]"
    bare = TemporalGist(preserve_entities=False, preserve_emotional_context=False)
    assert gist_text(memory, bare) == text
    assert gist_text(trace(), TemporalGist()) == "the cat sat [neutral]"


def test_a_memory_shrinks_once_and_its_text_is_known_by_its_hash() -> None:
    memory = trace(created_at=OLD, retrievals=2, entities=("cat",))
    after = gisted(memory, " It was about a cat. ", NOW, TemporalGist())
    assert after.content == "It was about a cat."
    assert after.strength == pytest.approx(0.4)
    assert after.entities == ("cat",)
    assert after.affect == memory.affect
    assert after.mechanisms["temporal_gist"] == {
        "at": NOW,
        "sha256": hashlib.sha256(b"the cat sat").hexdigest(),
        "words": 3,
        "model": True,
    }
    assert due([after], NOW, TemporalGist()) == []


def test_a_blank_gist_of_a_model_is_replaced_by_the_beginning() -> None:
    after = gisted(trace(entities=("cat",)), "  ", NOW, TemporalGist(preserve_entities=False))
    assert after.content == "the cat sat [neutral]"
    assert after.entities == ()
    assert after.mechanisms["temporal_gist"]["model"] is False


@pytest.mark.parametrize("row", rows("mechanisms", "schema"))
def test_the_known_is_encoded_weaker_and_the_new_stronger(row: dict[str, Any]) -> None:
    settings = of(row["traits"]).schema_encoding
    found = fit(row["vector"], {"c1": row["centroid"]}, row["strength"], settings)
    assert found.congruent is row["congruent"]
    assert found.violating is not row["congruent"]
    assert found.cluster == ("c1" if row["congruent"] else None)
    assert found.strength == pytest.approx(row["new_strength"])


def test_the_nearest_cluster_counts() -> None:
    centres = {"far": [0.0, 1.0], "near": [1.0, 0.1], "opposite": [-1.0, 0.0]}
    found = fit([2.0, 0.0], centres, 0.5, SchemaEncoding())
    assert found.cluster == "near"
    assert found.similarity == pytest.approx(1 / math.hypot(1, 0.1))


def test_without_clusters_nothing_is_new() -> None:
    for settings in (SchemaEncoding(), SchemaEncoding(enabled=False)):
        clusters = {} if settings.enabled else {"c1": [1.0, 0.0]}
        found = fit([1.0, 0.0], clusters, 0.5, settings)
        assert found.strength == 0.5
        assert not found.congruent
        assert not found.violating


def test_vectors_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValidationError, match="one model"):
        fit([1.0, 0.0], {"c1": [1.0, 0.0, 0.0]}, 0.5, SchemaEncoding())
    with pytest.raises(ValidationError, match="finite"):
        fit([1.0, math.nan], {"c1": [1.0, 0.0]}, 0.5, SchemaEncoding())
    assert fit([0.0, 0.0], {"c1": [1.0, 0.0]}, 0.5, SchemaEncoding()).similarity == 0.0


@pytest.mark.parametrize("row", rows("mechanisms", "source"))
def test_a_doubtful_source_fades_faster(row: dict[str, Any]) -> None:
    settings = of(row["traits"]).source_confidence_decay
    memory = trace(source=row["source"], strength=row["strength"], stability=1000.0)
    after = faded(memory, NOW, settings)
    if row["kept"] == 1.0:
        assert after is None
        return
    assert after is not None
    assert after.stability == pytest.approx(1000.0 * row["kept"])
    assert faded(after, NOW + HOUR - 1, settings) is None
    hourly = settings.model_copy(update={"rule": "hourly"})
    assert faded(after, NOW + HOUR - 1, hourly) is None
    assert faded(after, NOW + HOUR, hourly) is not None


def test_a_doubtful_memory_loses_once_for_each_time_it_is_recalled() -> None:
    memory = faded(trace(source="reflection"), NOW, SourceConfidenceDecay())
    assert memory is not None
    assert faded(memory, NOW + 90 * DAY, SourceConfidenceDecay()) is None
    recalled = after_retrieval(memory, NOW + DAY)
    again = faded(recalled, NOW + DAY + HOUR, SourceConfidenceDecay())
    assert again is not None
    assert again.stability == pytest.approx(0.75 * recalled.stability)


def test_a_source_without_a_factor_and_an_inactive_memory_lose_nothing() -> None:
    assert faded(trace(source="rumour"), NOW, SourceConfidenceDecay()) is None
    doubtful = trace(source="reflection", active=False)
    assert faded(doubtful, NOW, SourceConfidenceDecay()) is None
    off = SourceConfidenceDecay(enabled=False)
    assert faded(trace(source="reflection"), NOW, off) is None


@pytest.mark.parametrize("row", rows("mechanisms", "regulation"))
def test_extreme_feelings_are_calmed_by_the_valence_rule(row: dict[str, Any]) -> None:
    settings = of(row["traits"], emotion_regulation=BY_VALENCE).emotion_regulation
    memory = trace(affect=Affect(row["valence"], row["arousal"]), strength=row["strength"])
    found = regulated([memory], settings)
    assert bool(found) is row["touched"]
    after = found[0] if found else memory
    assert after.affect.valence == pytest.approx(row["new_valence"])
    assert after.affect.arousal == pytest.approx(row["new_arousal"])
    assert after.strength == pytest.approx(row["new_strength"])
    if found:
        assert after.intensity == intensity(after.affect)


def test_the_valence_rule_suppresses_beyond_the_ten_that_it_reappraises() -> None:
    memories = [trace(f"e{n}", affect=Affect(-1.0, 2 * (0.7 + 0.02 * n) - 1)) for n in range(14)]
    found = {memory.id: memory for memory in regulated(memories, BY_VALENCE)}
    assert len(found) == 14
    for row in rows("mechanisms", "regulation_cycle"):
        after = found[row["id"]]
        assert after.affect.valence == pytest.approx(row["new_valence"])
        assert after.affect.arousal == pytest.approx(row["new_arousal"])
        assert after.strength == pytest.approx(row["new_strength"])


def test_high_arousal_is_calmed_by_default_ten_at_a_time() -> None:
    # Arousal 0.62 and more is above 0.8 of the way from asleep to most excited.
    memories = [trace(f"e{n}", affect=Affect(0.1, 0.6 + 0.02 * n)) for n in range(14)]
    found = regulated(memories, EmotionRegulation())
    assert [memory.id for memory in found] == [f"e{n}" for n in range(13, 3, -1)]
    strongest = found[0]
    share = (1 + 0.6 + 0.02 * 13) / 2 * 0.85
    assert strongest.affect.arousal == pytest.approx(2 * share - 1)
    assert strongest.affect.valence == pytest.approx(0.085)
    assert strongest.strength == 0.5
    assert regulated(memories[:1], EmotionRegulation()) == []


def test_what_stays_over_the_limit_is_suppressed_by_default_too() -> None:
    memory = trace(affect=Affect(0.0, 1.0), strength=0.5)
    assert regulated([memory], EmotionRegulation())[0].strength == pytest.approx(0.45)
    burnt_in = trace(affect=Affect(0.0, 1.0), strength=0.9)
    asleep = trace(affect=Affect(0.0, 1.0), active=False)
    assert regulated([burnt_in, asleep], EmotionRegulation()) == []
    assert regulated([memory], EmotionRegulation(enabled=False)) == []


def test_calming_again_and_again_ends() -> None:
    memory = trace(affect=Affect(-1.0, 1.0), strength=0.8)
    cycles = 0
    while after := regulated([memory], EmotionRegulation()):
        memory = after[0]
        cycles += 1
    assert cycles == 2
    assert memory.affect.arousal > 0


@pytest.mark.parametrize("row", rows("mechanisms", "drift"))
def test_a_life_suggests_changes_of_character(row: dict[str, Any]) -> None:
    lived = [
        trace(str(n), affect=Affect(row["valence"], row["arousal"])) for n in range(row["traces"])
    ]
    found = proposals(lived, PersonaDrift(enabled=True))
    assert [(proposal.trait, proposal.delta) for proposal in found] == [
        (name, delta) for name, delta, _ in row["proposals"]
    ]
    assert [proposal.confidence for proposal in found] == pytest.approx(
        [confidence for _, _, confidence in row["proposals"]]
    )


@pytest.mark.parametrize(
    ("others", "feeling", "expected"),
    [
        # Above 0.6 the mean arousal counts from 0.5 on, under it not at all.
        (Affect(0.0, 0.4), Affect(0.0, 0.4), [("emotionality", 0.01)]),
        (Affect(0.0, 0.18), Affect(0.0, 0.18), []),
        # Above three in ten a share counts, a calm one by half; three in ten are too few.
        (Affect(0.5, -0.6), Affect(0.0, -0.8), [("conscientiousness", 0.01)]),
        (Affect(0.0, 0.0), Affect(-0.5, 0.2), [("agreeableness", -0.02)]),
        (Affect(0.0, 0.0), Affect(0.5, 0.2), [("extraversion", 0.02)]),
    ],
)
def test_a_large_enough_share_of_a_life_suggests_a_change(
    others: Affect, feeling: Affect, expected: list[tuple[str, float]]
) -> None:
    def suggested(share: int) -> list[tuple[str, float]]:
        affects = [feeling] * share + [others] * (50 - share)
        lived = [trace(str(n), affect=affect) for n, affect in enumerate(affects)]
        return [(p.trait, p.delta) for p in proposals(lived, PersonaDrift(enabled=True))]

    assert suggested(20) == expected
    if others != feeling:
        assert suggested(15) == []


def test_nothing_is_suggested_unless_it_is_asked_for() -> None:
    lived = [trace(str(n), affect=Affect(-0.9, 0.9)) for n in range(50)]
    assert proposals(lived, PersonaDrift()) == []
