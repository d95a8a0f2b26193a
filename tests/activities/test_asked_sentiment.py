from __future__ import annotations

import httpx
import pytest

from gmi.activities.asked_sentiment import AskedSentiment, ask_sentiment
from gmi.activities.asking import Asker
from gmi.activities.feelings import Feelings
from gmi.activities.gateway.circuits import CircuitRegistry
from gmi.activities.gateway.registry import ProviderRegistry
from gmi.activities.sentiment import SentimentScorers
from gmi.activities.store.protocol import History
from gmi.personas.builtin import get_built_in_persona
from gmi.personas.errors import ProviderError
from gmi.personas.messages import Message
from gmi.personas.parts import SentimentTracking
from gmi.personas.sentiment import Sentiment
from gmi.workflows.steps import RunStep

from .memory.models import Writer


async def asked(
    writer: Writer, text: str = "Das ist ja toll.", language: str = "de-DE"
) -> AskedSentiment:
    providers = ProviderRegistry(httpx.AsyncClient(), {})
    providers.register("writer", writer)
    asker = Asker(providers, CircuitRegistry(lambda: 0.0), {})
    persona = get_built_in_persona("v_researcher")
    return await ask_sentiment(asker, persona, text, language=language, model="writer:one")


async def test_a_model_judges_a_text_in_one_call() -> None:
    writer = Writer('{"score": -0.8, "intensity": 0.7, "positive": 0, "negative": 1}')
    found = await asked(writer)
    assert writer.asked == ["Das ist ja toll."]
    assert found.sentiment == Sentiment.of(-0.8, 0.7, negative=1, language="de")
    assert found.problem is None
    assert found.usage.total_tokens == 12


async def test_an_answer_may_be_wrapped_in_words_and_leave_the_intensity_out() -> None:
    found = await asked(Writer('Here you are:\n```json\n{"score": -0.25}\n```'))
    assert found.sentiment == Sentiment.of(-0.25, 0.25, language="de")
    assert found.sentiment.known


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("It feels negative.", "no JSON object"),
        ("{score: 1}", "no JSON object"),
        ('{"score": "high"}', "score is no number"),
        ('{"score": true}', "score is no number"),
        ('{"score": NaN}', "broken"),
        ('{"score": 3}', "score lies outside"),
        ('{"score": 1e999}', "not finite"),
        ('{"score": 0.5, "intensity": -1}', "intensity lies outside"),
        ('{"a":' * 3_000 + "}", "nested too deep"),
    ],
)
async def test_an_answer_of_no_use_leaves_the_text_unknown_and_is_billed(
    answer: str, problem: str
) -> None:
    found = await asked(Writer(answer))
    assert found.sentiment == Sentiment.unknown("de")
    assert problem in (found.problem or "")
    assert found.usage.total_tokens == 12


async def test_of_a_long_text_the_model_sees_the_beginning_and_the_end() -> None:
    writer = Writer('{"score": 0}')
    await asked(writer, "a" * 5_000 + "b" * 5_000)
    assert writer.asked == ["a" * 2_000 + "\n" + "b" * 2_000]


async def test_nothing_is_asked_about_an_empty_text() -> None:
    writer = Writer()
    assert not (await asked(writer, " ")).sentiment.known
    assert writer.asked == []


async def test_a_model_that_does_not_answer_is_an_error_for_the_caller() -> None:
    writer = Writer()
    writer.down = True
    with pytest.raises(ProviderError):
        await asked(writer)


async def test_words_that_no_model_judged_are_unknown_in_their_plain_language() -> None:
    asker = Asker(ProviderRegistry(httpx.AsyncClient(), {}), CircuitRegistry(lambda: 0.0), {})
    feelings = Feelings(SentimentScorers(), asker)
    persona = get_built_in_persona("v_researcher").model_copy(
        update={
            "default_language": "de-DE",
            "sentiment_tracking": SentimentTracking(enabled=True, method="llm"),
        }
    )
    request = RunStep.model_construct(mind=None, model="openai:gpt-4o", credentials={})
    history = History(turn=[Message(role="user", content="Das ist ja toll.")])
    found = await feelings.score(request, persona, history)
    assert found.sentiment == Sentiment.unknown("de")
    assert found.problem is not None
