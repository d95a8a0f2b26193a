"""One worker for all tests of this folder; the scripted model plays every provider.

Tests tell their prompts apart by their words, and keep to providers of their own where they make
one fail, since circuits are the worker's.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gmi.worker import Client, GMIPlugin, Settings

from ..conftest import Stage
from ..support.scripted_model import ScriptedModel
from ..support.temporal_server import TemporalServer

PROVIDERS = (
    "openai",
    "groq",
    "together",
    "xai",
    "mistral",
    "deepseek",
    "openrouter",
    "vllm",
    "ollama",
    "openai-compatible",
    "anthropic",
)
"""Providers that have a key and answer here. Gemini has no key."""

SECRET = "sk-secret-0123456789abcdef"
"""Every provider's key begins like this; it may be found nowhere."""

PERSONAS: list[dict[str, Any]] = [
    {"id": "plain", "baseSystemPrompt": "BASE"},
    {
        "id": "tuned",
        "baseSystemPrompt": "BASE",
        "defaultModelCompletionOptions": {"temperature": 0.2, "maxTokens": 300, "topP": 0.9},
    },
    {"id": "brief", "baseSystemPrompt": "BASE", "memoryConfig": {}, "toolIds": ["echo"]},
    {"id": "locked", "baseSystemPrompt": "BASE", "allowedUserIds": ["ada"]},
    {
        "id": "mindful",
        "baseSystemPrompt": "BASE",
        "memoryConfig": {"enabled": True, "cognitiveMechanisms": {}},
    },
    {
        "id": "defending",
        "baseSystemPrompt": "BASE",
        "memoryConfig": {"enabled": True, "lifecycleConfig": {"negotiationEnabled": True}},
    },
    {
        "id": "feeling",
        "baseSystemPrompt": "BASE",
        "emotionConfig": {"enabled": True},
        "personalityTraits": {"emotionality": 0.7},
        "memoryConfig": {"enabled": True, "cognitiveMechanisms": {}},
        "toolIds": ["echo", "flaky"],
    },
    {
        "id": "judging",
        "name": "Judith",
        "description": "A judge of cakes.",
        "baseSystemPrompt": "BASE",
        "emotionConfig": {"enabled": True, "appraise": True},
        "memoryConfig": {"enabled": True, "cognitiveMechanisms": {}},
    },
    {
        "id": "situated",
        "baseSystemPrompt": "BASE",
        "personalityTraits": {"openness": 0.5, "extraversion": 0.5},
        "moodAdaptation": {"enabled": True, "sensitivityFactor": 1},
        "contextualPromptElements": [
            {"id": "focus", "content": "KEEP TO IT", "criteria": {"mood": "focused"}},
            {
                "id": "expert",
                "content": "SKIP THE BASICS",
                "criteria": {"userSkillLevel": "expert", "taskComplexity": "complex"},
            },
        ],
        "metaPrompts": [
            {
                "id": "gmi_self_trait_adjustment",
                "promptTemplate": "INNER {{user_context}} {{task_context}} {{recent_conversation}}",
                "trigger": {"type": "manual"},
            },
        ],
    },
    {
        "id": "attentive",
        "baseSystemPrompt": "BASE",
        "personalityTraits": {"openness": 0.5},
        "sentimentTracking": {"enabled": True, "presets": ["frustration_recovery"]},
        "moodAdaptation": {"enabled": True, "sensitivityFactor": 1},
        "contextualPromptElements": [
            {"id": "soft", "content": "TREAD SOFTLY", "criteria": {"mood": "empathetic"}},
            {
                "id": "expert",
                "content": "SKIP THE BASICS",
                "criteria": {"userSkillLevel": "expert"},
            },
        ],
        # In few words: longer ones would hold words that scripts of other tests wait for.
        "metaPrompts": [
            {
                "id": "gmi_frustration_recovery",
                "promptTemplate": "INNER {{consecutive_frustration}} {{recent_conversation}}",
                "trigger": {"type": "event_based", "eventName": "user_frustrated"},
                "outputSchema": {"required": ["recoveryStrategy"]},
            },
            {
                "id": "gmi_self_trait_adjustment",
                "promptTemplate": "INNER {{recent_conversation}}",
                "trigger": {"type": "manual"},
            },
        ],
    },
    {"id": "changing", "baseSystemPrompt": "FIRST VERSION"},
    {
        "id": "explaining",
        "baseSystemPrompt": "BASE",
        "strengths": ["geometry", "drawing"],
        "sentimentTracking": {"enabled": True, "presets": ["confusion_clarification"]},
        "memoryConfig": {"enabled": True},
        "metaPrompts": [
            {
                "id": "gmi_confusion_clarification",
                "promptTemplate": "LOST BY {{confusion_keywords}}. {{recent_conversation}}",
                "trigger": {"type": "event_based", "eventName": "user_confused"},
            },
        ],
    },
    *(
        {
            "id": name,
            "baseSystemPrompt": "BASE",
            "personalityTraits": {"openness": 0.9, "extraversion": 0.64, "agreeableness": 0.5},
            "toolIds": ["echo", "charge", "meet"],
            "learning": learning,
            "emergent": {
                "selfImprovement": {"enabled": True},
                "skills": [
                    {"id": "chess", "name": "Chess", "category": "games", "enabled": True},
                    {
                        "id": "go",
                        "name": "Go",
                        "category": "games",
                        "instructions": "PLAY AWAY FROM THICKNESS",
                    },
                ],
            },
        }
        for name, learning in (
            ("learning", {"traits": True}),
            ("learning-frozen", {"mode": "frozen", "traits": True, "agentKey": "learning"}),
            ("learning-off", {"mode": "off", "traits": True, "agentKey": "learning"}),
            ("unlayered", False),
        )
    ),
]

