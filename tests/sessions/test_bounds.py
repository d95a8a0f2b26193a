"""What a session carries stays small, whatever it is given."""

from __future__ import annotations

import asyncio
import json

import pytest

from gmi.personas.errors import MessageTooLargeError, SessionBusyError
from gmi.personas.options import CompletionOptions
from gmi.workflows.pages import Read

from ..conftest import Stage
from ..support.scripted_model import Barrier, Call, Fail, Text

MAX_STATE = 256 * 1024


async def test_a_round_of_many_large_calls_is_carried_small(stage: Stage) -> None:
    count = 30
    texts = [f"{n} " + "k" * 7000 for n in range(count)]
    stage.model.on(
        "bulky-1",
        *[Call("echo", {"text": text}, id=f"bulk-{n}") for n, text in enumerate(texts)],
        Call("ask_person", {"question": "q" * 7000}, id="bulk-host"),
    )
    stage.model.on("bulky-1", Text("done"), calls=count + 1)
    session = stage.session(model="openai:gpt-4.1")
    assert (await session.send("bulky-1")).status == "waiting"
    assert (await session.state()).state_bytes < MAX_STATE / 2
    output = await session.handle_tool_result("bulk-host", "h" * 7000)
    assert output.response_text == "done"
    assert len(output.tool_calls) == count + 1
    shown = [m for m in stage.model.asked("bulky-1")[-1]["messages"] if m["role"] == "tool"]
    assert [m["content"] for m in shown] == [*texts, "h" * 7000]
    made = stage.model.asked("bulky-1")[-1]["messages"][2]["tool_calls"]
    assert json.loads(made[3]["function"]["arguments"]) == {"text": texts[3]}


async def test_a_full_queue_of_large_messages_is_carried_small(stage: Stage) -> None:
    stage.model.on("full-start", Barrier("full"), Text("x"))
    stage.model.on("full-next", Text("y"))
    session = stage.session()
    first = await session.stream("full-start")
    await stage.model.reached("full")
    queued = [await session.stream(f"full-next {n} " + "m" * 7000) for n in range(32)]
    with pytest.raises(SessionBusyError) as caught:
        await session.stream("one too many")
    assert caught.value.details["queued"] == 32
    assert (await session.state()).state_bytes < MAX_STATE
    stage.model.open("full")
    await first.result()
    outputs = await asyncio.gather(*(stream.result() for stream in queued))
    assert {output.response_text for output in outputs} == {"y"}
    asked = [body["messages"][-1]["content"] for body in stage.model.asked("full-next 31")]
    assert asked == ["full-next 31 " + "m" * 7000]


async def test_settings_of_a_message_have_a_bound(stage: Stage) -> None:
    session = stage.session()
    with pytest.raises(MessageTooLargeError) as caught:
        await session.send("hello", suffix="s" * 20_000)
    assert caught.value.details["limit"] == 8192
    schema = {"type": "json_schema", "name": "n", "schema": {"description": "d" * 9000}}
    with pytest.raises(MessageTooLargeError):
        await session.send("hello", options=CompletionOptions(response_format=schema))
    stage.model.on("modest-1", Text("fine"))
    assert (await session.send("modest-1", suffix="s" * 7000)).response_text == "fine"


async def test_a_configuration_has_a_bound(stage: Stage) -> None:
    session = stage.session("large-config", overlays=[{"id": "x" * 20_000}])
    with pytest.raises(MessageTooLargeError):
        await session.send("hello")


async def test_a_queue_of_large_settings_refuses_more(stage: Stage) -> None:
    stage.model.on("settings-start", Barrier("settings"), Text("x"))
    session = stage.session()
    first = await session.stream("settings-start")
    await stage.model.reached("settings")
    for n in range(12):
        await session.stream(f"settings-next {n}", suffix="s" * 7000)
    with pytest.raises(SessionBusyError) as caught:
        await asyncio.gather(
            *(session.stream(f"settings-more {n}", suffix="s" * 7000) for n in range(3))
        )
    assert caught.value.details["limit_bytes"] == 96 * 1024
    state = await session.state()
    assert state.queued <= 14
    assert state.state_bytes < MAX_STATE
    await session.stop()
    stage.model.open("settings")
    assert (await first.result()).status == "stopped"


async def test_a_long_text_that_was_cut_is_kept_in_the_store(stage: Stage) -> None:
    text = "long word " * 4000
    stage.model.on("cut-2", Text(text), Barrier("cutting"))
    session = stage.session()
    stream = await session.stream("cut-2")
    await stage.model.reached("cutting")
    async for _ in stream.text_deltas():
        break
    await stream.stop()
    stage.model.open("cutting")
    output = await stream.result()
    assert (output.status, output.text_stored) == ("stopped", True)
    assert output.response_text == text
    assert (await session.state()).state_bytes < 30_000


async def test_a_long_trace_is_carried_small_and_read_whole(stage: Stage) -> None:
    count = 60
    stage.model.on("traced-1", *[Call(f"nonsense_{n}" + "x" * 40, {"n": n}) for n in range(count)])
    stage.model.on("traced-1", Fail(400), calls=count)
    session = stage.session()
    output = await session.send("traced-1")
    assert output.status == "failed"
    assert (await session.state()).state_bytes < MAX_STATE / 2
    trace = [e for e in await session.get_reasoning_trace() if e.turn == output.turn]
    assert len([e for e in trace if e.type == "TOOL_EXECUTION_RESULT"]) == count


async def test_a_conversation_of_three_megabytes_is_carried_small_and_read_whole(
    stage: Stage,
) -> None:
    turns = 12
    asked = [f"huge-{n}. " + "q" * 130_000 for n in range(turns)]
    told = [f"answer {n}. " + "ü" * 65_000 for n in range(turns)]
    for n in range(turns):
        stage.model.on(f"huge-{n}.", Text(told[n]))
    session = stage.session(model="openai:gpt-4.1", roll_events=1, max_messages=100)
    for n in range(turns):
        output = await session.send(asked[n])
        assert output.response_text == told[n]
    assert (await session.state()).state_bytes < 64 * 1024
    texts = [m.text for m in await session.get_conversation_history()]
    assert texts == [text for pair in zip(asked, told, strict=True) for text in pair]
    assert sum(len(text.encode()) for text in texts) > 3_000_000
    shown = stage.model.asked("huge-11.")[-1]["messages"]
    assert [m["content"] for m in shown[-3:]] == [asked[-2], told[-2], asked[-1]]
    runs = 0
    temporal = stage.client.temporal
    async for run in temporal.list_workflows(f"WorkflowId = '{session.workflow_id}'"):
        runs += 1
        handle = temporal.get_workflow_handle(run.id, run_id=run.run_id)
        sizes = [event.ByteSize() async for event in handle.fetch_history_events()]
        # The message itself comes in by an update, and goes to the store.
        assert max(sizes) < 300_000
    assert runs > turns / 2
    pages = 0
    after: str | None = None
    while pages == 0 or after is not None:
        page = await stage.client.read(
            Read(what="messages", session_id=session.id, after=after, limit=1000)
        )
        assert len(page.model_dump_json()) < 300_000
        pages, after = pages + 1, page.next
    assert pages >= turns
