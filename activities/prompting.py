"""What a step's prompt is told beside the conversation: of the mind, and of who speaks."""

from __future__ import annotations

from ..personas.learning import TurnLearning
from ..personas.prompt import PRIORITY_INTERLOCUTOR, AssembledPrompt, PromptContext, Section
from ..personas.schema import Persona
from ..workflows.steps import MindBrief, OmittedHistory, RunStep
from .store.protocol import History

PRIORITY_FEELING = 41
PRIORITY_HAPPENED = 42


def prompt_context(request: RunStep, learning: TurnLearning | None = None) -> PromptContext:
    """The situation that the prompt is built for.

    What the user prefers counts more than what the agent has set for itself.
    """
    mind = request.mind or MindBrief()
    verbosity = None if learning is None else learning.params.get("verbosity")
    own = {} if verbosity is None else {"verbosity": verbosity}
    return PromptContext(
        mood=mind.mood,
        user_skill_level=mind.skill_level,
        task_complexity=mind.complexity,
        task_hint=mind.domain,
        preferences={**own, **mind.preferences},
        suffix=request.suffix,
    )


def spoken_sections(request: RunStep) -> list[Section]:
    """Who speaks with the persona, what it feels, and what happened to it."""
    sections: list[Section] = []
    if request.interlocutor is not None:
        text = request.interlocutor.text()
        if text is not None:
            sections.append(Section(PRIORITY_INTERLOCUTOR, text, "interlocutor"))
    if request.mind is not None and request.mind.feeling is not None:
        sections.append(Section(PRIORITY_FEELING, request.mind.feeling, "feeling"))
    if request.mind is not None and request.mind.happened:
        lines = "\n".join(f"- {line}" for line in request.mind.happened)
        text = f"What has happened since the last message, the newest last:\n{lines}"
        source = request.mind.source
        if source is not None and source != request.interlocutor:
            about = source.text(speaking=False)
            text = text if about is None else f"{text}\n\n{about}"
        sections.append(Section(PRIORITY_HAPPENED, text, "happened"))
    return sections


def with_traits(persona: Persona, request: RunStep) -> Persona:
    """The persona with the traits that the host has set for the session."""
    if request.mind is None or not request.mind.traits:
        return persona
    traits = {**persona.personality_traits, **request.mind.traits}
    return persona.model_copy(update={"personality_traits": traits})


def left_out(history: History, prompt: AssembledPrompt) -> OmittedHistory | None:
    """What the prompt does not show of the conversation."""
    messages = (
        history.left_out + prompt.left_out.messages_by_count + prompt.left_out.messages_by_budget
    )
    if messages == 0:
        return None
    reason = "budget" if prompt.left_out.messages_by_budget else "window"
    return OmittedHistory(messages=messages, tokens=prompt.left_out.tokens_by_budget, reason=reason)
