"""The mind as a client sees it: events, feelings, feedback, traits, metaprompts."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest

from gmi.personas.errors import (
    ConversationBusyError,
    RequestMismatchError,
    TurnNotFoundError,
    ValidationError,
)
from gmi.personas.messages import Message
from gmi.worker import Session
from gmi.workflows.trace import TraceEntry

from ..conftest import Stage
from ..support.scripted_model import Call, Fail, Text
from .marking import marked, prompts

GOOD_NEWS = {
    "goalRelevance": 0.9,
    "goalCongruence": 0.8,
    "expectedness": 0.4,
    "controllability": 0.2,
    "agency": -0.8,
}
ANGRY = "this is terrible and horrible, I hate this awful useless garbage"


async def trace_of(session: Session, turn: str) -> list[TraceEntry]:
    return [entry for entry in await session.get_reasoning_trace() if entry.turn == turn]


def reflection(**fields: Any) -> Text:
    """A metaprompt's answer."""
    return Text(json.dumps({"adjustmentRationale": "the user is upset", **fields}))


async def frustrated(stage: Stage, session: Session, *answers: Text | Fail) -> str:
    """An angry turn and the answers to the metaprompt that it sets off; settled."""
    marker, text = marked(ANGRY)
    stage.model.on(marker, Text("I am sorry."), times=1)
    for answer in answers:
        stage.model.on(marker, answer, times=1)
    output = await session.send(text)
    assert (output.status, output.response_text) == ("done", "I am sorry.")
    await session.settle()
    return output.turn


async def test_an_event_changes_what_is_felt_and_asks_no_model(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="mind-abe")
    await session.initialize()
    before, asked = await session.mind(), len(stage.model.requests)
    output = await session.perceive(
        "The test results came back positive", from_="Doctor", appraisal=GOOD_NEWS
    )
    assert output.status == "done"
    assert output.perception is not None
    assert output.perception.vad.valence > before.affect.valence
    assert (output.perception.label, output.perception.dominant) == ("hope", "joy")
    after = await session.mind()
    assert after.affect.valence == pytest.approx(output.perception.vad.valence, abs=0.01)
    assert len(stage.model.requests) == asked
    [entry] = [e for e in await trace_of(session, output.turn) if "felt" in e.details]
    assert entry.details["label"] == "hope"


async def test_a_stimulus_acts_on_the_body_and_the_needs(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="mind-abi")
    await session.initialize()
    before = (await session.mind()).emotion
    await session.perceive(
        "A wave of exhaustion",
        type="exhaustion",
        stimulus={
            "bodyBudgetDelta": -0.3,
            "vadDelta": {"A": -0.4, "V": -0.1},
            "needsDelta": {"competence": -0.2},
        },
    )
    after = (await session.mind()).emotion
    assert before is not None
    assert after is not None
    assert after["body"] == pytest.approx(before["body"] - 0.3, abs=1e-3)
    assert after["needs"]["competence"] == pytest.approx(0.3, abs=1e-3)


async def test_an_event_sent_twice_happens_once(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="mind-ada")
    request = str(uuid.uuid4())
    first = await session.perceive("A gift", appraisal=GOOD_NEWS, request_id=request)
    again = await session.perceive("A gift", appraisal=GOOD_NEWS, request_id=request)
    assert (first.turn, first.perception) == (again.turn, again.perception)
    assert [turn["kind"] for turn in await session.turns()] == ["event"]
    with pytest.raises(RequestMismatchError):
        await session.perceive("Another gift", appraisal=GOOD_NEWS, request_id=request)


