from __future__ import annotations

import math
from typing import Any

import pytest

from gmi.personas.emotion import (
    AppraisalVector,
    Event,
    Relationship,
    Stimulus,
    Traits,
)
from gmi.personas.errors import ValidationError


def test_what_is_left_out_is_neutral() -> None:
    assert AppraisalVector.of({}).model_dump() == {
        "goal_relevance": 0.0,
        "goal_congruence": 0.0,
        "expectedness": 0.5,
        "controllability": 0.5,
        "agency": 0.0,
        "norm_compatibility": 0.0,
        "internal_standards": 0.0,
        "adjustment_potential": 0.5,
        "urgency": 0.5,
    }
    assert AppraisalVector.of({"urgency": None, "agency": None}) == AppraisalVector()
    assert Relationship.of({"trust": None}) == Relationship(trust=0.5, familiarity=0.0)


def test_both_ways_of_writing_a_name_are_read() -> None:
    assert AppraisalVector.of({"goalRelevance": 0.4}) == AppraisalVector.of({"goal_relevance": 0.4})
    camel = {
        "vadDelta": {"A": -0.4},
        "vadOverride": {"D": 0.1},
        "bodyBudgetDelta": -0.3,
        "needsDelta": {"competence": -0.2},
    }
    snake = {
        "vad_delta": {"arousal": -0.4},
        "vad_override": {"dominance": 0.1},
        "body_budget_delta": -0.3,
        "needs_delta": {"competence": -0.2},
    }
    assert Stimulus.of(camel) == Stimulus.of(snake)
    assert Stimulus.of(Stimulus.of(camel).model_dump()) == Stimulus.of(camel)
    assert Stimulus.of(Stimulus.of(camel).model_dump(by_alias=True)) == Stimulus.of(camel)


@pytest.mark.parametrize("far", [7, -7, 1e300, -1e300, 10**400, -(10**400)])
def test_numbers_beyond_their_range_count_as_its_end(far: float) -> None:
    high = far > 0
    appraisal = AppraisalVector.of(dict.fromkeys(AppraisalVector.model_fields, far))
    signed = {"goal_relevance", "goal_congruence", "agency"}
    signed |= {"norm_compatibility", "internal_standards"}
    for name, value in appraisal.model_dump().items():
        assert value == (1.0 if high else -1.0 if name in signed else 0.0)
    assert Relationship.of({"trust": far}).trust == (1.0 if high else 0.0)
    stimulus = Stimulus.of({"vadOverride": {"V": far}, "vadDelta": {"V": far}})
    assert stimulus.vad_override is not None
    assert stimulus.vad_delta is not None
    assert stimulus.vad_override.valence == (1.0 if high else -1.0)
    assert stimulus.vad_delta.valence == (2.0 if high else -2.0)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, True, "0.5", [0.5]])
@pytest.mark.parametrize(
    ("where", "named"),
    [
        (lambda value: {"appraisal": {"agency": value}}, "appraisal.agency"),
        (lambda value: {"relationship": {"trust": value}}, "relationship.trust"),
        (lambda value: {"stimulus": {"bodyBudgetDelta": value}}, "stimulus.bodyBudgetDelta"),
        (lambda value: {"stimulus": {"vadDelta": {"V": value}}}, "stimulus.vadDelta"),
        (lambda value: {"stimulus": {"needsDelta": {"autonomy": value}}}, "stimulus.needsDelta"),
    ],
    ids=["appraisal", "relationship", "body", "vad", "needs"],
)
def test_what_is_no_finite_number_is_refused_by_name(where: Any, named: str, wrong: Any) -> None:
    with pytest.raises(ValidationError, match=named) as refused:
        Event.of(where(wrong))
    assert refused.value.code == "SYS_VALIDATION_ERROR"
    assert "number" in refused.value.message


def test_a_misspelt_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="agencey"):
        AppraisalVector.of({"agencey": 0.5})
    with pytest.raises(ValidationError, match="AppraisalVector"):
        AppraisalVector.of("angry")


def test_a_personas_traits_are_read_under_all_their_names() -> None:
    traits = Traits.of(
        {"honestyHumility": 0.9, "openness": 3, "emotionality": math.nan, "extraversion": "very"}
    )
    assert traits == Traits(honesty=0.9, openness=1.0)
    assert Traits.of(None) == Traits.of({"agreeableness": True}) == Traits()
    assert Traits.of({"conscientiousness": -2}).conscientiousness == 0.0
