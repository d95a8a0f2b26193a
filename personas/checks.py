"""The checks of a persona's single fields, on raw data."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError as PydanticError

from .issues import Severity
from .schema import Persona
from .trace_limits import CEILING_ENTRIES, CEILING_MESSAGE_LENGTH
from .traits import is_number

METAPROMPT_TRIGGERS = ("turn_interval", "event_based", "manual")
METAPROMPT_EVENTS = (
    "user_frustrated",
    "user_confused",
    "user_satisfied",
    "error_threshold_exceeded",
    "low_engagement",
    "task_complexity_mismatch",
    "skill_level_change_detected",
    "persona_drift",
)

# A well-formed BCP 47 tag whose language is an ISO 639 code; extensions need a subtag.
_LANGUAGE = re.compile(
    r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*(-[A-Za-z0-9](-[A-Za-z0-9]{1,8})+)*", re.ASCII
)

Found = Iterator[tuple[Severity, str, str, str]]


def camel_case_data(persona: Persona | Mapping[str, Any]) -> dict[str, Any]:
    """The persona's data with its own fields in ``camelCase``."""
    if isinstance(persona, Persona):
        loaded: dict[str, Any] = json.loads(persona.to_json())
        return loaded
    raw = dict(persona)
    for name, info in Persona.model_fields.items():
        if info.alias and info.alias != name and name in raw:
            value = raw.pop(name)
            raw.setdefault(info.alias, value)
    return raw


