from __future__ import annotations

import json
from typing import Any

import pytest

from gmi.personas.metaprompts import (
    PRESETS,
    AnswerForm,
    Imprint,
    MindPatch,
    answer_form,
    read_answer,
    reserved_key,
)
from gmi.personas.metaprompts.json_text import MAX_ANSWER

from .making import prompt

ANY = answer_form(prompt())
TOLD = {"adjustmentRationale": "because", "recoveryStrategy": "slower"}


def read(said: Any, form: AnswerForm = ANY) -> MindPatch:
    answer = read_answer(said if isinstance(said, str) else json.dumps(said), form)
    assert answer.problems == ()
    assert answer.patch is not None
    return answer.patch


def problems(said: Any, form: AnswerForm = ANY) -> str:
    answer = read_answer(said if isinstance(said, str) else json.dumps(said), form)
    assert answer.patch is None
    assert answer.problems
    return " ".join(answer.problems)


def imprints(*items: Any) -> dict[str, Any]:
    return {"newMemoryImprints": list(items)}


def test_a_whole_answer_becomes_a_patch() -> None:
    said = {
        "updatedGmiMood": "focused",
        "updatedUserSkillLevel": "expert",
        "updatedTaskComplexity": "complex",
        "newMemoryImprints": [{"key": "likes", "value": {"a": [1]}, "description": "a taste"}],
        **TOLD,
    }
    assert read(said, answer_form(PRESETS[0])) == MindPatch(
        mood="focused",
        skill_level="expert",
        complexity="complex",
        imprints=(Imprint(key="likes", value={"a": [1]}, description="a taste"),),
        rationale="because",
        strategy="slower",
    )


@pytest.mark.parametrize("mood", ["empathetic", "EMPATHETIC", " Empathetic "])
def test_words_count_in_any_case(mood: str) -> None:
    assert read({"updatedGmiMood": mood}).mood == "empathetic"


@pytest.mark.parametrize(
    ("said", "mood"),
    [
        ("helpful", "empathetic"),
        ("Patient", "empathetic"),
        ("careful", "analytical"),
        ("engaging", "curious"),
        ("playful", "creative"),
        ("enthusiastic", "creative"),
    ],
)
def test_a_word_that_stands_for_a_mood_is_taken_as_it(said: str, mood: str) -> None:
    assert read({"updatedGmiMood": said}).mood == mood


def test_a_word_that_stands_for_a_mood_that_is_not_allowed_is_refused() -> None:
    form = answer_form(PRESETS[3])
    told = {"adjustmentRationale": "r", "mitigationStrategy": "s"}
    assert read(told | {"updatedGmiMood": "careful"}, form).mood == "analytical"
    assert '"playful"' in problems(told | {"updatedGmiMood": "playful"}, form)


@pytest.mark.parametrize(
    ("said", "complexity"), [("low", "simple"), ("Medium", "moderate"), ("high", "complex")]
)
def test_other_words_of_a_complexity_are_taken_as_it(said: str, complexity: str) -> None:
    assert read({"updatedTaskComplexity": said}).complexity == complexity
    schema = {"properties": {"updatedTaskComplexity": {"enum": [said]}}}
    form = answer_form(prompt(outputSchema=schema))
    assert form.values == {"updatedTaskComplexity": (complexity,)}
    assert read({"updatedTaskComplexity": said}, form).complexity == complexity


@pytest.mark.parametrize(
    "said",
    [{}, {"updatedGmiMood": None}, {"updatedGmiMood": " "}, {"newMemoryImprints": []}],
)
def test_an_answer_that_changes_nothing_is_an_empty_patch(said: dict[str, Any]) -> None:
    assert read(said).empty


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("updatedGmiMood", "grumpy"),
        ("updatedGmiMood", "low"),
        ("updatedGmiMood", 3),
        ("updatedGmiMood", ["focused"]),
        ("updatedUserSkillLevel", "wizard"),
        ("updatedUserSkillLevel", "medium"),
        ("updatedTaskComplexity", "middling"),
        ("updatedTaskComplexity", "helpful"),
        ("updatedTaskComplexity", True),
        ("adjustmentRationale", 1),
        ("newMemoryImprints", {"key": "k", "value": 1}),
    ],
)
def test_one_value_that_does_not_fit_refuses_the_whole_answer(field: str, value: Any) -> None:
    said = {"updatedGmiMood": "focused", "newMemoryImprints": [{"key": "k", "value": 1}]}
    assert field in problems(said | {field: value})


