import json
import random
from pathlib import Path
from typing import Any

import pytest

from gmi.personas import estimate_tokens, message_tokens
from gmi.personas.budget import OVER_BUDGET, fit
from gmi.personas.history import rounds
from gmi.personas.messages import ImagePart, Message, ReplayBlock, TextPart, ToolCall

DATA = Path(__file__).parent / "data"
ESTIMATES = json.loads((DATA / "estimates.json").read_text())
LATER = json.loads((DATA / "budget.json").read_text())
TOTALS = json.loads((DATA / "budget_totals.json").read_text())


def build(rows: list[list[Any]]) -> list[Message]:
    """Messages of these roles and lengths; one without a length asks for a tool."""
    messages: list[Message] = []
    for role, chars in rows:
        if role == "tool":
            messages.append(Message(role="tool", content="x" * chars, call_id="c"))
        elif chars is None:
            messages.append(Message(role="assistant", calls=[ToolCall(id="c", name="t")]))
        else:
            messages.append(Message.model_validate({"role": role, "content": "x" * chars}))
    return messages


@pytest.mark.parametrize("row", ESTIMATES, ids=lambda r: f"{r['model']}-{r['chars']}")
def test_tokens_follow_from_the_characters(row: dict[str, Any]) -> None:
    assert estimate_tokens(row["chars"], row["model"]) == row["tokens"]


@pytest.mark.parametrize("row", LATER, ids=lambda r: r["name"])
def test_the_current_turn_stays_whole_and_earlier_messages_go_first(row: dict[str, Any]) -> None:
    messages = build(row["history"])
    split = len(messages) - row["current_turn_messages"]
    fitted = fit(
        messages[:split],
        messages[split:],
        window_tokens=row["window"],
        model="m",
        system_chars=sum(row["system_chars"]),
        input_chars=row["user_input_chars"],
    )
    assert [*fitted.history, *messages[split:]] == [messages[i] for i in row["kept"]]
    assert fitted.left_out.messages_by_budget == len(messages) - len(row["kept"])


def fit_row(row: dict[str, Any], window: int) -> Any:
    return fit(
        build(row["history"]),
        [],
        window_tokens=window,
        model=row["model"],
        system_chars=sum(row["system_chars"]),
        input_chars=row["user_input_chars"],
        retrieved="r" * row["retrieved_chars"],
        tools=row["tools"],
    )


@pytest.mark.parametrize("row", TOTALS, ids=lambda r: r["name"])
def test_what_does_not_fit_is_dropped_and_said(row: dict[str, Any]) -> None:
    assert fit_row(row, 10**9).estimated_tokens == row["tokens"]
    fitted = fit_row(row, row["window"])
    messages = build(row["history"])
    assert fitted.history == [messages[i] for i in row["kept"]]
    assert len(fitted.retrieved) == row["retrieved_chars_after"]
    assert bool(fitted.warnings) is row["over"]
    assert all(warning.startswith(OVER_BUDGET) for warning in fitted.warnings)
    dropped = [m for i, m in enumerate(messages) if i not in row["kept"]]
    assert fitted.left_out.tokens_by_budget == sum(message_tokens(m, row["model"]) for m in dropped)


def test_images_cost_what_their_detail_costs() -> None:
    message = Message(
        role="user",
        content=[
            TextPart(text="x" * 8),
            ImagePart(url="https://example.org/a.png"),
            ImagePart(url="https://example.org/b.png", detail="high"),
        ],
    )
    assert message_tokens(message, "m") == 2 + 70 + 135 + 5


def test_a_message_without_content_costs_its_overhead() -> None:
    assert message_tokens(Message(role="assistant"), "m") == 5


def test_calls_cost_their_name_and_arguments() -> None:
    call = ToolCall(id="c", name="search", arguments={"q": "x" * 400})
    assert message_tokens(Message(role="assistant", calls=[call]), "m") > 100


def test_replay_blocks_cost_only_where_they_are_sent() -> None:
    block = ReplayBlock(provider="anthropic", model="claude", data={"thinking": "x" * 420})
    message = Message(role="assistant", content="hi", replay=[block])
    assert message_tokens(message, "anthropic:claude-x") > 100
    assert message_tokens(message, "openai:gpt-5") == 6
    assert message_tokens(message, "m") == 6


def test_long_retrieved_context_is_cut_to_its_share() -> None:
    fitted = fit([], build([["user", 40]]), window_tokens=1000, model="m", retrieved="r" * 4000)
    assert len(fitted.retrieved) == 800
    assert fitted.left_out.retrieved_chars == 3200
    assert fitted.warnings == []


@pytest.mark.parametrize("seed", range(100))
def test_no_round_is_ever_cut_apart(seed: int) -> None:
    rng = random.Random(seed)
    history: list[Message] = []
    for number in range(rng.randrange(1, 15)):
        history.append(Message(role="user", content="q" * rng.randrange(1, 600)))
        if rng.random() < 0.6:
            calls = [ToolCall(id=f"{number}-{n}", name="t") for n in range(rng.randrange(1, 4))]
            history.append(Message(role="assistant", calls=calls))
            history += [
                Message(role="tool", content="r" * rng.randrange(1, 900), call_id=call.id)
                for call in calls
            ]
        history.append(Message(role="assistant", content="a" * rng.randrange(1, 600)))
    turn = build([["user", rng.randrange(1, 2000)]])
    window = rng.randrange(50, 4000)
    fitted = fit(history, turn, window_tokens=window, model="m")
    whole, kept = rounds(history), rounds(fitted.history)
    assert kept == whole[len(whole) - len(kept) :]
    spent = fitted.left_out
    assert spent.messages_by_budget == len(history) - len(fitted.history)
    assert spent.tokens_by_budget == sum(
        message_tokens(m, "m") for m in history[: spent.messages_by_budget]
    )
