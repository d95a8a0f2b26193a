"""What happens when a provider fails: the next hop, a durable wait, or a typed end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from gmi.personas.messages import Message, Usage
from gmi.personas.options import CompletionOptions
from gmi.worker import Session, SessionStatus
from gmi.workflows.turns import HopSpec, TurnOutput

from ..conftest import Stage
from ..support.databases import stored_text
from ..support.scripted_model import Call, Cut, Error, Fail, Text, Thought, Used
from .conftest import SECRET

OK = Text("fine")
LONG_HISTORY = [
    Message(role=role, content="word " * 300) for _ in range(8) for role in ("user", "assistant")
]


def hops(stage: Stage, primary: str, *fallback: str | dict[str, Any], **settings: Any) -> Session:
    chain = [{"model": hop} if isinstance(hop, str) else hop for hop in fallback]
    return stage.session(model=primary, fallback=chain, **settings)


async def until_waiting(session: Session, attempt: int = 2) -> SessionStatus:
    """The session's status once it waits for this attempt of a step."""
    async with asyncio.timeout(20):
        while True:
            status = await session.status()
            if status.waiting_until and any(a.attempt == attempt for a in status.activities):
                return status
            await asyncio.sleep(0.02)


def failure(output: TurnOutput) -> tuple[str, str]:
    assert output.error is not None
    return output.error.code, output.error.message


async def warnings(session: Session) -> list[dict[str, Any]]:
    trace = await session.get_reasoning_trace()
    return [entry.details for entry in trace if entry.type == "WARNING"]


async def test_a_rate_limit_with_a_fallback_moves_on_at_once(stage: Stage) -> None:
    stage.model.on("limit-1", Fail(429, {"Retry-After": "3600"}), provider="xai")
    stage.model.on("limit-1", OK, provider="together")
    session = hops(stage, "xai:one", "together:two")
    output = await asyncio.wait_for(session.send("limit-1"), 10)
    assert (output.status, output.hop, output.provider) == ("done", 1, "together")
    assert len(stage.model.asked("limit-1", "xai")) == 1
    [warning] = await warnings(session)
    assert (warning["hop"], warning["status"], warning["retry_after"]) == (0, 429, 3600)


async def test_a_rate_limit_without_a_fallback_is_waited_for(stage: Stage) -> None:
    stage.model.on("limit-2", Fail(429, {"Retry-After": "1"}), provider="mistral", times=1)
    stage.model.on("limit-2", OK, provider="mistral")
    session = hops(stage, "mistral:one")
    await session.initialize()
    began = datetime.now(UTC)
    sending = asyncio.create_task(session.send("limit-2"))
    status = await until_waiting(session)
    [waiting] = status.activities
    assert waiting.activity == "gmi.model.run_step"
    assert waiting.attempt == 2
    assert "scripted" in waiting.failure
    assert status.state.status == "processing"
    assert status.waiting_until is not None
    assert status.waiting_until - began < timedelta(seconds=5)
    output = await sending
    assert output.response_text == "fine"
    assert datetime.now(UTC) - began >= timedelta(seconds=1)


async def test_any_number_of_waits_that_the_provider_asks_for_is_waited(stage: Stage) -> None:
    wait = Fail(429, {"retry-after-ms": "20"})
    stage.model.on("limit-3", wait, provider="mistral", times=6)
    stage.model.on("limit-3", OK, provider="mistral")
    output = await asyncio.wait_for(hops(stage, "mistral:one").send("limit-3"), 30)
    assert output.response_text == "fine"
    assert len(stage.model.asked("limit-3", "mistral")) == 7


async def test_a_long_wait_can_be_stopped_and_one_over_the_limit_is_refused(stage: Stage) -> None:
    stage.model.on("limit-4", Fail(429, {"Retry-After": "1800"}), provider="vllm")
    session = hops(stage, "vllm:one")
    stream = await session.stream("limit-4")
    status = await until_waiting(session)
    assert status.waiting_until is not None
    assert status.waiting_until > datetime.now(UTC) + timedelta(minutes=25)
    await stream.stop()
    assert (await stream.result()).status == "stopped"
    stage.model.on("limit-5", Fail(429, {"Retry-After": "7200"}), provider="vllm")
    output = await asyncio.wait_for(session.send("limit-5"), 10)
    assert failure(output)[0] == "LLM_PROVIDER_ERROR"


