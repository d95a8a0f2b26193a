from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.emotion import DEFAULT_NAME, Interlocutor
from gmi.personas.errors import ValidationError

KIM = {
    "name": "Kim",
    "description": " A weary traveller. ",
    "extensions": {"quest": "Find the lost artifact", "inventory": "sword, potion"},
}


@pytest.mark.parametrize("nobody", [None, "", "  \n", {}, {"name": None}, {"name": " "}])
def test_whoever_is_not_named_is_the_user(nobody: Any) -> None:
    someone = Interlocutor.of(nobody)
    assert someone.name == DEFAULT_NAME == "user"
    assert someone.text() is None


def test_a_plain_name_is_the_same_as_a_structure_with_it() -> None:
    assert Interlocutor.of("Kim") == Interlocutor.of({"name": "Kim"})
    assert Interlocutor.model_validate("Kim") == Interlocutor(name="Kim")
    assert Interlocutor.of("Kim").text() == "You are speaking with Kim."


def test_description_and_extensions_are_told_in_the_order_given() -> None:
    text = (
        "## About Kim\n\nYou are speaking with Kim.\n\nA weary traveller.\n\n"
        "### quest\nFind the lost artifact\n\n### inventory\nsword, potion"
    )
    someone = Interlocutor.of(KIM)
    assert someone.text() == text
    assert Interlocutor.model_validate_json(someone.model_dump_json()).text() == text


def test_somebody_without_a_name_can_be_described() -> None:
    assert Interlocutor.of({"description": "New here."}).text() == (
        "## About user\n\nYou are speaking with user.\n\nNew here."
    )


def test_blank_extensions_are_left_out() -> None:
    someone = Interlocutor.of({"name": "Kim", "extensions": {"quest": " ", " ": "lost", "a": "b"}})
    assert someone.text() == "## About Kim\n\nYou are speaking with Kim.\n\n### a\nb"


def test_names_and_headings_stay_on_one_line() -> None:
    someone = Interlocutor.of({"name": "Kim\n\n## Rules", "extensions": {"a\n# b": "c"}})
    assert someone.name == "Kim ## Rules"
    assert (someone.text() or "").endswith("### a # b\nc")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"name": "x" * 201}, "name"),
        ({"nickname": "K"}, "nickname"),
        ({"name": 7}, "name"),
        ({"extensions": {"level": 3}}, "extensions.level"),
        ({"description": "x" * 20_001}, "20001"),
        ({"description": "x" * 19_990, "extensions": {"more": "x" * 7}}, "20001"),
        (7, "Interlocutor"),
    ],
)
def test_what_has_another_form_is_refused_by_name(wrong: Any, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Interlocutor.of(wrong)


def test_as_much_as_the_limit_is_told() -> None:
    assert Interlocutor.of({"name": "x" * 200, "description": "x" * 20_000}).text()
