"""Histories of every release are replayed: a change of the workflow may not break a session."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from gmi.worker import GMIPlugin, Settings

RECORDED = sorted((Path(__file__).parent.parent / "histories").glob("*.json.gz"))


def recorded_in(path: Path) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return recorded


def test_there_are_recorded_histories() -> None:
    names = {path.name.removesuffix(".json.gz") for path in RECORDED}
    scenes = {"plain", "tools", "pause", "stop", "rolled", "mind", "intention"}
    assert names >= scenes | {"released", "refreshed"}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
async def test_a_recorded_history_replays(path: Path) -> None:
    recorded = recorded_in(path)
    assert recorded["runs"]
    replayer = Replayer(workflows=[], plugins=[GMIPlugin(Settings())])
    for run in recorded["runs"]:
        history = WorkflowHistory.from_json(recorded["workflow_id"], run)
        await replayer.replay_workflow(history)


async def test_a_history_that_does_not_fit_is_noticed() -> None:
    recorded = recorded_in(RECORDED[0])
    events = recorded["runs"][0]["events"]
    for event in events:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled is not None and scheduled["activityType"]["name"] == "gmi.model.run_step":
            scheduled["activityType"]["name"] = "gmi.model.another"
    history = WorkflowHistory.from_json(recorded["workflow_id"], recorded["runs"][0])
    replayer = Replayer(workflows=[], plugins=[GMIPlugin(Settings())])
    with pytest.raises(Exception, match="ondeterminis"):
        await replayer.replay_workflow(history)
