"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ..conftest import MakeStage, Stage
from .minds import start


@pytest.fixture
def started(make_stage: MakeStage, tmp_path: Path) -> Callable[[str], Awaitable[Stage]]:
    """Starts a worker with personas that have minds; takes the default one."""
    return lambda persona: start(make_stage, tmp_path, persona)
