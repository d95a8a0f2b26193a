"""What a turn's stream says: which chunks, in which order, with what inside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gmi.worker import Session
from gmi.workflows.chunks import Chunk
from gmi.workflows.turns import HostResult, TurnOutput

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Cut, Error, Fail, Text, Used, Whole


async def follow(session: Session, text: str, **settings: Any) -> tuple[list[Chunk], TurnOutput]:
    stream = await session.stream(text, **settings)
    chunks = [chunk async for chunk in stream]
    return chunks, await stream.result()


def types(chunks: list[Chunk]) -> list[str]:
    """The chunks' types, with deltas that were sent in one batch or in several as one."""
    seen: list[str] = []
    for chunk in chunks:
        if not (chunk.type == "text_delta" and seen and seen[-1] == "text_delta"):
            seen.append(chunk.type)
    return seen


def of(chunks: list[Chunk], kind: str) -> list[Chunk]:
    return [chunk for chunk in chunks if chunk.type == kind]


def counts(content: dict[str, Any]) -> tuple[int, int, int]:
    return content["prompt_tokens"], content["completion_tokens"], content["total_tokens"]


async def test_text_gives_deltas_running_totals_the_step_and_the_marker(stage: Stage) -> None:
    stage.model.on("plain-a", Text("Hel"), Used(10, 2), Text("lo"), Used(10, 5))
    chunks, output = await follow(stage.session(), "plain-a")
    assert types(chunks) == [
        "text_delta",
        "usage_update",
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    assert "".join(c.content for c in of(chunks, "text_delta")) == "Hello"
    assert [counts(c.content) for c in of(chunks, "usage_update")] == [(10, 2, 12), (10, 5, 15)]
    [step] = of(chunks, "step_finished")
    assert step.content == {
        "step_index": 0,
        "text": "Hello",
        "finish_reason": "stop",
        "provider_id": "openai",
        "model_id": "scripted",
        "hop": 0,
        "response_model": "scripted",
        "provider_message_id": step.content["provider_message_id"],
        "service_tier": None,
    }
    assert step.content["provider_message_id"].startswith("chatcmpl-")
    assert step.finish_reason == "stop"
    assert step.usage is not None
    assert step.usage.total_tokens == 15
    marker = chunks[-1]
    assert marker.is_final
    assert TurnOutput.model_validate(marker.content) == output
    assert (output.status, output.response_text) == ("done", "Hello")
    assert output.usage.total_tokens == 15


async def test_an_answer_without_deltas_is_said_whole(stage: Stage) -> None:
    stage.model.on("plain-b", Whole("all at once"), Used(1, 1))
    chunks, output = await follow(stage.session(), "plain-b")
    assert types(chunks) == [
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    assert chunks[0].content == "all at once"
    assert output.response_text == "all at once"


async def test_every_chunk_names_its_turn_its_step_and_its_place(stage: Stage) -> None:
    stage.model.on("plain-c", Text("first "), Call("echo", {"text": "x"}))
    stage.model.on("plain-c", Text("second"), calls=1)
    chunks, output = await follow(stage.session(), "plain-c")
    assert {chunk.turn for chunk in chunks} == {output.turn}
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    for step in (0, 1):
        said = [c.seq for c in chunks if c.step == step and c.attempt == 1]
        assert said == list(range(len(said)))


async def test_a_tool_round_gives_the_request_the_results_and_the_next_step(stage: Stage) -> None:
    stage.model.on("round-a", Call("echo", {"text": "hi"}, id="c1"), Used(5, 5))
    stage.model.on("round-a", Text("done"), Used(7, 2), calls=1)
    chunks, output = await follow(stage.session(), "round-a")
    assert types(chunks) == [
        "tool_call_request",
        "usage_update",
        "step_finished",
        "tool_result",
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    request = chunks[0]
    assert request.content == [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}]
    assert request.metadata == {
        "execution_mode": "internal",
        "requires_external_tool_result": False,
    }
    first, second = of(chunks, "step_finished")
    assert (first.content["text"], first.finish_reason) == ("", "tool_calls")
    assert (second.content["step_index"], second.content["text"]) == (1, "done")
    [result] = of(chunks, "tool_result")
    assert result.content == {
        "tool_call_id": "c1",
        "name": "echo",
        "result": "hi",
        "is_error": False,
    }
    assert (output.usage.prompt_tokens, output.usage.completion_tokens) == (12, 7)
    assert [call.id for call in output.tool_calls] == ["c1"]
    assert output.steps == 2


async def answered(session: Session) -> None:
    await session.handle_tool_results(
        [HostResult(call_id="h1", content="red"), HostResult(call_id="h2", content=[1])]
    )


async def collected(session: Session) -> None:
    await session.answer([HostResult(call_id="h2", content="late")], rest="wait")
    await session.answer([HostResult(call_id="h2", content="late")], rest="wait")
    await session.handle_tool_results(
        [HostResult(call_id="h1", is_error=True, error={"code": "AWAY"})], rest="wait"
    )


async def partly_answered(session: Session) -> None:
    await session.handle_tool_result("h2", "only this")


async def largely_answered(session: Session) -> None:
    await session.handle_tool_result("h1", "w" * 20_000)


async def overtaken(session: Session) -> None:
    await session.send("overtaking", on_pause="answer")


async def stopped(session: Session) -> None:
    await session.stop((await session.pending()).calls[0].turn)


async def left_alone(session: Session) -> None:
    [turn] = (await session.list_turns()).turns
    async with asyncio.timeout(20):
        while not (await session.wait(turn.turn)).is_final:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("name", "host", "codes"),
    [
        ("answered", answered, [None, None]),
        ("collected", collected, ["AWAY", None]),
        ("partly", partly_answered, ["EXTERNAL_TOOL_NOT_RUN", None]),
        ("largely", largely_answered, [None, "EXTERNAL_TOOL_NOT_RUN"]),
        ("overtaken", overtaken, ["EXTERNAL_TOOL_NOT_RUN"] * 2),
        ("stopped", stopped, ["TOOL_NOT_RUN"] * 2),
        ("left-alone", left_alone, ["EXTERNAL_TOOL_NOT_RUN"] * 2),
    ],
)
async def test_every_answer_to_a_paused_turn_is_said_once(
    stage: Stage,
    name: str,
    host: Callable[[Session], Awaitable[None]],
    codes: list[str | None],
) -> None:
    text = f"host-{name}"
    calls = [Call("ask_person", {"question": "?"}, id=call_id) for call_id in ("h1", "h2")]
    stage.model.on(text, *calls)
    stage.model.on(text, Text("done"), calls=2)
    stage.model.on("overtaking", Text("moved on"))
    session = stage.session(pause_timeout=1) if name == "left-alone" else stage.session()
    await session.initialize()
    start = await session.feed.offset()
    paused = await session.send(text)
    await host(session)
    chunks: list[Chunk] = []
    async for item in session.feed.read(start):
        if item.chunk.turn == paused.turn:
            chunks.append(item.chunk)
            if item.chunk.is_final:
                break
    said = {chunk.content["tool_call_id"]: chunk for chunk in of(chunks, "tool_result")}
    assert len(of(chunks, "tool_result")) == len(said) == 2
    errors = [said[call_id].error_details or {} for call_id in ("h1", "h2")]
    assert [error.get("code") for error in errors] == codes
    history = [item async for item in session.read("messages", turn=paused.turn)]
    recorded = [row["message"] for row in history if row["message"]["role"] == "tool"]
    assert [message["call_id"] for message in recorded] == ["h1", "h2"]
    for message in recorded:
        content = said[message["call_id"]].content
        assert content["is_error"] == message.get("is_error", False)
        assert content["result"] == message["content"] or "result_ref" in content


async def test_text_before_a_call_is_part_of_the_answer(stage: Stage) -> None:
    stage.model.on("round-b", Text("Let me see. "), Call("echo", {"text": "x"}))
    stage.model.on("round-b", Text("There."), calls=1)
    _, output = await follow(stage.session(), "round-b")
    assert output.response_text == "Let me see. There."


async def test_fail_closed_answers_every_call_and_fails_the_turn(stage: Stage) -> None:
    stage.model.on(
        "closed-a", Call("broken", id="c1"), Call("slow", id="c2"), Call("slow", id="c3")
    )
    session = stage.session(tool_failure_mode="fail_closed")
    chunks, output = await follow(session, "closed-a")
    assert types(chunks) == [
        "tool_call_request",
        "usage_update",
        "step_finished",
        "tool_result",
        "tool_result",
        "tool_result",
        "error",
        "final_response_marker",
    ]
    results = {c.content["tool_call_id"]: c for c in of(chunks, "tool_result")}
    assert all(c.content["is_error"] for c in results.values())
    assert "it is broken" in results["c1"].content["result"]
    assert "TOOL_INTERRUPTED" in results["c2"].content["result"]
    [error] = of(chunks, "error")
    assert error.error_details is not None
    assert error.error_details["code"] == "TOOL_ERROR"
    assert output.status == "failed"
    assert output.error is not None
    assert output.error.code == "TOOL_ERROR"
    assert output.response_text is None
    assert chunks[-1].is_final
    stage.model.on("closed-b", Text("fine again"))
    assert (await session.send("closed-b")).response_text == "fine again"


async def test_a_billed_failure_is_said_before_the_next_hop_answers(stage: Stage) -> None:
    stage.model.on("billed-a", Used(3, 0), Error(), provider="groq")
    stage.model.on("billed-a", Text("ok"), Used(4, 1), provider="together")
    session = stage.session(model="groq:one", fallback=[{"model": "together:two"}])
    chunks, output = await follow(session, "billed-a")
    assert types(chunks) == [
        "usage_update",
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    failed = chunks[0]
    assert counts(failed.content) == (3, 0, 3)
    assert failed.metadata["attempt_failed"] is True
    assert failed.metadata["hop"] == 0
    assert (failed.metadata["provider_id"], failed.metadata["model_id"]) == ("groq", "one")
    [step] = of(chunks, "step_finished")
    assert (step.content["hop"], step.content["provider_id"]) == (1, "together")
    assert (output.usage.prompt_tokens, output.usage.completion_tokens) == (7, 1)
    assert (output.hop, output.provider, output.model) == (1, "together", "two")


async def test_a_turn_that_is_not_streamed_says_the_same_chunks(stage: Stage) -> None:
    stage.model.on("quiet-a", Used(3, 0), Error(), provider="groq", times=1)
    stage.model.on("quiet-a", Text("hello"), Call("echo", {"text": "x"}), provider="together")
    stage.model.on("quiet-a", Text("bye"), calls=1, provider="together")
    session = stage.session(model="groq:one", fallback=[{"model": "together:two"}])
    await session.initialize()
    start = await session.feed.offset()
    output = await session.send("quiet-a", stream=False)
    chunks: list[Chunk] = []
    async for item in session.feed.read(start):
        chunks.append(item.chunk)
        if item.chunk.type == "final_response_marker":
            break
    assert types(chunks) == [
        "usage_update",
        "text_delta",
        "tool_call_request",
        "usage_update",
        "step_finished",
        "tool_result",
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    assert of(chunks, "tool_call_request")[0].metadata["execution_mode"] == "internal"
    assert output.response_text == "hellobye"


async def test_a_refused_request_fails_the_turn_with_a_provider_error(stage: Stage) -> None:
    stage.model.on("refused-a", Fail(400, body={"error": {"message": "no such parameter"}}))
    session = stage.session(fallback=[{"model": "groq:never"}])
    chunks, output = await follow(session, "refused-a")
    assert types(chunks) == ["error", "final_response_marker"]
    assert output.error is not None
    assert output.error.code == "LLM_PROVIDER_ERROR"
    assert "no such parameter" in output.error.message
    assert not stage.model.asked("refused-a", "groq")


async def test_a_primary_without_a_key_is_a_configuration_error(stage: Stage) -> None:
    session = stage.session(model="gemini:flash", fallback=[{"model": "openai:scripted"}])
    chunks, output = await follow(session, "keyless-a")
    assert types(chunks) == ["error", "final_response_marker"]
    assert output.error is not None
    assert output.error.code == "SYS_CONFIGURATION_ERROR"
    assert "GEMINI_API_KEY" in output.error.message
    stage.model.on("keyless-b", Text("here"))
    assert (await session.send("keyless-b", model="openai:scripted")).response_text == "here"


async def test_at_the_tool_limit_the_model_answers_once_more_without_tools(stage: Stage) -> None:
    for done in (0, 1):
        stage.model.on("limit-a", Call("echo", {"text": "again"}), calls=done)
    stage.model.on("limit-a", Text("that is all"), calls=2)
    chunks, output = await follow(stage.session(), "limit-a", max_tool_iterations=2)
    assert types(chunks) == [
        *["tool_call_request", "usage_update", "step_finished", "tool_result"] * 2,
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    assert output.limit_reached
    assert output.response_text == "that is all"
    requests = stage.model.asked("limit-a")
    assert ["tools" in body for body in requests] == [True, True, False]


async def test_a_model_that_calls_without_tools_is_not_obeyed(stage: Stage) -> None:
    stage.model.on("limit-b", Text("hm"), Call("echo", {"text": "x"}))
    chunks, output = await follow(stage.session(), "limit-b", max_tool_iterations=0)
    assert "tool_result" not in types(chunks)
    assert (output.status, output.response_text) == ("done", "hm")
    assert any("although none were offered" in warning for warning in output.warnings)


async def test_an_empty_answer_is_an_answer_without_text(stage: Stage) -> None:
    stage.model.on("empty-a", Used(3, 0))
    chunks, output = await follow(stage.session(), "empty-a")
    assert types(chunks) == ["usage_update", "step_finished", "final_response_marker"]
    assert (output.status, output.response_text) == ("done", None)


async def test_a_failure_after_the_first_word_is_not_continued_by_another_hop(
    stage: Stage,
) -> None:
    stage.model.on("cut-a", Text("half an ans"), Used(9, 3), Cut(), provider="groq")
    session = stage.session(model="groq:one", fallback=[{"model": "together:two"}])
    chunks, output = await follow(session, "cut-a")
    assert types(chunks)[0] == "text_delta"
    assert types(chunks)[-2:] == ["error", "final_response_marker"]
    assert output.error is not None
    assert output.error.code == "LLM_PROVIDER_ERROR"
    assert output.response_text is None
    assert (output.usage.prompt_tokens, output.usage.completion_tokens) == (9, 3)
    assert not stage.model.asked("cut-a", "together")


async def test_broken_characters_of_a_model_are_replaced(stage: Stage) -> None:
    stage.model.on(
        "broken-a",
        Text("one \ud800 "),
        Text("smile \ud83d"),
        Text("\ude00"),
        Call("echo", raw='{"text": "x\\ud800y"}'),
    )
    stage.model.on("broken-a", Text("end"), calls=1)
    chunks, output = await follow(stage.session(), "broken-a")
    assert output.response_text == "one \ufffd smile \U0001f600end"
    assert "".join(c.content for c in of(chunks, "text_delta")) == output.response_text
    [result] = of(chunks, "tool_result")
    assert result.content["result"] == "x\ufffdy"


async def test_a_long_answer_is_completed_from_the_store(stage: Stage) -> None:
    text = "wörter " * 20_000
    stage.model.on("long-a", *[Text(text[i : i + 20_000]) for i in range(0, len(text), 20_000)])
    session = stage.session()
    chunks, output = await follow(session, "long-a")
    assert output.text_stored
    assert output.response_text == text
    assert "".join(c.content for c in of(chunks, "text_delta")) == text
    assert (await session.send("long-a", stream=False)).response_text == text


async def test_chunks_that_no_live_step_sent_are_dropped(stage: Stage) -> None:
    stage.model.on("fenced-1", Text("real"), Barrier("fenced"), Text(" text"))
    session = stage.session()
    stream = await session.stream("fenced-1")
    await stage.model.reached("fenced")
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    forged = {"items": [{"type": "text_delta", "content": "FORGED"}]}
    place = {"turn": stream.turn, "step": 0, "attempt": 1, "first_seq": 1}
    for wrong in (
        {"turn": "another"},
        {"step": 1},
        {"attempt": 0},
        {"first_seq": 7},
        {"first_seq": 0},
        {"attempt": 2, "first_seq": 3},
        {"attempt": "x"},
    ):
        await handle.signal("chunks", {**forged, **place, **wrong})
    await handle.signal("chunks")
    stage.model.open("fenced")
    chunks = [chunk async for chunk in stream]
    assert "FORGED" not in str(chunks)
    assert types(chunks) == [
        "text_delta",
        "usage_update",
        "step_finished",
        "final_response_marker",
    ]
    assert (await stream.result()).response_text == "real text"
    await handle.signal("chunks", {**forged, **place})
    assert "FORGED" not in str(await session.get_conversation_history())