async def test_a_refused_key_moves_on_and_its_circuit_leaves_the_hop_out(stage: Stage) -> None:
    stage.model.on("key-1", Fail(401), provider="deepseek")
    stage.model.on("key-1", OK, provider="together")
    stage.model.on("key-2", OK, provider="together")
    session = hops(stage, "deepseek:one", "together:two")
    assert (await session.send("key-1")).hop == 1
    output = await session.send("key-2")
    assert (output.hop, output.response_text) == (1, "fine")
    assert not stage.model.asked("key-2", "deepseek")
    first, second = await warnings(session)
    assert first["status"] == 401
    assert second["kind"] == "circuit_open"
    trace = await session.get_reasoning_trace()
    [call] = [e for e in trace if e.type == "LLM_CALL_START" and e.turn == output.turn]
    assert call.details["attempt"] == 1
    alone = hops(stage, "deepseek:one")
    code, message = failure(await alone.send("key-3"))
    assert code == "LLM_PROVIDER_UNAVAILABLE"
    assert "circuit is open" in message


async def test_a_server_error_of_the_only_hop_is_tried_three_times(stage: Stage) -> None:
    stage.model.on("5xx-1", Fail(503), provider="ollama")
    session = hops(stage, "ollama:one")
    await session.initialize()
    sending = asyncio.create_task(session.send("5xx-1"))
    status = await until_waiting(session)
    assert status.waiting_until is not None
    left = status.waiting_until - datetime.now(UTC)
    assert left < timedelta(seconds=1.5)
    status = await until_waiting(session, attempt=3)
    assert status.waiting_until is not None
    assert timedelta(seconds=0.5) < status.waiting_until - datetime.now(UTC) < timedelta(seconds=3)
    output = await sending
    assert failure(output)[0] == "LLM_PROVIDER_ERROR"
    assert len(stage.model.asked("5xx-1")) == 3
    assert len(await warnings(session)) == 3


async def test_a_hop_behind_that_cannot_start_makes_this_one_the_last(stage: Stage) -> None:
    stage.model.on("last-1", Fail(503, {"retry-after-ms": "10"}), provider="xai", times=1)
    stage.model.on("last-1", OK, provider="xai")
    output = await hops(stage, "xai:one", "gemini:flash").send("last-1")
    assert (output.response_text, output.hop) == ("fine", 0)


async def test_a_provider_that_says_not_to_retry_is_not_asked_again(stage: Stage) -> None:
    refusal = Fail(503, {"x-should-retry": "false"})
    stage.model.on("never-1", refusal, provider="openai-compatible")
    output = await hops(stage, "openai-compatible:one").send("never-1")
    assert failure(output)[0] == "LLM_PROVIDER_ERROR"
    assert len(stage.model.asked("never-1")) == 1


async def test_a_stream_without_its_terminal_event_is_a_failed_attempt(stage: Stage) -> None:
    stage.model.on("cut-1", Cut(), provider="xai")
    stage.model.on("cut-1", OK, provider="together")
    output = await hops(stage, "xai:one", "together:two").send("cut-1")
    assert (output.hop, output.response_text) == (1, "fine")


async def test_a_turn_stays_on_the_hop_that_served_it_and_the_next_begins_anew(
    stage: Stage,
) -> None:
    stage.model.on("forward-1", Fail(503), provider="openrouter")
    stage.model.on("forward-1", Call("echo", {"text": "x"}), provider="together")
    stage.model.on("forward-1", OK, calls=1, provider="together")
    stage.model.on("forward-2", OK, provider="openrouter")
    session = hops(stage, "openrouter:one", "together:two")
    first = await session.send("forward-1")
    assert (first.hop, first.steps) == (1, 2)
    assert len(stage.model.asked("forward-1", "openrouter")) == 1
    assert len(stage.model.asked("forward-1", "together")) == 2
    second = await session.send("forward-2")
    assert (second.hop, second.provider) == (0, "openrouter")


