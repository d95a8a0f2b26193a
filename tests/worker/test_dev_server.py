from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gmi.personas.errors import ConfigurationError
from gmi.worker import Client
from gmi.worker.cli.local import MAX_LOG_BYTES, make_room
from gmi.worker.dev_server import (
    DevServer,
    answers,
    find_dev_server,
    free_port,
    start_dev_server,
)

from .command_line import CommandLine, children, eventually

Alone = Callable[..., CommandLine]


async def test_the_server_has_the_search_attributes(dev_server: DevServer) -> None:
    client = await Client.connect(address=dev_server.place.address)
    assert client.search_attributes is True


async def test_a_running_server_is_used_by_whoever_comes_next(tmp_path: Path) -> None:
    first = await start_dev_server(tmp_path, port=free_port())
    second = await start_dev_server(tmp_path)
    assert second.place == first.place
    assert (first.owned, second.owned) == (True, False)
    await second.stop()
    assert await answers(first.place.address)
    await first.stop()
    assert not await answers(first.place.address)
    assert await find_dev_server(tmp_path) is None


async def test_two_that_start_at_once_share_one_server(tmp_path: Path) -> None:
    port = free_port()
    one, two = await asyncio.gather(
        start_dev_server(tmp_path, port=port), start_dev_server(tmp_path, port=port)
    )
    assert one.place == two.place
    assert one.owned is not two.owned
    await one.stop()
    await two.stop()


async def test_a_taken_port_is_left_alone_and_the_other_one_is_written_down(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = await start_dev_server(tmp_path, port=port)
        assert server.place.address != f"127.0.0.1:{port}"
        assert server.taken_port == port
        written = json.loads((tmp_path / "dev.json").read_text())
        assert written["address"] == server.place.address
        assert await find_dev_server(tmp_path) == server.place
        await server.stop()


async def test_a_server_comes_back_to_its_port_where_the_usual_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        monkeypatch.setenv("GMI_DEV_PORT", str(usual))
        first = await start_dev_server(tmp_path)
        await first.stop()
        again = await start_dev_server(tmp_path)
        await again.stop()
    assert (first.place.address, first.taken_port) == (again.place.address, usual)
    # Nor does it leave its clients when the usual one is free again, but for who asks for it.
    free = await start_dev_server(tmp_path)
    await free.stop()
    assert (free.place.address, free.taken_port) == (first.place.address, None)
    asked = await start_dev_server(tmp_path, port=usual)
    await asked.stop()
    assert asked.place.address == f"127.0.0.1:{usual}"
    monkeypatch.setenv("GMI_DEV_PORT", str(free_port()))
    other = await start_dev_server(tmp_path)
    await other.stop()
    assert other.place.address == f"127.0.0.1:{os.environ['GMI_DEV_PORT']}"


async def test_a_dev_that_follows_a_killed_one_at_once_has_its_port(alone: Alone) -> None:
    gmi = alone()
    addresses = []
    with socket.create_server(("127.0.0.1", int(gmi.environ["GMI_DEV_PORT"]))):
        for _ in range(2):
            dev = await gmi.start("dev", "--json")
            assert dev.stdout is not None
            addresses.append(json.loads(await dev.stdout.readline())["address"])
            dev.kill()
            await dev.wait()
    assert addresses[0] == addresses[1]


async def test_sessions_are_still_there_after_a_restart(alone: Alone) -> None:
    gmi = alone()
    await gmi("chat", "kept", stdin="Hello\n")
    server = await start_dev_server(gmi.directory / ".gmi", port=free_port())
    client = await Client.connect(address=server.place.address)
    assert [found.session_id async for found in client.sessions()] == ["kept"]
    await server.stop()


async def test_a_note_of_a_server_that_is_gone_is_not_believed(tmp_path: Path) -> None:
    place = {"address": f"127.0.0.1:{free_port()}", "ui": "", "pid": os.getpid()}
    (tmp_path / "dev.json").write_text(json.dumps(place))
    assert await find_dev_server(tmp_path) is None
    (tmp_path / "dev.json").write_text("{")
    assert await find_dev_server(tmp_path) is None


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "temporal.db").mkdir()
    with pytest.raises(ConfigurationError, match="does not start"):
        await start_dev_server(tmp_path, port=free_port())


async def test_dev_serves_a_directory_until_ctrl_c(alone: Alone) -> None:
    gmi = alone()
    dev = await gmi.start("dev", "--json")
    assert dev.stdout is not None
    told = json.loads(await dev.stdout.readline())
    assert told["model"] == "offline:offline"
    assert told["offline"] is True
    assert told["persona"] == "v_researcher"
    assert told["problem"] is None
    sent = await gmi("send", "s", "Hello")
    assert 'You said: "Hello"' in sent.out

    second = await gmi.start("dev", "--json")
    assert second.stdout is not None
    assert json.loads(await second.stdout.readline())["address"] == told["address"]
    second.send_signal(signal.SIGINT)
    assert await second.wait() == 0
    assert await answers(told["address"])

    dev.send_signal(signal.SIGINT)
    assert await dev.wait() == 0
    assert not await answers(told["address"])


