import json
from pathlib import Path
from typing import Any

import pytest

from gmi.personas import (
    BUILT_IN_PERSONAS,
    Issue,
    StrictConfig,
    ValidationReport,
    classify_strict,
    validate_persona,
    validate_personas,
)
from gmi.personas.schema import Persona

DATA = Path(__file__).parent / "data"
ROWS = json.loads((DATA / "validation.json").read_text())
STRICT_ROWS = json.loads((DATA / "strict.json").read_text())

RAW: dict[str, Any] = {
    "id": "p",
    "name": "P",
    "description": "d",
    "version": "1.0.0",
    "baseSystemPrompt": "x",
    "costSavingStrategy": "s",
}


def codes(report: ValidationReport) -> list[tuple[str, str, str]]:
    return [(issue.severity, issue.code, issue.field) for issue in report.issues]


def found(**fields: Any) -> list[tuple[str, str, str]]:
    return codes(validate_persona({**RAW, **fields}))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_each_kind_of_mistake_has_its_code(row: dict[str, Any]) -> None:
    report = validate_persona(row["persona"])
    got = [[issue.severity, issue.code, issue.persona_id, issue.field] for issue in report.issues]
    assert got == row["issues"]
    assert report.valid is row["valid"]
    assert sum(report.summary.values()) == len(row["issues"])


@pytest.mark.parametrize("tag", ["en", "zh-Hant-TW", "es-419", "en-x-team", "sl-rozaj"])
def test_well_formed_language_tags_pass(tag: str) -> None:
    assert found(defaultLanguage=tag) == []


def test_snake_case_data_is_checked_too() -> None:
    assert found(default_language="english") == [
        ("error", "invalid_bcp47_language", "defaultLanguage")
    ]


def test_reserved_ids_are_refused() -> None:
    reserved = ("error", "reserved_persona_id", "id")
    assert found(id="system_admin") == [reserved]
    assert found(id="internal_default") == [reserved]
    assert codes(validate_persona(RAW, reserved_ids={"p"})) == [reserved]


def test_tools_must_exist_and_be_listed_once() -> None:
    report = validate_persona({**RAW, "toolIds": ["a", "a", "b"]}, known_tools={"a"})
    assert codes(report) == [
        ("error", "duplicate_tool_id", "toolIds"),
        ("error", "unknown_tool_id", "toolIds"),
    ]
    assert "'b'" in report.issues[1].message


def test_tools_are_not_compared_when_nobody_says_which_exist() -> None:
    assert found(toolIds=["a", "b"]) == []


def test_a_prompt_can_be_too_long_in_tokens() -> None:
    report = validate_persona(
        {**RAW, "baseSystemPrompt": "one two three"},
        max_prompt_tokens=2,
        token_estimator=lambda text: len(text.split()),
    )
    assert codes(report) == [("warning", "system_prompt_too_many_tokens", "baseSystemPrompt")]


def test_an_estimator_that_fails_is_a_warning() -> None:
    def broken(text: str) -> float:
        raise RuntimeError("no table")

    report = validate_persona(RAW, max_prompt_tokens=2, token_estimator=broken)
    assert codes(report) == [("warning", "token_estimation_failed", "baseSystemPrompt")]
    assert "no table" in report.issues[0].message


def test_the_prompt_limit_can_be_set() -> None:
    report = validate_persona(RAW, max_prompt_chars=0)
    assert codes(report) == [("warning", "system_prompt_too_long", "baseSystemPrompt")]


def test_a_voice_without_any_output_modality_is_a_warning() -> None:
    assert found(voiceConfig={"voice": "v"}) == [
        ("warning", "voice_config_without_audio_output", "voiceConfig")
    ]


def test_model_preferences_are_checked() -> None:
    preference = {"modelId": "m", "modelFamily": "f", "allowedModelIds": ["m", "m"]}
    assert found(modelTargetPreferences=[preference]) == [
        ("error", "duplicate_allowed_model_ids", "modelTargetPreferences"),
        ("warning", "over_specified_model_preference", "modelTargetPreferences"),
    ]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"activationKeywords": "hi"}, "invalid_field_type"),
        ({"activationKeywords": [1]}, "invalid_field_type"),
        ({"reasoningTraceConfig": 5}, "invalid_field_type"),
        ({"toolIds": "search"}, "invalid_field_type"),
        ({"personalityTraits": [1]}, "invalid_field_type"),
        ({"hardLimits": [{"a": 1}]}, "invalid_field_type"),
        ({"version": 1}, "invalid_field_type"),
    ],
)
def test_a_field_of_the_wrong_type_is_one_error(fields: dict[str, Any], code: str) -> None:
    assert found(**fields) == [("error", code, next(iter(fields)))]


