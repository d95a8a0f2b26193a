from __future__ import annotations

import pytest

from gmi.activities.gateway.circuits import PROBE_SECONDS, CircuitRegistry
from gmi.activities.gateway.failures import FailureKind, ProviderFailure


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def http(status: int | None) -> ProviderFailure:
    if status is None:
        return ProviderFailure("lost", kind="network")
    return ProviderFailure("no", kind="http", status=status)


@pytest.mark.parametrize(
    ("status", "threshold", "cooldown"),
    [
        (402, 1, 300.0),
        (401, 1, 1800.0),
        (403, 1, 1800.0),
        (429, 3, 30.0),
        (408, 5, 60.0),
        (500, 5, 60.0),
        (529, 5, 60.0),
        (None, 5, 60.0),
    ],
)
def test_a_circuit_opens_at_its_threshold_for_its_cooldown(
    status: int | None, threshold: int, cooldown: float
) -> None:
    clock = Clock()
    circuits = CircuitRegistry(clock)
    for count in range(1, threshold):
        circuits.record_failure("p", http(status))
        assert not circuits.is_open("p")
        assert circuits.stats("p").failures == count
    circuits.record_failure("p", http(status))
    stats = circuits.stats("p")
    assert (stats.state, stats.trips, stats.last_status) == ("open", 1, status)
    assert stats.cooldown_remaining == cooldown
    assert circuits.is_open("p")
    clock.now += cooldown - 0.001
    assert circuits.is_open("p")
    clock.now += 0.001
    assert circuits.stats("p").state == "closed"
    assert not circuits.is_open("p")


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_a_bad_request_says_nothing_of_the_providers_health(status: int) -> None:
    circuits = CircuitRegistry(Clock())
    for _ in range(20):
        circuits.record_failure("p", http(status))
    assert circuits.stats("p").failures == 0


@pytest.mark.parametrize(
    "kind", ["aborted", "circuit_open", "configuration", "refusal", "unsupported"]
)
def test_what_is_not_the_providers_doing_is_not_counted(kind: FailureKind) -> None:
    circuits = CircuitRegistry(Clock())
    for _ in range(20):
        circuits.record_failure("p", ProviderFailure("x", kind=kind))
    assert not circuits.is_open("p")


@pytest.mark.parametrize("kind", ["network", "timeout", "stream"])
def test_a_failure_without_a_status_counts_as_passing_trouble(kind: FailureKind) -> None:
    circuits = CircuitRegistry(Clock())
    for _ in range(5):
        circuits.record_failure("p", ProviderFailure("x", kind=kind))
    assert circuits.is_open("p")


def test_a_success_ends_the_streak() -> None:
    circuits = CircuitRegistry(Clock())
    for _ in range(4):
        circuits.record_failure("p", http(500))
    circuits.record_success("p")
    assert circuits.stats("p").failures == 0
    circuits.record_failure("p", http(500))
    assert circuits.stats("p").failures == 1
    assert not circuits.is_open("p")


def test_failures_of_all_sorts_share_a_streak_and_the_current_sort_has_the_threshold() -> None:
    circuits = CircuitRegistry(Clock())
    for status in (429, 429, 500):
        circuits.record_failure("p", http(status))
    assert not circuits.is_open("p")
    circuits.record_failure("p", http(429))
    assert circuits.stats("p").cooldown_remaining == 30.0


def test_a_failure_while_open_extends_and_never_shortens() -> None:
    clock = Clock()
    circuits = CircuitRegistry(clock)
    circuits.record_failure("p", http(402))
    clock.now += 1
    circuits.record_failure("p", http(402))
    assert circuits.stats("p").cooldown_remaining == 300.0
    circuits.record_failure("q", http(401))
    for _ in range(6):
        circuits.record_failure("q", http(500))
    assert circuits.stats("q").cooldown_remaining == 1800.0
    assert circuits.stats("q").trips == 1


def test_a_success_from_before_does_not_close_an_open_circuit() -> None:
    circuits = CircuitRegistry(Clock())
    circuits.record_failure("p", http(402))
    circuits.record_success("p")
    assert circuits.is_open("p")
    assert circuits.stats("p").failures == 0


def _cooled() -> tuple[Clock, CircuitRegistry]:
    clock = Clock()
    circuits = CircuitRegistry(clock)
    circuits.record_failure("p", http(402))
    clock.now += 300
    return clock, circuits


def test_after_the_cooldown_one_probe_at_a_time_is_let_through() -> None:
    _, circuits = _cooled()
    assert not circuits.is_open("p")
    assert circuits.is_open("p")
    assert circuits.is_open("p")
    circuits.record_failure("p", http(500))
    assert circuits.stats("p").failures == 1
    assert not circuits.is_open("p")
    assert circuits.is_open("p")


def test_a_probe_that_succeeds_lets_everybody_through() -> None:
    _, circuits = _cooled()
    assert not circuits.is_open("p")
    circuits.record_success("p")
    assert not circuits.is_open("p")
    assert not circuits.is_open("p")
    assert not circuits.stats("p").on_probation


def test_a_probe_that_finds_the_same_trouble_opens_the_circuit_again() -> None:
    _, circuits = _cooled()
    assert not circuits.is_open("p")
    circuits.record_failure("p", http(402))
    assert circuits.is_open("p")
    assert circuits.stats("p").trips == 2


def test_a_probe_that_was_aborted_makes_room_for_the_next() -> None:
    _, circuits = _cooled()
    assert not circuits.is_open("p")
    circuits.record_failure("p", ProviderFailure("stopped", kind="aborted"))
    assert not circuits.is_open("p")


def test_a_probe_that_never_reports_back_holds_nobody_off_for_ever() -> None:
    clock, circuits = _cooled()
    assert not circuits.is_open("p")
    clock.now += PROBE_SECONDS
    assert not circuits.is_open("p")


def test_looking_at_a_circuit_changes_nothing() -> None:
    _, circuits = _cooled()
    for _ in range(3):
        assert circuits.stats("p").on_probation
    assert circuits.stats("unknown").state == "closed"
    assert not circuits.is_open("p")


def test_providers_do_not_share_a_circuit() -> None:
    circuits = CircuitRegistry(Clock())
    circuits.record_failure("p", http(401))
    assert circuits.is_open("p")
    assert not circuits.is_open("q")
