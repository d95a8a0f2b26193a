import json
import random
from pathlib import Path
from typing import Any

import pytest

from gmi.personas import sanitize, trim_history
from gmi.personas.history import NOT_RUN_TEXT, SUMMARY_PREFIX, rounds
from gmi.personas.messages import ImagePart, Message, ReplayBlock, TextPart, ToolCall

ROWS = json.loads((Path(__file__).parent / "data" / "history_window.json").read_text())


def conversation(roles: list[str]) -> list[Message]:
    """Messages of these roles; an assistant in front of results asks for them."""
    messages: list[Message] = []
    for index, role in enumerate(roles):
        if role == "tool":
            caller = max(i for i in range(index) if roles[i] == "assistant")
            messages.append(
                Message(role="tool", content=f"r{index}", call_id=f"c{caller}-{index - caller}")
            )
        elif role == "assistant":
            count = 0
            while index + 1 + count < len(roles) and roles[index + 1 + count] == "tool":
                count += 1
            calls = [ToolCall(id=f"c{index}-{n + 1}", name="t") for n in range(count)]
            messages.append(
                Message(role="assistant", content=None if calls else f"m{index}", calls=calls)
            )
        else:
            messages.append(Message.model_validate({"role": role, "content": f"m{index}"}))
    return messages


def ask(*ids: str, text: str | None = None) -> Message:
    return Message(role="assistant", content=text, calls=[ToolCall(id=i, name="t") for i in ids])


def result(call_id: str, text: str = "ok") -> Message:
    return Message(role="tool", content=text, call_id=call_id)


