"""What a model says of an event is read as an appraisal, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gmi.personas.appraising import (
    REQUIRED,
    appraisal_question,
    appraisal_schema,
    appraisal_system,
    read_appraisal,
)
from gmi.personas.emotion import AppraisalVector, Interlocutor

SAID: dict[str, Any] = {
    "goal_relevance": 0.9,
    "goal_congruence": 0.8,
    "expectedness": 0.2,
    "controllability": 0.3,
    "agency": -0.5,
    "norm_compatibility": 0.1,
}


def test_the_form_names_every_number_of_an_appraisal_with_its_range() -> None:
    form = appraisal_schema()
    assert set(form["properties"]) == set(AppraisalVector.model_fields)
    for name, part in form["properties"].items():
        beyond = AppraisalVector.of({name: -5}).model_dump()[name]
        assert beyond == part["minimum"]
        assert AppraisalVector().model_dump()[name] == part["default"]


def test_the_last_three_numbers_are_neutral_where_they_are_left_out() -> None:
    read = read_appraisal(json.dumps(SAID))
    assert read.appraisal == AppraisalVector.of(SAID)
    assert read.appraisal is not None
    assert read.appraisal.internal_standards == 0
    assert (read.appraisal.adjustment_potential, read.appraisal.urgency) == (0.5, 0.5)


def test_numbers_beyond_their_range_count_as_its_end() -> None:
    read = read_appraisal(json.dumps({**SAID, "goal_relevance": 7, "expectedness": -1}))
    assert read.appraisal is not None
    assert (read.appraisal.goal_relevance, read.appraisal.expectedness) == (1, 0)


def test_other_names_and_words_around_the_object_do_no_harm() -> None:
    named = {"goalRelevance": SAID["goal_relevance"], "why": "it is good news", **SAID}
    del named["goal_relevance"]
    text = f"I think:\n```json\n{json.dumps(named)}\n```"
    assert read_appraisal(text).appraisal == AppraisalVector.of(SAID)


@pytest.mark.parametrize("name", REQUIRED)
def test_an_answer_without_one_of_the_first_six_is_of_no_use(name: str) -> None:
    for value in (None, "high", True):
        read = read_appraisal(json.dumps({**SAID, name: value}))
        assert read.appraisal is None
        assert read.problems


@pytest.mark.parametrize("text", ["", "no", "[1]", "{", '{"goal_relevance": 1e999}'])
def test_what_is_no_object_is_of_no_use(text: str) -> None:
    assert read_appraisal(text).appraisal is None


def test_the_question_says_what_happens_to_whom_and_from_whom() -> None:
    system = appraisal_system("Ada", "a mathematician")
    assert "Ada" in system
    assert "a mathematician" in system
    assert '"adjustment_potential"' in system
    kim = Interlocutor.of({"name": "Kim", "description": "A weary traveler."})
    asked = appraisal_question("The door opened", "visit", kim)
    for words in ("The door opened", "visit", "Kim", "A weary traveler."):
        assert words in asked
    assert "user" not in appraisal_question("The door opened", "event", Interlocutor())
