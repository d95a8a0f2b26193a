import json
from typing import Any

import pytest
from pydantic import ValidationError

from gmi.personas import BUILT_IN_PERSONAS, Persona, check_access, trace_limits
from gmi.personas.errors import PermissionDeniedError

RAW: dict[str, Any] = {
    "id": "p",
    "name": "P",
    "description": "d",
    "version": "1.0.0",
    "baseSystemPrompt": "x",
}


def persona(**fields: Any) -> Persona:
    return Persona.model_validate({**RAW, **fields})


def test_camel_case_and_snake_case_give_the_same_persona() -> None:
    camel = persona(
        toolIds=["a"],
        allowedUserIds=["u"],
        conversationContextConfig={"maxMessages": 7},
        defaultModelCompletionOptions={"maxTokens": 9},
    )
    snake = Persona.model_validate(
        {
            **{key: value for key, value in RAW.items() if key != "baseSystemPrompt"},
            "base_system_prompt": "x",
            "tool_ids": ["a"],
            "allowed_user_ids": ["u"],
            "conversation_context_config": {"max_messages": 7},
            "default_model_completion_options": {"max_tokens": 9},
        }
    )
    assert camel == snake
    assert camel.digest() == snake.digest()


def test_the_camel_case_name_wins_when_both_are_given() -> None:
    both = persona(toolIds=["camel"], tool_ids=["snake"])
    assert both.tool_ids == ["camel"]
    assert "tool_ids" not in (both.model_extra or {})


def test_unknown_fields_are_kept_through_json() -> None:
    before = persona(house="blue", customFields={"a": None, "deep": {"b": [1, None]}})
    after = Persona.from_json(before.to_json())
    assert after.model_extra == {"house": "blue"}
    assert after.custom_fields == {"a": None, "deep": {"b": [1, None]}}


@pytest.mark.parametrize("built_in", BUILT_IN_PERSONAS, ids=lambda p: p.id)
def test_json_is_stable_byte_for_byte(built_in: Persona) -> None:
    once = built_in.to_json()
    again = Persona.from_json(once)
    assert again == built_in
    assert again.to_json() == once
    assert again.digest() == built_in.digest()


def test_the_order_of_keys_does_not_change_the_digest() -> None:
    turned = Persona.model_validate(dict(reversed(RAW.items())))
    assert turned.digest() == persona().digest()
    assert len(turned.digest()) == 64


def test_another_word_changes_the_digest() -> None:
    assert persona(baseSystemPrompt="y").digest() != persona().digest()


def test_json_refuses_what_json_cannot_hold() -> None:
    with pytest.raises(ValueError, match="JSON"):
        persona(customFields={"x": float("inf")}).to_json()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"honestyHumility": 0.2}, {"honesty": 0.2}),
        ({"honesty_humility": 0.2}, {"honesty": 0.2}),
        ({"opennessToExperience": 0.9}, {"openness": 0.9}),
        ({"honestyHumility": 0.2, "honesty": 0.8}, {"honesty": 0.8}),
        ({"openness": float("nan"), "extraversion": 0.4}, {"extraversion": 0.4}),
        ({"openness": float("nan"), "opennessToExperience": 0.7}, {"openness": 0.7}),
        ({"humorLevel": 0.2, "formality": "dry"}, {"humorLevel": 0.2, "formality": "dry"}),
    ],
)
def test_traits_are_kept_under_their_canonical_names(
    given: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert persona(personalityTraits=given).personality_traits == kept


def test_hexaco_holds_numbers_only_and_in_order() -> None:
    traits = {"openness": 1, "honesty": 0.3, "emotionality": "high", "agreeableness": True}
    assert list(persona(personalityTraits=traits).hexaco.items()) == [
        ("honesty", 0.3),
        ("openness", 1.0),
    ]


def test_a_fallback_is_a_name_or_an_object() -> None:
    hops = persona(
        fallback=[
            "openai:gpt-5",
            {"model": "anthropic:claude", "effort": "low", "maxTokensHeadroom": 1024},
            {"provider": "gemini", "model": "flash", "cache": False},
        ]
    ).fallback
    assert hops is not None
    assert [hop.model for hop in hops] == ["openai:gpt-5", "anthropic:claude", "gemini:flash"]
    assert (hops[1].effort, hops[1].max_tokens_headroom) == ("low", 1024)
    assert hops[2].cache is False


def test_no_fallback_and_an_empty_one_differ() -> None:
    assert persona().fallback is None
    assert persona(fallback=[]).fallback == []


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({}, 20),
        ({"conversationContextConfig": {"maxMessages": 5}}, 5),
        ({"conversationContextConfig": {"maxMessages": 0}}, 20),
        ({"memoryConfig": {"conversationContext": {"maxMessages": 8}}}, 8),
        ({"memoryConfig": {"conversation_context": {"max_messages": 8}}}, 8),
        ({"memoryConfig": {"conversationContext": {"maxMessages": "8"}}}, 20),
        (
            {
                "conversationContextConfig": {"maxMessages": 5},
                "memoryConfig": {"conversationContext": {"maxMessages": 8}},
            },
            5,
        ),
    ],
)
def test_the_window_is_twenty_messages_unless_the_persona_says_otherwise(
    fields: dict[str, Any], count: int
) -> None:
    assert persona(**fields).max_messages == count


def test_a_persona_cannot_be_changed() -> None:
    frozen = persona()
    with pytest.raises(ValidationError):
        frozen.name = "Q"  # type: ignore[misc]


def test_an_unknown_completion_option_is_refused() -> None:
    with pytest.raises(ValidationError, match="temprature"):
        persona(defaultModelCompletionOptions={"temprature": 1})


def test_everybody_may_use_a_persona_that_names_no_users() -> None:
    check_access(persona(), None)
    check_access(persona(), "anyone")


@pytest.mark.parametrize("user", [None, "eve", ""])
def test_others_than_the_named_users_are_refused(user: str | None) -> None:
    closed = persona(allowedUserIds=["ada"])
    check_access(closed, "ada")
    with pytest.raises(PermissionDeniedError) as caught:
        check_access(closed, user)
    assert caught.value.code == "AUTH_PERMISSION_DENIED"
    assert caught.value.details == {"persona_id": "p", "user_id": user}


@pytest.mark.parametrize(
    ("config", "entries", "length", "words"),
    [
        (None, 500, 1_000, []),
        ({"maxEntries": 50}, 50, 1_000, []),
        ({"max_message_length": 20}, 500, 20, []),
        ({"maxEntries": 20_000, "maxMessageLength": 0}, 10_000, 1_000, ["20000", "maxMessage"]),
        ({"maxEntries": 1.5, "maxMessageLength": 100_001}, 500, 100_000, ["1.5", "100001"]),
        ({"maxEntries": True}, 500, 1_000, ["True"]),
    ],
)
def test_trace_limits_ignore_nonsense_and_stop_at_their_ceiling(
    config: dict[str, Any] | None, entries: int, length: int, words: list[str]
) -> None:
    limits = trace_limits(persona(reasoningTraceConfig=config))
    assert (limits.max_entries, limits.max_message_length) == (entries, length)
    assert (limits.warning is None) == (not words)
    for word in words:
        assert word in (limits.warning or "")


def test_json_is_an_object_in_camel_case() -> None:
    data = json.loads(persona(toolIds=["a"]).to_json())
    assert data["baseSystemPrompt"] == "x"
    assert data["toolIds"] == ["a"]
    assert "fallback" not in data
