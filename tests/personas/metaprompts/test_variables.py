from __future__ import annotations

import json
from typing import Any

import pytest

from gmi.personas.messages import Message, ToolCall
from gmi.personas.metaprompts import MindView, TraceLine, filled, variables

VIEW = MindView(
    mood="focused",
    skill_level="expert",
    sentiment="negative",
    sentiment_score=-0.9,
    consecutive_frustration=2,
    confusion_keywords=("huh", "unclear"),
    user_context={"preferences": {"verbosity": "short"}},
    trace=(
        TraceLine(type="ERROR", message="the tool failed", details={"code": "TOOL_ERROR"}),
        TraceLine(type="INTERACTION_END", message="done"),
    ),
)


def said(text: str, role: Any = "user") -> Message:
    return Message(role=role, content=text)


def values(view: MindView = VIEW, *messages: Message) -> dict[str, str]:
    return variables(view, messages)


def test_variables_are_put_in_their_places() -> None:
    text = (
        "{{current_mood}}|{{user_skill}}|{{task_complexity}}|{{current_sentiment}}|"
        "{{sentiment_score}}|{{consecutive_frustration}}|{{consecutive_neutral}}|"
        "{{confusion_keywords}}|{{unknown_var}}"
    )
    assert filled(text, values()) == (
        "focused|expert|unknown|negative|-0.9|2|0|huh, unclear|{{unknown_var}}"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ current_mood }}", "focused"),
        ("{{Current_Mood}}", "focused"),
        ("{current_mood}", "{current_mood}"),
        ("{{current mood}}", "{{current mood}}"),
        ("{{}}", "{{}}"),
        ("{{{current_mood}}}", "{focused}"),
        ("no variable", "no variable"),
    ],
)
def test_what_is_a_variable(text: str, expected: str) -> None:
    assert filled(text, values()) == expected


def test_what_a_user_says_is_never_read_as_a_variable() -> None:
    asked = filled("{{recent_conversation}}", values(VIEW, said("{{current_mood}} \\1 {{x}}")))
    assert json.loads(asked) == [{"role": "user", "content": "{{current_mood}} \\1 {{x}}"}]


def test_a_score_of_nothing_is_told_as_nothing() -> None:
    told = values(MindView())
    assert told["sentiment_score"] == "0"
    assert told["consecutive_confusion"] == "0"
    assert told["recent_errors"] == told["recent_conversation"] == "[]"


def test_the_newest_five_messages_are_the_recent_conversation() -> None:
    told = values(VIEW, *(said(f"message {n}") for n in range(9)))
    recent = json.loads(told["recent_conversation"])
    assert [message["content"] for message in recent] == [f"message {n}" for n in range(4, 9)]


def test_a_message_of_calls_alone_names_them() -> None:
    call = Message(role="assistant", calls=[ToolCall(id="1", name="look_up")])
    assert "look_up" in values(VIEW, call)["recent_conversation"]


def test_errors_are_those_of_the_last_ten_entries() -> None:
    told = values()
    assert json.loads(told["recent_errors"]) == [
        {"message": "the tool failed", "details": {"code": "TOOL_ERROR"}}
    ]
    later = tuple(TraceLine(type="DEBUG", message=str(n)) for n in range(9))
    assert values(VIEW.model_copy(update={"trace": VIEW.trace + later}))["recent_errors"] == "[]"


def test_the_evidence_holds_the_mind_the_conversation_and_the_trace() -> None:
    told = json.loads(values(VIEW, *(said(str(n)) for n in range(14)))["evidence"])
    assert told["currentMood"] == "focused"
    assert told["currentUserContext"] == {
        "preferences": {"verbosity": "short"},
        "skillLevel": "expert",
    }
    assert len(told["recentConversation"]) == 10
    assert [entry["type"] for entry in told["recentTraceEntries"]] == ["ERROR", "INTERACTION_END"]


def test_evidence_that_is_too_long_loses_its_oldest_parts_and_stays_json() -> None:
    trace = tuple(TraceLine(type="DEBUG", message=f"{n} " + "t" * 300) for n in range(20))
    view = VIEW.model_copy(update={"trace": trace})
    text = values(view, *(said(f"{n} " + "w" * 700) for n in range(10)))["evidence"]
    assert len(text) <= 4000
    told = json.loads(text)
    assert told["currentMood"] == "focused"
    assert told["recentConversation"][-1]["content"].startswith("9 ")
    assert told["recentTraceEntries"][-1]["message"].startswith("19 ")


def test_what_has_no_list_to_shorten_is_cut() -> None:
    view = VIEW.model_copy(update={"user_context": {"note": "é" * 9000}})
    for name in ("user_context", "evidence"):
        assert len(values(view)[name]) == 4000


@pytest.mark.parametrize(
    "view",
    [
        VIEW,
        VIEW.model_copy(
            update={"trace": tuple(TraceLine(type="DEBUG", message="m" * 900) for _ in range(40))}
        ),
        VIEW.model_copy(
            update={
                "trace": tuple(
                    TraceLine(type="DEBUG", message="m", details={"d": "x" * 900})
                    for _ in range(20)
                )
            }
        ),
        VIEW.model_copy(update={"user_context": {"a": "ü" * 5000}}),
        VIEW.model_copy(update={"task_context": {"a": "ü" * 5000}, "mood": "x" * 5000}),
        VIEW.model_copy(update={"confusion_keywords": ("why" * 100,) * 50}),
    ],
)
def test_a_view_fits_into_four_kilobytes(view: MindView) -> None:
    fitted = view.fitted()
    assert len(fitted.model_dump_json().encode()) <= 4096
    assert MindView.model_validate_json(fitted.model_dump_json()) == fitted
    assert fitted.sentiment_score == -0.9


def test_a_view_that_fits_keeps_everything() -> None:
    assert VIEW.fitted() == VIEW


def test_a_view_that_is_too_large_loses_details_before_entries() -> None:
    trace = tuple(
        TraceLine(type="DEBUG", message=str(n), details={"d": "x" * 300}) for n in range(20)
    )
    fitted = VIEW.model_copy(update={"trace": trace}).fitted()
    assert [line.message for line in fitted.trace] == [str(n) for n in range(20)]
    assert all(not line.details for line in fitted.trace)