_names = itertools.count(1)


def persona(known: dict[str, Any]) -> dict[str, Any]:
    """A persona file's content."""
    name = known["id"]
    return {"name": name.title(), "description": "For tests.", "version": "1.0.0", **known}


@pytest.fixture(scope="session")
async def shared(
    temporal: TemporalServer,
    new_database: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Stage]:
    directory = tmp_path_factory.mktemp("sessions")
    personas = directory / "personas"
    personas.mkdir()
    for known in PERSONAS:
        (personas / f"{known['id']}.json").write_text(json.dumps(persona(known)))
    model = ScriptedModel()
    await model.start()
    queue = f"gmi-sessions-{next(_names)}"
    environ = {
        "GMI_TASK_QUEUE": queue,
        "GMI_DATABASE_URL": new_database(),
        "GMI_PERSONAS": str(personas),
        "DEFAULT_PERSONA_ID": "plain",
        "GMI_TOOLS": "served_tools",
        "PYTHONPATH": str(Path(__file__).parent.parent / "support"),
        "GMI_SHUTDOWN_TIMEOUT": "2",
        "GMI_CREDENTIALS": "TENANT_KEY",
        "TENANT_KEY": f"{SECRET}-tenant",
        "TEST_MODEL": f"http://127.0.0.1:{model.port}",
        "TEST_REMOTE_QUEUE": f"{queue}-remote",
    }
    for name in PROVIDERS:
        prefix = name.upper().replace("-", "_")
        environ[f"{prefix}_API_KEY"] = f"{SECRET}-{name}"
        environ[f"{prefix}_BASE_URL"] = model.base_url(name)
    client = await Client.connect(
        address=temporal.address, task_queue=queue, plugin=GMIPlugin(Settings())
    )
    stage = Stage(temporal.address, client, model, directory, environ, [])
    await stage.worker()
    yield stage
    for worker in stage.workers:
        worker.kill()
    await model.close()


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """The folder's stage, whose model knows no script yet."""
    shared.model.forget_scripts()
    return shared


@pytest.fixture
def model(stage: Stage) -> ScriptedModel:
    """The folder's model."""
    return stage.model