async def test_the_prompt_is_built_for_the_window_of_the_hop_that_serves(stage: Stage) -> None:
    stage.model.on("window-1", Fail(503), provider="openrouter")
    stage.model.on("window-1", OK, provider="together")
    session = hops(stage, "openrouter:openai/gpt-4.1", "together:small")
    await session.replace_history(LONG_HISTORY)
    await session.send("window-1")
    [large] = stage.model.asked("window-1", "openrouter")
    [small] = stage.model.asked("window-1", "together")
    assert len(large["messages"]) == 18
    assert 2 < len(small["messages"]) < 10
    trace = await session.get_reasoning_trace()
    [built] = [e for e in trace if e.type == "PROMPT_CONSTRUCTION_COMPLETE"]
    assert built.details["left_out"]["reason"] == "budget"
    assert built.details["left_out"]["messages"] == 18 - len(small["messages"])


async def test_a_prompt_that_a_provider_finds_too_long_is_sent_again_with_less(
    stage: Stage,
) -> None:
    too_long = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    stage.model.on("window-2", Fail(400, body=too_long), provider="together", times=1)
    stage.model.on("window-2", OK, provider="together")
    session = hops(stage, "together:small")
    await session.replace_history(LONG_HISTORY)
    output = await session.send("window-2")
    assert output.response_text == "fine"
    assert any("CONTEXT_WINDOW_EXCEEDED" in warning for warning in output.warnings)
    first, second = stage.model.asked("window-2")
    assert len(second["messages"]) < len(first["messages"])


async def test_malformed_arguments_are_an_error_result_and_the_turn_goes_on(stage: Stage) -> None:
    stage.model.on("malformed-1", Call("echo", raw='{"text": '), Call("echo", {"text": "b"}))
    stage.model.on("malformed-1", OK, calls=2)
    output = await stage.session().send("malformed-1")
    assert output.response_text == "fine"
    answers = [m for m in stage.model.asked("malformed-1")[-1]["messages"] if m["role"] == "tool"]
    assert "TOOL_ARGUMENTS_MALFORMED" in answers[0]["content"]
    assert answers[1]["content"] == "b"


async def test_thinking_goes_back_to_its_own_provider_only(stage: Stage) -> None:
    thought = Thought("I should look it up.", "c2lnbmF0dXJlIQ==")
    stage.model.on("think-1", thought, Call("echo", {"text": "x"}), provider="anthropic")
    stage.model.on("think-1", Fail(529), calls=1, provider="anthropic")
    stage.model.on("think-1", Text("from the other"), calls=1, provider="together")
    stage.model.on("think-2", OK, provider="anthropic")
    session = hops(stage, "anthropic:claude-sonnet-4-5", "together:two")
    first = await session.send("think-1")
    assert first.response_text == "from the other"
    [foreign] = stage.model.asked("think-1", "together")
    assert "signature" not in str(foreign)
    assert "I should look it up" not in str(foreign)
    second = await session.send("think-2")
    assert second.provider == "anthropic"
    [own] = stage.model.asked("think-2", "anthropic")
    blocks = [b for m in own["messages"] if m["role"] == "assistant" for b in m["content"]]
    thinking = [b for b in blocks if b["type"] == "thinking"]
    assert thinking == [
        {
            "type": "thinking",
            "thinking": "I should look it up.",
            "signature": "c2lnbmF0dXJlIQ==",
        }
    ]


async def test_a_hop_brings_its_own_options(stage: Stage) -> None:
    stage.model.on("options-1", Fail(503), provider="xai", times=1)
    stage.model.on("options-1", OK, provider="together")
    spec = HopSpec(
        model="together:two", options=CompletionOptions(effort="low"), max_tokens_headroom=1024
    )
    output = await hops(stage, "xai:one").send(
        "options-1", fallback=[spec], options=CompletionOptions(max_tokens=100, effort="high")
    )
    assert output.hop == 1
    [first] = stage.model.asked("options-1", "xai")
    [second] = stage.model.asked("options-1", "together")
    assert (first["max_tokens"], first["reasoning_effort"]) == (100, "high")
    assert (second["max_tokens"], second["reasoning_effort"]) == (1124, "low")


