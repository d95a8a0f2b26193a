"""The loop that the benchmark compares with: what one writes in an hour on plain Temporal.

One workflow per session, one update per turn, the conversation in the workflow's state and in
the activities' inputs. Nothing is stored anywhere else, nothing is streamed, and a turn cannot be
stopped, paused or answered by another model.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import BaseModel, Field
from temporalio import activity, workflow
from temporalio.common import RetryPolicy

WINDOW = 20
"""Messages that the model is shown; as many as a session shows by default."""

TIMEOUT = timedelta(seconds=60)
RETRY = RetryPolicy(maximum_attempts=5)

REPLY = (
    "[fixed reply] No model is configured, so nothing was understood. This text is as long as "
    "the answers of the offline model that the benchmark compares with."
)


class Call(BaseModel):
    """A tool call."""

    id: str
    name: str


class Message(BaseModel):
    """A message of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    calls: list[Call] = Field(default_factory=list)
    call_id: str | None = None


class Prompt(BaseModel):
    """Input of the model activity."""

    messages: list[Message]


class Answer(BaseModel):
    """A turn's output."""

    text: str
    steps: int


@activity.defn
async def call_model(prompt: Prompt) -> Message:
    """Answer with a fixed text, or with a tool call when the last message asks for one."""
    last = prompt.messages[-1]
    if last.role == "user" and "call get_time" in last.content:
        return Message(role="assistant", calls=[Call(id="call-1", name="get_time")])
    return Message(role="assistant", content=REPLY)


@activity.defn
async def get_time(call: Call) -> Message:
    """The tool."""
    return Message(role="tool", call_id=call.id, content=datetime.now(UTC).isoformat())


@workflow.defn
class MinimalLoop:
    """A conversation."""

    @workflow.init
    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._lock = asyncio.Lock()
        self._closed = False

    @workflow.run
    async def run(self, messages: list[Message]) -> None:
        """Serve turns until the conversation is closed."""
        await workflow.wait_condition(
            lambda: self._closed or workflow.info().is_continue_as_new_suggested()
        )
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not self._closed:
            workflow.continue_as_new(self._messages)

    @workflow.update
    async def send(self, text: str) -> Answer:
        """One turn: the model, its tools, the model again, until it answers with text."""
        async with self._lock:
            self._messages.append(Message(role="user", content=text))
            steps = 0
            while True:
                steps += 1
                system = Message(role="system", content="You are a helpful assistant.")
                reply = await workflow.execute_activity(
                    call_model,
                    Prompt(messages=[system, *self._messages[-WINDOW:]]),
                    start_to_close_timeout=TIMEOUT,
                    retry_policy=RETRY,
                )
                self._messages.append(reply)
                if not reply.calls:
                    return Answer(text=reply.content, steps=steps)
                results = await asyncio.gather(
                    *(
                        workflow.execute_activity(
                            get_time, call, start_to_close_timeout=TIMEOUT, retry_policy=RETRY
                        )
                        for call in reply.calls
                    )
                )
                self._messages.extend(results)

    @send.validator
    def _validate_send(self, text: str) -> None:
        if not text.strip():
            raise ValueError("the text is empty")

    @workflow.signal
    def close(self) -> None:
        """End the conversation."""
        self._closed = True
