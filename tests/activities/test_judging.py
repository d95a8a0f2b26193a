"""A model as the judge of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gmi.activities.asking import Asked, Asker
from gmi.activities.judging import MAX_SHOWN, ModelJudge
from gmi.personas.errors import ToolError
from gmi.personas.messages import Usage
from gmi.personas.schema import Persona

PERSONA = Persona(
    id="p", name="P", description="d", version="1.0.0", base_system_prompt="You help."
)


class Said(Asker):
    """Answers every question with the same words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[dict[str, Any]] = []

    async def ask(self, persona: Persona, question: str, **settings: Any) -> Asked:  # type: ignore[override]
        self.asked.append({"question": question, **settings})
        return Asked(self.text, "test", "judge", Usage(prompt_tokens=7))


async def test_a_judge_gives_scores_and_what_they_cost() -> None:
    asker = Said('{"relevance": 1, "clarity": 0.5, "accuracy": 0.25, "helpfulness": 0}')
    judged = await ModelJudge(asker)(PERSONA, "openai:gpt-4o", "What is 2 + 2?", "4")
    assert judged.scores == {"relevance": 1, "clarity": 0.5, "accuracy": 0.25, "helpfulness": 0}
    assert judged.usage.prompt_tokens == 7
    [asked] = asker.asked
    assert asked["model"] == "openai:gpt-4o"
    assert json.loads(asked["question"]) == {"question": "What is 2 + 2?", "answer": "4"}


async def test_a_judge_reads_no_more_than_it_can_take() -> None:
    asker = Said('{"relevance": 1, "clarity": 1, "accuracy": 1, "helpfulness": 1}')
    await ModelJudge(asker)(PERSONA, None, "q" * 100_000, "a" * 100_000)
    assert len(asker.asked[0]["question"]) < 2 * MAX_SHOWN + 100


async def test_a_judge_that_talks_about_something_else_is_an_error() -> None:
    with pytest.raises(ToolError, match="could not be judged"):
        await ModelJudge(Said("A fine answer!"))(PERSONA, None, "q", "a")