PRINTING = """
import logging
from gmi.activities.tools import tool

@tool(effect="read")
def shout(text: str) -> str:
    \"\"\"Say it.\"\"\"
    print("printed " + text)
    print("x" * 200_000)
    logging.getLogger("shop").warning("logged %s", text)
    return text
"""


async def test_dev_keeps_what_tools_print_and_says_where(alone: Alone) -> None:
    gmi = alone(GMI_TOOLS="shop_tools")
    (gmi.directory / "shop_tools.py").write_text(PRINTING)
    log = gmi.directory / ".gmi" / "worker.log"
    log.parent.mkdir()
    log.write_text("from before\n")
    dev = await gmi.start("dev", "--json")
    assert dev.stdout is not None
    told = json.loads(await dev.stdout.readline())
    assert told["log"] == ".gmi/worker.log"
    assert "worker --json" in children(dev.pid)[told["worker_pid"]]
    sent = await gmi("send", "s", 'call shout with {"text": "one"}')
    assert "shout answered: one" in sent.out
    said = log.read_text()
    assert said.startswith("from before\n")
    assert "printed one\n" in said
    assert "WARNING logged one\n" in said
    # It printed a line that no reader of a pipe would have taken, and goes on.
    again = await gmi("send", "s", 'call shout with {"text": "two"}')
    assert "shout answered: two" in again.out
    dev.send_signal(signal.SIGINT)
    assert await dev.wait() == 0


def test_a_large_log_is_moved_aside_and_a_small_one_stays(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    make_room(log)
    log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    make_room(log)
    assert not log.exists()
    log.write_text("small")
    make_room(log)
    assert log.read_text() == "small"
    assert (tmp_path / "worker.log.1").stat().st_size == MAX_LOG_BYTES + 1


async def test_the_banner_tells_where_everything_is_and_who_answers(alone: Alone) -> None:
    gmi = alone(DEFAULT_PERSONA_ID="tied", GMI_PERSONAS="personas")
    (gmi.directory / "personas").mkdir()
    tied = {"id": "tied", "name": "Tied", "description": "d", "version": "1.0.0"}
    (gmi.directory / "personas" / "tied.json").write_text(
        json.dumps(
            {**tied, "baseSystemPrompt": "You help.", "defaultModelId": "openai:gpt-4.1-mini"}
        )
    )
    dev = await gmi.terminal("dev")
    try:
        await dev.see("Ctrl-C ends it")
        rows = dict(line.split(None, 1) for line in dev.shown.splitlines() if "  " in line)
        assert rows["UI"].startswith("http://127.0.0.1:")
        assert rows["Temporal"].startswith("127.0.0.1:")
        assert ".gmi/worker.log" in rows["Log"]
        assert rows["Store"] == "sqlite:///.gmi/gmi.db"
        assert rows["Persona"] == "tied (Tied)"
        assert rows["Model"] == "openai:gpt-4.1-mini"
        [worker] = [pid for pid in children(dev.process.pid) if f"pid {pid}," in rows["Worker"]]
        assert worker
        assert "will fail: openai has no key; set OPENAI_API_KEY" in dev.shown
        dev.type("\x03")
        assert await dev.end() == 0
    finally:
        dev.close()


async def test_a_taken_port_is_told_with_the_address_to_export(alone: Alone) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        dev = await alone().terminal("dev", "--port", str(port))
        try:
            await dev.see("Ctrl-C ends it")
            lines = dev.shown.splitlines()
            [row] = [line for line in lines if line.startswith("Temporal ")]
            assert row.endswith(f" (another program has port {port})")
            assert f"export TEMPORAL_ADDRESS={row.split()[1]}" in lines
            dev.type("\x03")
            assert await dev.end() == 0
        finally:
            dev.close()


async def test_a_second_dev_says_that_another_worker_serves_the_queue(alone: Alone) -> None:
    gmi = alone()
    first = await gmi.start("dev", "--json")
    assert first.stdout is not None
    told = json.loads(await first.stdout.readline())
    assert (told["taken_port"], told["other_workers"]) == (None, [])
    second = await gmi.terminal("dev")
    try:
        await second.see(f"already ({told['worker_pid']}@")
        await second.see("Ctrl-C ends it")
        assert "it was running already" in second.shown
        second.type("\x03")
        assert await second.end() == 0
    finally:
        second.close()
        first.terminate()
        assert await first.wait() == 0


async def test_a_killed_dev_takes_its_server_with_it(alone: Alone) -> None:
    gmi = alone()
    dev = await gmi.start("dev", "--json")
    assert dev.stdout is not None
    address = json.loads(await dev.stdout.readline())["address"]
    host, port = address.split(":")
    dev.kill()
    await dev.wait()

    def gone() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) != 0

    await eventually(gone)
    result = await gmi("chat", stdin="Hello\n")
    assert result.code == 0
