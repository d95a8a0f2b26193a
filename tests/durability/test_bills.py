"""Every call beside the turns is in the ledger, also the one that nobody waited for any longer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gmi.worker import Session

from ..conftest import MakeStage, Stage
from ..support.scripted_model import Barrier, Text, Used

BASE = {
    "description": "For tests.",
    "version": "1.0.0",
    "baseSystemPrompt": "BASE",
    "moodAdaptation": {"enabled": True, "defaultMood": "neutral"},
}
PERSONAS: dict[str, dict[str, Any]] = {
    "reflector": {
        "metaPrompts": [{"id": "gmi_self_trait_adjustment", "trigger": {"type": "manual"}}]
    },
    "moody": {"sentimentTracking": {"enabled": True, "presets": ["all"]}},
    "judge": {"emotionConfig": {"enabled": True, "appraise": True}},
}

REFLECTS = "JSON object"
REFLECTED = json.dumps({"updatedGmiMood": "curious", "adjustmentRationale": "It asks a lot."})
ANGRY = "This is terrible and I hate it, nothing works, what an awful mess"
FRUSTRATED = "The user has become frustrated"
RECOVERY = json.dumps(
    {
        "updatedGmiMood": "empathetic",
        "adjustmentRationale": "They are annoyed.",
        "recoveryStrategy": "Say sorry.",
    }
)


@pytest.fixture
def personas(tmp_path: Path) -> Path:
    """A directory with the personas of these tests."""
    folder = tmp_path / "personas"
    folder.mkdir()
    for name, more in PERSONAS.items():
        data = {"id": name, "name": name.title(), **BASE, **more}
        (folder / f"{name}.json").write_text(json.dumps(data))
    return folder


async def staged(make_stage: MakeStage, folder: Path, persona: str) -> Stage:
    return await make_stage(GMI_PERSONAS=str(folder), DEFAULT_PERSONA_ID=persona)


def talking(stage: Stage, **config: Any) -> Session:
    """A session whose turns are answered; scripted last, since metaprompts quote what was said."""
    stage.model.on("hello", Text("hi"), Used(1, 1))
    stage.model.on("awful mess", Text("Sorry."), Used(1, 1))
    return stage.session(**config)


Row = tuple[str, int, str, int]


async def rows(session: Session) -> list[Row]:
    """Purpose, number of the answer, state and prompt tokens of each bill but the turns' own."""
    return [
        (row["purpose"], row["step"] % 2, row["state"], row["usage"].get("prompt_tokens", 0))
        async for row in session.read("usage")
        if row["purpose"] != "step"
    ]


async def until_billed(session: Session, *wanted: Row) -> None:
    """Wait until the ledger has these bills, in any order, and no other."""
    found: list[Row] = []
    async with asyncio.timeout(40):
        while len(found) < len(wanted):
            await asyncio.sleep(0.05)
            found = await rows(session)
    assert sorted(found) == sorted(wanted)


def reflection(answer: int, state: str, tokens: int) -> Row:
    return ("reflect:gmi_self_trait_adjustment", answer, state, tokens)


