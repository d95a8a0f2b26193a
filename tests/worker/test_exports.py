"""What the methods of clients and sessions return can be imported from where they are."""

from __future__ import annotations

import pytest

import gmi.activities.memory
import gmi.worker


@pytest.mark.parametrize(
    "name",
    [
        "FeedbackAck",
        "Intention",
        "IntentionAck",
        "MaintenanceReport",
        "MemoryHealth",
        "Mind",
        "MindShown",
        "Reflected",
    ],
)
def test_what_a_session_returns_is_exported(name: str) -> None:
    assert name in gmi.worker.__all__
    assert getattr(gmi.worker, name).__name__ == name


def test_what_a_host_brings_to_the_memory_is_exported() -> None:
    exported = gmi.activities.memory.__all__
    assert exported == ["ContextRequest", "MemoryProvider", "Observation", "Reranker"]
    assert all(hasattr(gmi.activities.memory, name) for name in exported)
