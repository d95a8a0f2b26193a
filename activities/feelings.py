"""How a user's words felt: by a lexicon of their language, or by asking a model."""

from __future__ import annotations

from collections.abc import MutableSequence
from dataclasses import dataclass

from ..personas.errors import GMIError
from ..personas.schema import Persona
from ..personas.sentiment import Sentiment, SentimentSettings
from ..workflows.steps import RunStep
from .asked_sentiment import ask_sentiment
from .asking import Asker, Bill
from .beside import ASK_SECONDS
from .sentiment import ENGLISH, SentimentScorers, plain_language
from .store.protocol import History


@dataclass(frozen=True, slots=True)
class Felt:
    """How words felt.

    Attributes:
        problem: Why nothing is known, or ``None``.
    """

    sentiment: Sentiment
    problem: str | None = None


class Feelings:
    """Scores the words of a turn's user.

    Args:
        scorers: Lexicons and the host's own scorers, by language.
        asker: Asks a model, for personas that want it so.
    """

    def __init__(self, scorers: SentimentScorers, asker: Asker) -> None:
        self._scorers = scorers
        self._asker = asker

    async def score(
        self,
        request: RunStep,
        persona: Persona,
        history: History,
        bills: MutableSequence[Bill] | None = None,
    ) -> Felt:
        """How the words of this turn's user felt; a model that fails leaves it unknown.

        Args:
            request: The step.
            persona: Who listens.
            history: The conversation, the turn included.
            bills: Takes what was billed for finding out, also when it is cancelled.
        """
        settings = SentimentSettings.from_tracking(persona.sentiment_tracking)
        text = "\n".join(m.text for m in history.turn if m.role == "user" and m.text.strip())
        preferences = request.mind.preferences if request.mind is not None else {}
        spoken = preferences.get("language")
        language = spoken if isinstance(spoken, str) and spoken else persona.default_language
        if settings.method != "llm":
            scored = await self._scorers.score(text, language, method=settings.method)
            return Felt(scored)
        try:
            asked = await ask_sentiment(
                self._asker,
                persona,
                text,
                language=language,
                model=settings.model or request.model,
                credentials=request.credentials,
                deadline=ASK_SECONDS,
                bills=bills,
            )
        except GMIError as error:
            return Felt(Sentiment.unknown(plain_language(language or ENGLISH)), error.message)
        return Felt(asked.sentiment, asked.problem)
