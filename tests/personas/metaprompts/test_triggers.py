from __future__ import annotations

from typing import Any

import pytest

from gmi.personas.metaprompts import Due, Firings, TriggerRule, due, manual_flag, trigger_rules
from gmi.personas.metaprompts.triggers import interval_of

from .making import prompt


def every(turns: int | None, name: str = "often") -> TriggerRule:
    return TriggerRule(id=name, type="turn_interval", interval_turns=turns)


def on(event: str, name: str) -> TriggerRule:
    return TriggerRule(id=name, type="event_based", event_name=event)


def after(*rules: TriggerRule, **given: Any) -> Firings:
    defaults = {"events": [], "counters": {}, "flags": (), "counts_user_turn": True}
    return due(rules, **(defaults | given))


def runs(turns: int, rule: TriggerRule, user: Any = lambda turn: True) -> list[int]:
    """The turns after which the metaprompt runs."""
    counters: dict[str, int] = {}
    fired = []
    for turn in range(1, turns + 1):
        firings = after(rule, counters=counters, counts_user_turn=user(turn))
        counters = firings.counters
        fired += [turn] if firings.due else []
    return fired


@pytest.mark.parametrize(
    ("interval", "expected"),
    [(1, [1, 2, 3, 4, 5, 6, 7, 8, 9]), (2, [2, 4, 6, 8]), (3, [3, 6, 9]), (9, [9]), (10, [])],
)
def test_an_interval_runs_on_each_of_its_multiples(interval: int, expected: list[int]) -> None:
    assert runs(9, every(interval)) == expected


def test_only_user_turns_count_and_only_after_one_does_an_interval_run() -> None:
    assert runs(12, every(3), user=lambda turn: turn % 2 == 0) == [6, 12]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, 1),
        (2.9, 2),
        (1.0, 1),
        (0, None),
        (0.99, None),
        (-3, None),
        (True, None),
        ("3", None),
        (None, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
    ],
)
def test_an_interval_is_rounded_down_and_below_one_it_never_runs(
    given: Any, expected: int | None
) -> None:
    assert interval_of(given) == expected


def test_an_interval_that_never_runs_counts_nothing() -> None:
    assert after(every(None)) == Firings()


def test_the_first_metaprompt_that_waits_for_an_event_takes_it() -> None:
    rules = (on("user_frustrated", "a"), on("user_frustrated", "b"), on("user_confused", "c"))
    found = after(*rules, events=["user_confused", "user_frustrated", "low_engagement"])
    assert found.due == (
        Due("a", "event", "user_frustrated"),
        Due("c", "event", "user_confused"),
    )
    # What nobody waits for stays pending.
    assert set(found.consumed_events) == {"user_confused", "user_frustrated"}


def test_an_event_is_taken_after_any_kind_of_turn() -> None:
    found = after(on("low_engagement", "a"), events=["low_engagement"], counts_user_turn=False)
    assert found.due == (Due("a", "event", "low_engagement"),)


def test_a_manual_one_runs_when_its_flag_is_set_and_takes_the_flag_away() -> None:
    rule = TriggerRule(id="check", type="manual")
    assert after(rule, flags={"manual_trigger_other"}).due == ()
    found = after(rule, flags={"manual_trigger_other", "manual_trigger_check"})
    assert found.due == (Due("check", "manual"),)
    assert found.consumed_flags == (manual_flag("check"),)


def test_a_trigger_of_a_type_that_nobody_knows_never_fires() -> None:
    odd = TriggerRule(id="odd", type="voice", interval_turns=1, event_name="user_confused")
    assert after(odd, events=["user_confused"], flags={"manual_trigger_odd"}) == Firings()


def test_counters_of_metaprompts_that_are_gone_are_dropped() -> None:
    assert after(every(5), counters={"often": 1, "gone": 3}).counters == {"often": 2}


def test_an_interval_that_was_made_shorter_runs_at_once() -> None:
    assert after(every(2), counters={"often": 7}).due == (Due("often", "interval"),)


def test_the_rules_carry_what_the_persona_says() -> None:
    given = prompt(trigger={"type": "turn_interval", "intervalTurns": 3.5, "eventName": "x"})
    [rule] = trigger_rules([given])
    assert rule == TriggerRule(id="own", type="turn_interval", interval_turns=3, event_name="x")
    assert TriggerRule.model_validate_json(rule.model_dump_json()) == rule
