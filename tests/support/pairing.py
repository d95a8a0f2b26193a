"""What every provider asks of a conversation with tool calls."""

from __future__ import annotations

from typing import Any


def assert_paired(messages: list[dict[str, Any]]) -> None:
    """Every call is answered exactly once, before anybody else speaks."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, message
            waiting.remove(message["tool_call_id"])
        else:
            assert waiting == [], message
            waiting = [call["id"] for call in message.get("tool_calls") or []]
    assert waiting == []