def test_what_json_cannot_hold_is_an_error() -> None:
    assert found(customFields={"x": float("inf")}) == [("error", "invalid_field_type", "")]


@pytest.mark.parametrize("value", [0, -1, 1.5, "9", 10_001])
def test_trace_limits_that_cannot_be_used_are_warnings(value: Any) -> None:
    assert found(reasoningTraceConfig={"maxEntries": value}) == [
        ("warning", "invalid_reasoning_trace_config", "reasoningTraceConfig.maxEntries")
    ]


@pytest.mark.parametrize(
    ("trigger", "code"),
    [
        ({"type": "manual"}, None),
        ({"type": "turn_interval", "intervalTurns": 1}, None),
        ({"type": "turn_interval", "interval_turns": 3}, None),
        ({"type": "event_based", "eventName": "user_confused"}, None),
        ({"type": "pre_response"}, "unsupported_metaprompt_trigger"),
        ({"type": "turn_interval"}, "invalid_metaprompt_interval"),
        ({"type": "turn_interval", "intervalTurns": 0}, "invalid_metaprompt_interval"),
        ({"type": "turn_interval", "intervalTurns": "5"}, "invalid_metaprompt_interval"),
        ({"type": "turn_interval", "intervalTurns": float("nan")}, "invalid_metaprompt_interval"),
        ({"type": "event_based", "eventName": "user_bored"}, "unknown_metaprompt_event"),
        ({"type": "event_based"}, "unknown_metaprompt_event"),
    ],
)
def test_a_metaprompt_that_never_fires_is_a_warning(
    trigger: dict[str, Any], code: str | None
) -> None:
    expected = [] if code is None else [("warning", code, "metaPrompts")]
    assert found(metaPrompts=[{"id": "m", "trigger": trigger}]) == expected


def test_shared_activation_keywords_are_warnings_on_both() -> None:
    def with_keywords(persona_id: str, *words: str) -> dict[str, Any]:
        return {**RAW, "id": persona_id, "activationKeywords": list(words)}

    report = validate_personas(
        [with_keywords("a", "hi", "yo"), with_keywords("b", "hi"), with_keywords("c", "Hi")]
    )
    conflict = ("warning", "activation_keyword_conflict", "activationKeywords")
    assert [codes(one) for one in report.reports] == [[conflict], [conflict], []]
    assert report.conflicts == {"hi": ["a", "b"]}
    assert report.totals == {"error": 0, "warning": 2, "suggestion": 0}


def test_a_keyword_that_one_persona_lists_twice_is_no_conflict() -> None:
    report = validate_personas([{**RAW, "activationKeywords": ["hi", "hi"]}])
    assert report.conflicts == {}


@pytest.mark.parametrize("persona", BUILT_IN_PERSONAS, ids=lambda p: p.id)
def test_a_loaded_persona_is_checked_like_its_data(persona: Persona) -> None:
    raw = json.loads(persona.to_json())
    assert codes(validate_persona(persona)) == codes(validate_persona(raw))


SEVERITIES = {"invalid_semver": "error", "system_prompt_too_long": "warning"}


@pytest.mark.parametrize("row", STRICT_ROWS, ids=lambda row: row["name"])
def test_strict_validation_blocks_what_its_settings_say(row: dict[str, Any]) -> None:
    issues = tuple(
        Issue(SEVERITIES[code], code, "", "", "p")  # type: ignore[arg-type]
        for code in row["issues"]
    )
    result = classify_strict(ValidationReport("p", issues), StrictConfig(**row["config"]))
    assert result.status == row["status"]
    assert list(result.blocked_reasons) == row["blocked"]


def test_suggestions_alone_do_not_degrade() -> None:
    report = ValidationReport("p", (Issue("suggestion", "missing_cost_strategy", "", ""),))
    assert classify_strict(report, StrictConfig(enabled=True)).status == "valid"
