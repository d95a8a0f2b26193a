"""Turns that wait for the host: answers of every kind, in every order, by every way."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gmi.personas.errors import (
    ConversationBusyError,
    MessageTooLargeError,
    NotPendingError,
    SessionUserMismatchError,
    ValidationError,
)
from gmi.worker import Session
from gmi.workflows.turns import HostResult, ToolResults, TurnOutput

from ..conftest import Stage
from ..support.scripted_model import Call, Text
from .conftest import persona


def question(call_id: str, text: str = "which?") -> Call:
    return Call("ask_person", {"question": text}, id=call_id)


async def paused(stage: Stage, text: str, *calls: Call, **config: Any) -> Session:
    """A session whose turn waits for these calls, and ends with "done" once they are answered."""
    stage.model.on(text, *calls)
    stage.model.on(text, Text("done"), calls=len(calls))
    session = stage.session(**config)
    output = await session.send(text)
    assert (output.status, output.is_final, output.response_text) == ("waiting", False, None)
    return session


def answers(stage: Stage, text: str) -> dict[str, str]:
    messages = stage.model.asked(text)[-1]["messages"]
    return {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}


async def pending(session: Session) -> list[str]:
    return [call.call.id for call in (await session.pending()).calls]


async def ended(session: Session) -> TurnOutput:
    turns = (await session.list_turns()).turns
    return await session.complete(await session.wait(turns[-1].turn, timeout=20))


async def until_resumed(session: Session) -> TurnOutput:
    """The last turn's final output."""
    async with asyncio.timeout(20):
        while True:
            output = await ended(session)
            if output.is_final:
                return output
            await asyncio.sleep(0.02)


async def test_a_pause_says_what_it_waits_for(stage: Stage) -> None:
    session = await paused(stage, "pause-1", question("a1"), question("a2", "when?"))
    view = await session.pending()
    assert [(c.call.id, c.call.name, c.call.reason) for c in view.calls] == [
        ("a1", "ask_person", "external"),
        ("a2", "ask_person", "external"),
    ]
    assert view.calls[1].call.arguments == {"question": "when?"}
    state = await session.state()
    assert state.status == "awaiting_tool_result"
    assert state.active_turn is None
    output = await session.handle_tool_results(
        [HostResult(call_id="a1", content="red"), HostResult(call_id="a2", content={"day": 3})]
    )
    assert (output.status, output.response_text, output.is_final) == ("done", "done", True)
    assert answers(stage, "pause-1") == {"a1": "red", "a2": '{"day": 3}'}
    assert await pending(session) == []


async def test_results_come_as_a_signal_too(stage: Stage) -> None:
    session = await paused(stage, "signal-1", question("b1"))
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    await handle.signal("tool_results", {"results": [{"call_id": "b1", "content": "by signal"}]})
    assert (await until_resumed(session)).response_text == "done"
    assert answers(stage, "signal-1") == {"b1": "by signal"}


async def test_calls_left_out_are_answered_as_not_run(stage: Stage) -> None:
    session = await paused(stage, "partial-1", question("c1"), question("c2"), question("c3"))
    output = await session.handle_tool_result("c2", "only this")
    assert output.response_text == "done"
    found = answers(stage, "partial-1")
    assert found["c2"] == "only this"
    assert "EXTERNAL_TOOL_NOT_RUN" in found["c1"]
    assert "EXTERNAL_TOOL_NOT_RUN" in found["c3"]


async def test_results_can_be_collected_one_by_one(stage: Stage) -> None:
    session = await paused(stage, "collect-1", question("d1"), question("d2"))
    first = await session.answer([HostResult(call_id="d1", content=1)], rest="wait")
    assert (first.accepted, first.pending, first.resumed) == (["d1"], ["d2"], False)
    assert await pending(session) == ["d2"]
    again = await session.handle_tool_results([HostResult(call_id="d1", content=1)], rest="wait")
    assert not again.is_final
    last = await session.answer([HostResult(call_id="d2", content=2)], rest="wait")
    assert last.resumed
    assert (await until_resumed(session)).response_text == "done"
    assert answers(stage, "collect-1") == {"d1": "1", "d2": "2"}


