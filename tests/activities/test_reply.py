"""A reply while it arrives: what is said of it at once, and what is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gmi.activities.catalog import Toolset
from gmi.activities.gateway.failures import ProviderFailure
from gmi.activities.gateway.provider import Finished, TextDelta, ToolCallDelta, UsageReport
from gmi.activities.reply import Reply, cleaned, planned_calls, unique_calls, well_formed
from gmi.personas.messages import ReplayBlock, ToolCall, Usage
from gmi.workflows.steps import Route


def reply(*events: Any) -> tuple[Reply, list[tuple[str, Any]]]:
    made = Reply("openai", "scripted")
    items = [item for event in events for item in made.take(event)]
    return made, [
        (i.type, i.usage.total_tokens if i.usage is not None else i.content) for i in items
    ]


def used(prompt: int, completion: int) -> UsageReport:
    return UsageReport(Usage(prompt_tokens=prompt, completion_tokens=completion))


def test_a_running_total_is_said_before_what_follows_it() -> None:
    made, items = reply(
        TextDelta("a"), used(5, 1), TextDelta("b"), used(5, 2), used(5, 3), Finished("stop")
    )
    assert items == [
        ("text_delta", "a"),
        ("usage_update", 6),
        ("text_delta", "b"),
        ("usage_update", 7),
    ]
    assert [item.usage.total_tokens for item in made.closing_items([]) if item.usage] == [8]
    assert made.usage.total_tokens == 8


def test_without_a_report_no_usage_is_said() -> None:
    made, items = reply(TextDelta("a"), Finished("stop"))
    assert items == [("text_delta", "a")]
    assert made.closing_items([]) == []


def test_a_stream_without_its_end_is_a_failure() -> None:
    made, _ = reply(TextDelta("a"))
    with pytest.raises(ProviderFailure) as caught:
        made.check_finished()
    assert caught.value.kind == "stream"
    assert made.said_something


def test_a_call_counts_as_something_said() -> None:
    assert not reply(used(1, 0))[0].said_something
    assert reply(ToolCallDelta(0))[0].said_something


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["\ud83d", "\ude00"], "\U0001f600"),
        (["a\ud83d", "\ude00b"], "a\U0001f600b"),
        (["\ud83d", "x"], "\ufffdx"),
        (["x\ud83d"], "x\ufffd"),
        (["\ude00"], "\ufffd"),
        (["plain", " \u00fc"], "plain \u00fc"),
    ],
)
def test_characters_in_two_pieces_are_joined_and_lone_halves_replaced(
    pieces: list[str], text: str
) -> None:
    made, items = reply(*map(TextDelta, pieces), Finished("stop"))
    assert made.text == text
    assert "".join(content for _, content in items) == text
    made.text.encode()


def test_everything_that_is_kept_can_be_written() -> None:
    finished = Finished(
        "tool_calls",
        calls=[
            ToolCall(id="c\ud800", name="n", arguments={"\udc00": ["\ud800", float("inf"), 1.5]}),
            ToolCall(id="d", name="n", malformed="\ud800{"),
        ],
        replay=[ReplayBlock(provider="anthropic", model="m", data={"thinking": "\ud800"})],
    )
    made, _ = reply(finished)
    kept = made.finished
    for call in kept.calls:
        call.model_dump_json().encode()
    assert kept.calls[0].arguments == {"\ufffd": ["\ufffd", None, 1.5]}
    assert kept.replay[0].data == {"thinking": "\ufffd"}


def test_what_is_well_formed_is_not_touched() -> None:
    value = {"a": ["\U0001f600", 1, None, True, 0.25], "b": {"c": "x"}}
    assert cleaned(value) == value
    assert well_formed("\U0001f600\u00e9") == "\U0001f600\u00e9"


def test_calls_get_ids_of_their_own() -> None:
    calls = [ToolCall(id=i, name="n") for i in ("a", "b", "a", "")]
    ids = [call.id for call in unique_calls(calls, {"b"}, "t-0")]
    assert ids == ["a", "call-t-0-1", "call-t-0-2", "call-t-0-3"]


class Blobs:
    """Keeps blobs in memory."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    async def put_blobs(self, kind: str, values: list[bytes]) -> list[str]:
        self.kept.extend(values)
        return [f"blob-{len(self.kept) - 1}" for _ in values]


async def test_a_rounds_arguments_are_carried_up_to_a_bound() -> None:
    store: Any = Blobs()
    toolset = Toolset(routes={"n": Route(activity="n")})
    calls = [ToolCall(id=str(i), name="n", arguments={"t": "x" * 7000}) for i in range(8)]
    calls.append(ToolCall(id="small", name="n", arguments={"t": "y"}))
    calls.append(ToolCall(id="large", name="n", arguments={"t": "z" * 9000}))
    planned = await planned_calls(calls, toolset, store)
    assert sum(len(json.dumps(call.arguments)) for call in planned) < 40_000
    assert [call.arguments_ref is None for call in planned] == [
        *[True] * 4,
        *[False] * 4,
        True,
        False,
    ]
    assert json.loads(store.kept[-1]) == {"t": "z" * 9000}


async def test_a_call_that_cannot_run_says_why() -> None:
    store: Any = Blobs()
    toolset = Toolset(routes={"n": Route(activity="n")})
    calls = [
        ToolCall(id="a", name="m", arguments={"t": "x" * 9000}),
        ToolCall(id="b", name="n", malformed="{"),
    ]
    unknown, malformed = await planned_calls(calls, toolset, store)
    assert unknown.problem is not None
    assert malformed.problem is not None
    assert (unknown.problem.code, unknown.problem.details) == ("TOOL_UNKNOWN", {"known": ["n"]})
    assert malformed.problem.code == "TOOL_ARGUMENTS_MALFORMED"
    assert (unknown.route, malformed.route, store.kept) == (None, None, [])
