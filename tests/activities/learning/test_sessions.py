"""Learning in a worker's sessions: who has a layer, and what a prompt is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gmi.activities.learning import Learning, prompt_parts
from gmi.activities.learning.store import Call, Draft
from gmi.personas.learning import LearningSettings, TurnLearning
from gmi.personas.messages import Message
from gmi.personas.prompt import assemble
from gmi.personas.schema import Persona
from gmi.personas.self_changes import Holder
from gmi.workflows.steps import At, LearnOrder, OpenTurn, RunStep, Segment

from .keeping import BrokenLearning, MemoryLearning, SilentLearning

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDER = LearnOrder(org="acme")


def persona(**fields: Any) -> Persona:
    facts: dict[str, Any] = {
        "id": "tutor",
        "name": "Tutor",
        "description": "d",
        "version": "1.0.0",
        "baseSystemPrompt": "You teach.",
        "personalityTraits": {"openness": 0.9, "humor": "dry"},
    }
    return Persona.model_validate(facts | fields)


async def prepare(learning: Learning, who: Persona, order: LearnOrder = ORDER) -> Any:
    return await learning.prepare(who, order, session="s1", user="ada", now=NOW.timestamp())


def step(**changes: Any) -> RunStep:
    facts: dict[str, Any] = {
        "at": At(session="s1", turn="t1", counter=1, now=NOW, run="r"),
        "step": 0,
        "persona_digest": "p",
        "toolset_digest": "t",
        "user_id": "ada",
    }
    return RunStep(**facts | changes)


async def test_a_persona_without_learning_is_told_nothing() -> None:
    assert await prepare(Learning(MemoryLearning()), persona()) is None


async def test_a_persona_learns_as_it_says_itself_or_as_the_worker_says() -> None:
    learning = Learning(MemoryLearning(), default=LearningSettings(mode="frozen"))
    assert (await prepare(learning, persona())).mode == "frozen"
    assert (await prepare(learning, persona(learning=True))).mode == "on"
    assert await prepare(learning, persona(learning=False)) is None


async def test_a_session_is_bound_by_its_first_turn_and_stays_so() -> None:
    learning = Learning(MemoryLearning())
    first = await prepare(learning, persona(learning=True))
    assert first.key.agent == "tutor"
    assert first.key.namespace == "acme"
    moved = LearnOrder(org="globex", binding=first.binding)
    second = await prepare(learning, persona(learning=True), moved)
    assert (second.learner, second.reason) == ("none", "other_namespace")
    third = await prepare(
        learning, persona(learning=True), LearnOrder(org="acme", binding=second.binding)
    )
    assert third.reason == "ended"


async def test_the_prompt_holds_the_personality_once_and_the_same_bytes() -> None:
    who = persona(learning=True)
    turn = await prepare(Learning(MemoryLearning()), who)
    plain = assemble(
        who, [], [Message(role="user", content="hi")], window_tokens=8000, model="offline:echo"
    )
    shown, sections = prompt_parts(who, turn)
    learned = assemble(
        shown,
        [],
        [Message(role="user", content="hi")],
        window_tokens=8000,
        model="offline:echo",
        extra_sections=sections,
    )
    assert learned.messages == plain.messages
    assert learned.sections == ["base", "personality"]


async def test_later_steps_are_told_what_the_opening_was() -> None:
    learning = Learning(MemoryLearning())
    who = persona(learning=True)
    opening = OpenTurn(
        seq=1,
        request_id="r",
        digest="d",
        kind="text",
        parent=None,
        segment=Segment(branch="main", depth=1),
        created_at=NOW,
        learn=ORDER,
    )
    first = await learning.for_step(step(opening=opening), who)
    assert first is not None
    assert first.learner == "bound"
    carried = TurnLearning.model_validate_json(first.model_dump_json())
    assert await learning.for_step(step(step=1, learning=carried), who) == first
    assert await learning.for_step(step(step=1), who) is None


async def test_without_a_layer_a_sessions_own_changes_hold_for_it() -> None:
    store = MemoryLearning()
    who = persona(emergent={"selfImprovement": {"enabled": True}})
    draft = Draft("trait", "openness", delta=0.1, rate=0.05)
    await store.make(Call("k", Holder("s1"), "t", 0, NOW.timestamp()), lambda _: draft)
    turn = await prepare(Learning(store), who)
    assert (turn.mode, turn.learner, turn.learned) == (None, "none", {"openness": 0.1})
    shown, sections = prompt_parts(who, turn)
    assert shown is who
    assert sections == []


@pytest.mark.parametrize(
    ("store", "why"), [(SilentLearning(), "within 0.05 s"), (BrokenLearning(), "database is down")]
)
async def test_without_a_layer_a_store_that_fails_is_a_warning(
    store: MemoryLearning, why: str
) -> None:
    who = persona(emergent={"selfImprovement": {"enabled": True}})
    turn = await prepare(Learning(store, timeout=0.05), who)
    assert turn.learned == {}
    [warning] = turn.warnings
    assert warning.startswith("LEARNING_UNAVAILABLE")
    assert why in warning


async def test_the_manifest_of_a_persona_that_was_changed_tells_of_the_change() -> None:
    learning = Learning(MemoryLearning())
    for enabled in (False, True):
        said = learning.manifest(persona(learning=True, memoryConfig={"enabled": enabled}))
        assert said is not None
        assert said.loops["memory"].live is enabled


async def test_a_sessions_manifest_says_what_its_persona_runs() -> None:
    learning = Learning(MemoryLearning())
    assert learning.manifest(persona()) is None
    who = persona(
        learning={"traits": True},
        emergent={"selfImprovement": {"enabled": True}},
        memoryConfig={"enabled": True},
    )
    said = learning.manifest(who)
    assert said is not None
    live = {name for name, loop in said.loops.items() if loop.live is True}
    assert {"memory", "self_improvement_tools", "trait_changes", "ledger"} <= live
    assert said.loops["forged_code_executor"].live is False
    assert said.loops["hitl"].live == "varies"