async def test_unknown_ids_are_refused_with_those_that_wait(stage: Stage) -> None:
    session = await paused(stage, "unknown-2", question("e1"), question("e2"))
    with pytest.raises(NotPendingError, match="'nope'") as caught:
        await session.handle_tool_results(
            [HostResult(call_id="e1", content=1), HostResult(call_id="nope", content=2)]
        )
    assert caught.value.details == {"unknown": ["nope"], "pending": ["e1", "e2"]}
    assert await pending(session) == ["e1", "e2"]
    await session.handle_tool_result("e1", "x")
    with pytest.raises(NotPendingError) as late:
        await session.handle_tool_result("e2", "too late")
    assert late.value.details == {"unknown": ["e2"], "pending": []}


async def test_a_repeated_answer_is_taken_once_and_another_one_is_refused(stage: Stage) -> None:
    session = await paused(stage, "repeat-1", question("f1"))
    results = [HostResult(call_id="f1", content="same")]
    output = await session.handle_tool_results(results)
    again = await session.handle_tool_results(results)
    assert again == output
    ack = await session.answer(results)
    assert (ack.turn, ack.accepted, ack.duplicates) == (output.turn, [], ["f1"])
    with pytest.raises(NotPendingError):
        await session.answer([HostResult(call_id="f1", content="other")])
    assert len(stage.model.asked("repeat-1")) == 2


async def test_a_malformed_signal_is_a_warning_and_the_session_goes_on(stage: Stage) -> None:
    session = await paused(stage, "malformed-2", question("g1"))
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    await handle.signal("tool_results", {"results": "nonsense"})
    await handle.signal("tool_results", args=[])
    await handle.signal("tool_results", {"results": [{"call_id": "g9", "content": 1}]})
    view = await session.pending()
    assert [c.call.id for c in view.calls] == ["g1"]
    assert "SYS_VALIDATION_ERROR" in view.warnings[0]
    assert "TOOL_CALL_NOT_PENDING" in view.warnings[-1]
    trace = await session.get_reasoning_trace()
    assert len([e for e in trace if e.type == "WARNING"]) == len(view.warnings)
    await handle.signal("stop_turn", 17)
    assert (await session.handle_tool_result("g1", "x")).response_text == "done"


async def test_a_message_during_a_pause_is_refused_with_the_pending_calls(stage: Stage) -> None:
    session = await paused(stage, "busy-1", question("h1"))
    with pytest.raises(ConversationBusyError) as caught:
        await session.send("busy-2")
    assert caught.value.details == {"pending": ["h1"]}
    stage.model.on("busy-3", Text("moved on"))
    output = await session.send("busy-3", on_pause="answer")
    assert output.response_text == "moved on"
    assert "EXTERNAL_TOOL_NOT_RUN" in answers(stage, "busy-1")["h1"]
    history = [m.role for m in await session.get_conversation_history()]
    assert history == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    [given_up] = [e for e in await session.get_reasoning_trace() if "not_run" in e.details]
    assert given_up.type == "WARNING"
    assert given_up.details["not_run"] == [{"id": "h1", "name": "ask_person"}]
    assert "the user sent a new message instead" in given_up.message


async def test_turns_queued_before_a_pause_wait_until_it_ends(stage: Stage) -> None:
    stage.model.on("queued-1", Call("meet", {"name": "queueing"}), question("i1"))
    stage.model.on("queued-1", Text("done"), calls=2)
    stage.model.on("queued-2", Text("second"))
    session = stage.session()
    first = await session.stream("queued-1")
    await stage.model.reached("queueing")
    second = await session.stream("queued-2")
    stage.model.open("queueing")
    assert (await first.result()).status == "waiting"
    assert await session.get_turn(second.turn) is None
    assert (await session.state()).queued == 1
    await session.handle_tool_result("i1", "x")
    assert (await second.result()).response_text == "second"
    seen = [body["messages"][-1]["content"] for body in stage.model.asked("queued-2")]
    assert seen == ["queued-2"]
    roles = [m.text for m in await session.get_conversation_history() if m.role == "assistant"]
    assert roles == ["", "done", "second"]


async def test_stopping_a_paused_turn_lets_the_queue_go_on(stage: Stage) -> None:
    session = await paused(stage, "abandon-1", question("j1"))
    [turn] = [card.turn for card in (await session.list_turns()).turns]
    await session.stop(turn)
    output = await session.get_turn(turn)
    assert output is not None
    assert (output.status, output.is_final) == ("abandoned", True)
    stage.model.on("abandon-2", Text("fresh"))
    assert (await session.send("abandon-2")).response_text == "fresh"
    with pytest.raises(NotPendingError):
        await session.handle_tool_result("j1", "late")


