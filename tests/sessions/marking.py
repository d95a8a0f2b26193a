"""Telling the prompts of one test from those of the others, which share a model."""

from __future__ import annotations

import uuid

from ..conftest import Stage


def marked(text: str) -> tuple[str, str]:
    """A marker of the test's own, and the text with it."""
    marker = f"m{uuid.uuid4().hex[:10]}"
    return marker, f"{text} {marker}"


def prompts(stage: Stage, marker: str) -> list[str]:
    """The system messages of the requests that hold the marker, oldest first."""
    return [body["messages"][0]["content"] for body in stage.model.asked(marker)]
