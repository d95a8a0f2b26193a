from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gmi.personas.prospective import Intention, after_firing, due

NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
BEFORE = NOW - timedelta(seconds=10)


def plan(id: str, kind: str = "time", **given: Any) -> Intention:
    return Intention.model_validate(
        {"id": id, "content": "x", "kind": kind, "created_at": NOW - DAY, **given}
    )


def plans() -> list[Intention]:
    return [
        plan("daily", at=BEFORE, recurring=True, importance=0.9),
        plan("once", at=BEFORE, importance=0.2),
        plan("later", at=NOW + DAY),
        plan("event", "event", event="back", due=True, importance=0.8),
        plan("quiet", "event", event="away"),
        plan("cue", "context", cue="cat", importance=1.0),
        plan("secret", at=BEFORE, tier=2, importance=0.6),
    ]


def names(found: list[Intention]) -> list[str]:
    return [item.id for item in found]


def test_times_and_events_bring_plans_up_by_importance() -> None:
    assert names(due(plans(), NOW)) == ["daily", "event", "secret", "once"]
    assert names(due(plans(), NOW + DAY)) == ["daily", "event", "secret", "later", "once"]


def test_a_plan_comes_once_unless_it_recurs() -> None:
    after = [after_firing(item, NOW) for item in plans()]
    assert names(due(after, NOW + DAY)) == ["daily"]
    assert after[0].fired == 1


def test_a_time_is_due_from_its_moment_on() -> None:
    item = plan("p", at=NOW)
    assert due([item], NOW) == [item]
    assert due([item], NOW - timedelta(microseconds=1)) == []


def test_a_time_is_the_same_in_every_zone() -> None:
    item = plan("p", at="2030-05-01T14:00:00+02:00")
    assert due([item], NOW) == [item]
    assert due([item], NOW - timedelta(seconds=1)) == []


def test_what_is_above_the_ceiling_is_withheld_and_comes_later() -> None:
    assert names(due(plans(), NOW, ceiling=1)) == ["daily", "event", "once"]
    assert "secret" in names(due(plans(), NOW, ceiling=2))


@pytest.mark.parametrize(
    ("late", "following"),
    [(0, 7), (1, 7), (6.9, 7), (7, 14), (100, 105)],
)
def test_a_recurring_time_moves_to_its_next_beat_without_making_up_for_missed_ones(
    late: float, following: float
) -> None:
    item = plan("weekly", at=NOW, recurring=True, every=7 * 86_400)
    after = after_firing(item, NOW + late * DAY)
    assert after.at == NOW + following * DAY
    assert after.fired == 1


@pytest.mark.parametrize("every", [1.1, 0.7, 3.3, 86_399.9])
def test_the_next_beat_is_ahead_however_the_seconds_round(every: float) -> None:
    item = plan("odd", at=NOW, recurring=True, every=every)
    for beats in range(200):
        now = NOW + timedelta(seconds=every * beats)
        after = after_firing(item, now)
        assert after.at is not None
        assert now < after.at <= now + timedelta(seconds=every, microseconds=2)


def test_a_time_that_did_not_come_yet_stays_when_its_plan_is_told() -> None:
    item = plan("early", at=NOW + DAY, recurring=True, every=3600)
    assert after_firing(item, NOW).at == NOW + DAY