async def test_a_pause_answers_itself_when_its_time_is_over(stage: Stage) -> None:
    session = await paused(stage, "timeout-1", question("k1"), pause_timeout=1)
    [call] = (await session.pending()).calls
    assert call.expires_at is not None
    assert 0 < (call.expires_at - call.since).total_seconds() <= 1
    assert (await until_resumed(session)).response_text == "done"
    assert "did not answer in time" in answers(stage, "timeout-1")["k1"]


async def test_an_approved_call_is_run(stage: Stage) -> None:
    session = await paused(stage, "approve-1", Call("pay", {"amount": 5}, id="l1"))
    [call] = (await session.pending()).calls
    assert call.call.reason == "approval"
    assert "pay:5" not in stage.model.effects
    with pytest.raises(ValidationError, match="waits for an approval"):
        await session.handle_tool_result("l1", "paid, trust me")
    output = await session.handle_tool_results([HostResult(call_id="l1", approved=True)])
    assert output.response_text == "done"
    assert stage.model.effects.count("pay:5") == 1
    assert answers(stage, "approve-1") == {"l1": "paid 5"}


async def test_a_denied_call_tells_the_model_why(stage: Stage) -> None:
    session = await paused(
        stage, "deny-1", Call("pay", {"amount": 6}, id="m1"), Call("pay", {"amount": 7}, id="m2")
    )
    await session.handle_tool_results(
        [
            HostResult(call_id="m1", approved=False, reason="over budget"),
            HostResult(call_id="m2", approved=True),
        ]
    )
    found = answers(stage, "deny-1")
    assert "TOOL_DENIED" in found["m1"]
    assert "over budget" in found["m1"]
    assert found["m2"] == "paid 7"
    assert "pay:6" not in stage.model.effects


@pytest.mark.parametrize("how", ["rerun", "result"])
async def test_a_call_with_an_unknown_outcome_is_settled_by_the_host(
    stage: Stage, how: str
) -> None:
    text = f"lost-{how}"
    session = await paused(stage, text, Call("overdue_once", id=f"n-{how}"), on_lost="pause")
    [call] = (await session.pending()).calls
    assert call.call.reason == "lost"
    if how == "result":
        output = await session.handle_tool_result(call.call.id, "it had worked")
        assert output.response_text == "done"
        assert answers(stage, text) == {call.call.id: "it had worked"}
        return
    runs = len([e for e in stage.model.effects if e.startswith("overdue_once")])
    again = await session.handle_tool_results([HostResult(call_id=call.call.id, rerun=True)])
    assert again.status == "waiting"
    assert len([e for e in stage.model.effects if e.startswith("overdue_once")]) == runs + 1


async def test_a_call_that_was_not_lost_cannot_be_run_again(stage: Stage) -> None:
    session = await paused(stage, "rerun-1", question("o1"))
    with pytest.raises(ValidationError, match="cannot be run again"):
        await session.handle_tool_results([HostResult(call_id="o1", rerun=True)])
    with pytest.raises(ValidationError, match="not for an approval"):
        await session.handle_tool_results([HostResult(call_id="o1", approved=True)])
    assert (await session.handle_tool_result("o1", "x")).response_text == "done"


async def test_a_host_reports_a_failure(stage: Stage) -> None:
    session = await paused(stage, "error-1", question("p1"), question("p2"))
    await session.handle_tool_results(
        [
            HostResult(call_id="p1", is_error=True, content="nobody is home"),
            HostResult(call_id="p2", is_error=True, error={"code": "AWAY", "message": "gone"}),
        ]
    )
    found = answers(stage, "error-1")
    assert "EXTERNAL_TOOL_ERROR" in found["p1"]
    assert "nobody is home" in found["p1"]
    assert "AWAY" in found["p2"]


async def test_large_results_of_the_host_reach_the_model(stage: Stage) -> None:
    session = await paused(stage, "large-3", question("q1"), question("q2"), model="openai:gpt-4.1")
    text = "ß" * 200_000
    rows = [{"n": n, "text": "y" * 90} for n in range(3000)]
    await session.answer([HostResult(call_id="q1", content=text)], rest="wait")
    assert (await session.state()).state_bytes < 30_000
    await session.handle_tool_result("q2", rows)
    found = answers(stage, "large-3")
    assert found["q1"] == text
    assert json.loads(found["q2"]) == rows


async def test_a_result_over_a_megabyte_is_refused_and_the_pause_stays(stage: Stage) -> None:
    session = await paused(stage, "large-4", question("r1"))
    with pytest.raises(MessageTooLargeError) as caught:
        await session.handle_tool_result("r1", "x" * 1_200_000)
    assert caught.value.details["limit"] == 1_000_000
    assert await pending(session) == ["r1"]
    assert (await session.handle_tool_result("r1", "small")).response_text == "done"


