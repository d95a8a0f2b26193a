"""Personas with minds, and what happens to their sessions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from gmi.worker import Session
from gmi.workflows.turns import TurnOutput

from ..conftest import MakeStage, Stage
from ..support.scripted_model import Text

MEMORY = {"memoryConfig": {"enabled": True, "cognitiveMechanisms": {}}}
LEARNS = {"learning": {"traits": True}, "emergent": {"selfImprovement": {"enabled": True}}}
PERSONAS: dict[str, dict[str, Any]] = {
    "plain": {},
    "keeper": MEMORY,
    "feeler": {**MEMORY, "emotionConfig": {"enabled": True}},
    "judge": {**MEMORY, "emotionConfig": {"enabled": True, "appraise": True}},
    "moody": {
        **MEMORY,
        "sentimentTracking": {"enabled": True, "presets": ["all"]},
        "moodAdaptation": {"enabled": True},
    },
    "first": {
        **LEARNS,
        "personalityTraits": {"extraversion": 0.64},
        "toolIds": ["ask_person", "overdue"],
    },
    "moodyfeeler": {
        **MEMORY,
        "sentimentTracking": {"enabled": True, "presets": ["all"]},
        "moodAdaptation": {"enabled": True},
        "emotionConfig": {"enabled": True},
    },
    "second": {**LEARNS, "personalityTraits": {"extraversion": 0.64}},
}
BAD_NEWS = {"goalRelevance": 1.0, "goalCongruence": -1.0}
ANGRY = "This is terrible and I hate it, nothing works, what an awful mess"
FRUSTRATED = "The user has become frustrated"
PATCH = {
    "updatedGmiMood": "empathetic",
    "newMemoryImprints": [{"key": "annoyed_by", "value": "the walrus"}],
    "adjustmentRationale": "They are annoyed.",
    "recoveryStrategy": "Say sorry.",
}


async def start(make_stage: MakeStage, directory: Path, persona: str) -> Stage:
    """A worker with these personas, one of them the default."""
    folder = directory / "personas"
    folder.mkdir()
    for name, more in PERSONAS.items():
        base = {"name": name, "description": "d", "version": "1.0.0", "baseSystemPrompt": "B"}
        (folder / f"{name}.json").write_text(json.dumps({"id": name, **base, **more}))
    stage = await make_stage(GMI_PERSONAS=str(folder), DEFAULT_PERSONA_ID=persona)
    for word in ("hello", "alpha", "bravo"):
        stage.model.on(word, Text("Well."))
    return stage


async def ended(stage: Stage, session: Session) -> None:
    """End the session's workflow from outside."""
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    await handle.terminate("by an operator")


async def released(stage: Stage, session: Session) -> None:
    """Wait until the session's run has ended by itself."""
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    async with asyncio.timeout(40):
        while (await handle.describe()).close_time is None:
            await asyncio.sleep(0.1)


async def said_while_changed(stage: Stage, session: Session, text: str, persona: str) -> TurnOutput:
    """Say something, and run another persona while the model is at the barrier ``thinking``."""
    turn = asyncio.create_task(session.send(text))
    await stage.model.reached("thinking")
    await session.refresh_persona(persona)
    stage.model.open("thinking")
    return await turn
