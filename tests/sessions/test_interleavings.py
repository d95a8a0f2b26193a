"""Whatever host, user and model do in which order: each call is answered once, where it belongs."""

from __future__ import annotations

import asyncio
import random

import pytest

from gmi.worker import Session
from gmi.workflows.turns import HostResult, ToolCallView

from ..conftest import Stage
from ..support.pairing import assert_paired
from ..support.scripted_model import Call, Text

TURNS = 6
CALLS = (
    Call("echo", {"text": "x"}),
    Call("broken"),
    Call("nonsense"),
    Call("echo", raw='{"text": '),
    Call("ask_person", {"question": "?"}),
    Call("ask_person", {"question": "!"}),
    Call("pay", {"amount": 0}),
)


def script(stage: Stage, text: str, dice: random.Random) -> None:
    """Some rounds of some calls, and an end."""
    made = 0
    for _ in range(dice.randint(1, 3)):
        calls = [dice.choice(CALLS) for _ in range(dice.randint(1, 4))]
        stage.model.on(text, *calls, calls=made)
        made += len(calls)
    stage.model.on(text, Text("done"), calls=made)


def answer(call: ToolCallView, dice: random.Random) -> HostResult:
    if call.reason == "approval":
        return HostResult(call_id=call.id, approved=dice.random() < 0.5, reason="so it is")
    return HostResult(call_id=call.id, content=dice.choice(["red", {"n": 1}, "z" * 9000]))


async def carry_on(session: Session, turn: str, dice: random.Random, *, leave: bool) -> None:
    """Do one thing or the other with whatever waits, until the turn ends.

    Args:
        session: The session.
        turn: The turn.
        dice: Says what is done.
        leave: Whether a pause of the turn may be left to the next message.
    """
    while (output := await session.get_turn(turn)) is None or not output.is_final:
        waiting = (await session.pending()).calls
        if not waiting:
            await asyncio.sleep(0.02)
            continue
        deed = dice.choice(["all", "some", "collect", "collect", "stop", "leave"])
        if deed == "leave" and leave and waiting[0].turn == turn:
            return
        if deed == "stop":
            await session.stop(waiting[0].turn)
            continue
        count = len(waiting) if deed == "all" else dice.randint(1, len(waiting))
        results = [answer(found.call, dice) for found in dice.sample(waiting, count)]
        await session.answer(results, rest="wait" if deed == "collect" else "fail")


@pytest.mark.parametrize("seed", range(8))
async def test_every_call_is_answered_once_before_anybody_speaks_again(
    stage: Stage, seed: int
) -> None:
    dice = random.Random(seed)
    session = stage.session(
        model="openai:gpt-4.1", max_messages=500, roll_events=1 if seed % 2 else 2000
    )
    turns: list[str] = []
    for number in range(TURNS):
        text = f"mixed-{seed}-{number}."
        script(stage, text, dice)
        stream = await session.stream(text, on_pause="answer")
        turns.append(stream.turn)
        if dice.random() < 0.2:
            await session.stop(stream.turn)
        await asyncio.wait_for(carry_on(session, stream.turn, dice, leave=True), 30)
    last = f"mixed-{seed}-last."
    stage.model.on(last, Text("over"))
    stream = await session.stream(last, on_pause="answer")
    turns.append(stream.turn)
    await asyncio.wait_for(carry_on(session, stream.turn, dice, leave=False), 30)
    assert (await stream.result()).response_text == "over"
    for body in stage.model.asked(f"mixed-{seed}-"):
        assert_paired(body["messages"])
    waiting: list[str] = []
    for message in await session.get_conversation_history():
        if message.role == "tool":
            assert message.call_id in waiting
            waiting.remove(message.call_id)
        else:
            assert waiting == []
            waiting = [call.id for call in message.calls]
    rows = {row["turn"]: row["status"] for row in await session.turns()}
    assert list(rows) == turns
    for turn, status in rows.items():
        output = await session.get_turn(turn)
        assert output is not None
        assert output.status == status in ("done", "stopped", "abandoned")
