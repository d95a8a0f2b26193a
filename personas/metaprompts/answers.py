"""What a metaprompt's answer comes to: a patch of the mind, or the reasons why it is refused.

An answer is taken whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..mood import MOODS, mood_word
from ..parts import MetaPrompt
from .fields import (
    CHANGES,
    COMPLEXITIES,
    COMPLEXITY,
    IMPRINTS,
    MOOD,
    RATIONALE,
    SKILL_LEVEL,
    SKILL_LEVELS,
    STRATEGIES,
    complexity_word,
)
from .json_text import NoObjectError, object_in
from .triggers import FLAG_PREFIX

MAX_IMPRINTS = 8
MAX_KEY = 64
MAX_VALUE_BYTES = 1024
MAX_DESCRIPTION = 300
MAX_DEPTH = 16
MAX_TOLD = 1000
"""Characters of a rationale and of a strategy; what is longer is cut."""

_RESERVED_KEYS = frozenset(
    {"currentGmiMood", "currentUserContext", "currentTaskContext", "gmi_sentiment_history"}
)
_RESERVED_PREFIXES = (FLAG_PREFIX, "metaprompt_turn_counter_")


class Imprint(BaseModel):
    """Something to keep in working memory.

    Attributes:
        key: Its name.
        value: Any JSON value.
        description: What it is.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    value: Any
    description: str | None = None


class MindPatch(BaseModel):
    """What a metaprompt changes; what is ``None`` or empty stays as it is.

    Attributes:
        mood: The mood to move towards.
        skill_level: What the user is held to be.
        complexity: What the task is held to be.
        imprints: What working memory keeps from now on.
        rationale: Why.
        strategy: What is to be done now.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    mood: str | None = None
    skill_level: str | None = None
    complexity: str | None = None
    imprints: tuple[Imprint, ...] = ()
    rationale: str | None = None
    strategy: str | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is changed."""
        return not (self.mood or self.skill_level or self.complexity or self.imprints)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What a metaprompt's answer may and must say.

    Attributes:
        values: The fields that take one of a few words, and the words.
        imprints: Whether it may leave imprints.
        required: Fields that must be there and say something.
    """

    values: Mapping[str, tuple[str, ...]]
    imprints: bool = True
    required: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """The form as JSON Schema."""
        properties: dict[str, Any] = {
            name: {"type": "string", "enum": list(words)} for name, words in self.values.items()
        }
        if self.imprints:
            properties[IMPRINTS] = {
                "type": "array",
                "maxItems": MAX_IMPRINTS,
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "string", "maxLength": MAX_KEY},
                        "value": {},
                        "description": {"type": "string", "maxLength": MAX_DESCRIPTION},
                    },
                    "required": ["key", "value"],
                },
            }
        told = dict.fromkeys([RATIONALE, *self.required])
        properties |= {name: {"type": "string"} for name in told if name not in properties}
        return {"type": "object", "properties": properties, "required": list(self.required)}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it was read: a patch, or the problems for which it is refused."""

    patch: MindPatch | None
    problems: tuple[str, ...] = ()


def reserved_key(key: str) -> bool:
    """Whether a key of working memory belongs to the mind itself, so that nobody may write it."""
    return key in _RESERVED_KEYS or key.startswith(_RESERVED_PREFIXES)


def answer_form(prompt: MetaPrompt, allowed_moods: Collection[str] | None = None) -> AnswerForm:
    """The form of a metaprompt's answer.

    It follows the metaprompt's ``outputSchema``: what that does not name may not be changed, and
    its words narrow ours. A metaprompt without one may change everything and has to say nothing.

    Args:
        prompt: The metaprompt.
        allowed_moods: The moods that the persona may take; any without.
    """
    schema = prompt.output_schema or {}
    named = schema.get("properties")
    properties = named if isinstance(named, dict) and named else dict.fromkeys(CHANGES.values())
    words = {
        MOOD: tuple(m for m in MOODS if allowed_moods is None or m in allowed_moods),
        SKILL_LEVEL: SKILL_LEVELS,
        COMPLEXITY: COMPLEXITIES,
    }
    values = {
        name: tuple(word for word in known if _allows(properties[name], word))
        for name, known in words.items()
        if name in properties
    }
    required = schema.get("required")
    listed = required if isinstance(required, list) else []
    must = [name for name in listed if isinstance(name, str)]
    return AnswerForm(
        values={name: known for name, known in values.items() if known},
        imprints=IMPRINTS in properties,
        required=tuple(dict.fromkeys(must)),
    )


