"""The whole loop once in each provider's own format, against an independent model server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ..conftest import MakeStage, Stage
from ..support.llmock_server import ModelServer, model_server

MODELS = {
    "openai": "openai:gpt-4o",
    "anthropic": "anthropic:claude-sonnet-4-6",
    "gemini": "gemini:gemini-2.5-pro",
}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server() as running:
        yield running


@pytest.fixture
async def own_stage(make_stage: MakeStage, server: ModelServer, tmp_path: Path) -> Stage:
    made = await make_stage(workers=0)
    await made.worker(
        OPENAI_BASE_URL=f"{server.url}/v1",
        ANTHROPIC_API_KEY="test",
        ANTHROPIC_BASE_URL=f"{server.url}/anthropic",
        GEMINI_API_KEY="test",
        GEMINI_BASE_URL=f"{server.url}/gemini/v1beta",
    )
    return made


async def test_a_turn_with_two_parallel_tools_in_every_format(
    own_stage: Stage, server: ModelServer
) -> None:
    for model in MODELS.values():
        await server.reset()
        await server.script(
            {
                "type": "reply",
                "tool_calls": [
                    {"name": "echo", "arguments": {"text": "one"}},
                    {"name": "echo", "arguments": {"text": "two"}},
                ],
            },
            {"type": "fail", "status": 503},
            {"type": "reply", "text": "Both came back."},
        )
        session = own_stage.session(model=model)
        stream = await session.stream("Say one and two.")
        output = await stream.result()
        assert output.status == "done", output.error
        assert output.response_text == stream.text == "Both came back."
        assert [call.name for call in output.tool_calls] == ["echo", "echo"]
        history = await session.get_conversation_history()
        assert [m.role for m in history] == ["user", "assistant", "tool", "tool", "assistant"]
        assert [m.content for m in history if m.role == "tool"] == ["one", "two"]
        assert output.usage.total_tokens > 0
