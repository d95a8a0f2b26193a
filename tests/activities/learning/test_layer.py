"""The learning layer: what a turn is told, whatever happens."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gmi.activities.learning import LearnerContext, LearningLayer, create_learning_layer
from gmi.activities.learning.store import Call, Draft, LearningStore
from gmi.personas.errors import ConfigurationError
from gmi.personas.learning import LearnerKey, Switches
from gmi.personas.personality import personality_section
from gmi.personas.self_changes import Holder
from gmi.personas.self_improvement import EmergentConfig, Skill
from gmi.worker import create_learning_layer as create_with_switches

from .keeping import BrokenLearning, MemoryLearning, SilentLearning

KEY = LearnerKey(namespace="acme", agent="support", user="user-42")
TRAITS = {"honesty": 0.9, "extraversion": 0.5}
CONTEXT = LearnerContext("session-1", "support", TRAITS)
NOON = 20_000 * 86400.0 + 43200.0
AUTHORED = personality_section(TRAITS)


async def learn(store: MemoryLearning, kind: Any, name: str, **fields: Any) -> None:
    draft = Draft(kind, name, fields.pop("data", {}), **fields)
    key = f"{kind}-{name}-{len(store.kept)}"
    await store.make(Call(key, Holder("before", KEY), "t", 0, NOON), lambda _: draft)


async def prepared(layer: LearningLayer, key: LearnerKey | None = KEY, **turn: Any) -> Any:
    learner = await layer.for_learner(key, turn.pop("context", CONTEXT))
    facts = {"user": "user-42", "namespace": "acme", "now": NOON} | turn
    return await learner.prepare_turn(**facts)


async def test_a_turn_of_a_learner_has_the_authored_personality_at_its_place() -> None:
    turn = await prepared(create_learning_layer())
    [piece] = turn.pieces
    assert (piece.name, piece.priority, piece.text) == ("personality", 2, AUTHORED)
    assert (turn.learner, turn.mode, turn.reason, turn.key) == ("bound", "on", None, KEY)


async def test_a_persona_whose_traits_are_all_in_the_middle_has_no_section() -> None:
    plain = LearnerContext("s", "support", {"openness": 0.5})
    assert (await prepared(create_learning_layer(), context=plain)).pieces == ()


async def test_every_mode_shows_the_authored_traits_unless_learned_ones_are_asked_for() -> None:
    store = MemoryLearning()
    await learn(store, "trait", "extraversion", delta=0.2)
    for mode in ("on", "frozen", "off"):
        turn = await prepared(create_learning_layer({"mode": mode}, store=store))
        assert [piece.text for piece in turn.pieces] == [AUTHORED]
        assert turn.mode == mode


@pytest.mark.parametrize(("mode", "shown"), [("on", True), ("frozen", True), ("off", False)])
async def test_learned_traits_are_shown_where_they_are_asked_for(mode: str, shown: bool) -> None:
    store = MemoryLearning()
    await learn(store, "trait", "extraversion", delta=0.2)
    turn = await prepared(create_learning_layer({"mode": mode, "traits": True}, store=store))
    learned = personality_section({"honesty": 0.9, "extraversion": 0.7})
    assert [piece.text for piece in turn.pieces] == [learned if shown else AUTHORED]
    assert turn.learned == ({"extraversion": 0.2} if shown else {})


async def test_what_was_learned_fades_and_then_shows_no_more() -> None:
    store = MemoryLearning()
    await learn(store, "trait", "extraversion", delta=0.2, rate=0.05)
    layer = create_learning_layer({"traits": True}, store=store)
    week = await prepared(layer, now=NOON + 7 * 86400)
    assert week.learned == {"extraversion": 0.13}
    assert [piece.text for piece in week.pieces] == [AUTHORED]


async def test_a_turn_without_a_learner_knows_nothing_and_asks_nothing() -> None:
    store = MemoryLearning()
    await learn(store, "param", "verbosity", data={"value": "concise"})
    layer = create_learning_layer({"traits": True}, store=store)
    assert (await prepared(layer)).params == {"verbosity": "concise"}
    reads = store.reads
    turn = await prepared(layer, None)
    assert (turn.learner, turn.reason, turn.params, turn.learned) == ("none", "anonymous", {}, {})
    assert [piece.text for piece in turn.pieces] == [AUTHORED]
    assert store.reads == reads


async def test_the_host_says_why_it_passes_no_learner() -> None:
    context = LearnerContext("s", no_learner_reason="workflow_seat")
    turn = await prepared(create_learning_layer(), None, context=context)
    assert turn.reason == "workflow_seat"


async def test_somebody_else_ends_the_learner_of_a_session() -> None:
    learner = await create_learning_layer().for_learner(KEY, CONTEXT)
    facts: dict[str, Any] = {"namespace": "acme", "now": NOON}
    workflow = await learner.prepare_turn(user="user-42", workflow_seat=True, **facts)
    first = await learner.prepare_turn(user="user-42", **facts)
    other = await learner.prepare_turn(user="user-43", **facts)
    later = await learner.prepare_turn(user="user-42", **facts)
    found = [turn.reason for turn in (workflow, first, other, later)]
    assert found == ["workflow_seat", None, "other_user", "ended"]


async def test_an_ended_session_has_no_learner() -> None:
    learner = await create_learning_layer().for_learner(KEY, CONTEXT)
    await learner.end_session()
    turn = await learner.prepare_turn(user="user-42", namespace="acme", now=NOON)
    assert (turn.learner, turn.reason) == ("none", "ended")


@pytest.mark.parametrize(
    ("store", "why"), [(SilentLearning(), "within 0.05 s"), (BrokenLearning(), "database is down")]
)
async def test_a_turn_goes_on_without_its_learner_when_nothing_can_be_read(
    store: LearningStore, why: str
) -> None:
    layer = create_learning_layer({"traits": True}, store=store, timeout=0.05)
    turn = await prepared(layer)
    assert (turn.learner, turn.reason, turn.mode) == ("none", "failed", "on")
    assert [piece.text for piece in turn.pieces] == [AUTHORED]
    [warning] = turn.warnings
    assert warning.startswith("LEARNING_UNAVAILABLE")
    assert why in warning
    learner = await layer.for_learner(KEY, CONTEXT)
    again = await learner.prepare_turn(user="user-42", namespace="acme", now=NOON)
    assert again.binding is not None
    assert again.binding.key == KEY


async def test_switches_of_the_process_hold_for_every_layer() -> None:
    off = create_learning_layer(switches=Switches(off_by="GMI_LEARNING_OFF"))
    assert (await prepared(off)).mode == "off"
    frozen = create_learning_layer(switches=Switches(frozen_by="GMI_LEARNING_FREEZE"))
    assert (await prepared(frozen)).mode == "frozen"
    said = off.manifest()
    assert (said.mode, said.mode_set_by) == ("off", "GMI_LEARNING_OFF")


async def test_a_layer_of_ones_own_takes_switches_in_place_of_its_environments() -> None:
    layer = create_with_switches(switches=Switches(frozen_by="AGENTOS_LEARNING_FREEZE"))
    assert (layer.mode.mode, layer.mode.set_by) == ("frozen", "AGENTOS_LEARNING_FREEZE")


async def test_the_manifest_counts_turns_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    layer = create_learning_layer()
    with caplog.at_level(logging.INFO, "gmi.learning"):
        await prepared(layer)
        await prepared(layer, None)
        await prepared(layer, namespace="globex")
    turns = layer.manifest().turns
    assert (turns.prepared, turns.bound) == (3, 1)
    assert turns.none == {"anonymous": 1, "other_namespace": 1}
    assert len([r for r in caplog.records if r.name == "gmi.learning"]) == 1


async def test_skills_and_forged_tools_are_told_to_the_turn() -> None:
    emergent = EmergentConfig(
        skills=(
            Skill(id="chess", name="Chess", instructions="Think three moves ahead."),
            Skill(id="go", name="Go", instructions="Play away from thickness."),
        )
    )
    store = MemoryLearning()
    layer = create_learning_layer(store=store)
    context = LearnerContext("s", "support", {}, emergent=emergent)
    assert (await prepared(layer, context=context)).pieces == ()
    made = await layer.switch_skill(KEY, "chess", True, now=NOON, request="r1")
    assert await layer.switch_skill(KEY, "chess", True, now=NOON, request="r1") == made
    await learn(store, "tool", "slugify", data={"description": "makes slugs"})
    pieces = (await prepared(layer, context=context)).pieces
    assert [piece.name for piece in pieces] == ["skills", "forged_tools"]
    assert "three moves" in pieces[0].text
    assert "thickness" not in pieces[0].text
    assert "slugify: makes slugs" in pieces[1].text
    off = await prepared(create_learning_layer({"mode": "off"}, store=store), context=context)
    assert off.pieces == ()


async def test_a_closed_layer_opens_no_session() -> None:
    layer = create_learning_layer()
    await layer.close()
    with pytest.raises(ConfigurationError, match="closed"):
        await layer.for_learner(KEY, CONTEXT)


def test_no_layer_is_made_of_learning_that_is_off() -> None:
    with pytest.raises(ConfigurationError, match="learning is off"):
        create_learning_layer(False)
