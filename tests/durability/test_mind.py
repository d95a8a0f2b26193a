"""A mind goes the same way whatever happens to the workers, and is kept with each turn."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from gmi.personas.mind import Mind
from gmi.worker import Session

from ..conftest import MakeStage, Stage
from ..support.scripted_model import Barrier, Fail, ScriptedModel, Text

PERSONA = {
    "id": "moody",
    "name": "Moody",
    "description": "For tests.",
    "version": "1.0.0",
    "baseSystemPrompt": "BASE",
    "memoryConfig": {"enabled": True, "cognitiveMechanisms": {}},
    "sentimentTracking": {"enabled": True, "presets": ["all"]},
    "moodAdaptation": {"enabled": True, "defaultMood": "neutral", "sensitivityFactor": 0.8},
}

ANGRY = "This is terrible and I hate it, nothing works, what an awful mess"
LOST = "I am so confused, I don't understand what you mean"
GLAD = "Wonderful, this is perfect, I love it, thank you so much, excellent"
PLAIN = "The table stands in the kitchen and the lamp hangs above it today"

LINES = [
    ANGRY if n % 10 in (1, 2) else LOST if n % 10 == 4 else GLAD if n % 10 in (6, 7, 8) else PLAIN
    for n in range(40)
]

ANSWERS = {
    "The user has become frustrated": {
        "updatedGmiMood": "empathetic",
        "updatedUserSkillLevel": "beginner",
        "newMemoryImprints": [{"key": "annoyed_by", "value": "things that do not work"}],
        "adjustmentRationale": "They are annoyed.",
        "recoveryStrategy": "Say sorry and be brief.",
    },
    "The user does not follow": {
        "updatedGmiMood": "analytical",
        "updatedTaskComplexity": "complex",
        "adjustmentRationale": "They are lost.",
        "clarificationStrategy": "Smaller steps.",
    },
    "The user is content": {
        "updatedGmiMood": "creative",
        "updatedUserSkillLevel": "advanced",
        "adjustmentRationale": "It went well.",
        "engagementStrategy": "Go on.",
    },
}


def scripted(model: ScriptedModel) -> None:
    for words, answer in ANSWERS.items():
        model.on(words, Text(json.dumps(answer)))
    # The newest first: what is remembered for a line may hold the marks of earlier ones.
    for number in reversed(range(len(LINES))):
        model.on(f"[{number:02d}]", Text("Under"), Text(f"stood {number}."))


@pytest.fixture
def personas(tmp_path: Path) -> Path:
    """A directory with the persona of these tests."""
    folder = tmp_path / "personas"
    folder.mkdir()
    (folder / "moody.json").write_text(json.dumps(PERSONA))
    return folder


async def moody(make_stage: MakeStage, folder: Path, workers: int = 1) -> Stage:
    return await make_stage(workers=workers, GMI_PERSONAS=str(folder), DEFAULT_PERSONA_ID="moody")


async def conversation(session: Session) -> dict[str, Any]:
    """Say all the lines; what became of the mind, as the trace and the state tell it."""
    for number, line in enumerate(LINES):
        output = await session.send(f"[{number:02d}] {line}", request_id=f"r{number}")
        assert output.status == "done", output.error
        assert output.response_text == f"Understood {number}."
        await session.settle()
    trace = [entry async for entry in session.read("trace")]
    events = [
        (entry["turn"], entry["details"]["event"])
        for entry in trace
        if entry["message"].startswith("The event ")
    ]
    changes = [
        {key: entry["details"][key] for key in ("metaprompt", "mood") if key in entry["details"]}
        for entry in trace
        if entry["message"].startswith("The mind changed")
    ]
    ran = [
        entry["details"]["metaprompt"]
        for entry in trace
        if entry["type"] == "SELF_REFLECTION_COMPLETE"
    ]
    turns = [turn["turn"] for turn in await session.turns()]
    mind = await session.mind()
    return {
        "events": [(turns.index(turn), event) for turn, event in events],
        "changes": changes,
        "ran": ran,
        "mood": mind.mood,
        "pad": [mind.pad.valence, mind.pad.arousal, mind.pad.dominance],
        "skill": mind.user["skill_level"],
        "complexity": mind.task["complexity"],
        "notes": mind.working,
        "counters": [mind.sentiment[name] for name in ("frustration", "confusion", "satisfaction")],
        "memories": (await session.memory.stats()).counts["traces"],
    }


@pytest.mark.timeout(400)
async def test_forty_turns_move_the_mind_and_ten_lost_workers_move_it_no_other_way(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await moody(make_stage, personas)
    scripted(stage.model)
    undisturbed = await conversation(stage.session("calm", roll_events=400))

    for number in (2, 12, 22, 32):
        assert (number, "user_frustrated") in undisturbed["events"]
    for number in (4, 14, 24, 34):
        assert (number, "user_confused") in undisturbed["events"]
    for number in (8, 18, 28, 38):
        assert (number, "user_satisfied") in undisturbed["events"]
    plain = {number for number, _ in undisturbed["events"]} & {0, 3, 5, 9, 10, 13, 15, 19}
    assert not plain, undisturbed["events"]
    moods = [change.get("mood") for change in undisturbed["changes"]]
    assert {"empathetic", "analytical", "creative"} <= set(moods)
    assert undisturbed["skill"] == "advanced"
    assert undisturbed["complexity"] == "complex"
    assert undisturbed["notes"]["annoyed_by"] == "things that do not work"
    assert undisturbed["ran"].count("gmi_satisfaction_reinforcement") >= 4

    other = await moody(make_stage, personas, workers=2)
    dice = random.Random(11)
    session = other.session("shaken", roll_events=400)
    kills = 0

    async def killer() -> None:
        nonlocal kills
        while kills < 10:
            # The points of time are what is random here.
            await asyncio.sleep(dice.uniform(0.3, 1.5))
            victim = other.workers[kills % 2]
            victim.kill()
            kills += 1
            await victim.start()

    killing = asyncio.create_task(killer())
    shaken = await conversation(session)
    await killing
    assert kills == 10
    pads = undisturbed.pop("pad"), shaken.pop("pad")
    assert shaken == undisturbed
    # Time calms a mood, and the two conversations did not take the same time.
    assert pads[0] == pytest.approx(pads[1], abs=0.02)


async def test_a_streak_goes_on_through_every_continuation(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await moody(make_stage, personas)
    for words, answer in ANSWERS.items():
        stage.model.on(words, Text(json.dumps(answer)))
    stage.model.on("awful mess", Text("Sorry."))
    session = stage.session(roll_events=1)
    for number in range(4):
        await session.send(f"{number}: {ANGRY}")
    await session.settle()
    assert (await session.state()).run > 3
    assert (await session.mind()).sentiment["frustration"] == 4


async def test_the_mind_is_kept_with_its_turn_and_comes_back_as_it_was(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await moody(make_stage, personas)
    scripted(stage.model)
    session = stage.session()
    kept: list[tuple[str, Any]] = []
    for number in range(5):
        output = await session.send(f"[{number:02d}] {LINES[number]}")
        await session.settle()
        shown = await session.mind()
        kept.append((output.turn, shown))
    for turn, shown in kept:
        mind = await session.mind_of(turn)
        assert mind is not None
        assert Mind.model_validate_json(mind.model_dump_json()) == mind
        assert mind.sentiment.model_dump(mode="json") == shown.sentiment


async def test_a_metaprompt_that_hangs_holds_up_nobody_and_is_cut(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await moody(make_stage, personas)
    model = stage.model
    model.on("The user has become frustrated", Barrier("never"), Text("{}"))
    model.on("awful mess", Text("Sorry."))
    model.on("kitchen", Text("I see."))
    session = stage.session()
    await session.send(f"a: {ANGRY}")
    await session.send(f"b: {ANGRY}")
    await model.reached("never")
    began = asyncio.get_running_loop().time()
    assert (await session.send(PLAIN)).response_text == "I see."
    assert asyncio.get_running_loop().time() - began < 5
    await session.settle()
    warnings = [e for e in await session.get_reasoning_trace() if e.type == "WARNING"]
    assert any(e.details.get("code") == "METAPROMPT_LATE" for e in warnings), warnings
    model.open("never")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Text("I would rather not."), "METAPROMPT_ANSWER_INVALID"),
        (
            Text(
                json.dumps({**ANSWERS["The user has become frustrated"], "updatedGmiMood": "blue"})
            ),
            "METAPROMPT_ANSWER_INVALID",
        ),
        (Fail(400, body={"error": {"message": "no"}}), "LLM_PROVIDER_ERROR"),
    ],
)
async def test_an_answer_that_does_not_fit_changes_nothing(
    make_stage: MakeStage, personas: Path, answer: Text | Fail, code: str
) -> None:
    stage = await moody(make_stage, personas)
    stage.model.on("The user has become frustrated", answer)
    stage.model.on("awful mess", Text("Sorry."))
    session = stage.session()
    for number in range(2):
        assert (await session.send(f"{number}: {ANGRY}")).status == "done"
    await session.settle()
    mind = await session.mind()
    assert (mind.mood, mind.user["skill_level"], mind.working) == ("neutral", "novice", {})
    warnings = [e for e in await session.get_reasoning_trace() if e.type == "WARNING"]
    assert [e.details["code"] for e in warnings if "metaprompt" in e.details] == [code]


async def test_a_worker_killed_in_a_metaprompt_resumes_it(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await moody(make_stage, personas)
    model = stage.model
    answer = json.dumps(ANSWERS["The user has become frustrated"])
    model.on(
        "The user has become frustrated", Text(answer[:10]), Barrier("half"), Text("x"), times=1
    )
    model.on("The user has become frustrated", Text(answer))
    model.on("awful mess", Text("Sorry."))
    session = stage.session()
    for number in range(2):
        await session.send(f"{number}: {ANGRY}")
    await model.reached("half")
    stage.workers[0].kill()
    model.open("half")
    await stage.worker()
    await session.settle()
    mind = await session.mind()
    assert mind.user["skill_level"] == "beginner"
    completed = [
        e for e in await session.get_reasoning_trace() if e.type == "SELF_REFLECTION_COMPLETE"
    ]
    assert len(completed) == 1


async def test_a_worker_killed_in_an_appraisal_resumes_it(
    make_stage: MakeStage, personas: Path
) -> None:
    emotional = {**PERSONA, "id": "judge", "emotionConfig": {"enabled": True, "appraise": True}}
    (personas / "judge.json").write_text(json.dumps(emotional))
    stage = await moody(make_stage, personas)
    model = stage.model
    answer = json.dumps(
        {
            "goal_relevance": 0.9,
            "goal_congruence": -0.8,
            "expectedness": 0.1,
            "controllability": 0.2,
            "agency": 0.8,
            "norm_compatibility": -0.7,
        }
    )
    # Of no use, but it was said: the next worker asks on from there.
    model.on("The lighthouse burned", Text("Oh no."), times=1)
    model.on("The lighthouse burned", Text(answer[:10]), Barrier("burning"), Text("x"), times=1)
    model.on("The lighthouse burned", Text(answer))
    session = stage.session(persona="judge")
    happening = asyncio.create_task(session.perceive("The lighthouse burned", request_id="r"))
    await model.reached("burning")
    stage.workers[0].kill()
    model.open("burning")
    await stage.worker()
    output = await happening
    assert output.status == "done"
    assert output.perception is not None
    assert output.perception.vad.valence < 0
    asked = [body["messages"][-1]["content"] for body in model.asked("The lighthouse burned")]
    assert ["Oh no." in question for question in asked] == [False, True, True]
    bills = [(row["purpose"], row["step"]) async for row in session.read("usage")]
    assert bills == [("appraise", 0), ("appraise", 1)]
    again = await session.perceive("The lighthouse burned", request_id="r")
    assert (again.turn, again.perception) == (output.turn, output.perception)
    assert len(model.asked("The lighthouse burned")) == 3


async def test_what_a_metaprompt_wants_while_a_turn_runs_is_applied_when_it_has_ended(
    make_stage: MakeStage, personas: Path
) -> None:
    stage = await moody(make_stage, personas)
    model = stage.model
    answer = json.dumps(ANSWERS["The user has become frustrated"])
    model.on("The user has become frustrated", Barrier("answer"), Text(answer))
    model.on("awful mess", Text("Sorry."))
    model.on("kitchen", Text("I "), Barrier("turn"), Text("see."))
    session = stage.session()
    for number in range(2):
        await session.send(f"{number}: {ANGRY}")
    await model.reached("answer")
    running = asyncio.create_task(session.send(PLAIN))
    await model.reached("turn")
    model.open("answer")
    while not any(
        e.type == "SELF_REFLECTION_COMPLETE" for e in await session.get_reasoning_trace()
    ):
        await asyncio.sleep(0.05)
    assert (await session.mind()).user["skill_level"] == "novice"
    model.open("turn")
    await running
    await asyncio.wait_for(session.settle(), 20)
    assert (await session.mind()).user["skill_level"] == "beginner"