async def test_a_persona_without_emotions_refuses_events(stage: Stage) -> None:
    session = stage.session(persona="plain", user_id="mind-ana")
    with pytest.raises(ValidationError, match=r"emotionConfig\.enabled"):
        await session.perceive("Something happens", appraisal=GOOD_NEWS)
    assert (await session.mind()).emotion is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": ""},
        {"message": "  \n"},
        {"message": "x", "appraisal": {"goalRelevanse": 1}},
        {"message": "x", "appraisal": {"goalRelevance": float("nan")}},
        {"message": "x", "payload": {"text": "x" * 5000}},
    ],
)
async def test_an_event_that_does_not_fit_is_refused(stage: Stage, wrong: dict[str, Any]) -> None:
    session = stage.session(persona="feeling", user_id="mind-avi")
    await session.initialize()
    with pytest.raises(ValidationError):
        await session.perceive(**wrong)
    assert (await session.list_turns()).turns == []


async def test_an_event_that_moves_the_persona_is_remembered_with_its_source(
    stage: Stage,
) -> None:
    session = stage.session(persona="feeling", user_id="mind-bea")
    await session.perceive(
        "The lighthouse burned down", from_="Kim", appraisal=GOOD_NEWS | {"goalCongruence": -1}
    )
    await session.perceive("The fog lifted", appraisal=GOOD_NEWS, skip_memory=True)
    await session.perceive("A leaf fell")
    await session.settle()
    [kept] = [item async for item in session.memory.list()]
    assert kept["content"] == "The lighthouse burned down"
    shown = await session.memory.show(kept["id"])
    assert "Kim" in json.dumps(shown)


async def test_what_is_felt_reaches_the_next_prompt(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="mind-ben")
    await session.perceive("The best day", appraisal=GOOD_NEWS | {"goalRelevance": 1})
    marker, text = marked("How do you feel?")
    stage.model.on(marker, Text("Well."))
    await session.send(text)
    assert "You feel hope" in prompts(stage, marker)[0]


async def test_what_happened_and_who_from_is_told_in_the_next_prompt_as_in_a_chat(
    stage: Stage,
) -> None:
    session = stage.session(persona="feeling", user_id="mind-bif")
    kim = {
        "name": "Kim",
        "description": "A weary traveler.",
        "extensions": {"inventory": "a sword", "quest": "find the lantern"},
    }
    await session.perceive("The door\nopened")
    await session.perceive("I brought you flowers", from_=kim, appraisal=GOOD_NEWS)
    marker, text = marked("Who was here?")
    stage.model.on(marker, Fail(400), times=1)
    stage.model.on(marker, Text("Kim."))
    assert (await session.send(text)).status == "failed"
    await session.send(text)
    await session.send(text, interlocutor=kim)
    failed, told, chatted = prompts(stage, marker)
    assert failed == told
    assert "\n- The door opened\n- Kim: I brought you flowers\n" in told
    assert "You are speaking with Kim." not in told
    about = "A weary traveler.\n\n### inventory\na sword\n\n### quest\nfind the lantern"
    assert about in told
    assert about in chatted
    assert "flowers" not in chatted


async def test_a_trait_is_set_for_the_session_and_taken_back(stage: Stage) -> None:
    session = stage.session(persona="attentive", user_id="mind-dan")
    traits = await session.set_personality_trait("openness", 0.95)
    assert traits["openness"] == 0.95
    marker, text = marked("Who are you?")
    stage.model.on(marker, Text("Me."))
    await session.send(text)
    assert (await session.set_personality_trait("openness", None))["openness"] == 0.5
    await session.send(text)
    changed, usual = prompts(stage, marker)
    assert changed != usual
    entries = [e for e in await session.get_reasoning_trace() if "trait" in e.details]
    assert [(e.type, e.details["before"], e.details["after"]) for e in entries] == [
        ("STATE_CHANGE", 0.5, 0.95),
        ("STATE_CHANGE", 0.95, 0.5),
    ]


async def test_a_trait_that_is_set_counts_for_what_is_felt(stage: Stage) -> None:
    calm, tender = (stage.session(persona="feeling", user_id=f"mind-{n}") for n in ("doe", "dow"))
    await calm.set_personality_trait("emotionality", 0.0)
    await tender.set_personality_trait("emotionality", 1.0)
    before = [(await session.mind()).emotion for session in (calm, tender)]
    bad_news = GOOD_NEWS | {"goalCongruence": -0.8}
    outputs = [await s.perceive("A theft", appraisal=bad_news) for s in (calm, tender)]
    little, much = (output.perception for output in outputs)
    assert before[0] == before[1]  # it moves from where it was, not to another start
    assert little is not None
    assert much is not None
    assert much.vad.valence < little.vad.valence
    assert much.intensity > little.intensity