def say(text: str) -> Message:
    return Message(role="user", content=text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_the_newest_messages_are_kept_and_no_round_is_cut(row: dict[str, Any]) -> None:
    messages = conversation(row["roles"])
    trimmed = trim_history(messages, row["max_messages"])
    assert trimmed.kept == [messages[index] for index in row["kept"]]
    assert trimmed.dropped_count == len(messages) - len(row["kept"])


@pytest.mark.parametrize("row", [r for r in ROWS if r["max_messages"] > 0], ids=lambda r: r["name"])
def test_the_new_input_counts_as_one_of_them(row: dict[str, Any]) -> None:
    messages = conversation(row["roles"])
    trimmed = trim_history(messages, row["max_messages"], 1)
    assert trimmed.kept == [messages[index] for index in row["kept"]]


def test_the_window_stands_still_while_a_turn_grows() -> None:
    earlier = conversation(["user", "assistant"] * 15)
    turn = conversation(["user", "assistant", "tool", "tool", "assistant", "tool"])
    starts = set()
    for length in range(1, len(turn) + 1):
        trimmed = trim_history([*earlier, *turn[:length]], 20, length)
        assert trimmed.kept[-length:] == turn[:length]
        starts.add(trimmed.dropped_count)
    assert starts == {30 - 19}


def test_the_current_turn_stays_whole_when_it_alone_is_over_the_limit() -> None:
    turn = conversation(["user", "assistant", "tool", "assistant", "tool", "assistant"])
    earlier = conversation(["user", "assistant"])
    assert trim_history([*earlier, *turn], 1, len(turn)).kept == turn
    assert trim_history([*earlier, *turn], 0, len(turn)).kept == turn


def test_nothing_is_dropped_from_a_short_history_that_begins_with_a_result() -> None:
    messages = [result("a"), say("hello")]
    assert trim_history(messages, 20).kept == messages


def test_a_round_is_one_atom() -> None:
    messages = conversation(["user", "assistant", "tool", "tool", "assistant", "user"])
    assert [len(atom) for atom in rounds(messages)] == [1, 3, 1, 1]


def test_every_call_is_answered_in_the_order_of_the_calls() -> None:
    clean = sanitize([say("go"), ask("a", "b", "c"), result("c"), say("and"), result("a")])
    assert [(m.role, m.call_id) for m in clean] == [
        ("user", None),
        ("assistant", None),
        ("tool", "a"),
        ("tool", "b"),
        ("tool", "c"),
        ("user", None),
    ]
    assert (clean[3].content, clean[3].is_error, clean[3].name) == (NOT_RUN_TEXT, True, "t")


def test_a_result_after_the_next_reply_is_too_late() -> None:
    clean = sanitize([ask("a"), Message(role="assistant", content="done"), result("a", "late")])
    assert [m.content for m in clean] == [None, NOT_RUN_TEXT, "done"]


def test_an_id_used_in_two_rounds_is_answered_in_each() -> None:
    clean = sanitize([ask("a"), result("a", "1"), ask("a"), result("a", "2")])
    assert [m.content for m in clean] == [None, "1", None, "2"]


def test_a_call_asked_or_answered_twice_counts_once() -> None:
    clean = sanitize([ask("a", "a"), result("a", "1"), result("a", "2")])
    assert [call.id for call in clean[0].calls] == ["a"]
    assert [m.content for m in clean[1:]] == ["1"]


def test_errors_thoughts_orphans_and_empty_messages_are_dropped() -> None:
    messages = [
        result("nobody"),
        Message(role="error", content="e"),
        Message(role="thought", content="t"),
        Message(role="assistant", content=""),
        Message(role="assistant"),
        Message(role="user", content=[]),
        say("hello"),
    ]
    assert sanitize(messages) == [say("hello")]


def test_a_summary_becomes_a_system_message() -> None:
    parts = [TextPart(text="they met"), ImagePart(url="https://example.org/a.png")]
    assert sanitize([Message(role="summary", content=parts)]) == [
        Message(role="system", content=SUMMARY_PREFIX + "they met")
    ]


@pytest.mark.parametrize(
    "content", [" \n", [TextPart(text="")], [ImagePart(url="https://e.org/a")]]
)
def test_a_summary_that_says_nothing_is_left_out(content: Any) -> None:
    assert sanitize([Message(role="summary", content=content), say("hi")]) == [say("hi")]


def test_a_cut_reply_is_not_sent_as_it_is() -> None:
    cut = Message(
        role="assistant",
        content="Half a sent",
        calls=[ToolCall(id="a", name="t")],
        replay=[ReplayBlock(provider="anthropic", model="m", data={})],
        partial=True,
    )
    messages = [say("hi"), cut, result("a"), say("go on")]
    assert sanitize(messages) == [say("hi"), say("go on")]
    assert sanitize(messages, keep_partial_text=True) == [
        say("hi"),
        Message(role="assistant", content="Half a sent"),
        say("go on"),
    ]


def random_messages(rng: random.Random) -> list[Message]:
    """Any interleaving of anything, calls and answers in any order and number."""
    ids = [f"c{n}" for n in range(6)]
    messages = []
    for _ in range(rng.randrange(0, 40)):
        role = rng.choice(
            ["user", "assistant", "assistant", "tool", "tool", "summary", "error", "thought"]
        )
        calls = []
        if role == "assistant" and rng.random() < 0.7:
            calls = [ToolCall(id=rng.choice(ids), name="t") for _ in range(rng.randrange(1, 4))]
        messages.append(
            Message.model_validate(
                {
                    "role": role,
                    "content": rng.choice([None, "", "word", "other"]),
                    "call_id": rng.choice(ids) if role == "tool" else None,
                    "calls": calls,
                    "partial": role == "assistant" and rng.random() < 0.1,
                }
            )
        )
    return messages


def assert_provider_valid(messages: list[Message]) -> None:
    waiting: list[str] = []
    for message in messages:
        assert not message.partial
        if message.role == "tool":
            assert waiting, "a result without a call in front of it"
            assert message.call_id == waiting.pop(0)
            continue
        assert waiting == [], "a call without its answer"
        assert message.role in ("system", "user", "assistant")
        assert message.content or message.calls
        if message.role == "assistant":
            waiting = [call.id for call in message.calls]
            assert len(set(waiting)) == len(waiting)
    assert waiting == []


@pytest.mark.parametrize("seed", range(300))
def test_whatever_came_in_providers_accept_what_goes_out(seed: int) -> None:
    rng = random.Random(seed)
    messages = random_messages(rng)
    keep = rng.random() < 0.5
    clean = sanitize(messages, keep_partial_text=keep)
    assert_provider_valid(clean)
    assert sanitize(clean, keep_partial_text=keep) == clean
    said = [m for m in messages if m.role == "user" and m.content]
    assert [m for m in clean if m.role == "user"] == said


@pytest.mark.parametrize("seed", range(300))
def test_no_cut_makes_a_clean_history_unclean(seed: int) -> None:
    rng = random.Random(seed)
    clean = sanitize(random_messages(rng))
    for max_messages in range(len(clean) + 2):
        trimmed = trim_history(clean, max_messages)
        assert_provider_valid(trimmed.kept)
        assert len(trimmed.kept) <= max_messages
        assert trimmed.kept == clean[trimmed.dropped_count :]
