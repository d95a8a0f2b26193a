"""A client that knows nothing of this library: plain Temporal calls with plain JSON."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.client import Client, WithStartWorkflowOperation, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy

from ..conftest import Stage
from ..support.scripted_model import Call, Text


async def until_ended(handle: WorkflowHandle[Any, Any], turn: str) -> dict[str, Any]:
    """Poll the query, as a client in any language would."""
    async with asyncio.timeout(30):
        while True:
            view: dict[str, Any] = await handle.query("get_turn", {"turn": turn})
            if view["output"] and view["output"]["is_final"]:
                return view["output"]
            await asyncio.sleep(0.05)


async def test_plain_json_payloads_are_enough(stage: Stage) -> None:
    stage.model.on("ask", Call("ask_person", {"question": "which?"}))
    stage.model.on("ask", Text("the red one"), calls=1)
    stage.model.on("hello", Text("hi"))
    plain = await Client.connect(stage.address)
    name = f"plain-json-{stage.client.task_queue}"
    config = {"model": "openai:scripted", "fallback": []}
    start = WithStartWorkflowOperation(
        "GMISession",
        {"session_id": name, "user_id": "kim", "config": config},
        id=f"gmi-session-{name}",
        task_queue=stage.client.task_queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    ticket: dict[str, Any] = await plain.execute_update_with_start_workflow(
        "submit_turn",
        {"content": "hello", "user_id": "kim", "request_id": "r1"},
        start_workflow_operation=start,
    )
    handle = plain.get_workflow_handle(f"gmi-session-{name}")
    output = await until_ended(handle, ticket["turn"])
    assert output["response_text"] == "hi", output["error"]
    ticket = await handle.execute_update("submit_turn", {"content": "ask", "user_id": "kim"})
    pending: dict[str, Any] = {"calls": []}
    async with asyncio.timeout(30):
        while not pending["calls"]:
            pending = await handle.query("list_pending")
    call = pending["calls"][0]["call"]
    await handle.signal("tool_results", {"results": [{"call_id": call["id"], "content": "red"}]})
    assert (await until_ended(handle, ticket["turn"]))["response_text"] == "the red one"
    state: dict[str, Any] = await handle.query("get_state")
    assert (state["status"], state["turns"]) == ("ready", 2)
    # What cannot be read is refused by name, and the session goes on.
    await handle.signal("tool_results", "nonsense")
    await handle.signal("stop_turn")
    async with asyncio.timeout(30):
        while not (await handle.query("list_pending"))["warnings"]:
            await asyncio.sleep(0.05)
    usage: dict[str, Any] = await handle.query("usage")
    assert usage["turns"] == 2
    page: dict[str, Any] = await plain.execute_workflow(
        "GMIRead",
        {"what": "messages", "session_id": name},
        id="read-foreign",
        task_queue=stage.client.task_queue,
    )
    assert [item["message"]["role"] for item in page["items"]][-1] == "assistant"
    await handle.signal("close", {})
    await asyncio.wait_for(handle.result(), 30)
