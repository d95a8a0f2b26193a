"""Records the histories that later versions have to replay: ``python -m tests.histories.record``.

Run it once for each release, from the repository's root; it needs nothing but the development
dependencies. Each file holds the runs of one session, compressed. Rename those of the release
before first, as in ``first-plain.json.gz``: they have to go on being replayed.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gmi.worker import Client, GMIPlugin, Session, Settings
from gmi.workflows import SessionConfig

from ..support.scripted_model import Barrier, Call, ScriptedModel, Text
from ..support.temporal_server import TemporalServer
from ..support.worker_process import WorkerProcess

HERE = Path(__file__).parent
QUEUE = "record"


async def plain(session: Session, model: ScriptedModel) -> None:
    model.on("hello", Text("hi "), Text("there"))
    await (await session.stream("hello")).result()
    await session.send("hello again")


async def tools(session: Session, model: ScriptedModel) -> None:
    model.on("use", Text("one moment "), Call("echo", {"text": "a"}), Call("broken"))
    model.on("use", Text("so it is"), calls=2)
    await (await session.stream("use the tools")).result()


async def pause(session: Session, model: ScriptedModel) -> None:
    model.on("ask", Call("ask_person", {"question": "which?"}), Call("pay", {"amount": 3}))
    model.on("ask", Text("the red one"), calls=2)
    paused = await session.send("ask")
    await session.handle_tool_result(paused.tool_calls[0].id, "red")


async def stop(session: Session, model: ScriptedModel) -> None:
    model.on("long", Text("so "), Barrier("long"))
    model.on("after", Text("fine"))
    stream = await session.stream("long")
    queued = await session.stream("after")
    await model.reached("long")
    while stream.text != "so ":
        async for _ in stream:
            break
    await session.stop(stream.turn)
    await queued.result()


async def rolled(session: Session, model: ScriptedModel) -> None:
    for done in range(3):
        model.on("rounds", Text(f"{done} "), Call("echo", {"text": str(done)}), calls=done)
    model.on("rounds", Text("over"), calls=3)
    await (await session.stream("rounds")).result()
    await session.send("rounds")
    await session.clear_history()


async def mind(session: Session, model: ScriptedModel) -> None:
    answer = {
        "updatedGmiMood": "empathetic",
        "newMemoryImprints": [{"key": "annoyed_by", "value": "noise"}],
        "adjustmentRationale": "They are annoyed.",
        "recoveryStrategy": "Be brief.",
    }
    model.on("The user has become frustrated", Text(json.dumps(answer)))
    model.on("awful mess", Text("Sorry."))
    for number in range(3):
        await session.send(f"{number}: This is terrible and I hate it, what an awful mess")
        await session.settle()
    await session.perceive("Applause", appraisal={"goalRelevance": 1, "goalCongruence": 1})
    await session.set_personality_trait("openness", 0.9)
    await session.record_user_feedback("positive", "Good.")
    await session.settle()


async def intention(session: Session, model: ScriptedModel) -> None:
    model.on("stretch", Text("I will say so."))
    await session.intend("stretch", at=datetime.now(UTC) + timedelta(seconds=1), then="turn")
    await session.intend("mention the vet", event="rain")
    while not any(turn["kind"] == "system" for turn in await session.turns()):
        await asyncio.sleep(0.1)
    await session.notice("rain")
    model.on("weather", Text("Wet."))
    await session.send("How is the weather?")
    await session.settle()


async def released(session: Session, model: ScriptedModel) -> None:
    model.on("tide", Text("It turns."))
    await session.perceive("Applause", appraisal={"goalRelevance": 1, "goalCongruence": 1})
    for _ in range(2):
        await session.send("The tide")
    await rests(session)
    await session.send("The tide")


async def refreshed(session: Session, model: ScriptedModel) -> None:
    model.on("tide", Text("It turns."))
    await session.send("The tide")
    await session.set_personality_trait("openness", 0.9)
    await session.refresh_persona("feeling")
    await session.send("The tide")
    await session.refresh_persona("mindful")
    await rests(session)
    await session.send("The tide")


async def rests(session: Session) -> None:
    """Wait until the session was released."""
    while (await session._handle().describe()).close_time is None:
        await asyncio.sleep(0.1)


SCENES = {
    "plain": plain,
    "tools": tools,
    "pause": pause,
    "stop": stop,
    "rolled": rolled,
    "mind": mind,
    "intention": intention,
    "released": released,
    "refreshed": refreshed,
}

PERSONA = {
    "id": "mindful",
    "name": "Mindful",
    "description": "Plays every scene.",
    "version": "1.0.0",
    "baseSystemPrompt": "You answer.",
    "personalityTraits": {"openness": 0.5, "honesty": 0.6},
    "memoryConfig": {"enabled": True, "cognitiveMechanisms": {}},
    "emotionConfig": {"enabled": True},
    "sentimentTracking": {"enabled": True, "presets": ["all"]},
}


async def record(directory: Path) -> None:
    """Play every scene and write its history."""
    server, model = TemporalServer(directory), ScriptedModel()
    personas = directory / "personas"
    personas.mkdir()
    feeling = {**PERSONA, "id": "feeling", "sentimentTracking": {"enabled": False}}
    for persona in (PERSONA, feeling):
        (personas / f"{persona['id']}.json").write_text(json.dumps(persona))
    await server.start()
    await model.start()
    environ = {
        "GMI_TASK_QUEUE": QUEUE,
        "GMI_DATABASE_URL": f"sqlite:///{directory / 'gmi.db'}",
        "GMI_PERSONAS": str(personas),
        "DEFAULT_PERSONA_ID": "mindful",
        "GMI_TOOLS": "served_tools",
        "OPENAI_API_KEY": "test-key-not-secret",
        "OPENAI_BASE_URL": model.url,
        "TEST_MODEL": model.url.removesuffix("/v1"),
        "PYTHONPATH": str(HERE.parent / "support"),
    }
    worker = WorkerProcess(server.address, environ, directory / "worker.log")
    await worker.start()
    try:
        client = await Client.connect(
            address=server.address, task_queue=QUEUE, plugin=GMIPlugin(Settings())
        )
        for name, scene in SCENES.items():
            config: dict[str, Any] = {"model": "openai:scripted", "fallback": []}
            if name == "rolled":
                config["roll_events"] = 1
            if name in ("released", "refreshed"):
                config["idle_timeout"] = 2
            persona = "feeling" if name == "released" else "mindful"
            session = client.session(
                name,
                user_id="kim",
                persona=persona,
                config=SessionConfig.model_validate(config),
            )
            await scene(session, model)
            await session.settle()
            await session.close()
            query = f"WorkflowId = '{session.workflow_id}'"
            runs = []
            async for run in client.temporal.list_workflows(query):
                handle = client.temporal.get_workflow_handle(run.id, run_id=run.run_id)
                runs.append((run.start_time, (await handle.fetch_history()).to_json_dict()))
            histories = [history for _, history in sorted(runs, key=lambda pair: pair[0])]
            data = json.dumps({"workflow_id": session.workflow_id, "runs": histories})
            (HERE / f"{name}.json.gz").write_bytes(gzip.compress(data.encode(), mtime=0))
            sys.stdout.write(f"{name}: {len(histories)} runs\n")
    finally:
        worker.kill()
        await model.close()
        server.kill()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(record(Path(temporary)))
    sys.stdout.flush()
    os._exit(0)