@pytest.mark.parametrize(("trait", "value"), [("bravery", 0.5), ("openness", 1.5)])
async def test_a_trait_that_does_not_exist_or_fit_is_refused(
    stage: Stage, trait: str, value: float
) -> None:
    session = stage.session(persona="attentive", user_id="mind-dee")
    before = await session.initialize()
    with pytest.raises(ValidationError):
        await session.set_personality_trait(trait, value)
    assert (await session.mind()).traits["openness"] == 0.5
    assert before.persona == "attentive"


async def test_the_users_frustration_is_counted_and_raises_its_event(stage: Stage) -> None:
    session = stage.session(persona="attentive", user_id="mind-fay")
    nothing = reflection(recoveryStrategy="wait")
    turns = [await frustrated(stage, session, nothing) for _ in range(2)]
    mind = await session.mind()
    assert mind.sentiment["frustration"] == 2
    assert mind.pending == []
    severities = []
    for turn in turns:
        [event] = [e for e in await trace_of(session, turn) if e.details.get("event")]
        assert event.details["event"] == "user_frustrated"
        severities.append(event.details["severity"])
    assert severities == ["medium", "high"]
    marker, text = marked("Thanks, this is wonderful")
    stage.model.on(marker, Text("Good."))
    await session.send(text)
    assert (await session.mind()).sentiment["frustration"] == 0


async def test_a_metaprompt_changes_mood_skill_and_notes_and_the_next_prompt_knows(
    stage: Stage,
) -> None:
    session = stage.session(persona="attentive", user_id="mind-gil")
    turn = await frustrated(
        stage,
        session,
        reflection(
            updatedGmiMood="empathetic",
            updatedUserSkillLevel="advanced",
            newMemoryImprints=[{"key": "dislikes", "value": "long answers"}],
            recoveryStrategy="be brief",
        ),
    )
    mind = await session.mind()
    assert mind.mood == "empathetic"
    assert mind.user["skill_level"] == "advanced"
    assert mind.working == {"dislikes": "long answers"}
    types = [e.type for e in await trace_of(session, turn) if "metaprompt" in e.details]
    assert types == ["SELF_REFLECTION_TRIGGERED", "SELF_REFLECTION_COMPLETE", "STATE_CHANGE"]
    marker, text = marked("Go on")
    stage.model.on(marker, Text("Gladly."))
    await session.send(text)
    [prompt] = prompts(stage, marker)
    assert "Your mood at present is empathetic." in prompt
    assert "TREAD SOFTLY" in prompt
    assert "SKIP THE BASICS" not in prompt


@pytest.mark.parametrize(
    "answers",
    [
        (Text("I would rather sing."), Text("La la la.")),
        (reflection(updatedGmiMood="ecstatic", recoveryStrategy="x"),) * 2,
        (Fail(400),),
    ],
    ids=["no JSON", "no mood", "refused"],
)
async def test_a_metaprompt_that_comes_to_nothing_changes_nothing(
    stage: Stage, answers: tuple[Text | Fail, ...]
) -> None:
    session = stage.session(persona="attentive", user_id="mind-hal")
    turn = await frustrated(stage, session, *answers)
    mind = await session.mind()
    assert (mind.mood, mind.working, mind.user["skill_level"]) == ("neutral", {}, "novice")
    output = await session.get_turn(turn)
    assert output is not None
    assert (output.status, output.response_text, output.error) == ("done", "I am sorry.", None)
    entries = await trace_of(session, turn)
    [warning] = [e for e in entries if e.type == "WARNING"]
    assert warning.details["metaprompt"] == "gmi_frustration_recovery"
    assert warning.details["code"]
    assert not [e for e in entries if e.type in ("ERROR", "STATE_CHANGE")]


