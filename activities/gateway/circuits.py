"""Circuit breakers: a provider that keeps failing is left alone for a while.

They read the same typed failure as the decision to retry, so the two cannot disagree on what
happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .failures import ProviderFailure


@dataclass(frozen=True, slots=True)
class CircuitPolicy:
    """When a sort of failure opens a circuit.

    Attributes:
        threshold: Failures in a row, whatever their sort, at which this sort opens it.
        cooldown: Seconds that it then stays open.
    """

    threshold: int
    cooldown: float


NO_CREDIT = CircuitPolicy(threshold=1, cooldown=300.0)
NO_ACCESS = CircuitPolicy(threshold=1, cooldown=1800.0)
RATE_LIMITED = CircuitPolicy(threshold=3, cooldown=30.0)
TRANSIENT = CircuitPolicy(threshold=5, cooldown=60.0)

PROBE_SECONDS = 60.0
"""Seconds after which a probe that never reported back no longer holds others off."""

# These say something of the caller or of the request, and nothing of the provider's health.
_NOT_HEALTH = frozenset({"aborted", "circuit_open", "configuration", "refusal", "unsupported"})


def policy_of(failure: ProviderFailure) -> CircuitPolicy | None:
    """The policy for a failure; ``None`` for one that says nothing of the provider's health."""
    if failure.kind in _NOT_HEALTH:
        return None
    match failure.status:
        case 402:
            return NO_CREDIT
        case 401 | 403:
            return NO_ACCESS
        case 429:
            return RATE_LIMITED
        case 408 | None:
            return TRANSIENT
        case status:
            return None if status < 500 else TRANSIENT


@dataclass(frozen=True, slots=True)
class CircuitStats:
    """How a provider's circuit stands.

    Attributes:
        state: Whether calls are held off.
        on_probation: Whether it was open and no call has succeeded since; then one call at a
            time is let through.
        failures: Failures in a row.
        trips: How often it has opened.
        last_status: Status of the last failure that counted.
        cooldown_remaining: Seconds until it closes; 0 when closed.
    """

    state: Literal["closed", "open"]
    on_probation: bool = False
    failures: int = 0
    trips: int = 0
    last_status: int | None = None
    cooldown_remaining: float = 0.0


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    trips: int = 0
    last_status: int | None = None
    open_until: float | None = None
    on_probation: bool = False
    probe_until: float | None = None


class CircuitRegistry:
    """The circuits of all providers in one process.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._circuits: dict[str, _Circuit] = {}

    def is_open(self, provider: str) -> bool:
        """Whether a call of this provider is to be left out now.

        After the cooldown one caller at a time gets ``False``, as a probe, until a call has
        succeeded; so whoever gets ``False`` calls the provider and records the outcome.
        """
        circuit = self._circuit(provider)
        now = self._clock()
        self._cool(circuit, now)
        if circuit.open_until is not None:
            return True
        if circuit.on_probation:
            if circuit.probe_until is not None and now < circuit.probe_until:
                return True
            circuit.probe_until = now + PROBE_SECONDS
        return False

    def record_failure(self, provider: str, failure: ProviderFailure) -> None:
        """Count a failed call."""
        circuit = self._circuit(provider)
        now = self._clock()
        self._cool(circuit, now)
        circuit.probe_until = None
        policy = policy_of(failure)
        if policy is None:
            return
        circuit.failures += 1
        circuit.last_status = failure.status
        if circuit.failures < policy.threshold:
            return
        if circuit.open_until is None:
            circuit.trips += 1
        circuit.open_until = max(circuit.open_until or 0.0, now + policy.cooldown)
        circuit.on_probation = True

    def record_success(self, provider: str) -> None:
        """Count a call that succeeded.

        An open circuit stays open: such a call began before it opened.
        """
        circuit = self._circuit(provider)
        self._cool(circuit, self._clock())
        circuit.failures = 0
        if circuit.open_until is None:
            circuit.on_probation = False
            circuit.probe_until = None

    def stats(self, provider: str) -> CircuitStats:
        """How the provider's circuit stands; looking changes nothing."""
        circuit = self._circuits.get(provider, _Circuit())
        remaining = max(0.0, (circuit.open_until or 0.0) - self._clock())
        is_open = circuit.open_until is not None and remaining > 0
        return CircuitStats(
            state="open" if is_open else "closed",
            on_probation=circuit.on_probation,
            failures=circuit.failures,
            trips=circuit.trips,
            last_status=circuit.last_status,
            cooldown_remaining=remaining if is_open else 0.0,
        )

    def _circuit(self, provider: str) -> _Circuit:
        return self._circuits.setdefault(provider, _Circuit())

    def _cool(self, circuit: _Circuit, now: float) -> None:
        if circuit.open_until is not None and now >= circuit.open_until:
            circuit.open_until = None
            circuit.failures = 0
            circuit.probe_until = None
