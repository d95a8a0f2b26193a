"""Whom a session learns about, and whether it may."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gmi.personas.errors import ConfigurationError
from gmi.personas.learning import (
    Binding,
    LearnerKey,
    LearningSettings,
    Mode,
    Switches,
    TurnLearning,
    bind,
    bind_key,
    learner_of_turn,
    mode_in_force,
    refusal,
)
from gmi.personas.loops import HOST_LOOPS, Loop, TurnCounts, manifest
from gmi.personas.schema import Persona

GATE = json.loads((Path(__file__).parent / "data" / "learning_gate.json").read_text())
ON = LearningSettings()
ADA = LearnerKey(namespace="acme", agent="tutor", user="ada")


@pytest.mark.parametrize(("frozen", "mode", "learner", "reason"), GATE["cases"])
def test_the_gate_looks_at_the_freeze_then_the_mode_then_the_learner(
    frozen: bool, mode: Any, learner: Any, reason: str | None
) -> None:
    assert refusal(frozen, mode, learner) == reason


@pytest.mark.parametrize(
    ("configured", "off_by", "frozen_by", "mode", "set_by"),
    [
        ("on", None, None, "on", "config"),
        ("on", "GMI_LEARNING_OFF", None, "off", "GMI_LEARNING_OFF"),
        ("on", None, "AGENTOS_LEARNING_FREEZE", "frozen", "AGENTOS_LEARNING_FREEZE"),
        ("frozen", None, "AGENTOS_LEARNING_FREEZE", "frozen", "config"),
        ("off", None, "AGENTOS_LEARNING_FREEZE", "off", "config"),
        ("frozen", "AGENTOS_LEARNING_OFF", "GMI_LEARNING_FREEZE", "off", "AGENTOS_LEARNING_OFF"),
    ],
)
def test_a_switch_of_the_process_counts_more_than_the_settings(
    configured: Mode, off_by: str | None, frozen_by: str | None, mode: str, set_by: str
) -> None:
    found = mode_in_force(
        LearningSettings(mode=configured), Switches(off_by=off_by, frozen_by=frozen_by)
    )
    assert (found.mode, found.set_by) == (mode, set_by)


def test_a_session_is_bound_to_its_agent_and_user_in_its_organization() -> None:
    binding = bind(ON, persona_id="tutor", user="ada", namespace="acme")
    assert binding.key == ADA
    own = LearningSettings(agent_key="coach", namespace="everywhere")
    assert bind(own, persona_id="tutor", user="ada", namespace="acme").key == LearnerKey(
        namespace="everywhere", agent="coach", user="ada"
    )


@pytest.mark.parametrize("user", ["", "   ", "anonymous_user", "anonymous", "system", "guest"])
def test_a_placeholder_is_no_learner(user: str) -> None:
    assert bind(ON, persona_id="tutor", user=user).reason == "anonymous"
    assert bind_key(ON, LearnerKey(agent="tutor", user=user), "anonymous").key is None


def test_a_host_names_placeholders_of_its_own() -> None:
    settings = LearningSettings(anonymous_user_ids=("kiosk",))
    assert bind(settings, persona_id="tutor", user="kiosk").key is None
    assert bind(settings, persona_id="tutor", user="guests").key is not None


def test_an_agent_without_a_name_and_a_workflows_seat_have_no_learner() -> None:
    assert bind(ON, persona_id=None, user="ada").reason == "no_agent"
    assert bind(ON, persona_id="tutor", user="ada", seat=True).reason == "workflow_seat"
    assert bind_key(ON, LearnerKey(agent=" ", user="ada"), "ended").reason == "no_agent"
    assert bind_key(ON, None, "workflow_seat").reason == "workflow_seat"


@pytest.mark.parametrize(
    ("user", "namespace", "reason"),
    [("bob", "acme", "other_user"), ("ada", "globex", "other_namespace")],
)
@pytest.mark.parametrize("seat", [False, True])
def test_somebody_else_ends_the_learner_for_good(
    user: str, namespace: str, reason: str, seat: bool
) -> None:
    binding = bind(ON, persona_id="tutor", user="ada", namespace="acme")
    turn = learner_of_turn(binding, user=user, namespace=namespace, seat=seat)
    assert (turn.key, turn.reason) == (None, reason)
    later = learner_of_turn(turn.binding, user="ada", namespace="acme")
    assert (later.key, later.reason) == (None, "ended")


def test_a_workflows_turn_of_the_same_user_leaves_the_learner_to_the_next_turn() -> None:
    binding = bind(ON, persona_id="tutor", user="ada", namespace="acme")
    turn = learner_of_turn(binding, user="ada", namespace="acme", seat=True)
    assert (turn.key, turn.reason) == (None, "workflow_seat")
    assert learner_of_turn(turn.binding, user="ada", namespace="acme").key == ADA


def test_settings_are_read_in_every_form() -> None:
    assert LearningSettings.read(None) is None
    assert LearningSettings.read(False) is None
    assert LearningSettings.read(True) == ON
    assert LearningSettings.read({"agentKey": "coach"}) == LearningSettings(agent_key="coach")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"mode": "sometimes"}, "learning.mode"),
        ({"agentKey": "  "}, "learning.agentKey"),
        ({"memory": True}, "learning.memory"),
        ({"traits": "much"}, "learning.traits"),
        ("on", "learning is 'on'"),
    ],
)
def test_a_wrong_setting_is_named(given: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        LearningSettings.read(given)


def test_what_a_turn_is_told_survives_being_carried() -> None:
    told = TurnLearning(
        mode="on", learner="bound", key=ADA, binding=Binding(key=ADA, user="ada"), learned={"o": 1}
    )
    assert TurnLearning.model_validate_json(told.model_dump_json()) == told
    assert told.told() == TurnLearning(mode="on", learner="bound", key=ADA)


def test_a_persona_says_whether_it_learns() -> None:
    facts = {"id": "p", "name": "P", "description": "d", "version": "1.0.0"}
    whole = Persona.model_validate({**facts, "baseSystemPrompt": "x", "learning": True})
    assert whole.learning == ON
    assert Persona.from_json(whole.to_json()) == whole
    never = Persona.model_validate({**facts, "baseSystemPrompt": "x", "learning": False})
    assert Persona.from_json(never.to_json()).learning is False
    silent = Persona.model_validate({**facts, "baseSystemPrompt": "x"})
    assert silent.learning is None


def test_the_manifest_names_every_loop_and_why_one_is_off() -> None:
    settings = LearningSettings(lessons=True)
    said = manifest(
        settings,
        mode_in_force(settings, Switches()),
        surface="custom",
        profile="mine",
        keeps=True,
        host={"memory": Loop(live="varies")},
        turns=TurnCounts(prepared=2, bound=1, none={"anonymous": 1}),
    )
    assert set(said.loops) == {
        *HOST_LOOPS,
        "personality_rendering",
        "outcomes",
        "trait_changes",
        "lessons",
        "skills",
        "ledger",
    }
    assert said.loops["memory"].live == "varies"
    assert {name for name, loop in said.loops.items() if loop.live is True} == {
        "personality_rendering",
        "ledger",
    }
    assert all(loop.detail for loop in said.loops.values() if loop.live is False)
    assert "asked for" in (said.loops["lessons"].detail or "")
    assert not said.guardrails.complete
    assert (said.mode, said.mode_set_by) == ("on", "config")


@pytest.mark.parametrize(
    ("mode", "keeps", "live"), [("on", True, True), ("off", True, False), ("on", False, False)]
)
def test_trait_changes_are_a_loop_when_they_are_asked_for_and_kept(
    mode: Mode, keeps: bool, live: bool
) -> None:
    settings = LearningSettings(traits=True, mode=mode)
    said = manifest(
        settings,
        mode_in_force(settings, Switches()),
        surface="gmi",
        profile="x",
        keeps=keeps,
        host={},
        turns=TurnCounts(),
    )
    assert said.loops["trait_changes"].live is live
