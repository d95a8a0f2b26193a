"""What a caller gives is looked at before anything is sent."""

from __future__ import annotations

import inspect
from typing import Any, cast

import pytest

from gmi.personas.errors import ValidationError
from gmi.worker import Session
from gmi.worker.endpoint import Endpoint
from gmi.workflows import SessionConfig


class Unreachable:
    """Workers that nothing may be sent to."""

    task_queue = "none"
    search_attributes = False

    async def read(self, request: object) -> Any:
        raise AssertionError("something was sent")

    @property
    def temporal(self) -> Any:
        raise AssertionError("something was sent")


WRONG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *(
        ("send", ("hi",), given)
        for given in (
            {"history": 5},
            {"history": "abc"},
            {"history": [5]},
            {"fallback": 5},
            {"fallback": "openai:gpt-4o"},
            {"fallback": [5]},
            {"interlocutor": 5},
            {"user_context": 5},
            {"user_context": ["a"]},
            {"task_context": "a"},
            {"options": 5},
            {"request_id": 5},
            {"sends": "never"},
            {"kind": "event"},
            {"model": 5},
        )
    ),
    ("send", (5,), {}),
    ("send", ([],), {}),
    ("stream", (b"hi",), {}),
    ("chat", (5,), {}),
    ("chat", ("hi",), {"history": 5}),
    ("chat", ("hi",), {"history": "abc"}),
    ("chat", ("hi",), {"history": [5]}),
    ("chat", ("hi",), {"from_": 5}),
    ("replace_history", (5,), {}),
    ("replace_history", (None,), {}),
    ("replace_history", ("abc",), {}),
    ("replace_history", ([5],), {}),
    ("hydrate_conversation_history", ([{"role": "nobody"}],), {}),
    ("answer", (5,), {}),
    ("answer", ([5],), {}),
    ("answer", ([],), {"rest": "whatever"}),
    ("handle_tool_results", ([{"content": 1}],), {}),
    ("handle_tool_result", (5,), {}),
    ("perceive", (5,), {}),
    ("perceive", ("It rains",), {"appraisal": 5}),
    ("perceive", ("It rains",), {"stimulus": [1]}),
    ("perceive", ("It rains",), {"payload": 5}),
    ("intend", (5,), {"event": "rain"}),
    ("intend", ("go",), {}),
    ("intend", ("go",), {"at": "soon"}),
    ("intend", ("go",), {"after": float("nan")}),
    ("notice", (5,), {}),
    ("cancel_intention", (5,), {}),
    ("stop", (5,), {}),
    ("stop", (None,), {"reason": 5}),
    ("wait", (5,), {}),
    ("get_turn", (5,), {}),
    ("refresh_persona", (5,), {}),
    ("set_personality_trait", (5, 0.5), {}),
    ("set_personality_trait", ("openness", "much"), {}),
    ("record_user_feedback", (5,), {}),
    ("mind_of", (5,), {}),
]


@pytest.mark.parametrize(("call", "given", "named"), WRONG, ids=str)
async def test_what_does_not_fit_is_refused_by_its_name(
    call: str, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    workers = cast(Endpoint, Unreachable())
    session = Session(workers, "s", user_id="u", persona=None, org="", config=SessionConfig())
    with pytest.raises(ValidationError):
        await getattr(session, call)(*given, **named)


async def test_what_does_not_narrow_a_reading_is_refused() -> None:
    workers = cast(Endpoint, Unreachable())
    session = Session(workers, "s", user_id="u", persona=None, org="", config=SessionConfig())
    reading = session.read("trace", entry="t1")
    assert inspect.isasyncgen(reading)
    with pytest.raises(ValidationError, match="'entry' does not narrow"):
        await anext(reading)
