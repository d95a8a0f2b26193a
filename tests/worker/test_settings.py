"""What the environment says, and what it may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gmi.personas.errors import ConfigurationError
from gmi.personas.learning import LearningSettings, Switches
from gmi.worker import Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()


def test_every_variable_is_read() -> None:
    settings = Settings.from_environment(
        {
            "GMI_TASK_QUEUE": "minds",
            "GMI_DATABASE_URL": "postgresql://db/minds",
            "GMI_PERSONAS": "/personas",
            "DEFAULT_PERSONA_ID": "tutor",
            "GMI_TOOLS": "shop.tools, desk.tools",
            "GMI_BUILTIN_TOOLS": "no",
            "GMI_CREDENTIALS": "TEAM_KEY",
            "TEAM_KEY": "k",
            "OPENAI_API_KEY": "o",
            "GMI_SHUTDOWN_TIMEOUT": "7",
            "GMI_MODEL_IDLE_TIMEOUT": "8.5",
            "GMI_CACHED_SESSIONS": "9",
            "GMI_DEPLOYMENT": "minds/7",
            "GMI_LEARNING": "frozen",
            "UNRELATED": "x",
        }
    )
    assert settings.task_queue == "minds"
    assert settings.database_url == "postgresql://db/minds"
    assert settings.personas == Path("/personas")
    assert settings.default_persona == "tutor"
    assert settings.tools == ("shop.tools", "desk.tools")
    assert settings.builtin_tools is False
    assert settings.credentials == {"TEAM_KEY": "k"}
    assert settings.providers == {"OPENAI_API_KEY": "o"}
    assert settings.shutdown_timeout == 7
    assert settings.idle_timeout == 8.5
    assert settings.cached_sessions == 9
    assert settings.deployment == ("minds", "7")
    assert settings.learning == LearningSettings(mode="frozen")
    assert settings.switches == Switches()


def test_keys_are_not_shown_when_settings_are_printed() -> None:
    settings = Settings.from_environment({"OPENAI_API_KEY": "sk-very-secret"})
    assert "sk-very-secret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GMI_SHUTDOWN_TIMEOUT", "soon"),
        ("GMI_MODEL_IDLE_TIMEOUT", "-1"),
        ("GMI_CREDENTIALS", "NOT_SET"),
        ("GMI_DEPLOYMENT", "only-a-name"),
        ("GMI_LEARNING", "sometimes"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Settings.from_environment({name: value})


@pytest.mark.parametrize("name", ["AGENTOS_LEARNING_OFF", "GMI_LEARNING_OFF"])
def test_learning_is_switched_off_under_either_name(name: str) -> None:
    switches = Settings.from_environment({name: "1"}).switches
    assert (switches.off_by, switches.frozen) == (name, False)


@pytest.mark.parametrize("name", ["AGENTOS_LEARNING_FREEZE", "GMI_LEARNING_FREEZE"])
def test_learning_is_frozen_under_either_name(name: str) -> None:
    switches = Settings.from_environment({name: "1"}).switches
    assert (switches.off_by, switches.frozen_by) == (None, name)


@pytest.mark.parametrize("value", ["", "0", "true", "yes", " 1"])
def test_a_switch_of_learning_takes_no_other_value(value: str) -> None:
    environ = {"AGENTOS_LEARNING_OFF": value, "GMI_LEARNING_FREEZE": value}
    assert Settings.from_environment(environ).switches == Switches()