def read_answer(text: str, form: AnswerForm) -> Answer:
    """Read a model's answer.

    Words count in any case, and one that stands for a mood or a complexity is taken as it. Fields
    that nobody knows are passed over; a known one that this metaprompt may not set is a problem,
    and so is every value that does not fit.
    """
    try:
        said = object_in(text)
    except NoObjectError as error:
        return Answer(None, (f"The answer is refused: {error}.",))
    problems = [*_missing(said, form), *_forbidden(said, form)]
    chosen: dict[str, str | None] = {}
    for name, words in form.values.items():
        chosen[name], problem = _word(said.get(name), name, words)
        problems += problem
    imprints: tuple[Imprint, ...] = ()
    if form.imprints:
        imprints, wrong = _imprints(said.get(IMPRINTS))
        problems += wrong
    told = {name: said.get(name) for name in (RATIONALE, *STRATEGIES)}
    problems += [
        f"{name} is no text." for name, value in told.items() if not isinstance(value, str | None)
    ]
    if problems:
        return Answer(None, tuple(problems))
    strategy = next((value for name in STRATEGIES if (value := told[name])), None)
    return Answer(
        MindPatch(
            mood=chosen.get(MOOD),
            skill_level=chosen.get(SKILL_LEVEL),
            complexity=chosen.get(COMPLEXITY),
            imprints=imprints,
            rationale=_cut(told[RATIONALE] or strategy),
            strategy=_cut(strategy),
        )
    )


class _GivenImprint(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    key: str = Field(min_length=1, max_length=MAX_KEY)
    value: Any
    description: str | None = Field(default=None, max_length=MAX_DESCRIPTION)


def _missing(said: Mapping[str, Any], form: AnswerForm) -> Iterator[str]:
    for name in form.required:
        value = said.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            yield f"{name} is missing."


def _forbidden(said: Mapping[str, Any], form: AnswerForm) -> Iterator[str]:
    for name in CHANGES.values():
        may = form.imprints if name == IMPRINTS else name in form.values
        if not may and said.get(name):
            yield f"{name} may not be set here."


def _word(value: Any, name: str, words: tuple[str, ...]) -> tuple[str | None, list[str]]:
    if value is None:
        return None, []
    if isinstance(value, str):
        word = value.strip().lower()
        meant = _meant(name, word)
        if meant in words:
            return meant, []
        # An empty text is how some models leave a field out.
        if not word:
            return None, []
    return None, [f"{name} is {_shown(value)} and none of {', '.join(words)}."]


def _meant(name: str, word: str) -> str | None:
    """The word of a field that another word stands for, as other persona forms use them."""
    if name == MOOD:
        return mood_word(word)
    return complexity_word(word) if name == COMPLEXITY else word


def _imprints(value: Any) -> tuple[tuple[Imprint, ...], list[str]]:
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), [f"{IMPRINTS} is no list."]
    if len(value) > MAX_IMPRINTS:
        return (), [f"{IMPRINTS} has {len(value)} entries and the limit is {MAX_IMPRINTS}."]
    found: dict[str, Imprint] = {}
    problems: list[str] = []
    for index, item in enumerate(value):
        imprint, problem = _imprint(item)
        if imprint is None:
            problems.append(f"{IMPRINTS}[{index}] {problem}.")
        else:
            found[imprint.key] = imprint
    return tuple(found.values()), problems


def _imprint(item: Any) -> tuple[Imprint | None, str]:
    try:
        given = _GivenImprint.model_validate(item)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return None, f"does not fit: {where + ': ' if where else ''}{first['msg']}"
    key = given.key.strip()
    if not key or not key.isprintable():
        return None, f"has the key {_shown(given.key)}, which is no name"
    if reserved_key(key):
        return None, f"has the key {key!r}, which belongs to the mind itself"
    if given.value is None:
        return None, f"has no value for {key!r}"
    size = len(_compact(given.value).encode())
    if size > MAX_VALUE_BYTES:
        return None, f"has {size} bytes for {key!r} and the limit is {MAX_VALUE_BYTES}"
    if _depth(given.value) > MAX_DEPTH:
        return None, f"is nested deeper than {MAX_DEPTH} levels for {key!r}"
    return Imprint(key=key, value=given.value, description=given.description or None), ""


def _allows(schema: Any, word: str) -> bool:
    words = schema.get("enum") if isinstance(schema, dict) else None
    if not isinstance(words, list):
        return True
    named = [item for item in words if isinstance(item, str)]
    # A schema may use other words for a mood or a complexity, as other persona forms do.
    meant = {name for item in named for name in (mood_word(item), complexity_word(item))}
    return word in meant | {item.strip().lower() for item in named}


def _depth(value: Any) -> int:
    """Levels of lists and objects in a JSON value of at most :data:`MAX_VALUE_BYTES`."""
    depth = 0
    level = [value]
    while level:
        inner = [
            item.values() if isinstance(item, dict) else item for item in level if _holds(item)
        ]
        depth += bool(inner)
        level = [item for items in inner for item in items]
    return depth


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list)


def _shown(value: Any) -> str:
    text = _compact(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str | None) -> str | None:
    if not text or not text.strip():
        return None
    text = text.strip()
    return text if len(text) <= MAX_TOLD else text[: MAX_TOLD - 1] + "…"
