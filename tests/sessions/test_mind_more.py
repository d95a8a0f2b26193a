"""What a mind is told, what fits its situation, and what it asks about what happens to it."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest

from gmi.personas.errors import (
    MessageTooLargeError,
    RequestMismatchError,
    ValidationError,
)
from gmi.worker import Session
from gmi.workflows.trace import TraceEntry

from ..conftest import Stage
from ..support.scripted_model import Barrier, Fail, Text, Used

GOOD_NEWS: dict[str, Any] = {
    "goal_relevance": 0.9,
    "goal_congruence": 0.8,
    "expectedness": 0.1,
    "controllability": 0.6,
    "agency": 1.5,
    "norm_compatibility": 0.7,
}
ANGRY = "this is terrible and horrible, I hate this awful useless garbage"


def marked(text: str) -> tuple[str, str]:
    """A marker of the test's own, and the text with it."""
    marker = f"m{uuid.uuid4().hex[:10]}"
    return marker, f"{text} {marker}"


async def prompt_of(stage: Stage, session: Session, **given: Any) -> str:
    """Say something; the system message that the model got with it."""
    marker, text = marked("Go on")
    stage.model.on(marker, Text("Well."), times=1)
    assert (await session.send(text, **given)).status == "done"
    system: str = stage.model.asked(marker)[0]["messages"][0]["content"]
    return system


async def fail(stage: Stage, session: Session) -> None:
    """A turn that fails."""
    marker, text = marked("Fail")
    stage.model.on(marker, Fail(400))
    assert (await session.send(text)).status == "failed"


async def traced(session: Session, words: str) -> list[TraceEntry]:
    """The trace entries that begin with the words, oldest first."""
    entries = await session.get_reasoning_trace()
    return [entry for entry in entries if entry.message.startswith(words)]


# What happens


async def test_an_event_that_says_nothing_of_itself_is_appraised_by_a_model(stage: Stage) -> None:
    session = stage.session(persona="judging", user_id="more-ada")
    marker, text = marked("A cake won the prize")
    stage.model.on(marker, Text(json.dumps(GOOD_NEWS)), Used(70, 30))
    output = await session.perceive(
        text,
        type="news",
        from_="Kim",
        prior_episodes=[
            "The last cake burned",
            {"content": "Kim baked it", "at": "2029-05-01T00:00:00Z"},
        ],
        payload={"secret": "S3"},
    )
    assert output.status == "done"
    assert output.perception is not None
    assert output.perception.vad.valence > 0.2
    assert output.perception.importance > 0.4
    assert output.event is not None
    assert output.event.appraisal is not None
    # Beyond its range, and left out.
    assert (output.event.appraisal.agency, output.event.appraisal.urgency) == (1.0, 0.5)
    [asked] = stage.model.asked(marker)
    system, question = (message["content"] for message in asked["messages"])
    assert "Judith" in system
    assert "A judge of cakes." in system
    assert "goal_congruence" in system
    assert "news" in question
    assert "Kim" in question
    assert "- The last cake burned\n- 2029-05-01: Kim baked it" in question
    assert "S3" not in json.dumps(asked)
    [entry] = await traced(session, "The event was appraised")
    assert entry.turn == output.turn
    assert output.usage.prompt_tokens == 70
    assert (await session.usage()).usage.prompt_tokens == 70
    assert (await session.usage()).by_model["openai:scripted"].completion_tokens == 30
    bills = [row async for row in session.read("usage")]
    assert [(row["purpose"], row["usage"]["prompt_tokens"]) for row in bills] == [("appraise", 70)]
    await session.settle()
    [memory] = [item async for item in session.memory.list()]
    assert marker in memory["content"]


@pytest.mark.parametrize(
    "given", [{"appraisal": {"goalRelevance": 0.1}}, {"stimulus": {"bodyBudgetDelta": -0.1}}]
)
async def test_an_event_that_says_what_it_does_is_not_asked_about(
    stage: Stage, given: dict[str, Any]
) -> None:
    session = stage.session(persona="judging", user_id="more-abe")
    marker, text = marked("A leaf fell")
    output = await session.perceive(text, **given)
    assert output.status == "done"
    assert stage.model.asked(marker) == []


async def test_a_persona_that_does_not_ask_for_it_asks_no_model(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="more-abi")
    marker, text = marked("A leaf fell")
    output = await session.perceive(text)
    assert output.perception is not None
    assert output.perception.importance == 0
    assert stage.model.asked(marker) == []