async def test_a_self_reflection_is_asked_for_and_told_why_it_is_not(stage: Stage) -> None:
    session = stage.session(persona="attentive", user_id="mind-ida")
    early = await session.reflect()
    assert (early.started, early.skipped) == (
        False,
        "there is nothing to reflect on before the first turn is done",
    )
    marker, text = marked("Prove the theorem")
    stage.model.on(marker, Text("Done."), times=1)
    stage.model.on(marker, reflection(updatedTaskComplexity="complex"))
    await session.send(text)
    found = await session._trigger_and_process_self_reflection()
    assert found.started
    assert (await session.mind()).task["complexity"] == "complex"
    other = stage.session(persona="plain", user_id="mind-ida")
    skipped = await other.reflect()
    assert skipped.skipped == "the persona has no metaprompt gmi_self_trait_adjustment"


async def test_the_mind_that_a_turn_left_is_the_mind_as_it_was_shown(stage: Stage) -> None:
    session = stage.session(persona="attentive", user_id="mind-jan")
    answer = reflection(
        updatedGmiMood="focused",
        newMemoryImprints=[{"key": "wants", "value": "facts"}],
        recoveryStrategy="x",
    )
    first = await frustrated(stage, session, answer)
    shown = await session.mind()
    second = await frustrated(stage, session, reflection(recoveryStrategy="x"))
    kept = await session.mind_of(first)
    assert kept is not None
    assert kept.mood is not None
    assert (kept.mood.word, kept.working, kept.counters) == ("focused", shown.working, {})
    assert kept.mood.pad.dominance == pytest.approx(shown.pad.dominance, abs=1e-3)
    assert kept.sentiment.model_dump(mode="json") == shown.sentiment
    later = await session.mind_of(second)
    assert later is not None
    assert later.sentiment.frustration == 2
    with pytest.raises(TurnNotFoundError):
        await session.mind_of("nothing")


async def test_a_turn_of_a_mind_that_never_changes_leaves_none(stage: Stage) -> None:
    session = stage.session(persona="plain", user_id="mind-jim")
    marker, text = marked("Hello")
    stage.model.on(marker, Text("Hi."))
    output = await session.send(text)
    await session.settle()
    assert await session.mind_of(output.turn) is None


async def test_events_at_once_all_happen_one_after_another(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="mind-kai")
    await session.initialize()
    outputs = await asyncio.gather(
        *(
            session.perceive(f"Gift {n % 4}", appraisal=GOOD_NEWS, request_id=f"gift-{n % 4}")
            for n in range(8)
        )
    )
    assert {output.status for output in outputs} == {"done"}
    assert len({output.turn for output in outputs}) == 4
    felt = {output.turn: output.perception for output in outputs}
    valences = [p.vad.valence for p in felt.values() if p is not None]
    assert len(set(valences)) == 4
    assert (await session.mind()).affect.valence == pytest.approx(max(valences), abs=0.01)


async def test_the_mind_goes_on_when_the_session_continues_as_new(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="mind-lea", roll_events=30)
    before = 0.0
    for number in range(12):
        output = await session.perceive(f"Good news {number}", appraisal=GOOD_NEWS)
        assert output.perception is not None
        assert output.perception.vad.valence > before
        before = output.perception.vad.valence
    await session.settle()
    assert (await session.state()).run > 1
    assert len(await session.turns()) == 12
    assert (await session.mind()).affect.valence == pytest.approx(before, abs=0.01)


async def test_an_event_is_refused_while_a_turn_waits_for_the_host(stage: Stage) -> None:
    session = stage.session(persona="feeling", user_id="mind-max", tools=["ask_host"])
    marker, text = marked("Ask the host")
    stage.model.on(marker, Call("ask_host", {"question": "Which?"}), calls=0)
    stage.model.on(marker, Text("Red, then."), calls=1)
    told: list[dict[str, Any]] = []
    result = await session.chat(text, history=[], on_tool_call=told.append)
    assert result.response.status == "waiting"
    assert (result.text, result.updated_history, told) == ("", [], [])
    with pytest.raises(ConversationBusyError):
        await session.perceive("A gift", appraisal=GOOD_NEWS)
    output = await session.handle_tool_result(result.response.tool_calls[0].id, "red")
    assert output.response_text == "Red, then."


