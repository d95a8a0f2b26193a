"""What a newer release wrote is readable: during a deploy both run side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from gmi.personas.errors import ValidationError
from gmi.personas.messages import Message, Usage
from gmi.workflows.decode import lenient, parse
from gmi.workflows.mind_calls import Perceive, Perception
from gmi.workflows.session_records import SessionConfig, SessionRules
from gmi.workflows.state import SessionStart, SessionState, TurnInput, TurnRecord
from gmi.workflows.steps import StepResult
from gmi.workflows.turns import HopSpec, SubmitTurn, TurnCard, TurnOutput, TurnTicket
from gmi.workflows.writes import CloseTurn

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def output() -> TurnOutput:
    return TurnOutput(
        session_key="s",
        turn="t",
        request_id="r",
        status="done",
        is_final=True,
        usage=Usage(prompt_tokens=1),
        event=Perceive(message="applause"),
        perception=Perception.model_validate({"vad": {}, "label": "joy", "intensity": 0.5}),
    )


def start() -> SessionStart:
    record = TurnRecord(
        turn="t2",
        seq=2,
        request_id="r2",
        digest="d",
        created_at=NOW,
        input=TurnInput(
            content="hello",
            history=[Message(role="user", content="earlier")],
            fallback=[HopSpec(model="offline:offline")],
            event=Perceive(message="applause"),
        ),
    )
    card = TurnCard.model_validate(
        {
            "turn": "t",
            "seq": 1,
            "request_id": "r",
            "kind": "text",
            "status": "done",
            "parent": None,
            "branch": "main",
            "depth": 1,
            "created_at": NOW,
            "preview": "hello",
        }
    )
    state = SessionState(
        session="s",
        created_at=NOW,
        config=SessionConfig(),
        rules=SessionRules(persona="p", persona_name="P"),
        persona_digest="d",
        toolset_digest="t",
        queue=[record],
        cards=[card],
        outputs=[output()],
    )
    return SessionStart(session_id="s", user_id="u", state=state)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value, at every depth, whose keys are fields."""
    if isinstance(value, dict):
        yield value
        for key, part in value.items():
            if key not in FREE:
                yield from objects(part)
    elif isinstance(value, list):
        for part in value:
            yield from objects(part)


FREE = {
    "payload",
    "details",
    "extensions",
    "values",
    "credentials",
    "answered",
    "usage_by_model",
    "working",
    "noted_in",
    "traits",
    "learned",
    "params",
    "counters",
    "preferences",
    "imprints",
    "results",
    "intention_digests",
    "feedback",
    "user",
    "task",
}
"""Fields whose keys are anybody's."""


def test_a_carried_state_of_a_newer_release_is_readable_at_every_depth() -> None:
    plain = json.loads(start().model_dump_json())
    told = json.loads(json.dumps(plain))
    count = 0
    for found in list(objects(told)):
        found["of_a_newer_release"] = {"anything": 1}
        count += 1
    assert count > 20
    assert json.loads(lenient(told, SessionStart).model_dump_json()) == plain


def test_a_state_that_does_not_fit_is_refused_and_not_taken_for_another() -> None:
    broken = json.loads(start().model_dump_json())
    broken["state"]["cards"][0]["seq"] = "no number"
    with pytest.raises(ValidationError):
        lenient(broken, SessionStart)


@pytest.mark.parametrize(
    "answer",
    [
        output(),
        StepResult(existing=output()),
        TurnTicket(session_key="s", turn="t", request_id="r", status="done", output=output()),
        CloseTurn.model_validate(
            {
                "at": {"session": "s", "turn": "t", "counter": 1, "now": NOW, "run": "r"},
                "status": "done",
                "output": output(),
                "layout": [1],
            }
        ),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_of_a_newer_release_is_readable(answer: Any) -> None:
    told = json.loads(answer.model_dump_json())
    outputs = [found for found in objects(told) if "session_key" in found or "at" in found]
    for found in outputs:
        found["of_a_newer_release"] = 1
    assert type(answer).model_validate(told) == answer


def test_what_a_caller_sends_may_hold_no_unknown_field() -> None:
    with pytest.raises(ValidationError):
        parse({"content": "hello", "user_id": "u", "colour": "red"}, SubmitTurn)
