"""Turns are told apart, and refused, by what they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.errors import CredentialRefusedError, MessageTooLargeError, ValidationError
from gmi.personas.messages import ImagePart, TextPart
from gmi.personas.options import CompletionOptions
from gmi.workflows.requests import (
    check_config,
    check_credentials,
    check_form,
    input_digest,
    short,
    turn_id,
)
from gmi.workflows.session_records import SessionConfig
from gmi.workflows.turns import HopSpec, SubmitTurn


def submit(**given: Any) -> SubmitTurn:
    return SubmitTurn.model_validate({"content": "hello", "user_id": "kim", **given})


@pytest.mark.parametrize(
    "how",
    [
        {"request_id": "r"},
        {"hold": False},
        {"stream": False},
        {"sends": "refuse"},
        {"on_pause": "answer"},
        {"session_key": "s~1"},
        {"persona": "plain"},
        {"ceiling": 1},
    ],
)
def test_how_a_message_is_sent_is_no_part_of_what_it_asks(how: dict[str, Any]) -> None:
    assert input_digest(submit(**how)) == input_digest(submit())


@pytest.mark.parametrize(
    "what",
    [
        {"content": "hello "},
        {"content": [TextPart(text="hello")]},
        {"user_id": "lee"},
        {"options": CompletionOptions(temperature=0.0)},
        {"model": "openai:x"},
        {"fallback": []},
        {"fallback": [HopSpec(model="openai:x")]},
        {"history": []},
        {"suffix": ""},
        {"sender": "Kim"},
        {"kind": "system"},
        {"max_tool_iterations": 0},
        {"user_context": {}},
        {"task_context": {"domain": "law"}},
    ],
)
def test_everything_else_is(what: dict[str, Any]) -> None:
    assert input_digest(submit(**what)) != input_digest(submit())


def test_a_request_of_a_release_without_contexts_keeps_its_digest() -> None:
    assert input_digest(submit(user_context=None, task_context=None)) == "7a8807dd5cc3b84c"


def test_a_turn_has_the_same_id_for_the_same_request_of_the_same_session() -> None:
    assert turn_id("s~1", "r") == turn_id("s~1", "r")
    ids = {turn_id("s~1", "r"), turn_id("s~2", "r"), turn_id("s~1", "q"), turn_id("s", "~1\nr")}
    assert len(ids) == 4
    assert len({short(turn) for turn in ids}) == 4


@pytest.mark.parametrize(
    "bad",
    [
        {"content": ""},
        {"content": " \n"},
        {"content": []},
        {"content": [TextPart(text="")]},
        {"content": [ImagePart()]},
        {"content": [TextPart(text="x"), ImagePart(url="u", blob="b")]},
        {"request_id": ""},
        {"request_id": "x" * 201},
        {"user_context": {"skillLevel": "wizard"}},
        {"task_context": {"complexity": "medium"}},
    ],
)
def test_a_message_that_no_session_could_take_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check_form(submit(**bad))


def test_a_message_of_an_image_alone_is_taken() -> None:
    check_form(submit(content=[ImagePart(url="https://example.org/a.png")]))
    check_form(submit(request_id="x" * 200))


def test_large_settings_are_refused() -> None:
    check_form(submit(suffix="s" * 8000))
    with pytest.raises(MessageTooLargeError):
        check_form(submit(suffix="s" * 8200))
    with pytest.raises(MessageTooLargeError):
        check_form(submit(suffix="s" * 6500, user_context={"x": "y" * 1800}))
    with pytest.raises(MessageTooLargeError):
        check_form(submit(task_context={"x": "y" * 2048}))
    with pytest.raises(MessageTooLargeError):
        check_config(SessionConfig(tools=["x" * 64] * 300))


@pytest.mark.parametrize("rule", [{}, {"id": "x"}, {"id": "x", "trigger": 1}])
def test_an_overlay_that_is_no_rule_is_refused(rule: dict[str, Any]) -> None:
    check_config(SessionConfig(overlays=[{"id": "x", "trigger": "always"}]))
    with pytest.raises(ValidationError):
        check_config(SessionConfig(overlays=[rule]))


@pytest.mark.parametrize("value", ["sk-123", "env:", "env:A B", "ENV:NAME", "env:$(x)"])
def test_only_names_of_variables_are_credentials(value: str) -> None:
    with pytest.raises(CredentialRefusedError) as caught:
        check_credentials({"openai": value})
    assert value not in caught.value.message or value == "env:"
    assert value not in str(caught.value.details)


def test_the_name_of_a_variable_is_a_credential() -> None:
    check_credentials({"openai": "env:MY_KEY_2"})