async def test_each_reflection_on_one_turn_has_a_bill_of_its_own(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await staged(make_stage, personas, "reflector")
    for tokens in (100, 200, 300):
        stage.model.on_system(REFLECTS, Text(REFLECTED), Used(tokens, 1), times=1)
    session = talking(stage)
    await session.send("hello")
    for _ in range(3):
        assert (await session.reflect()).started
        await session.settle()
    assert await rows(session) == [reflection(0, "done", n) for n in (100, 200, 300)]
    assert (await session.usage()).usage.prompt_tokens == 601


async def test_a_reflection_that_is_asked_again_by_the_next_run_has_both_bills(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await staged(make_stage, personas, "reflector")
    model = stage.model
    model.on_system(REFLECTS, Text("nonsense"), Used(1000, 1), times=1)
    model.on_system(REFLECTS, Text("{"), Used(20, 1), Barrier("cut"), Text("}"), times=1)
    model.on_system(REFLECTS, Text(REFLECTED), Used(300, 1))
    session = talking(stage, roll_events=1)
    await session.send("hello")
    await session.settle()
    run = (await session.state()).run
    await session.reflect()
    await model.reached("cut")
    assert (await session.send("hello again")).status == "done"
    await session.settle()
    assert (await session.state()).run > run
    await until_billed(
        session,
        reflection(0, "done", 1000),
        reflection(1, "failed", 20),
        reflection(0, "done", 300),
    )
    model.open("cut")


async def test_a_metaprompt_that_is_cut_has_its_bills(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await staged(make_stage, personas, "moody")
    model = stage.model
    model.on(FRUSTRATED, Text("nonsense"), Used(1000, 1), times=1)
    model.on(FRUSTRATED, Text("{"), Used(20, 1), Barrier("never"), Text(RECOVERY))
    session = talking(stage)
    for number in range(2):
        await session.send(f"{number}: {ANGRY}")
    await model.reached("never")
    await session.send("hello")
    await session.settle()
    warnings = [e for e in await session.get_reasoning_trace() if e.type == "WARNING"]
    assert any(e.details.get("code") == "METAPROMPT_LATE" for e in warnings), warnings
    purpose = "metaprompt:gmi_frustration_recovery"
    await until_billed(session, (purpose, 0, "done", 1000), (purpose, 1, "failed", 20))
    model.open("never")


async def test_a_session_that_is_closed_meanwhile_has_the_bills_of_its_metaprompt(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await staged(make_stage, personas, "reflector")
    model = stage.model
    model.on_system(REFLECTS, Text("{"), Used(20, 1), Barrier("never"), Text(REFLECTED))
    session = talking(stage)
    await session.send("hello")
    await session.reflect()
    await model.reached("never")
    await session.close()
    await until_billed(session, reflection(0, "failed", 20))
    model.open("never")


async def test_an_appraisal_whose_turn_is_stopped_has_its_bills(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await staged(make_stage, personas, "judge")
    model = stage.model
    model.on("lighthouse", Text("nonsense"), Used(1000, 1), times=1)
    model.on("lighthouse", Text("{"), Used(20, 1), Barrier("never"), Text("}"))
    session = talking(stage)
    happening = asyncio.create_task(session.perceive("The lighthouse burned"))
    await model.reached("never")
    await session.stop()
    assert (await happening).status == "stopped"
    await until_billed(session, ("appraise", 0, "done", 1000), ("appraise", 1, "failed", 20))
    model.open("never")


async def test_a_worker_that_shuts_down_hands_a_metaprompts_bills_on_and_none_counts_twice(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await staged(make_stage, personas, "reflector")
    model = stage.model
    model.on_system(REFLECTS, Text("nonsense"), Used(1000, 1), times=1)
    model.on_system(REFLECTS, Text("{"), Used(20, 1), Barrier("half"), Text("}"), times=1)
    model.on_system(REFLECTS, Text(REFLECTED), Used(300, 1))
    session = talking(stage)
    await session.send("hello")
    await session.reflect()
    await model.reached("half")
    stage.workers[0].terminate()
    await asyncio.to_thread(stage.workers[0].join)
    await stage.worker()
    await session.settle()
    await until_billed(
        session,
        reflection(0, "done", 1000),
        reflection(1, "failed", 20),
        reflection(1, "done", 300),
    )
    assert (await session.usage()).usage.prompt_tokens == 1 + 1000 + 20 + 300
    model.open("half")


async def test_nobody_who_reads_waits_for_a_metaprompt(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await staged(make_stage, personas, "reflector")
    model = stage.model
    model.on_system(REFLECTS, Barrier("answer"), Text(REFLECTED), Used(20, 1))
    session = talking(stage)
    await session.send("hello")
    await session.settle()
    await session.reflect()
    await model.reached("answer")
    # From here on whoever reads wants everything that the session has written.
    await session.state()
    assert await rows(session) == []
    model.open("answer")
    await session.settle()
    assert await rows(session) == [reflection(0, "done", 20)]
