"""What learning adds to the system message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...personas.learning import PromptPiece, TurnLearning
from ...personas.options import CompletionOptions
from ...personas.prompt import Section
from ...personas.schema import Persona
from ...personas.self_changes import SelfChange, latest
from ...personas.self_improvement import EmergentConfig, Skill, skills_on
from ...personas.traits import HEXACO

PRIORITY_SKILLS = 50
PRIORITY_FORGED = 55

MAX_TEXT = 4000
"""Characters of a piece; what goes over it is left out whole."""


def change_pieces(emergent: EmergentConfig, changes: Sequence[SelfChange]) -> list[PromptPiece]:
    """The skills that are on, and the tools that the agent made."""
    found = (
        _skills_piece(emergent.skills, skills_on(emergent.skills, changes)),
        _forged_piece(latest(changes, "tool").values()),
    )
    return [piece for piece in found if piece is not None]


def _skills_piece(skills: Iterable[Skill], on: Mapping[str, bool]) -> PromptPiece | None:
    """The instructions of the skills that are on."""
    lines = [
        f"### {skill.name}\n{skill.instructions.strip()}"
        for skill in skills
        if on.get(skill.id) and skill.instructions.strip()
    ]
    return _piece("skills", PRIORITY_SKILLS, "## Skills", "\n\n", lines)


def _forged_piece(forged: Iterable[SelfChange]) -> PromptPiece | None:
    """The tools that the agent made, which it calls through one tool."""
    heading = "## Tools that you made\nCall them with use_forged_tool."
    lines = [f"- {change.name}: {change.data.get('description', '')}" for change in forged]
    return _piece("forged_tools", PRIORITY_FORGED, heading, "\n", lines)


def prompt_parts(persona: Persona, learning: TurnLearning | None) -> tuple[Persona, list[Section]]:
    """The persona and the further sections that a prompt is assembled from.

    With a layer the personality is one of the turn's pieces, so the persona comes without its own.
    """
    if learning is None:
        return persona, []
    sections = [Section(piece.priority, piece.text, piece.name) for piece in learning.pieces]
    if learning.mode is None:
        return persona, sections
    rest = {name: value for name, value in persona.personality_traits.items() if name not in HEXACO}
    return persona.model_copy(update={"personality_traits": rest}), sections


def with_params(options: CompletionOptions, learning: TurnLearning | None) -> CompletionOptions:
    """A persona's completion options with those that it has set for itself."""
    temperature = None if learning is None else learning.params.get("temperature")
    if temperature is None:
        return options
    return options.model_copy(update={"temperature": float(temperature)})


def _piece(
    name: str, priority: float, heading: str, between: str, lines: Iterable[str]
) -> PromptPiece | None:
    text, some = heading, False
    for line in lines:
        longer = f"{text}{between if some else chr(10)}{line}"
        if len(longer) > MAX_TEXT:
            break
        text, some = longer, True
    return PromptPiece(name=name, priority=priority, text=text) if some else None
