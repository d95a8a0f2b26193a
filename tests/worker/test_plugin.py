"""The plugin on a user's own client, worker and replayer."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import temporalio.client
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import (
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
    PayloadCodec,
)
from temporalio.worker import Replayer, Worker, WorkerConfig

from gmi.activities.tools import tool
from gmi.personas.errors import ConfigurationError
from gmi.worker import Client, GMIPlugin, Settings
from gmi.worker.plugin import tuned

from ..support.temporal_server import TemporalServer


class Scrambled(PayloadCodec):
    """A codec of a user's own."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"scrambled"},
                data=base64.b85encode(payload.SerializeToString()[::-1]),
            )
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        decoded = []
        for payload in payloads:
            if payload.metadata.get("encoding") != b"scrambled":
                decoded.append(payload)
                continue
            inner = Payload()
            inner.ParseFromString(base64.b85decode(payload.data)[::-1])
            decoded.append(inner)
        return decoded


class OwnConverter(DefaultPayloadConverter):
    """A converter that knows no pydantic models."""

    def __init__(self) -> None:
        super().__init__()
        self.own = JSONPlainPayloadConverter()


def settings(directory: Path) -> Settings:
    return Settings(database_url=f"sqlite:///{directory / 'gmi.db'}", task_queue=directory.name)


@tool(effect="read")
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


async def test_sessions_run_in_a_worker_of_the_users_own_with_its_codec(
    temporal: TemporalServer, tmp_path: Path
) -> None:
    plugin = GMIPlugin(settings(tmp_path), tools=[shout])
    client = await temporalio.client.Client.connect(
        temporal.address,
        data_converter=replace(DataConverter.default, payload_codec=Scrambled()),
        plugins=[plugin],
    )
    async with Worker(client, task_queue=tmp_path.name):
        session = Client(client, task_queue=tmp_path.name).session()
        stream = await session.stream('use the tool shout with {"text": "secret"}')
        output = await stream.result()
        assert "SECRET" in (output.response_text or "")
        assert stream.text == output.response_text
        handle = client.get_workflow_handle(session.workflow_id)
        history = await handle.fetch_history()
    assert "secret" not in history.to_json()
    plain = GMIPlugin(settings(tmp_path))
    replayer = Replayer(
        workflows=[],
        plugins=[plain],
        data_converter=replace(pydantic_data_converter, payload_codec=Scrambled()),
    )
    await replayer.replay_workflow(history)


async def test_a_converter_that_knows_no_pydantic_models_is_refused(
    temporal: TemporalServer, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="OwnConverter"):
        await temporalio.client.Client.connect(
            temporal.address,
            data_converter=DataConverter(payload_converter_class=OwnConverter),
            plugins=[GMIPlugin(settings(tmp_path))],
        )


async def test_a_pydantic_converter_of_the_users_own_is_kept(
    temporal: TemporalServer, tmp_path: Path
) -> None:
    class Mine(PydanticPayloadConverter):
        pass

    client = await temporalio.client.Client.connect(
        temporal.address,
        data_converter=DataConverter(payload_converter_class=Mine),
        plugins=[GMIPlugin(settings(tmp_path))],
    )
    assert client.data_converter.payload_converter_class is Mine


def test_running_steps_may_beat_every_second() -> None:
    # With the SDK's default a stop reached a step after up to 4 s, and what a killed worker knew
    # of its hops was lost.
    config = tuned(WorkerConfig(), Settings())
    assert config.get("max_heartbeat_throttle_interval") == timedelta(seconds=1)
    assert config.get("default_heartbeat_throttle_interval") == timedelta(seconds=1)


def test_a_killed_workers_sessions_move_on_after_a_second() -> None:
    config = tuned(WorkerConfig(), Settings())
    assert config.get("sticky_queue_schedule_to_start_timeout") == timedelta(seconds=1)


def test_a_shutdown_gives_running_tools_time_unless_the_user_says_how_much() -> None:
    # The SDK's default of 0 cancels at once: every deploy would lose the tools that run once.
    assert tuned(WorkerConfig(), Settings()).get("graceful_shutdown_timeout") == timedelta(
        seconds=25
    )
    own = WorkerConfig(graceful_shutdown_timeout=timedelta(seconds=3))
    assert tuned(own, Settings()).get("graceful_shutdown_timeout") == timedelta(seconds=3)


def test_versioned_workers_move_their_sessions_on() -> None:
    config = tuned(WorkerConfig(), Settings(deployment=("minds", "build-7")))
    deployment = config.get("deployment_config")
    assert deployment is not None
    assert deployment.use_worker_versioning
    assert deployment.version.build_id == "build-7"