@pytest.mark.parametrize(
    ("answer", "code", "asked"),
    [
        (Text("How nice!"), "APPRAISAL_ANSWER_INVALID", 2),
        (Text('{"goal_relevance": 1}'), "APPRAISAL_ANSWER_INVALID", 2),
        (Fail(400), "LLM_PROVIDER_ERROR", 1),
    ],
)
async def test_an_appraisal_of_no_use_is_a_warning_and_only_time_passes(
    stage: Stage, answer: Text | Fail, code: str, asked: int
) -> None:
    session = stage.session(persona="judging", user_id=f"more-{uuid.uuid4().hex[:6]}")
    marker, text = marked("A cake fell")
    stage.model.on(marker, answer)
    output = await session.perceive(text)
    assert output.status == "done"
    assert output.perception is not None
    assert (output.perception.label, output.perception.importance) == ("neutral", 0)
    [entry] = await traced(session, "The event was not appraised")
    assert (entry.type, entry.details["code"]) == ("WARNING", code)
    assert len(stage.model.asked(marker)) == asked
    bills = [row async for row in session.read("usage")]
    assert [row["purpose"] for row in bills] == ["appraise"] * asked
    billed = sum(row["usage"].get("prompt_tokens", 0) for row in bills)
    assert output.usage.prompt_tokens == billed
    assert (billed > 0) is (code == "APPRAISAL_ANSWER_INVALID")


async def test_an_answer_that_is_better_the_second_time_counts(stage: Stage) -> None:
    session = stage.session(persona="judging", user_id="more-ana")
    marker, text = marked("A cake won")
    stage.model.on(marker, Text("Nice."), times=1)
    stage.model.on(marker, Text(json.dumps(GOOD_NEWS)))
    output = await session.perceive(text)
    assert output.perception is not None
    assert output.perception.importance > 0.4
    assert "Nice." in stage.model.asked(marker)[1]["messages"][-1]["content"]


async def test_a_stop_ends_an_event_while_it_is_appraised(stage: Stage) -> None:
    session = stage.session(persona="judging", user_id="more-amy")
    await session.initialize()
    marker, text = marked("A cake hangs in the air")
    stage.model.on(marker, Barrier(marker), Text(json.dumps(GOOD_NEWS)))
    happening = asyncio.create_task(session.perceive(text))
    await stage.model.reached(marker)
    await session.stop(reason="enough")
    output = await happening
    stage.model.open(marker)
    assert (output.status, output.perception) == ("stopped", None)
    shown = await session.mind()
    assert shown.emotion is not None
    assert shown.emotion["label"] == "neutral"
    assert "hangs in the air" not in await prompt_of(stage, session)


# Overlays

CURIOUS = {"personaTraits": {"openness": 0.95}}
OUTGOING = {"personaTraits": {"extraversion": 0.95}}


def rule(id: str, trigger: Any, **patch: Any) -> dict[str, Any]:
    return {"id": id, "trigger": trigger, "patch": patch}


async def test_the_traits_of_an_overlay_count_while_it_fits_and_are_not_kept(
    stage: Stage,
) -> None:
    plain = await prompt_of(stage, stage.session(persona="situated", user_id="more-bob"))
    session = stage.session(
        persona="situated",
        user_id="more-bob",
        overlays=[rule("always", "always", **CURIOUS), rule("new", "first_activation", **OUTGOING)],
    )
    first = await prompt_of(stage, session)
    second = await prompt_of(stage, session)
    third = await prompt_of(stage, session)
    assert len({plain, first, second}) == 3
    assert third == second
    assert (await session.mind()).traits["openness"] == 0.5
    await session.set_personality_trait("openness", 0.5)
    assert await prompt_of(stage, session) == plain
    applied = await traced(session, "Overlays apply")
    assert [entry.details["rules"] for entry in applied] == [["always", "new"], ["always"]]
    assert applied[0].details["traits"] == {"openness": 0.95, "extraversion": 0.95}


async def test_the_mood_of_an_overlay_is_jumped_to_once_and_traced(stage: Stage) -> None:
    session = stage.session(
        persona="situated",
        user_id="more-ben",
        overlays=[
            rule("start", "always", mood="focused", metadata={"tone": "firm"}),
            rule("sorry", "on_error", mood="empathetic"),
        ],
    )
    assert "KEEP TO IT" in await prompt_of(stage, session)
    shown = await session.mind()
    assert shown.mood == "focused"
    marker, text = marked("Look back")
    stage.model.on(marker, Text("Yes."), times=1)
    answer = {"updatedGmiMood": "creative", "adjustmentRationale": "r"}
    stage.model.on(marker, Text(json.dumps(answer)), times=1)
    await session.send(text)
    await session.reflect()
    await session.settle()
    # What the mind itself does stays while the same rules apply.
    assert "KEEP TO IT" not in await prompt_of(stage, session)
    assert (await session.mind()).mood == "creative"
    await fail(stage, session)
    await prompt_of(stage, session)
    assert (await session.mind()).mood == "empathetic"
    assert "KEEP TO IT" in await prompt_of(stage, session)
    applied = await traced(session, "Overlays apply")
    assert [(entry.details["rules"], entry.details.get("mood")) for entry in applied] == [
        (["start"], "focused"),
        (["start", "sorry"], "empathetic"),
        (["start"], "focused"),
    ]
    assert applied[0].details["metadata"] == {"tone": "firm"}


