"""The learning layer for a turn loop of one's own, with the switches of this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..activities.learning import LearningLayer, LearningStore
from ..activities.learning import create_learning_layer as create
from ..personas.learning import PREPARE_TIMEOUT, LearningSettings, Switches
from ..personas.loops import Loop
from .settings import learning_switches


def create_learning_layer(
    learning: LearningSettings | Mapping[str, Any] | bool = True,
    *,
    store: LearningStore | None = None,
    switches: Switches | None = None,
    profile: str = "custom",
    host: Mapping[str, Loop] | None = None,
    timeout: float = PREPARE_TIMEOUT,
) -> LearningLayer:
    """Make a learning layer.

    Args:
        learning: How the agent learns; ``True`` for the defaults.
        store: Keeps what is learned; without one nothing is.
        switches: In place of what the environment says.
        profile: The host's name for how much of the mind it runs, for the manifest.
        host: The loops that the host runs, for the manifest.
        timeout: Seconds that a turn waits for its preparation.

    Raises:
        ConfigurationError: A setting has a value that it does not take, or learning is ``False``.
    """
    return create(
        learning,
        switches=learning_switches() if switches is None else switches,
        store=store,
        profile=profile,
        host=host,
        timeout=timeout,
    )