def prompt_text(prompt: Any) -> str:
    """The words of a base prompt in any of its three forms; empty for anything else."""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, Mapping):
        template = prompt.get("template")
        return template if isinstance(template, str) else ""
    if isinstance(prompt, Sequence):
        parts = [part.get("content") for part in prompt if isinstance(part, Mapping)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def strings(value: Any) -> list[str]:
    """The strings of a list; nothing for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _at(value: Any, camel: str, snake: str) -> Any:
    return value.get(camel, value.get(snake)) if isinstance(value, Mapping) else None


def _repeated(values: Sequence[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def field_checks(raw: Mapping[str, Any], known_tools: Collection[str] | None) -> Found:
    """Everything that can be wrong with single fields, as severity, code, field and message."""
    for check in (_tools, _voice, _language, _cost, _models, _rag, _keywords, _trace, _metaprompts):
        yield from check(raw, known_tools)


def _tools(raw: Mapping[str, Any], known: Collection[str] | None) -> Found:
    tools = strings(raw.get("toolIds"))
    for tool in _repeated(tools):
        yield "error", "duplicate_tool_id", "toolIds", f"The tool {tool!r} is listed twice."
    for tool in dict.fromkeys(tools):
        if known is not None and tool not in known:
            yield "error", "unknown_tool_id", "toolIds", f"No tool is called {tool!r}."


def _voice(raw: Mapping[str, Any], _: object) -> Found:
    voice = raw.get("voiceConfig")
    if voice is not None and "audio_tts" not in strings(raw.get("allowedOutputModalities")):
        yield (
            "warning",
            "voice_config_without_audio_output",
            "voiceConfig",
            "There is a voice, but allowedOutputModalities does not hold audio_tts.",
        )


def _language(raw: Mapping[str, Any], _: object) -> Found:
    language = raw.get("defaultLanguage")
    if isinstance(language, str) and language and not _LANGUAGE.fullmatch(language):
        yield (
            "error",
            "invalid_bcp47_language",
            "defaultLanguage",
            f"defaultLanguage {language!r} is not a language tag such as en-US.",
        )


def _cost(raw: Mapping[str, Any], _: object) -> Found:
    if not raw.get("costSavingStrategy"):
        yield (
            "suggestion",
            "missing_cost_strategy",
            "costSavingStrategy",
            "A costSavingStrategy says how to choose between quality and price.",
        )


def _models(raw: Mapping[str, Any], _: object) -> Found:
    name = "modelTargetPreferences"
    for index, preference in enumerate(_maps(raw.get(name))):
        allowed = strings(_at(preference, "allowedModelIds", "allowed_model_ids"))
        repeated = _repeated(allowed)
        if repeated:
            message = f"Preference {index} lists {repeated} twice."
            yield "error", "duplicate_allowed_model_ids", name, message
        model = _at(preference, "modelId", "model_id")
        family = _at(preference, "modelFamily", "model_family")
        if model and family and allowed:
            message = f"Preference {index} names a model, a family and a list; one is enough."
            yield "warning", "over_specified_model_preference", name, message


def _rag(raw: Mapping[str, Any], _: object) -> Found:
    rag = _at(raw.get("memoryConfig"), "ragConfig", "rag_config")
    if not _at(rag, "enabled", "enabled"):
        return
    sources = _maps(_at(rag, "dataSources", "data_sources"))
    repeated = _repeated([str(source.get("id")) for source in sources])
    if repeated:
        name = "memoryConfig.ragConfig.dataSources"
        message = f"The data source ids {repeated} are used twice."
        yield "error", "duplicate_rag_datasource_ids", name, message
    processing = _at(rag, "ingestionProcessing", "ingestion_processing")
    summarization = _at(processing, "summarization", "summarization")
    if _at(summarization, "enabled", "enabled") and not _at(summarization, "method", "method"):
        name = "memoryConfig.ragConfig.ingestionProcessing.summarization.method"
        message = "Summarization is on, but no method is named."
        yield "warning", "rag_summarization_method_missing", name, message


def _keywords(raw: Mapping[str, Any], _: object) -> Found:
    name = "activationKeywords"
    keywords = raw.get(name)
    if keywords is not None and (
        not isinstance(keywords, list) or len(strings(keywords)) != len(keywords)
    ):
        yield "error", "invalid_field_type", name, f"{name} is not a list of strings."


def _trace(raw: Mapping[str, Any], _: object) -> Found:
    name = "reasoningTraceConfig"
    config = raw.get(name)
    if config is None:
        return
    if not isinstance(config, Mapping):
        yield "error", "invalid_field_type", name, f"{name} is not an object."
        return
    for camel, snake, ceiling in (
        ("maxEntries", "max_entries", CEILING_ENTRIES),
        ("maxMessageLength", "max_message_length", CEILING_MESSAGE_LENGTH),
    ):
        value = _at(config, camel, snake)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and (not whole or not 1 <= value <= ceiling):
            message = f"{camel} {value!r} is not a whole number from 1 to {ceiling}."
            yield "warning", "invalid_reasoning_trace_config", f"{name}.{camel}", message


def _metaprompts(raw: Mapping[str, Any], _: object) -> Found:
    name = "metaPrompts"
    for prompt in _maps(raw.get(name)):
        trigger = prompt.get("trigger")
        kind = _at(trigger, "type", "type")
        label = prompt.get("id")
        if kind not in METAPROMPT_TRIGGERS:
            message = f"Metaprompt {label!r} never fires: no trigger is of type {kind!r}."
            yield "warning", "unsupported_metaprompt_trigger", name, message
        elif kind == "turn_interval":
            interval = _at(trigger, "intervalTurns", "interval_turns")
            if not is_number(interval) or interval < 1:
                message = f"Metaprompt {label!r} never fires: its interval is {interval!r}."
                yield "warning", "invalid_metaprompt_interval", name, message
        elif kind == "event_based":
            event = _at(trigger, "eventName", "event_name")
            if event not in METAPROMPT_EVENTS:
                message = f"Metaprompt {label!r} never fires: no event is called {event!r}."
                yield "warning", "unknown_metaprompt_event", name, message


def type_errors(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields that have the wrong form, each once, with the reason."""
    try:
        Persona.model_validate(raw).to_json()
    except PydanticError as error:
        seen: set[str] = set()
        for problem in error.errors(include_url=False):
            name = str(problem["loc"][0]) if problem["loc"] else ""
            path = ".".join(str(step) for step in problem["loc"])
            if name not in seen:
                seen.add(name)
                yield name, f"{path}: {problem['msg']}"
    except ValueError as error:
        yield "", f"The persona cannot be written as JSON: {error}"
