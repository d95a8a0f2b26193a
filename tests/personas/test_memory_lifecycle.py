from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.memory_health import HealthIssue, overall_status
from gmi.personas.memory_lifecycle import MemoryLifecycleEvent, negotiates, respond


def event(**changes: Any) -> MemoryLifecycleEvent:
    values: dict[str, Any] = {
        "event_id": "e1",
        "type": "DELETION_PROPOSED",
        "item_id": "m1",
        "proposed_action": "DELETE",
        "category": "user_explicit_memory",
        "negotiable": True,
    }
    return MemoryLifecycleEvent(**(values | changes))


@pytest.mark.parametrize("type_", ["DELETION_PROPOSED", "EVICTION_PROPOSED"])
def test_what_the_user_asked_to_be_remembered_is_defended(type_: str) -> None:
    answer = respond(event(type=type_), negotiation=True, gmi_id="gmi-1")
    assert (answer.action_taken, answer.negotiated) == ("PREVENT_ACTION", True)
    assert (answer.event_id, answer.gmi_id) == ("e1", "gmi-1")
    assert answer.rationale


@pytest.mark.parametrize(
    "changes",
    [
        {"negotiable": False},
        {"category": "conversation_history"},
        {"category": None},
        {"type": "ARCHIVAL_PROPOSED"},
        {"proposed_action": "ARCHIVE"},
    ],
)
def test_everything_else_is_answered_with_what_was_proposed(changes: dict[str, Any]) -> None:
    asked = event(**changes)
    assert respond(asked, negotiation=True).action_taken == asked.proposed_action


def test_without_negotiation_nothing_is_defended() -> None:
    answer = respond(event(), negotiation=False)
    assert (answer.action_taken, answer.negotiated) == ("DELETE", False)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (None, False),
        ({}, False),
        ({"lifecycleConfig": None}, False),
        ({"lifecycleConfig": {"negotiationEnabled": False}}, False),
        ({"lifecycleConfig": {"negotiationEnabled": "yes"}}, False),
        ({"lifecycleConfig": {"negotiationEnabled": True}}, True),
        ({"lifecycle_config": {"negotiation_enabled": True}}, True),
    ],
)
def test_a_persona_says_whether_it_wants_a_say(config: dict[str, Any] | None, wanted: bool) -> None:
    assert negotiates(config) is wanted


def issue(severity: Any, component: Any) -> HealthIssue:
    return HealthIssue(severity=severity, component=component, description="something")


@pytest.mark.parametrize(
    ("issues", "status"),
    [
        ([], "OPERATIONAL"),
        ([issue("info", "embedding")], "OPERATIONAL"),
        ([issue("warning", "consolidation")], "LIMITED"),
        ([issue("warning", "embedding")], "DEGRADED"),
        ([issue("warning", "consolidation"), issue("warning", "embedding")], "DEGRADED"),
        ([issue("critical", "store"), issue("info", "embedding")], "ERROR"),
    ],
)
def test_the_worst_issue_decides(issues: list[HealthIssue], status: str) -> None:
    assert overall_status(issues) == status