async def test_what_a_replaced_history_no_longer_holds_is_gone_from_the_mind(stage: Stage) -> None:
    session = stage.session(persona="attentive", user_id="mind-ned")
    marker, text = marked("My secret is wonderful")
    stage.model.on(marker, Text("I see."))
    output = await session.send(text)
    other, kept = marked("The weather is wonderful")
    stage.model.on(other, Text("It is."))
    later = await session.send(kept)
    await session.settle()
    score = (await session.mind()).sentiment["trends"][0]["score"]
    assert marker in str(await session.mind())
    await session.replace_history([Message(role="user", content=kept)])
    shown = await session.mind()
    assert marker not in str(shown)
    assert other in str(shown)
    assert shown.sentiment["trends"][0]["score"] == score
    for turn in (output.turn, later.turn):
        mind = await session.mind_of(turn)
        assert mind is not None
        assert marker not in mind.model_dump_json()


async def test_a_metaprompt_is_told_the_words_that_were_confused(stage: Stage) -> None:
    session = stage.session(persona="explaining", user_id="mind-ole")
    read = "I read the chapter twice, slowly, with a pencil in hand, and then the appendix as well"
    marker, text = marked(f"{read}. Huh, that is unclear")
    stage.model.on(marker, Text("A circle is round."), times=1)
    stage.model.on(marker, reflection(updatedTaskComplexity="high"), times=1)
    await session.send(text)
    await session.settle()
    assert any("LOST BY unclear, huh. " in str(body) for body in stage.model.asked(marker))
    billed = await session.usage()
    # What was asked beside the turns counts for its model too.
    assert list(billed.by_model.values()) == [billed.usage]
    assert (await session.mind()).task["complexity"] == "complex"


async def test_short_turns_without_colour_are_low_engagement_and_long_ones_are_not(
    stage: Stage,
) -> None:
    session = stage.session(persona="attentive", user_id="mind-pia")
    found: list[list[str]] = []
    long = "The table stands in the kitchen. " * 300
    for said in ["ok", "the table?", "a chair", "the lamp", long, "a cat", "a dog", "a cow"]:
        marker, text = marked(said)
        stage.model.on(marker, Text("I see."))
        output = await session.send(text)
        entries = await trace_of(session, output.turn)
        found.append([e.details["event"] for e in entries if e.details.get("event")])
    low = ["low_engagement"]
    assert found == [[], [], [], low, [], [], [], low]
    trends = (await session.mind()).sentiment["trends"]
    assert [trend["length"] for trend in trends[3:6]] == [20, 8192, 17]
    assert all(trend["length"] < 50 for trend in trends if trend is not trends[4])


async def test_memories_are_tagged_with_who_spoke_to_whom_and_about_what(stage: Stage) -> None:
    session = stage.session(persona="explaining", user_id="mind-quin")
    marker, text = marked("My compass is blue")
    stage.model.on(marker, Text("Blue it is."))
    await session.send(text)
    other, later = marked("My ruler is red")
    stage.model.on(other, Text("Red it is."))
    await session.settle()
    await session.send(later, task_context={"domain": "law"})
    await session.settle()
    kept = [await session.memory.show(item["id"]) async for item in session.memory.list()]
    tags = {item["content"].removesuffix(f" {marker}"): item["tags"] for item in kept}
    assert tags["My compass is blue"] == ["user", "explaining", "mind-quin", "geometry"]
    assert tags["Blue it is."] == ["assistant", "explaining", "mind-quin", "geometry"]
    assert tags[later] == ["user", "explaining", "mind-quin", "law"]
