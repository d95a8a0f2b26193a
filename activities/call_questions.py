"""What a call beside the turns asks, and how its answer is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ..personas.appraising import (
    appraisal_question,
    appraisal_schema,
    appraisal_system,
    read_appraisal,
    repaired_question,
)
from ..personas.metaprompts.answers import answer_form, read_answer
from ..personas.metaprompts.variables import EVIDENCE_MESSAGES, filled, template_of, variables
from ..personas.metaprompts.wording import repair_text, system_text
from ..personas.mood import MoodSettings
from ..personas.parts import MetaPrompt
from ..personas.schema import Persona
from ..workflows.mind_calls import Perceive
from ..workflows.model_calls import ModelCall
from .store.protocol import Shown, Store

TEMPERATURE = 0.3
MAX_TOKENS = 512


class Taken(NamedTuple):
    """What an answer came to.

    Attributes:
        fields: What it adds to the call's result; ``None`` when it is of no use.
        problems: What is wrong with it.
    """

    fields: dict[str, Any] | None
    problems: tuple[str, ...] = ()


class Question(Protocol):
    """What a call asks.

    Attributes:
        code: How the codes of its refusals begin.
        called: What it is called in them.
        model: A model of its own, as ``provider:model``.
    """

    code: str
    called: str
    model: str | None
    max_tokens: int
    temperature: float

    def system(self) -> str:
        """What stands ahead of the question."""
        ...

    def schema(self) -> dict[str, Any]:
        """The answer's form."""
        ...

    async def text(self) -> str:
        """The question."""
        ...

    def again(self, question: str, answer: str, problems: Sequence[str]) -> str:
        """The question after an answer that was of no use."""
        ...

    def read(self, answer: str) -> Taken:
        """What an answer came to."""
        ...


class MetapromptQuestion:
    """A metaprompt, filled with the mind and the conversation.

    Args:
        request: The call.
        persona: Whose mind it is.
        prompt: The metaprompt.
        store: Where the conversation is.
    """

    code = "METAPROMPT"

    def __init__(
        self, request: ModelCall, persona: Persona, prompt: MetaPrompt, store: Store
    ) -> None:
        self._request = request
        self._prompt = prompt
        self._store = store
        self._name = persona.name
        self._form = answer_form(prompt, _allowed_moods(persona))
        self.called = f"metaprompt {request.id!r}"
        self.model = _model(prompt, persona)
        self.max_tokens = prompt.max_output_tokens or MAX_TOKENS
        self.temperature = TEMPERATURE if prompt.temperature is None else prompt.temperature

    def system(self) -> str:
        """See :class:`Question`."""
        return system_text(self._name, self._form)

    def schema(self) -> dict[str, Any]:
        """See :class:`Question`."""
        return self._form.schema()

    async def text(self) -> str:
        """See :class:`Question`."""
        request = self._request
        shown = Shown(request.path, None, [], EVIDENCE_MESSAGES)
        conversation = await self._store.conversation(request.at, shown)
        return filled(template_of(self._prompt), variables(request.view, conversation))

    def again(self, question: str, answer: str, problems: Sequence[str]) -> str:
        """See :class:`Question`."""
        return repair_text(question, answer, problems)

    def read(self, answer: str) -> Taken:
        """See :class:`Question`."""
        read = read_answer(answer, self._form)
        if read.patch is None:
            return Taken(None, read.problems)
        return Taken({"patch": read.patch})


class AppraisalQuestion:
    """What an event means to a persona.

    Args:
        persona: To whom it happens.
        event: What happens.
    """

    code = "APPRAISAL"
    called = "appraisal of the event"
    model: str | None = None
    max_tokens = MAX_TOKENS
    temperature = 0.0

    def __init__(self, persona: Persona, event: Perceive) -> None:
        self._persona = persona
        self._event = event

    def system(self) -> str:
        """See :class:`Question`."""
        return appraisal_system(self._persona.name, self._persona.description)

    def schema(self) -> dict[str, Any]:
        """See :class:`Question`."""
        return appraisal_schema()

    async def text(self) -> str:
        """See :class:`Question`."""
        event = self._event
        remembered = [
            episode.content if episode.at is None else f"{episode.at:%Y-%m-%d}: {episode.content}"
            for episode in event.prior_episodes
        ]
        return appraisal_question(event.message, event.type, event.source, remembered)

    def again(self, question: str, answer: str, problems: Sequence[str]) -> str:
        """See :class:`Question`."""
        return repaired_question(question, answer, problems)

    def read(self, answer: str) -> Taken:
        """See :class:`Question`."""
        read = read_appraisal(answer)
        if read.appraisal is None:
            return Taken(None, read.problems)
        return Taken({"appraisal": read.appraisal})


def _allowed_moods(persona: Persona) -> tuple[str, ...] | None:
    """The moods that an answer may name; a mood that does not move is left to who applies it."""
    settings, _ = MoodSettings.from_adaptation(persona.mood_adaptation)
    return settings.allowed if settings.adapts else None


def _model(prompt: MetaPrompt, persona: Persona) -> str | None:
    """The metaprompt's own model as ``provider:model``."""
    name = prompt.model_id
    if name is None:
        return None
    if prompt.provider_id:
        return f"{prompt.provider_id}:{name}"
    if persona.default_provider_id and not {":", "/"} & set(name):
        return f"{persona.default_provider_id}:{name}"
    return name
