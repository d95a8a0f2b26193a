from __future__ import annotations

import math
from typing import Any

import pytest

from gmi.activities.memory.modulation import modulated
from gmi.personas.errors import ValidationError
from gmi.personas.memory import MechanismSettings

from .making import everybody
from .rows import rows, table


@pytest.mark.parametrize("row", rows("modulation", "modulated"))
def test_a_character_changes_its_mechanisms(row: dict[str, Any]) -> None:
    found = modulated(MechanismSettings.model_validate(row["settings"]), row["traits"])
    multipliers = found.source_confidence_decay.decay_multipliers
    assert {
        "drift_rate": found.reconsolidation.drift_rate,
        "suppression_factor": found.retrieval_induced_forgetting.suppression_factor,
        "probability": found.involuntary_recall.probability,
        "partial_activation_threshold": found.feeling_of_knowing.partial_activation_threshold,
        "novelty_boost": found.schema_encoding.novelty_boost,
        "agent_inference": multipliers["agent_inference"],
        "reflection": multipliers["reflection"],
        "reappraisal_rate": found.emotion_regulation.reappraisal_rate,
    } == pytest.approx(
        {name: row[name] for name in row if name not in ("settings", "traits")}, abs=1e-12
    )


def test_gist_drift_and_switches_do_not_depend_on_character() -> None:
    given = MechanismSettings.model_validate({"reconsolidation": {"enabled": False}})
    for level in (0.0, 0.5, 1.0):
        found = modulated(given, everybody(level))
        assert found.temporal_gist == given.temporal_gist
        assert found.persona_drift == given.persona_drift
        assert not found.reconsolidation.enabled


def test_no_rate_leaves_its_range() -> None:
    extreme = MechanismSettings.model_validate(
        {
            "reconsolidation": {"driftRate": 1},
            "retrievalInducedForgetting": {"suppressionFactor": 1},
            "emotionRegulation": {"reappraisalRate": 1},
            "feelingOfKnowing": {"partialActivationThreshold": 1},
        }
    )
    for level in (0.0, 1.0):
        found = modulated(extreme, everybody(level))
        assert found.reconsolidation.drift_rate <= 1
        assert found.retrieval_induced_forgetting.suppression_factor <= 1
        assert found.emotion_regulation.reappraisal_rate <= 1
        assert found.feeling_of_knowing.partial_activation_threshold <= 1


def test_a_trait_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValidationError, match="openness"):
        modulated(MechanismSettings(), {"openness": math.nan})


def test_the_defaults_are_those_that_a_persona_file_names() -> None:
    defaults = table("modulation")["defaults"]
    # A limit that no importance reaches means the same as none.
    assert defaults["reconsolidation"].pop("immuneAboveImportance") > 1
    defaults["feelingOfKnowing"] = defaults.pop("metacognitiveFOK")
    found = MechanismSettings().model_dump(by_alias=True)
    for name, fields in defaults.items():
        assert {key: found[name][key] for key in fields} == fields