async def test_a_noticed_event_and_the_end_of_the_task_are_situations(stage: Stage) -> None:
    session = stage.session(
        persona="attentive",
        user_id="more-bea",
        overlays=[
            rule("calm", "user_frustrated", **CURIOUS),
            rule("over", "task_completed", **OUTGOING),
            rule("both", {"lastEvent": "user_frustrated", "taskStatus": "completed"}),
        ],
    )
    for number in range(2):
        marker, text = marked(f"{number} {ANGRY}")
        stage.model.on(marker, Text("I am sorry."), times=1)
        stage.model.on(marker, Text("{}"))
        await session.send(text)
    await session.settle()
    await prompt_of(stage, session)
    await prompt_of(stage, session, task_context={"status": "completed"})
    applied = await traced(session, "Overlays apply")
    assert [entry.details["rules"] for entry in applied] == [["calm"], ["calm", "over", "both"]]


async def test_overlays_are_checked_when_the_session_opens(stage: Stage) -> None:
    bad = stage.session(persona="situated", user_id="more-bia", overlays=[{"id": "x"}])
    with pytest.raises(ValidationError, match="trigger"):
        await bad.initialize()
    session = stage.session(
        persona="situated",
        user_id="more-bia",
        overlays=[rule("sly", "never", personaTraits={"honesty": 0}, mood="blue")],
    )
    await session.initialize()
    warnings = await traced(session, "Overlay rule 'sly'")
    assert [entry.type for entry in warnings] == ["WARNING", "WARNING"]


# Contexts


async def test_what_is_said_of_user_and_task_reaches_the_prompt_and_stays(stage: Stage) -> None:
    session = stage.session(persona="situated", user_id="more-cal")
    assert "SKIP THE BASICS" not in await prompt_of(stage, session)
    told = {
        "user_context": {"skillLevel": "expert", "preferences": {"verbosity": "short"}},
        "task_context": {"complexity": "complex", "domain": "law", "client": "Acme"},
    }
    first = await prompt_of(stage, session, **told)
    assert "SKIP THE BASICS" in first
    assert "prefers short answers" in first
    more = {"preferences": {"preferredFormat": "a table"}}
    second = await prompt_of(stage, session, user_context=more)
    assert "prefers short answers" in second
    assert "a table" in second
    assert await prompt_of(stage, session) == second
    shown = await session.mind()
    assert shown.user["preferences"] == {"verbosity": "short", "preferredFormat": "a table"}
    assert shown.task["client"] == "Acme"
    said = await traced(session, "The host said more")
    assert [(entry.type, list(entry.details)) for entry in said] == [
        ("STATE_CHANGE", ["user_context"]),
        ("STATE_CHANGE", ["task_context"]),
        ("STATE_CHANGE", ["user_context"]),
    ]
    await session.settle()
    kept = await session.mind_of(said[0].turn or "")
    assert kept is not None
    assert kept.user.skill_level == "expert"


async def test_a_metaprompt_sees_what_was_said_of_user_and_task(stage: Stage) -> None:
    session = stage.session(persona="situated", user_id="more-cat")
    marker, text = marked("Go on")
    stage.model.on(marker, Text("Well."), times=1)
    stage.model.on(marker, Text('{"adjustmentRationale": "r"}'))
    stream = await session.stream(
        text, user_context={"role": "tester"}, task_context={"deadline": "noon"}
    )
    assert (await stream.result()).status == "done"
    await session.reflect()
    await session.settle()
    question = stage.model.asked(marker)[-1]["messages"][-1]["content"]
    assert "tester" in question
    assert "noon" in question


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"user_context": {"skillLevel": "wizard"}}, ValidationError),
        ({"user_context": {"preferences": ["short"]}}, ValidationError),
        ({"task_context": {"complexity": "medium"}}, ValidationError),
        ({"task_context": {"notes": "x" * 2100}}, MessageTooLargeError),
    ],
)
async def test_a_context_that_does_not_fit_is_refused_and_makes_no_turn(
    stage: Stage, given: dict[str, Any], error: type[Exception]
) -> None:
    session = stage.session(persona="situated", user_id="more-cia")
    await session.initialize()
    with pytest.raises(error):
        await session.send("Go on", **given)
    assert (await session.list_turns()).turns == []


async def test_another_context_makes_another_request(stage: Stage) -> None:
    session = stage.session(persona="situated", user_id="more-cyd")
    marker, text = marked("Go on")
    stage.model.on(marker, Text("Well."))
    context = {"skillLevel": "expert"}
    first = await session.send(text, request_id="r", user_context=context)
    again = await session.send(text, request_id="r", user_context=context)
    assert first.turn == again.turn
    with pytest.raises(RequestMismatchError):
        await session.send(text, request_id="r")
