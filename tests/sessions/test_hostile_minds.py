"""Nothing that is sent to a mind, and no tool, can hold its session up."""

from __future__ import annotations

import asyncio

import pytest

from gmi.personas.errors import GMIError, ValidationError
from gmi.worker import Session
from gmi.workflows.turns import SubmitTurn, TurnTicket

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Text


async def usable(stage: Stage, session: Session) -> None:
    stage.model.on("still here?", Text("Yes."))
    assert (await asyncio.wait_for(session.send("still here?"), 20)).response_text == "Yes."


async def submitted(session: Session, **fields: object) -> TurnTicket:
    submit = SubmitTurn.model_validate({"content": "hi", "user_id": "kim", **fields})
    return await session._update("submit_turn", submit, TurnTicket)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "event"},
        {"kind": "text", "event": {"message": "applause"}},
        {"kind": "event", "event": {"message": "   "}},
        {"kind": "event", "event": {"message": "x", "payload": {"big": "y" * 5000}}},
        {"request_id": "gmi-intention rent"},
    ],
)
async def test_a_turn_that_is_no_turn_is_refused(stage: Stage, fields: dict[str, object]) -> None:
    session = stage.session(persona="feeling")
    with pytest.raises(GMIError) as refused:
        await submitted(session, **fields)
    assert refused.value.code == "SYS_VALIDATION_ERROR"
    await usable(stage, session)


async def test_a_persona_without_emotions_takes_no_event_however_it_is_sent(stage: Stage) -> None:
    session = stage.session()
    with pytest.raises(ValidationError, match="no emotions"):
        await submitted(session, kind="event", event={"message": "applause"})
    await usable(stage, session)


async def test_an_event_that_waits_while_the_persona_loses_its_emotions_fails_alone(
    stage: Stage,
) -> None:
    stage.model.on("long talk", Text("so "), Barrier("long talk"), Text("it is"))
    session = stage.session(persona="feeling")
    stream = await session.stream("long talk")
    await stage.model.reached("long talk")
    waiting = asyncio.create_task(session.perceive("applause"))
    while (await session.state()).queued < 1:
        await asyncio.sleep(0.02)
    await session.refresh_persona("plain")
    stage.model.open("long talk")
    assert (await stream.result()).status == "done"
    output = await asyncio.wait_for(waiting, 20)
    assert output.status == "failed"
    assert output.error is not None
    assert output.error.code == "SYS_VALIDATION_ERROR"
    await usable(stage, session)


@pytest.mark.parametrize(
    "patch",
    [
        {"traits": {"openness": 0.1}},
        {"traits": ["x"]},
        {"params": "x"},
        {"usage": {"bogus": 1}},
        {"remember": "the user owes me money"},
    ],
)
async def test_a_tool_that_has_no_business_with_the_mind_cannot_change_it(
    stage: Stage, patch: dict[str, object]
) -> None:
    name = f"meddle {sorted(patch)} {list(patch.values())}"
    stage.model.on(name, Call("meddle", {"patch": patch}))
    stage.model.on(name, Text("done"), calls=1)
    session = stage.session(tools=["meddle"])
    assert (await session.send(name)).response_text == "done"
    mind = await session.mind()
    assert mind.traits == {}
    warnings = [e.message for e in await session.get_reasoning_trace() if e.type == "WARNING"]
    assert any("not its business" in message for message in warnings)
    await usable(stage, session)
