"""What a turn's first step asks beside its own call is asked once, billed and counted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gmi.worker import Session

from ..conftest import MakeStage, Stage
from ..support.scripted_model import Barrier, Fail, Text, Used

PERSONA = {
    "id": "asking",
    "name": "Asking",
    "description": "For tests.",
    "version": "1.0.0",
    "baseSystemPrompt": "BASE",
    "memoryConfig": {"enabled": True, "cognitiveMechanisms": {}, "hyde": True},
    "sentimentTracking": {"enabled": True, "method": "llm"},
}
JUDGE = "You judge how a message feels"
IMAGINE = "You imagine memories"


async def asking(make_stage: MakeStage, folder: Path) -> Stage:
    personas = folder / "personas"
    personas.mkdir()
    (personas / "asking.json").write_text(json.dumps(PERSONA))
    return await make_stage(GMI_PERSONAS=str(personas), DEFAULT_PERSONA_ID="asking")


async def bills(session: Session) -> dict[str, list[int]]:
    """The prompt tokens of the ledger's rows, by what they were for."""
    found: dict[str, list[int]] = {}
    async for row in session.read("usage"):
        found.setdefault(row["purpose"], []).append(row["usage"]["prompt_tokens"])
    return found


def asked(stage: Stage, words: str) -> list[dict[str, Any]]:
    return [r for r in stage.model.requests if words in str(r["messages"][0]["content"])]


async def test_what_is_asked_beside_a_step_is_asked_once_and_counts_with_the_turn(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = await asking(make_stage, tmp_path)
    model = stage.model
    model.on_system(JUDGE, Text('{"score": -0.5, "intensity": 0.7}'), Used(7, 3))
    model.on_system(IMAGINE, Text("The parrot is called Coco."), Used(5, 2))
    model.on("my parrot", Text("Coco?"), Used(100, 10))
    session = stage.session()
    await session.send("I call my parrot Coco")
    await session.settle()
    model.on("the name of the bird", Fail(503), times=1)
    model.on("the name of the bird", Text("Coco."), Used(200, 20))
    before = len(asked(stage, JUDGE)), len(asked(stage, IMAGINE))
    output = await session.send("What is the name of the bird, the parrot?")
    assert output.response_text == "Coco."
    assert (len(asked(stage, JUDGE)) - before[0], len(asked(stage, IMAGINE)) - before[1]) == (1, 1)
    assert output.usage.prompt_tokens == 200 + 7 + 5
    found = await bills(session)
    assert (found["sentiment"], found["hyde"]) == ([7, 7], [5])
    assert sum(map(sum, found.values())) == 100 + 7 + output.usage.prompt_tokens
    assert (await session.initialize()).usage.prompt_tokens == sum(map(sum, found.values()))


async def test_a_turn_that_fails_counts_what_was_asked_beside_it(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = await asking(make_stage, tmp_path)
    stage.model.on_system(JUDGE, Text("no number"), Used(7, 3))
    stage.model.on("doomed", Fail(400))
    session = stage.session()
    output = await asyncio.wait_for(session.send("This is doomed"), 30)
    assert output.status == "failed"
    assert output.usage.prompt_tokens == 7


@pytest.mark.parametrize(
    ("words", "purpose"), [(JUDGE, "sentiment"), (IMAGINE, "hyde")], ids=["sentiment", "hyde"]
)
async def test_a_turn_that_is_stopped_has_the_bills_of_what_was_asked_beside_it(
    make_stage: MakeStage, tmp_path: Path, words: str, purpose: str
) -> None:
    stage = await asking(make_stage, tmp_path)
    model = stage.model
    model.on_system(JUDGE, Text('{"score": 0.5}'), Used(7, 3))
    model.on("my parrot", Text("Coco?"))
    session = stage.session()
    await session.send("I call my parrot Coco")
    await session.settle()
    known = (await bills(session)).get(purpose, [])
    model.forget_scripts()
    model.on_system(words, Text("{"), Used(20, 4), Barrier("never"), Text("}"))
    model.on_system(JUDGE, Text('{"score": 0.5}'), Used(7, 3))
    sending = asyncio.create_task(session.send("What is the name of the bird, the parrot?"))
    await model.reached("never")
    await session.stop()
    assert (await sending).status == "stopped"
    async with asyncio.timeout(30):
        while len((await bills(session)).get(purpose, [])) == len(known):
            await asyncio.sleep(0.05)
    assert (await bills(session))[purpose] == [*known, 20]
    model.open("never")
