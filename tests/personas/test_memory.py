from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gmi.personas.memory import MechanismSettings, MemorySettings


def test_a_persona_that_says_nothing_remembers_nothing() -> None:
    for config in (None, {}, {"conversationContext": {"maxMessages": 5}, "rag_config": {}}):
        assert not MemorySettings.from_config(config).enabled


def test_a_persona_that_asks_for_memory_has_the_defaults() -> None:
    found = MemorySettings.from_config({"enabled": True, "ragConfig": {"enabled": False}})
    assert found == MemorySettings()
    assert found.token_budget == 1600
    assert found.top_k == 20
    assert found.consolidation.interval == 3600
    assert found.scopes == ("user", "thread", "persona", "organization")
    assert sum(found.weights.model_dump().values()) == pytest.approx(1.0)


def test_mechanisms_are_none_all_or_as_they_are_set() -> None:
    assert MemorySettings().mechanisms is None
    assert MemorySettings.model_validate({"mechanisms": {}}).mechanisms == MechanismSettings()
    found = MemorySettings.from_config(
        {
            "cognitiveMechanisms": {
                "involuntaryRecall": {"probability": 0.5},
                "metacognitiveFOK": {"enabled": False},
            }
        }
    ).mechanisms
    assert found is not None
    assert found.involuntary_recall.probability == 0.5
    assert found.involuntary_recall.min_age_days == 14
    assert not found.feeling_of_knowing.enabled
    assert found.temporal_gist.enabled
    assert not found.persona_drift.enabled


def test_a_source_that_is_set_leaves_the_others_at_their_defaults() -> None:
    found = MechanismSettings.model_validate(
        {"sourceConfidenceDecay": {"decayMultipliers": {"reflection": 0.5, "rumour": 0.1}}}
    ).source_confidence_decay.decay_multipliers
    assert found["reflection"] == 0.5
    assert found["rumour"] == 0.1
    assert found["agent_inference"] == 0.8


def test_settings_are_written_and_read_again() -> None:
    found = MemorySettings.from_config(
        {
            "topK": 5,
            "spreading": {"maxDepth": 2},
            "mechanisms": {"temporalGist": {"rule": "seldom"}},
        }
    )
    assert MemorySettings.model_validate(found.model_dump(by_alias=True)) == found
    assert MemorySettings.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    "config",
    [
        {"topk": 3},
        {"topK": 0},
        {"tokenBudget": -1},
        {"weights": {"similarity": float("nan")}},
        {"weights": {"recency": -0.1}},
        {"consolidation": {"interval": 0}},
        {"consolidation": {"interval": float("inf")}},
        {"consolidation": {"interval": 1e300}},
        {"consolidation": {"maxTraces": 10**400}},
        {"consolidation": {"removalDays": 1e9}},
        {"decay": {"baseStability": 1e308}},
        {"decay": {"keepDays": 1e307}},
        {"weights": {"strength": 1e308}},
        {"mechanisms": {"involuntaryRecall": {"minAgeDays": 1e305}}},
        {"mechanisms": {"schemaEncoding": {"noveltyBoost": 1e308}}},
        {"tokenBudget": 2**63},
        {"scopes": ["galaxy"]},
        {"embedding": ""},
        {"spreading": {"decayPerHop": 1.5}},
        {"mechanisms": {"daydreams": {}}},
        {"mechanisms": {"involuntaryRecall": {"probability": 2}}},
        {"mechanisms": {"temporalGist": {"rule": "often"}}},
        {"mechanisms": {"sourceConfidenceDecay": {"decayMultipliers": {"external": 0}}}},
        {"mechanisms": {"sourceConfidenceDecay": {"decayMultipliers": {"external": 1.5}}}},
    ],
)
def test_a_setting_that_means_nothing_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MemorySettings.from_config(config)


def test_a_scope_named_twice_counts_once() -> None:
    found = MemorySettings.model_validate({"scopes": ["user", "thread", "user"]})
    assert found.scopes == ("user", "thread")
    assert MemorySettings.model_validate({"scopes": []}).scopes == ()


def test_every_number_has_two_bounds() -> None:
    def unbounded(schema: dict[str, Any]) -> list[str]:
        definitions = {"": schema, **schema["$defs"]}
        return [
            f"{owner}.{name}"
            for owner, definition in definitions.items()
            for name, field in definition.get("properties", {}).items()
            for form in field.get("anyOf", [field])
            if form.get("type") in ("number", "integer")
            and not (
                form.keys() & {"minimum", "exclusiveMinimum"}
                and form.keys() & {"maximum", "exclusiveMaximum"}
            )
        ]

    assert unbounded(MemorySettings.model_json_schema()) == []