async def test_a_turn_can_pause_twice(stage: Stage) -> None:
    stage.model.on("twice-1", question("s1"))
    stage.model.on("twice-1", question("s2"), calls=1)
    stage.model.on("twice-1", Text("done"), calls=2)
    session = stage.session()
    first = await session.stream("twice-1")
    assert not (await first.result()).is_final
    second = await session.handle_tool_result("s1", "one")
    assert (second.status, [c.id for c in second.tool_calls]) == ("waiting", ["s2"])
    last = await session.handle_tool_result("s2", "two")
    assert (last.turn, last.response_text, last.steps) == (first.turn, "done", 3)


async def test_another_user_may_not_answer(stage: Stage) -> None:
    session = await paused(stage, "other-1", question("t1"))
    stranger = stage.session(session.id, user_id="mallory")
    with pytest.raises(SessionUserMismatchError):
        await stranger.handle_tool_result("t1", "x")
    assert (await session.handle_tool_result("t1", "x")).response_text == "done"


async def test_a_second_client_finds_the_pending_calls_and_answers(stage: Stage) -> None:
    session = await paused(stage, "stateless-1", question("u1"))
    other = (await stage.reconnect()).session(session.id, user_id="kim")
    [call] = (await other.pending()).calls
    output = await other.handle_tool_result(call.call.id, "from elsewhere")
    assert output.response_text == "done"
    assert answers(stage, "stateless-1") == {"u1": "from elsewhere"}


async def test_a_paused_turn_goes_on_with_the_persona_that_it_paused_with(stage: Stage) -> None:
    def system(text: str) -> str:
        return str(stage.model.asked(text)[-1]["messages"][0]["content"])

    stage.model.on("frozen-1", question("v1"))
    stage.model.on("frozen-1", Text("done"), calls=1)
    stage.model.on("frozen-2", Text("done"))
    session = stage.client.session("changing", user_id="kim", persona="changing")
    await session.send("frozen-1", model="openai:scripted", fallback=[])
    before = (await session.state()).persona_digest
    path = stage.directory / "personas" / "changing.json"
    path.write_text(json.dumps(persona({"id": "changing", "baseSystemPrompt": "SECOND VERSION"})))
    ack = await session.refresh_persona()
    assert ack.digest != before
    await session.handle_tool_result("v1", "x")
    assert system("frozen-1") == "FIRST VERSION"
    await session.send("frozen-2", model="openai:scripted", fallback=[])
    assert system("frozen-2") == "SECOND VERSION"
    assert (await session.get_persona()).base_system_prompt == "SECOND VERSION"
    turns = await session.turns()
    assert len(turns) == 2
    trace = await session.get_reasoning_trace()
    assert any("SECOND" not in e.message and e.type == "STATE_CHANGE" for e in trace)


async def test_payloads_have_the_same_form_in_every_language(stage: Stage) -> None:
    session = await paused(stage, "raw-1", question("w1"))
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    payload = ToolResults(results=[HostResult(call_id="w1", content=[1, 2])]).model_dump()
    ack = await handle.execute_update("tool_results", payload)
    assert ack["accepted"] == ["w1"]
    assert (await until_resumed(session)).response_text == "done"


async def test_an_answer_without_results_reaches_only_the_turn_that_it_names(
    stage: Stage,
) -> None:
    session = await paused(stage, "which-turn", question("which-turn-1"))
    with pytest.raises(NotPendingError):
        await session.answer([], turn="another-turn")
    assert await pending(session) == ["which-turn-1"]
    ack = await session.answer([], turn=(await session.pending()).calls[0].turn)
    assert ack.resumed
    assert (await until_resumed(session)).response_text == "done"


async def test_a_message_sent_over_a_pause_does_not_wait_for_the_next_one(stage: Stage) -> None:
    stage.model.on("stubborn host", Call("ask_person", {"question": "one?"}))
    stage.model.on("stubborn host", Call("ask_person", {"question": "two?"}), calls=1)
    stage.model.on("stubborn host", Text("gave up"), calls=2)
    stage.model.on("never mind that", Text("fine"))
    session = stage.session()
    paused = await session.send("stubborn host")
    assert not paused.is_final
    output = await asyncio.wait_for(session.send("never mind that", on_pause="answer"), 20)
    assert output.response_text == "fine"
    assert (await session.wait(paused.turn)).response_text == "gave up"
