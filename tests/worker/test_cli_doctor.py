from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from .command_line import CommandLine


async def test_doctor_finds_everything_in_order(gmi: CommandLine) -> None:
    result = await gmi("doctor", "--json")
    found = {row["name"]: row for row in result.json}
    assert result.code == 0
    assert found["server"]["state"] == "ok"
    assert "version 1." in found["server"]["found"]
    assert found["search attributes"]["state"] == "ok"
    assert found["workers"]["state"] == "ok"
    assert found["store"]["state"] == "ok"
    assert found["providers"]["state"] == "warning"
    assert "offline:offline" in found["model"]["found"]
    assert "history.maxInFlightUpdates" in found["dynamic configuration"]["found"]
    assert "history.timerProcessorMaxTimeShift" in found["dynamic configuration"]["found"]


def persona(name: str, **fields: Any) -> str:
    base = {"id": name, "name": name, "description": "d", "version": "1.0.0"}
    return json.dumps({**base, "baseSystemPrompt": "You help.", **fields})


async def test_doctor_finds_what_is_wrong_with_personas(gmi: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "fine.json").write_text(persona("fine"))
    (tmp_path / "tools.json").write_text(persona("tools", toolIds=["no_such_tool"]))
    (tmp_path / "broken.json").write_text('{"id": "broken", "version": "one"}')
    own = CommandLine(
        gmi.directory,
        {**gmi.environ, "GMI_PERSONAS": str(tmp_path), "DEFAULT_PERSONA_ID": "fine"},
    )
    result = await own("doctor", "--json")
    assert result.code == 1
    found = {(row["name"], row["state"], row["found"].split(":")[0]) for row in result.json}
    broken = f"persona {tmp_path / 'broken.json'}"
    assert any((name, state) == (broken, "failed") for name, state, _ in found)
    assert (f"persona {tmp_path / 'tools.json'}", "failed", "unknown_tool_id") in found
    assert not any("fine.json" in name for name, _, _ in found)

    (tmp_path / "broken.json").unlink()
    (tmp_path / "tools.json").unlink()
    repaired = await own("doctor", "--json")
    rows = {row["name"]: row for row in repaired.json}
    assert repaired.code == 0
    assert rows["personas"]["found"] == "fine"
    assert rows["model"]["found"].startswith("persona fine gets offline:offline")


async def test_doctor_tells_of_likely_mistakes(gmi: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(
        persona("odd", moodAdaption={"enabled": True}, personalityTraits={"extroversion": 0.9})
    )
    own = CommandLine(
        gmi.directory,
        {**gmi.environ, "GMI_PERSONAS": str(tmp_path), "DEFAULT_PERSONA_ID": "odd"},
    )
    result = await own("doctor", "--json")
    assert result.code == 0
    told = [
        row["found"]
        for row in result.json
        if (row["name"], row["state"]) == ("persona odd", "warning")
    ]
    assert told == [
        "moodAdaption is not known and does nothing; did you mean moodAdaptation?",
        "personalityTraits.extroversion is no HEXACO trait and shows in no prompt; "
        "did you mean extraversion?",
    ]


async def test_doctor_knows_the_tools_of_this_directory_and_keeps_its_output_clean(
    gmi: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "desk_tools.py").write_text(
        "from gmi.activities.tools import external_tool\n"
        "print('imported')\n"
        'ring = external_tool("ring", "Ring.", {"type": "object", "properties": {}})\n'
    )
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "desk.json").write_text(persona("desk", toolIds=["ring"]))
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("gmi")), "doctor", "--json"),
        cwd=tmp_path,
        env={
            **gmi.environ,
            "GMI_TOOLS": "desk_tools",
            "GMI_PERSONAS": "p",
            "DEFAULT_PERSONA_ID": "desk",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err
    assert "imported" in err.decode()
    assert {row["name"]: row["found"] for row in json.loads(out)}["personas"] == "desk"


async def test_doctor_says_that_the_default_personas_turns_will_fail(
    gmi: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "tied.json").write_text(persona("tied", defaultModelId="openai:gpt-4.1-mini"))
    own = CommandLine(
        gmi.directory,
        {**gmi.environ, "GMI_PERSONAS": str(tmp_path), "DEFAULT_PERSONA_ID": "tied"},
    )
    result = await own("doctor", "--json")
    assert result.code == 1
    [model] = [row for row in result.json if row["name"] == "model"]
    assert model["state"] == "failed"
    assert "openai:gpt-4.1-mini" in model["found"]
    assert "OPENAI_API_KEY" in model["fix"]


async def test_doctor_says_that_no_worker_serves_a_queue(gmi: CommandLine) -> None:
    result = await gmi("doctor", "--task-queue", "nobody")
    assert result.code == 1
    assert "none polls the task queue 'nobody'" in result.out