def test_every_problem_is_named() -> None:
    found = problems(
        {"updatedGmiMood": "grumpy", "updatedUserSkillLevel": "wizard"}, answer_form(PRESETS[0])
    )
    for words in ("grumpy", "wizard", "adjustmentRationale is missing", "recoveryStrategy is miss"):
        assert words in found


@pytest.mark.parametrize(
    ("place", "strategy", "changes", "moods"),
    [
        (0, "recoveryStrategy", {"skill"}, 8),
        (1, "clarificationStrategy", set(), 7),
        (2, "engagementStrategy", {"skill"}, 7),
        (3, "mitigationStrategy", set(), 3),
        (4, "engagementStrategy", set(), 3),
    ],
)
def test_a_preset_may_set_its_fields_and_no_others(
    place: int, strategy: str, changes: set[str], moods: int
) -> None:
    form = answer_form(PRESETS[place])
    told = {"adjustmentRationale": "r", strategy: "s"}
    assert len(form.values["updatedGmiMood"]) == moods
    assert read(told | {"updatedTaskComplexity": "simple"}, form).strategy == "s"
    assert read(told | imprints({"key": "k", "value": 1}), form).imprints[0].key == "k"
    skill = told | {"updatedUserSkillLevel": "novice"}
    if "skill" in changes:
        assert read(skill, form).skill_level == "novice"
    else:
        assert "updatedUserSkillLevel may not be set" in problems(skill, form)
    assert f"{strategy} is missing" in problems({"adjustmentRationale": "r"}, form)
    assert "adjustmentRationale is missing" in problems({strategy: "s"}, form)


@pytest.mark.parametrize("place", range(5))
def test_a_preset_names_no_mood_that_there_is_not(place: int) -> None:
    schema = PRESETS[place].output_schema
    assert schema is not None
    named = schema["properties"]["updatedGmiMood"]["enum"]
    assert tuple(named) == answer_form(PRESETS[place]).values["updatedGmiMood"]


def test_a_schema_of_the_persona_narrows_what_may_be_set() -> None:
    form = answer_form(
        prompt(
            outputSchema={
                "type": "object",
                "properties": {
                    "updatedGmiMood": {"type": "string", "enum": ["Focused", "patient", "jolly"]},
                    "note": {"type": "string"},
                },
                "required": ["note"],
            }
        )
    )
    # Words of other persona forms stand for the mood that comes closest.
    assert form.values == {"updatedGmiMood": ("focused", "empathetic")}
    assert read({"updatedGmiMood": "focused", "note": "n"}, form).mood == "focused"
    assert "note is missing" in problems({"updatedGmiMood": "focused"}, form)
    assert "may not be set" in problems({"note": "n", **imprints({"key": "k", "value": 1})}, form)


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": 3, "required": "x"}])
def test_a_schema_that_says_nothing_allows_everything(schema: dict[str, Any]) -> None:
    assert answer_form(prompt(outputSchema=schema)) == ANY


def test_the_persona_may_have_fewer_moods() -> None:
    form = answer_form(prompt(), allowed_moods=("neutral", "curious"))
    assert read({"updatedGmiMood": "curious"}, form).mood == "curious"
    assert "focused" in problems({"updatedGmiMood": "focused"}, form)


def test_the_form_as_a_schema_names_fields_words_and_what_is_required() -> None:
    schema = answer_form(PRESETS[3]).schema()
    assert schema["properties"]["updatedGmiMood"]["enum"] == ["neutral", "focused", "analytical"]
    assert "updatedUserSkillLevel" not in schema["properties"]
    assert schema["required"] == ["adjustmentRationale", "mitigationStrategy"]
    assert set(schema["required"]) < set(schema["properties"])


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"value": 2}, "key"),
        ({"key": "", "value": 3}, "key"),
        ({"key": "  ", "value": 3}, "no name"),
        ({"key": "a\nb", "value": 3}, "no name"),
        ({"key": 7, "value": 3}, "key"),
        ({"key": "k" * 65, "value": 3}, "key"),
        ({"key": "k"}, "value"),
        ({"key": "k", "value": None}, "no value"),
        ({"key": "k", "value": "x" * 1023}, "1025 bytes"),
        ({"key": "k", "value": "é" * 600}, "bytes"),
        ({"key": "k", "value": 1, "description": "d" * 301}, "description"),
        ({"key": "k", "value": json.loads("[" * 17 + "]" * 17)}, "deeper than 16"),
        ("k", "does not fit"),
        (None, "does not fit"),
        ({"key": "currentGmiMood", "value": "angry"}, "belongs to the mind"),
        ({"key": " currentGmiMood ", "value": "angry"}, "belongs to the mind"),
        ({"key": "currentUserContext", "value": {}}, "belongs to the mind"),
        ({"key": "currentTaskContext", "value": {}}, "belongs to the mind"),
        ({"key": "gmi_sentiment_history", "value": {}}, "belongs to the mind"),
        ({"key": "manual_trigger_x", "value": True}, "belongs to the mind"),
        ({"key": "metaprompt_turn_counter_x", "value": 1}, "belongs to the mind"),
    ],
)
def test_an_imprint_that_does_not_fit_refuses_all(item: Any, words: str) -> None:
    assert words in problems(imprints({"key": "good", "value": 1}, item))


