"""What the core of Temporal's SDK logs: by itself it writes to stdout, where results belong."""

from __future__ import annotations

import logging

from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

_LOGGER = logging.getLogger("temporalio.core")


def keep_stdout_clean() -> None:
    """Let the core log through Python, so to stderr, and only its errors.

    Its warnings are about calls that are tried again; whoever waits is told why in other words.
    Called once, before the process connects.
    """
    log_level(logging.ERROR)
    Runtime.set_default(
        Runtime(
            telemetry=TelemetryConfig(
                logging=LoggingConfig(
                    filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
                    forwarding=LogForwardingConfig(logger=_LOGGER),
                )
            )
        )
    )


def log_level(level: int) -> None:
    """Set from which level on the core's log is kept; what is below a warning never is."""
    _LOGGER.setLevel(level)