async def test_each_billed_attempt_is_counted_once(stage: Stage) -> None:
    stage.model.on("bill-1", Used(600, 0), Error(), provider="groq", times=1)
    stage.model.on("bill-1", OK, Used(400, 100), provider="together")
    session = hops(stage, "groq:one", "together:two")
    output = await session.send("bill-1")
    assert output.usage == Usage(prompt_tokens=1000, completion_tokens=100)
    assert (await session.usage()).usage.total_tokens == 1100
    rows = [row async for row in session.read("usage")]
    assert [(r["state"], r["hop"], r["usage"]["prompt_tokens"]) for r in rows] == [
        ("failed", 0, 600),
        ("done", 1, 400),
    ]


async def test_keys_are_found_nowhere(stage: Stage) -> None:
    quoting = {"error": {"message": f"Incorrect API key provided: {SECRET}-groq"}}
    stage.model.on("secret-1", Fail(400, body=quoting), provider="groq")
    stage.model.on("secret-2", OK, provider="groq")
    session = hops(stage, "groq:one")
    output = await session.send("secret-1")
    code, message = failure(output)
    assert code == "LLM_PROVIDER_ERROR"
    assert "[key]" in message
    await session.send("secret-2")
    assert ("groq", f"{SECRET}-groq") in stage.model.calls
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    history = (await handle.fetch_history()).to_json()
    trace = [entry.model_dump_json() for entry in await session.get_reasoning_trace()]
    for place in (history, *trace, stage.workers[0].output, output.model_dump_json()):
        assert SECRET not in place
    assert SECRET not in stored_text(stage.database_url)


async def test_a_conversation_over_the_window_is_shortened_and_goes_on(stage: Stage) -> None:
    too_long = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    stage.model.on("over-1", Fail(400, body=too_long), provider="together", times=1)
    stage.model.on("over-1", OK, provider="together")
    stage.model.on("over-2", Fail(400, body=too_long), provider="together")
    stage.model.on("over-3", OK, provider="together")
    session = hops(stage, "together:small")
    await session.replace_history(LONG_HISTORY)
    first = await session.send("over-1")
    assert (first.status, first.response_text) == ("done", "fine")
    assert any("CONTEXT_WINDOW_EXCEEDED" in warning for warning in first.warnings)
    # A message that fits no window fails its own turn, and no other one.
    hopeless = await session.send("over-2 " + "much " * 20_000)
    assert hopeless.status == "failed"
    assert hopeless.error is not None
    assert hopeless.error.code == "LLM_PROVIDER_ERROR"
    assert hopeless.error.details["window_exceeded"] is True
    assert (await session.send("over-3")).response_text == "fine"
    [asked] = stage.model.asked("over-3")
    assert "over-2" not in str(asked["messages"])
    assert "over-1" in str(asked["messages"])


async def test_thinking_comes_back_byte_for_byte_however_often_the_run_continued(
    stage: Stage,
) -> None:
    thoughts = [
        Thought(
            "  It said: \u201cna\u00efve\u201d \U0001f914\n\n\ttabs, and a space at the end ",
            "c2ln+/==",
        ),
        Thought("", "b25seSB0aGUgc2lnbmF0dXJl"),
    ]
    stage.model.on(
        "bytes-1", *thoughts, Text("look"), Call("echo", {"text": "x"}), provider="anthropic"
    )
    stage.model.on("bytes-1", OK, calls=1, provider="anthropic")
    stage.model.on("bytes-2", OK, provider="anthropic")
    session = hops(stage, "anthropic:claude-sonnet-4-5", roll_events=1)
    assert (await session.send("bytes-1")).status == "done"
    assert (await session.send("bytes-2")).status == "done"
    assert (await session.state()).run >= 2
    within, last = stage.model.asked("bytes-1", "anthropic")[1:]
    for body in (within, last):
        [round_] = [
            m["content"]
            for m in body["messages"]
            if m["role"] == "assistant" and any(b["type"] == "tool_use" for b in m["content"])
        ]
        assert [b["type"] for b in round_] == ["thinking", "thinking", "text", "tool_use"]
        assert [(b["thinking"], b["signature"]) for b in round_[:2]] == [
            (thought.text, thought.signature) for thought in thoughts
        ]
