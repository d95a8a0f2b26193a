"""Connecting to Temporal: through its own configuration files and variables, never by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import temporalio.client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.service import RPCError

from ..personas.errors import ConfigurationError
from .plugin import GMIPlugin


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
