from __future__ import annotations

from typing import Any

import pytest

from gmi.personas import BUILT_IN_PERSONAS, Persona, load_catalog, remarks, validate_persona

BASE = {
    "id": "p",
    "name": "P",
    "description": "d",
    "version": "1.0.0",
    "baseSystemPrompt": "You help.",
    "costSavingStrategy": "balance_quality_cost",
}


def told(**fields: Any) -> list[str]:
    return remarks({**BASE, **fields})


def test_the_built_in_personas_have_no_mistakes() -> None:
    assert {persona.id: remarks(persona) for persona in BUILT_IN_PERSONAS} == {
        persona.id: [] for persona in BUILT_IN_PERSONAS
    }


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"hardLimit": []}, "hardLimit is not known and does nothing; did you mean hardLimits?"),
        ({"hard_limit": []}, "hard_limit is not known and does nothing; did you mean hardLimits?"),
        ({"zzz": 1}, "zzz is not known and does nothing."),
        (
            {"emotionConfig": {"enabld": True}},
            "emotionConfig.enabld is not known and does nothing; did you mean enabled?",
        ),
        (
            {
                "metaPrompts": [
                    {
                        "id": "m",
                        "promptTemplate": "x",
                        "trigger": {
                            "type": "turn_interval",
                            "intervalTurns": 2,
                            "intervallTurns": 3,
                        },
                    }
                ]
            },
            "metaPrompts[0].trigger.intervallTurns is not known and does nothing; "
            "did you mean intervalTurns?",
        ),
        (
            {"baseSystemPrompt": [{"content": "x", "prioritty": 1}]},
            "baseSystemPrompt[0].prioritty is not known and does nothing; did you mean priority?",
        ),
        (
            {"emergent": {"selfImprovement": {"personality": {"decayrate": 0.1}}}},
            "emergent.selfImprovement.personality.decayrate is not known and does nothing; "
            "did you mean decayRate?",
        ),
        (
            {"personalityTraits": {"openness": 1.4}},
            "personalityTraits.openness is 1.4; a HEXACO trait lies in [0, 1].",
        ),
        (
            {"personalityTraits": {"honesty_humility": -1}},
            "personalityTraits.honesty_humility is -1; a HEXACO trait lies in [0, 1].",
        ),
        (
            {"personalityTraits": {"Openness": 0.4}},
            "personalityTraits.Openness is no HEXACO trait and shows in no prompt; "
            "did you mean openness?",
        ),
        (
            {"metaPrompts": [{"id": "mine", "trigger": {"type": "manual"}}]},
            "The metaprompt 'mine' never runs: it has no promptTemplate.",
        ),
        (
            {"moodAdaptation": {"enabled": True, "defaultMood": "playful"}},
            "moodAdaptation.defaultMood 'playful' is taken as 'creative'.",
        ),
    ],
)
def test_a_likely_mistake_is_told(fields: dict[str, Any], remark: str) -> None:
    assert told(**fields) == [remark]
    assert not [
        issue for issue in validate_persona({**BASE, **fields}).issues if issue.severity == "error"
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"$schema": "x", "_note": "y"},
        {"hard_limits": [], "emotion_config": {"enabled": True}},
        {"customFields": {"anything": {"enabld": 1}}, "voiceConfig": {"pitch": 2}},
        {"memoryConfig": {"enabled": True, "tokenBudget": 100}},
        {"personalityTraits": {"humour": 7, "emotional": "very", "openness": 1}},
        {"fallback": ["openai:gpt-4.1-mini"], "learning": True},
        {"baseSystemPrompt": {"template": "x"}},
    ],
)
def test_what_is_meant_so_is_left_alone(fields: dict[str, Any]) -> None:
    assert told(**fields) == []


def test_what_is_no_persona_gets_the_remarks_that_its_data_allow() -> None:
    assert remarks({"id": 5, "nme": "x"}) == [
        "nme is not known and does nothing; did you mean name?"
    ]


def test_a_built_persona_keeps_its_unknown_keys_and_is_told_of_them() -> None:
    persona = Persona.model_validate({**BASE, "emotionConfig": {"enabld": True}})
    assert remarks(persona) == told(emotionConfig={"enabld": True})


async def test_a_catalog_knows_the_personas_with_likely_mistakes() -> None:
    odd = {**BASE, "id": "odd", "streng": []}
    catalog = await load_catalog(personas=[BASE, odd], default_id="p")
    assert catalog.remarks == {
        "odd": ["streng is not known and does nothing; did you mean strengths?"]
    }