def test_imprints_have_bounds() -> None:
    assert len(read(imprints(*({"key": f"k{n}", "value": n} for n in range(8)))).imprints) == 8
    assert "limit" in problems(imprints(*({"key": f"k{n}", "value": n} for n in range(9))))
    assert read(imprints({"key": "k", "value": "x" * 1022})).imprints[0].value == "x" * 1022
    deep = json.loads("[" * 16 + "]" * 16)
    assert read(imprints({"key": "k", "value": deep})).imprints[0].value == deep


def test_of_two_imprints_with_one_key_the_last_counts() -> None:
    found = read(imprints({"key": "k", "value": 1}, {"key": "k ", "value": False}))
    assert found.imprints == (Imprint(key="k", value=False),)


@pytest.mark.parametrize(
    "text",
    [
        '{"updatedGmiMood":"curious"}',
        '  \n{"updatedGmiMood": "curious"}\n',
        '```json\n{"updatedGmiMood":"curious"}\n```',
        'Here you are:\n\n```\n{"updatedGmiMood":"curious"}\n```\nI hope {this} helps.',
        'Some {words} first: {"updatedGmiMood":"curious"}',
        'I would say {"updatedGmiMood":"curious"} and no more.',
        '<think>perhaps {"updatedGmiMood":"creative"}?</think>\n{"updatedGmiMood":"curious"}',
        '{"updatedGmiMood":"creative","updatedGmiMood":"curious"}',
        '{"updatedGmiMood":"curious","confidence":0.8}',
    ],
)
def test_the_object_is_found_wherever_it_stands(text: str) -> None:
    assert read(text).mood == "curious"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("<think>nothing</think>", "empty"),
        ("hello", "no JSON object"),
        ("[1]", "a list"),
        ("null", "null"),
        ("3", "a number"),
        ('"curious"', "a string"),
        ('{"updatedGmiMood":"curious"', "broken or cut off"),
        ('{"adjustmentRationale":"r","newMemoryImprints":[{"key":"k","value":1}', "cut off"),
        ('{"a":{"updatedGmiMood":"curious"},"b":NaN}', "broken"),
        ("{'updatedGmiMood': 'curious'}", "no JSON object"),
        ('{"updatedGmiMood":"curious"} or {"updatedGmiMood":"focused"}', "more than one"),
        ('{"newMemoryImprints":[{"key":"k","value":NaN}]}', "broken"),
        ('{"newMemoryImprints":[{"key":"k","value":1e999}]}', "not finite"),
        ('{"newMemoryImprints":[{"key":"k","value":"\\ud800"}]}', "half a character"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "limit"),
        ('{"a":' * 1500 + "1" + "}" * 1500, "nested"),
        ("{" * (MAX_ANSWER - 1), "no JSON object"),
        ("x" * (MAX_ANSWER + 1), "limit"),
    ],
)
def test_what_is_no_object_is_refused_with_the_reason(text: str, words: str) -> None:
    assert words in problems(text)


def test_the_rationale_is_the_strategy_where_there_is_no_other() -> None:
    found = read({"mitigationStrategy": "wait"})
    assert (found.rationale, found.strategy) == ("wait", "wait")


def test_long_words_are_cut_and_not_refused() -> None:
    found = read({"adjustmentRationale": "r" * 5000})
    assert found.rationale is not None
    assert len(found.rationale) == 1000


def test_a_patch_comes_back_from_json_as_it_was() -> None:
    patch = read({"updatedGmiMood": "curious", **imprints({"key": "k", "value": {"a": [None]}})})
    assert MindPatch.model_validate_json(patch.model_dump_json()) == patch
    assert MindPatch.model_validate({"mood": "curious", "made_later": 1}).mood == "curious"


@pytest.mark.parametrize(
    ("key", "reserved"),
    [("currentGmiMood", True), ("manual_trigger_", True), ("mood", False), ("Manual", False)],
)
def test_which_keys_are_reserved(key: str, reserved: bool) -> None:
    assert reserved_key(key) is reserved
