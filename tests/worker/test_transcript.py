"""The text that a reader puts together equals the committed one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gmi.worker import Transcript
from gmi.workflows.chunks import Chunk


def chunk(type: Any, content: Any = None, step: int = 0) -> Chunk:
    return Chunk(
        type=type, turn="t", step=step, content=content, timestamp=datetime(2030, 1, 1, tzinfo=UTC)
    )


def delta(text: str, step: int = 0) -> Chunk:
    return chunk("text_delta", text, step)


RESTART = chunk("step_restarted", {"superseded_attempt": 1, "reason": "attempt"})


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([], ""),
        ([delta("a"), delta("b")], "ab"),
        ([delta("wrong"), RESTART, delta("right")], "right"),
        ([delta("a"), chunk("step_finished"), delta("b", 1)], "ab"),
        (
            [
                delta("a"),
                chunk("step_finished"),
                delta("x", 1),
                chunk("step_restarted", step=1),
                delta("b", 1),
            ],
            "ab",
        ),
        ([delta("a"), RESTART, RESTART, delta("b"), chunk("step_finished")], "b"),
        ([delta("half"), chunk("error", "failed")], ""),
    ],
)
def test_superseded_text_is_dropped_and_finished_text_stays(chunks: list[Chunk], text: str) -> None:
    transcript = Transcript()
    for item in chunks:
        transcript.take(item)
    assert transcript.text == text
