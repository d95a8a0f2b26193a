"""The worker's settings; nothing else in the project reads the environment.

The connection to Temporal is not here: ``temporalio.envconfig`` reads its variables and profiles.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..activities.gateway.registry import KNOWN_PROVIDERS
from ..personas.builtin import DEFAULT_PERSONA_ID
from ..personas.errors import ConfigurationError
from ..personas.learning import LearningSettings, Switches

TASK_QUEUE = "gmi"
DATA_DIRECTORY = Path(".gmi")

LEARNING_OFF = ("AGENTOS_LEARNING_OFF", "GMI_LEARNING_OFF")
LEARNING_FREEZE = ("AGENTOS_LEARNING_FREEZE", "GMI_LEARNING_FREEZE")
"""Either name of a switch throws it, with the value ``1`` and no other."""


@dataclass(frozen=True)
class Settings:
    """What a worker is told.

    Attributes:
        task_queue: ``GMI_TASK_QUEUE``.
        database_url: ``GMI_DATABASE_URL``; a SQLite file in ``.gmi`` without one.
        personas: ``GMI_PERSONAS``: a directory of JSON files; the built-in ones without it.
        default_persona: ``DEFAULT_PERSONA_ID``.
        tools: ``GMI_TOOLS``: modules, comma-separated, whose tools are served.
        builtin_tools: ``GMI_BUILTIN_TOOLS``: whether the built-in tools are served, default yes.
        providers: Keys and base URLs of the providers, by the names of their variables.
        credentials: Values of the variables that ``GMI_CREDENTIALS`` lists, comma-separated;
            only these may be named by a session's ``env:NAME``.
        shutdown_timeout: ``GMI_SHUTDOWN_TIMEOUT``: seconds that running activities may finish.
        idle_timeout: ``GMI_MODEL_IDLE_TIMEOUT``: seconds without a byte from a provider.
        embedding_model: ``GMI_EMBEDDING_MODEL``: ``provider:model`` that turns memories into
            vectors, ``auto`` for the first one that is set up; without it words alone find them.
        offline_delay: ``GMI_OFFLINE_DELAY``: seconds between two words of the offline model.
        cached_sessions: ``GMI_CACHED_SESSIONS``: sessions kept in memory between turns.
        learning: ``GMI_LEARNING``: ``on``, ``frozen`` or ``off``, the mode of a learning layer for
            personas that do not say themselves whether they learn; without it they have none.
        switches: ``AGENTOS_LEARNING_OFF`` or ``GMI_LEARNING_OFF`` switches every learning layer of
            the process off, ``AGENTOS_LEARNING_FREEZE`` or ``GMI_LEARNING_FREEZE`` freezes it and
            refuses every self-modification; each when it is ``1``.
        deployment: ``GMI_DEPLOYMENT``: ``name/build``, where workers are versioned; sessions then
            move to the newest build by themselves.
        user: ``GMI_USER``: who speaks on the command line.
        dev_port: ``GMI_DEV_PORT``: the port that the development server takes when it is free,
            and where the command line looks for a server when none is configured.
    """

    task_queue: str = TASK_QUEUE
    database_url: str = f"sqlite:///{DATA_DIRECTORY / 'gmi.db'}"
    personas: Path | None = None
    default_persona: str = DEFAULT_PERSONA_ID
    tools: tuple[str, ...] = ()
    builtin_tools: bool = True
    providers: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    shutdown_timeout: float = 25.0
    idle_timeout: float = 60.0
    embedding_model: str | None = None
    offline_delay: float = 0.0
    cached_sessions: int = 1000
    learning: LearningSettings | None = None
    switches: Switches = field(default_factory=Switches)
    deployment: tuple[str, str] | None = None
    user: str = "local"
    dev_port: int = 7233

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """The settings that the environment holds.

        Raises:
            ConfigurationError: A variable has a value that cannot be used.
        """
        env = os.environ if environ is None else environ
        defaults = cls()
        names = {
            name
            for known in KNOWN_PROVIDERS.values()
            for name in (*known.key_settings, *known.url_settings)
        }
        directory = env.get("GMI_PERSONAS", "").strip()
        allowed = _listed(env.get("GMI_CREDENTIALS", ""))
        missing = [name for name in allowed if not env.get(name)]
        if missing:
            raise ConfigurationError(
                f"GMI_CREDENTIALS names {', '.join(missing)}, which is not set; set it or leave "
                "it out.",
                details={"missing": missing},
            )
        return cls(
            task_queue=env.get("GMI_TASK_QUEUE") or defaults.task_queue,
            database_url=env.get("GMI_DATABASE_URL") or defaults.database_url,
            personas=Path(directory) if directory else None,
            default_persona=env.get("DEFAULT_PERSONA_ID") or defaults.default_persona,
            tools=_listed(env.get("GMI_TOOLS", "")),
            builtin_tools=env.get("GMI_BUILTIN_TOOLS", "1").lower() not in ("0", "false", "no"),
            providers={name: env[name] for name in sorted(names) if env.get(name)},
            credentials={name: env[name] for name in allowed},
            shutdown_timeout=_number(env, "GMI_SHUTDOWN_TIMEOUT", defaults.shutdown_timeout),
            idle_timeout=_number(env, "GMI_MODEL_IDLE_TIMEOUT", defaults.idle_timeout),
            embedding_model=env.get("GMI_EMBEDDING_MODEL", "").strip() or None,
            offline_delay=_number(env, "GMI_OFFLINE_DELAY", defaults.offline_delay),
            cached_sessions=int(
                _number(env, "GMI_CACHED_SESSIONS", float(defaults.cached_sessions))
            ),
            learning=_learning(env.get("GMI_LEARNING", "")),
            switches=learning_switches(env),
            deployment=_deployment(env.get("GMI_DEPLOYMENT", "")),
            user=env.get("GMI_USER", "").strip() or defaults.user,
            dev_port=int(_number(env, "GMI_DEV_PORT", float(defaults.dev_port))),
        )


def learning_switches(environ: Mapping[str, str] | None = None) -> Switches:
    """What the process is told about every learning layer in it."""
    env = os.environ if environ is None else environ
    thrown = [
        next((name for name in names if env.get(name) == "1"), None)
        for names in (LEARNING_OFF, LEARNING_FREEZE)
    ]
    return Switches(off_by=thrown[0], frozen_by=thrown[1])


def _learning(value: str) -> LearningSettings | None:
    mode = value.strip().lower()
    if not mode:
        return None
    if mode not in ("on", "frozen", "off"):
        raise ConfigurationError(f"GMI_LEARNING is {value!r}; set on, frozen or off.")
    return LearningSettings.read({"mode": mode})


def _listed(value: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in value.split(",") if item.strip())


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    value = env.get(name, "").strip()
    if not value:
        return default
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise ConfigurationError(f"{name} is {value!r}; set a number from 0 to below 1000000.")
    return number


def _deployment(value: str) -> tuple[str, str] | None:
    if not value.strip():
        return None
    name, _, build = value.strip().partition("/")
    if not name or not build:
        raise ConfigurationError(f"GMI_DEPLOYMENT is {value!r}; set it as name/build.")
    return name, build
