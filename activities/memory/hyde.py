"""An imagined memory to search with: what is sought looks more like its answer than its question.

After Gao et al. (2022), "Precise Zero-Shot Dense Retrieval without Relevance Labels".
"""

from __future__ import annotations

from collections.abc import MutableSequence

from ...personas.schema import Persona
from ...workflows.steps import RunStep
from ..asking import Asker, Bill
from ..beside import ASK_SECONDS
from .recall import Imagine

SYSTEM = (
    "You imagine memories. You are given what a user says now. Write one short note, in one or "
    "two sentences, that could stand in the memory of earlier conversations with this user and "
    "would help to answer. Invent plausible details; write only the note."
)
MAX_TOKENS = 120


def imagining(
    asker: Asker, persona: Persona, request: RunStep, bills: MutableSequence[Bill]
) -> Imagine:
    """Asks the turn's model for a memory that could answer a text.

    Args:
        asker: Asks.
        persona: Who recalls.
        request: The step.
        bills: What the question was billed is added here, also when it is cancelled.
    """

    async def imagine(text: str) -> str:
        asked = await asker.ask(
            persona,
            text,
            system=SYSTEM,
            model=request.model,
            fallback=request.fallback,
            max_tokens=MAX_TOKENS,
            credentials=request.credentials,
            deadline=ASK_SECONDS,
            bills=bills,
        )
        return asked.text

    return imagine
