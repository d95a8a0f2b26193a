"""Where another rule is in use elsewhere: its value, and the one that holds here."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.activities.memory.decay import after_retrieval
from gmi.activities.memory.encoding import encode
from gmi.activities.memory.features import Features
from gmi.activities.memory.mechanisms.emotion_regulation import regulated
from gmi.activities.memory.mechanisms.feeling_of_knowing import Near, feelings
from gmi.activities.memory.mechanisms.reconsolidation import reconsolidated
from gmi.activities.memory.mechanisms.retrieval_induced_forgetting import suppressed
from gmi.activities.memory.mechanisms.source_confidence_decay import faded
from gmi.activities.memory.mechanisms.temporal_gist import due
from gmi.activities.memory.ranges import intensity
from gmi.activities.memory.scoring import score
from gmi.activities.memory.spreading import activations
from gmi.activities.memory.traces import DAY, HOUR, Affect
from gmi.personas.memory import (
    EmotionRegulation,
    FeelingOfKnowing,
    Reconsolidation,
    RetrievalInducedForgetting,
    ScoreWeights,
    SourceConfidenceDecay,
    SpreadingSettings,
    TemporalGist,
)

from .making import NOW, affect, trace
from .rows import rows


def importance(given: dict[str, Any]) -> float:
    """The memory's own importance counts, not how far its source is trusted."""
    return score(trace(**given), 0.5, Affect(), NOW, ScoreWeights()).importance


def felt(given: dict[str, Any]) -> float:
    """Arousal counts from -1 to 1 everywhere: a drowsy feeling is weak, not absent."""
    return intensity(affect(given["affect"]))


def arousal_drift(given: dict[str, Any]) -> dict[str, Any]:
    """The mood and a memory have one scale, so that arousal drifts to the mood's own."""
    settings = Reconsolidation(drift_rate=given["rate"])
    after = reconsolidated(trace(), affect(given["mood"]), settings)
    assert after is not None
    moved = after.affect
    return {
        "affect": pytest.approx([moved.valence, moved.arousal, moved.dominance]),
        "drift": pytest.approx(after.mechanisms["reconsolidation"]["drift"]),
    }


def immunity(given: dict[str, Any]) -> bool:
    """The limit is read against the importance, which can reach it."""
    memory = trace(importance=given["importance"])
    settings = Reconsolidation(immune_above_importance=given["immune_above_importance"])
    return reconsolidated(memory, Affect(1, 1, 1), settings) is None


def forgetting(given: dict[str, Any]) -> float:
    """Only what is like a recalled memory competes with it."""
    memory = trace(stability=1.0)
    settings = RetrievalInducedForgetting()
    changed = suppressed([memory], (), {memory.id: given["similarity"]}, settings)
    return changed[0].stability if changed else 1.0


def near_score(given: dict[str, Any]) -> float:
    """What was not recalled has its whole score, not one guessed from its similarity."""
    near = Near(trace(), given["score"], given["similarity"])
    return feelings([near], (), given["cutoff"], NOW, FeelingOfKnowing())[0].value


def gist(given: dict[str, Any]) -> bool:
    """Memories that were recalled at least twice shrink."""
    memory = trace(created_at=NOW - 61 * DAY, **given)
    return due([memory], NOW, TemporalGist()) == [memory]


def regulation(given: dict[str, Any]) -> bool:
    """Arousal decides which memories are calmed."""
    memory = trace(affect=Affect(given["valence"], given["arousal"]))
    return bool(regulated([memory], EmotionRegulation()))


def seed_activation(given: dict[str, Any]) -> float:
    """A memory that activation starts from is woken by the others."""
    graph = {"a": [("b", given["weight"])], "b": []}
    return activations(lambda node: graph[node], ["a", "b"], SpreadingSettings())["b"]


def growth(given: dict[str, Any]) -> float:
    """However often a memory was recalled, one more recall does not weaken it."""
    memory = trace(strength=1.0, stability=1.0, **given)
    return after_retrieval(memory, NOW).stability


def source_after_a_day(given: dict[str, Any]) -> float:
    """A doubtful source costs once, not once an hour for ever."""
    memory = trace(stability=1.0, **given)
    for hour in range(24):
        memory = faded(memory, NOW + hour * HOUR, SourceConfidenceDecay()) or memory
    return memory.stability


def flashbulb_in_a_turn(given: dict[str, Any]) -> bool:
    """The content's sentiment is told, so that a shock in a conversation burns in."""
    return encode(affect(given["mood"]), given["sentiment"], Features()).flashbulb


RULES = {
    "importance": importance,
    "intensity": felt,
    "arousal_drift": arousal_drift,
    "immunity": immunity,
    "forgetting": forgetting,
    "near_score": near_score,
    "gist": gist,
    "regulation": regulation,
    "seed_activation": seed_activation,
    "growth": growth,
    "source_after_a_day": source_after_a_day,
    "flashbulb_in_a_turn": flashbulb_in_a_turn,
}


@pytest.mark.parametrize("row", rows("other_rules", "rules"), ids=lambda row: row["subject"])
def test_the_rule_here_gives_its_own_value(row: dict[str, Any]) -> None:
    found = RULES[row["subject"]](row["given"])
    here = row["here"]
    assert found == (pytest.approx(here) if isinstance(here, float) else here)
    assert found != row["elsewhere"]
