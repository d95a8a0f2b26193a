"""The verb mind, over a real server and a worker with personas that feel."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gmi.personas.affect import Vad
from gmi.worker import Client, GMIPlugin, Session, Settings
from gmi.worker.cli.mood_plot import MoodPoint, write_plot
from gmi.worker.dev_server import DevServer

from .command_line import CommandLine

QUEUE = "minds"

FOCUSED = {
    "properties": {"updatedGmiMood": {"type": "string", "enum": ["focused"]}},
    "required": ["updatedGmiMood"],
}
"""The stand-in answers with the smallest object of this form."""

PERSONA: dict[str, Any] = {
    "id": "moody",
    "name": "Moody",
    "description": "For tests.",
    "version": "1.0.0",
    "baseSystemPrompt": "BASE",
    "emotionConfig": {"enabled": True},
    "personalityTraits": {"openness": 0.5},
    "sentimentTracking": {"enabled": True},
    "moodAdaptation": {"enabled": True, "sensitivityFactor": 1},
    "metaPrompts": [
        {
            "id": "every_second_turn",
            "promptTemplate": "In which mood do you work?",
            "outputSchema": FOCUSED,
            "trigger": {"type": "turn_interval", "intervalTurns": 2},
        }
    ],
}


@pytest.fixture(scope="module")
async def minds(
    dev_server: DevServer, gmi: CommandLine, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[CommandLine]:
    """The command line with a worker of its own, whose persona has a mind that changes."""
    directory = tmp_path_factory.mktemp("minds")
    (directory / "personas").mkdir()
    (directory / "personas" / "moody.json").write_text(json.dumps(PERSONA))
    environ = {
        **gmi.environ,
        "GMI_TASK_QUEUE": QUEUE,
        "GMI_PERSONAS": str(directory / "personas"),
        "DEFAULT_PERSONA_ID": "moody",
    }
    command_line = CommandLine(directory, environ)
    worker = await command_line.start("worker", "--json")
    assert worker.stdout is not None
    assert b'"ready"' in await worker.stdout.readline()
    yield command_line
    worker.terminate()
    assert await worker.wait() == 0


async def lived(dev_server: DevServer, session_id: str) -> Session:
    """A session that was pleased, was annoyed, had an event, and got a trait; settled."""
    client = await Client.connect(
        address=dev_server.place.address, task_queue=QUEUE, plugin=GMIPlugin(Settings())
    )
    session = client.session(session_id, user_id="local")
    await session.send("Good morning, what a wonderful day")
    await session.settle()
    await session.send("This is terrible and awful, I hate it")
    await session.settle()
    await session.perceive("A gift", appraisal={"goalRelevance": 1, "goalCongruence": 1})
    await session.set_personality_trait("openness", 0.9)
    await session.settle()
    return session


async def test_the_mind_is_shown_with_what_changed_it(
    minds: CommandLine, dev_server: DevServer, session_id: str
) -> None:
    session_id = f"mind-{session_id}"
    await lived(dev_server, session_id)
    shown = (await minds("mind", session_id, "--json")).json
    assert shown["mood"] == "focused"
    assert shown["emotion"]["label"] != "neutral"
    assert set(shown["emotion"]["needs"]) == {"autonomy", "competence", "relatedness"}
    assert shown["sentiment"]["frustration"] == 1
    assert shown["counters"] == {"every_second_turn": 0}
    assert shown["traits"]["openness"] == 0.9
    causes = [change["message"] for change in shown["changes"]]
    assert [text for text in causes if text.startswith(("The mind changed", "The trait"))] == [
        "The mind changed by every_second_turn.",
        "The trait openness was set.",
    ]
    assert sum(text.startswith("The user's words felt") for text in causes) == 2

    table = await minds("mind", session_id, "--limit", "1")
    assert table.code == 0
    rows = dict(line.split("\t")[:2] for line in table.out.split("\n\n")[0].splitlines())
    assert rows["mood"].startswith("focused (valence +0.20")
    assert "competence 0." in rows["needs"]
    assert rows["turns in a row"] == "frustration 1"
    assert "openness 0.9" in rows["traits"]
    assert table.out.splitlines()[-2].split("\t") == ["at", "turn", "what changed", "why"]
    assert "The trait openness was set." in table.out.splitlines()[-1]

    bare = await minds("mind", session_id, "--limit", "0", "--json")
    assert bare.json["changes"] == []


async def test_the_moods_of_the_turns_are_drawn_with_their_words(
    minds: CommandLine, dev_server: DevServer, session_id: str, tmp_path: Path
) -> None:
    session_id = f"plot-{session_id}"
    await lived(dev_server, session_id)
    target = tmp_path / "mood.svg"
    result = await minds("mind", session_id, "--plot", str(target))
    assert result.code == 0, result.err
    assert "Wrote the mood of 3 turns" in result.err
    said = re.findall(r">([^<>]+)</text>", target.read_text())
    assert [word for word in said if word in ("neutral", "focused")] == ["neutral", "focused"]
    assert {"valence", "arousal", "dominance", "felt valence", "turn"} <= set(said)
    assert f"Mood of session {session_id}" in said
    image = tmp_path / "mood.png"
    assert (await minds("mind", session_id, "--plot", str(image), "--json")).code == 0
    assert image.read_bytes().startswith(b"\x89PNG")


async def test_a_session_whose_turns_left_no_mind_cannot_be_drawn(
    gmi: CommandLine, session_id: str, tmp_path: Path
) -> None:
    await gmi("send", session_id, "Hello")
    result = await gmi("mind", session_id, "--plot", str(tmp_path / "mood.png"))
    assert result.code == 4
    assert "left a mind" in result.err
    shown = await gmi("mind", session_id, "--json")
    assert (shown.code, shown.json["emotion"]) == (0, None)


async def test_a_session_that_never_was_has_no_mind(gmi: CommandLine) -> None:
    result = await gmi("mind", "nobody", "--json")
    assert (result.code, result.error["code"]) == (4, "SESSION_UNKNOWN")


async def test_without_the_library_the_error_names_the_extra(
    gmi: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['matplotlib'] = None\n")
    without = CommandLine(gmi.directory, {**gmi.environ, "PYTHONPATH": str(tmp_path)})
    result = await without("mind", "any", "--plot", str(tmp_path / "mood.png"), "--json")
    assert result.code != 0
    assert result.error["code"] == "SYS_CONFIGURATION_ERROR"
    assert "durable-gmi[plot]" in result.error["message"]


@pytest.mark.parametrize("name", ["mood.txt", "mood", "nowhere/mood.png"])
async def test_a_file_that_cannot_be_an_image_is_refused_at_once(
    alone: Any, tmp_path: Path, name: str
) -> None:
    # There is no server: nothing was asked of one.
    result = await alone()("mind", "any", "--plot", str(tmp_path / name))
    assert result.code == 2
    assert name in result.err or "nowhere" in result.err


async def test_a_session_of_any_name_can_be_drawn(tmp_path: Path) -> None:
    points = [MoodPoint(1, "neutral", Vad()), MoodPoint(7, "curious", Vad(valence=0.4))]
    target = tmp_path / "odd.svg"
    await asyncio.to_thread(write_plot, target, points, r"$\frac{1}$ <b> & $x")
    assert r"$\frac{1}$ &lt;b&gt; &amp; $x" in target.read_text()
