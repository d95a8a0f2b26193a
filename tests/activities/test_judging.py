"""A model as the judge of an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gmi.activities.asking import Asked, Asker, Bill, NoAnswerError
from gmi.activities.gateway.failures import ProviderFailure
from gmi.activities.judging import MAX_SHOWN, ModelJudge
from gmi.activities.store.protocol import Store, UsageRow
from gmi.activities.tools import ToolContext
from gmi.activities.tools.self_improvement import Asking, Judged, Parts
from gmi.personas.errors import ProviderError, StoreError, ToolError
from gmi.personas.messages import Usage
from gmi.personas.schema import Persona
from gmi.workflows.steps import At, MindFacts

GOOD = '{"relevance": 1, "clarity": 0.5, "accuracy": 0.25, "helpfulness": 0}'
AT = At(session="s", turn="t", counter=1, now=datetime(2026, 5, 1, tzinfo=UTC), run="r")


class Said(Asker):
    """Answers every question with the same words, or with none."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.asked: list[dict[str, Any]] = []

    async def ask(self, persona: Persona, question: str, **settings: Any) -> Asked:  # type: ignore[override]
        self.asked.append({"question": question, **settings})
        bill = Bill(0, "test", "judge", Usage(prompt_tokens=7), failed=self.text is None)
        settings["bills"].append(bill)
        if self.text is None:
            failure = ProviderFailure("it is down", kind="http", provider="test")
            raise NoAnswerError([failure], [bill], late=False)
        return Asked(self.text, "test", "judge", bill.usage, (bill,))


@dataclass
class Ledger:
    """Keeps bills; the first writes may find it locked."""

    locked: int = 0
    rows: list[UsageRow] = field(default_factory=list)

    async def record_usage(self, at: At, rows: Sequence[UsageRow]) -> None:
        if self.locked:
            self.locked -= 1
            raise StoreError("The database is locked", details={"retryable": True})
        assert at == AT
        self.rows += rows


async def judged(
    asker: Asker,
    ledger: Ledger,
    query: str = "q",
    response: str = "a",
    model: str | None = None,
    **mind: Any,
) -> Judged:
    asks = Asking(
        "self_evaluate",
        cast(Parts, Parts(*[cast(Any, None)] * 4)),
        ToolContext("session", "ada", "t", 3, "call-1", "key", 2),
        MindFacts(
            session=AT.session, now=AT.now, at=AT, persona_digest="p", toolset_digest="t", **mind
        ),
        Persona.model_validate(
            {
                "id": "p",
                "name": "P",
                "description": "d",
                "version": "1.0.0",
                "baseSystemPrompt": "You help.",
                "emergent": {"selfImprovement": {"enabled": True, "selfEval": {"model": model}}},
            }
        ),
    )
    return await ModelJudge(asker, cast(Store, ledger))(asks, query, response)


async def test_a_judge_gives_scores_and_what_they_cost() -> None:
    asker, ledger = Said(GOOD), Ledger()
    found = await judged(asker, ledger, "What is 2 + 2?", "4", model="openai:gpt-4o")
    assert found.scores == {"relevance": 1, "clarity": 0.5, "accuracy": 0.25, "helpfulness": 0}
    assert found.usage.prompt_tokens == 7
    [asked] = asker.asked
    assert (asked["model"], asked["user"]) == ("openai:gpt-4o", "ada")
    assert json.loads(asked["question"]) == {"question": "What is 2 + 2?", "answer": "4"}
    [row] = ledger.rows
    assert (row.turn, row.step, row.attempt, row.hop) == ("t", 3, 2, 0)
    assert (row.purpose, row.state, row.usage) == ("judge:call-1", "done", found.usage)


async def test_a_judge_is_reached_as_the_session_reaches_its_models() -> None:
    asker = Said(GOOD)
    credentials = {"openai": "env:THEIR_KEY"}
    await judged(asker, Ledger(), model=None, credentials=credentials, fallback=[])
    [asked] = asker.asked
    assert (asked["credentials"], asked["fallback"]) == (credentials, [])


async def test_a_judge_reads_no_more_than_it_can_take() -> None:
    asker = Said(GOOD)
    await judged(asker, Ledger(), "q" * 100_000, "a" * 100_000)
    assert len(asker.asked[0]["question"]) < 2 * MAX_SHOWN + 100


@pytest.mark.parametrize(
    ("text", "error", "state"),
    [("A fine answer!", ToolError, "done"), (None, ProviderError, "failed")],
)
async def test_an_answer_of_no_use_is_an_error_and_is_billed(
    text: str | None, error: type[Exception], state: str
) -> None:
    ledger = Ledger()
    with pytest.raises(error):
        await judged(Said(text), ledger)
    assert [(row.state, row.usage.prompt_tokens) for row in ledger.rows] == [(state, 7)]


async def test_a_bill_waits_for_a_store_that_is_down_and_nobody_is_asked_again() -> None:
    asker, ledger = Said(GOOD), Ledger(locked=1)
    await judged(asker, ledger)
    assert (len(asker.asked), len(ledger.rows)) == (1, 1)
