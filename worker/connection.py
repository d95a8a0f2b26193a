"""Connecting to Temporal: through its own configuration files and variables, never by hand."""

from __future__ import annotations

import atexit
import functools
import gc
import time
from pathlib import Path
from typing import Any

import temporalio.client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.service import RPCError

from ..personas.errors import ConfigurationError
from .plugin import GMIPlugin

SETTLE_SECONDS = 0.1
"""Seconds that a process stays for the SDK's threads when it ends."""


async def connect(
    *,
    address: str | None = None,
    namespace: str | None = None,
    profile: str | None = None,
    config_file: Path | None = None,
    plugin: GMIPlugin | None = None,
) -> temporalio.client.Client:
    """Connect to Temporal with the project's plugin.

    The address comes from the argument, else from ``TEMPORAL_ADDRESS`` and the profile
    (``TEMPORAL_PROFILE``, ``~/.config/temporalio/temporal.toml``), else it is
    ``localhost:7233``.

    Raises:
        ConfigurationError: The profile is wrong, or no server answers.
    """
    settle_at_exit()
    options: dict[str, Any] = dict(load_configuration(profile, config_file))
    if address is not None:
        options["target_host"] = address
    if namespace is not None:
        options["namespace"] = namespace
    target = str(options.pop("target_host", "localhost:7233"))
    try:
        return await temporalio.client.Client.connect(
            target, plugins=[plugin or GMIPlugin()], **options
        )
    except (RPCError, RuntimeError, OSError) as error:
        raise ConfigurationError(
            f"No Temporal server answers at {target}: {error}. Start one with `gmi dev` or "
            "`temporal server start-dev`, or set TEMPORAL_ADDRESS.",
            details={"address": target},
        ) from error


@functools.cache
def settle_at_exit() -> None:
    """Let the SDK's threads come to rest when the process ends; asked for twice, it waits once.

    The thread that has handed a call's result to the event loop takes Python's lock once more to
    let go of it. If the interpreter is being torn down at that moment, the process aborts
    (``PyGILState_Release``, exit code 134), however correct the program is.
    """
    atexit.register(_settle)


def _settle() -> None:
    # What nobody holds any more is let go of here, and not while the interpreter goes down.
    gc.collect()
    # Sleeping gives the lock away, which is what those threads wait for.
    time.sleep(SETTLE_SECONDS)


def load_configuration(profile: str | None, config_file: Path | None) -> ClientConnectConfig:
    """What Temporal's own variables and the profile say of the connection.

    Raises:
        ConfigurationError: They cannot be read.
    """
    try:
        return ClientConfig.load_client_connect_config(
            profile=profile, config_file=str(config_file) if config_file else None
        )
    except Exception as error:
        raise ConfigurationError(f"Temporal's client configuration is wrong: {error}") from error
