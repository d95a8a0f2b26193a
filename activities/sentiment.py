"""How a text feels: scorers by language, and the English one.

The English scorer reads the lexicon and the rules of VADER (Hutto & Gilbert, 2014) phrase by
phrase: a negation, an intensifier or a contraction acts up to the end of its phrase and not beyond.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Protocol

from vader import SentimentIntensityAnalyzer, negated
from vader.data.emoji import EMOJI
from vader.data.lexicon import MULTIWORD
from vader.text import EmojiTranslator

from ..personas.sentiment import Method, Sentiment, considered

ENGLISH = "en"

# Faces and gestures whose name tells a machine nothing, or the wrong thing, of what they say.
_EMOJI_WORDS = {
    "😡": "furious face",
    "🤬": "furious swearing face",
    "😤": "frustrated face",
    "😒": "annoyed face",
    "🙄": "annoyed face",
    "😖": "distressed face",
    "😣": "distressed face",
    "😫": "exhausted face",
    "🤢": "disgusted face",
    "🤮": "disgusted face",
    "💩": "crap",
    "👎": "bad",
    "👍": "good",
    "👏": "applause",
    "🙌": "hooray",
    "🤩": "excited face",
    "💯": "perfect",
    "🔥": "awesome",
    "❌": "wrong",
}

# Words of assent and request: who says yes or please is not yet pleased.
_COURTESIES = ("yes", "yeah", "yep", "yup", "sure", "ok", "okay", "please", "help")

# More words than a rule of VADER looks back over, and none that means anything to it.
_PAUSE = " · · · "
_PHRASE_END = re.compile(r"(?<=[^\s.,;:!?…])[.,;:!?…]+(?=\s)|\n+|\s[-–—]+\s|—|·")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z]")
_LONG_RUN = re.compile(r"(.)\1{4,}", re.DOTALL)
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ＇`´", "'"))
_NEGATION_REACH = 3

_translator = EmojiTranslator(
    {sign: f"·{name}·" for sign, name in {**EMOJI, **_EMOJI_WORDS}.items()}
)
_analyzer = SentimentIntensityAnalyzer(
    extra_lexicon=dict.fromkeys(_COURTESIES, 0.0),
    multiword={**MULTIWORD, "would like": 0.0, "i'd like": 0.0},
    emoji={},
)


class SentimentScorer(Protocol):
    """Judges texts of a language."""

    async def score(self, text: str, language: str) -> Sentiment:
        """How a text feels.

        Args:
            text: At most 4,000 characters.
            language: Its language, such as ``en``, in lower case and without a region.
        """
        ...


class EnglishScorer:
    """Judges English texts by their words, without a model; see :func:`english_sentiment`."""

    async def score(self, text: str, language: str) -> Sentiment:
        """How an English text feels."""
        return english_sentiment(text)


class SentimentScorers:
    """The scorers that there are, by language: English by its lexicon, and the host's own."""

    def __init__(self) -> None:
        self._built_in: dict[str, SentimentScorer] = {ENGLISH: EnglishScorer()}
        self._own: dict[str, SentimentScorer] = {}

    def register(self, language: str, scorer: SentimentScorer) -> None:
        """Judge texts of a language by this scorer; it replaces the one that there was.

        Args:
            language: A language tag such as ``de``; a region counts for nothing.
            scorer: The scorer.
        """
        self._own[plain_language(language)] = scorer

    async def score(
        self, text: str, language: str | None = None, *, method: Method = "lexicon"
    ) -> Sentiment:
        """How a text feels, or that nobody here can tell.

        Args:
            text: Any text; of a very long one the beginning and the end are looked at.
            language: Its language tag; English without one.
            method: ``own`` asks a registered scorer only.
        """
        plain = plain_language(language or ENGLISH)
        scorer = self._own.get(plain)
        if scorer is None and method != "own":
            scorer = self._built_in.get(plain)
        if scorer is None or not text.strip():
            return Sentiment.unknown(plain)
        return await scorer.score(considered(text), plain)


def plain_language(tag: str) -> str:
    """The language of a tag without region or script: ``en-US`` is ``en``."""
    return re.split(r"[-_]", tag.strip().lower(), maxsplit=1)[0] or ENGLISH


def english_sentiment(text: str) -> Sentiment:
    """How an English text feels.

    The score is VADER's compound of the whole text. The intensity is the share of the text that
    carries feeling, weighed by its strength; words that only strengthen others thin nothing out.
    A word is counted as positive or negative with the negations of its phrase. A text whose letters
    are none of them Latin is not known; one without letters and emoji is neutral.
    """
    phrases = _phrases(text)
    spoken = " ".join(phrases)
    if _LETTER.search(spoken) and not _LATIN.search(spoken):
        return Sentiment.unknown(ENGLISH)
    shares = _analyzer.polarity_scores(
        " ".join(word for word in spoken.split() if not _strengthens(word))
    )
    positive, negative = _counted(phrases)
    return Sentiment.of(
        _compound(phrases),
        shares["pos"] + shares["neg"],
        positive=positive,
        negative=negative,
        language=ENGLISH,
    )


def valence(text: str) -> float:
    """The valence of an English text, in [-1, 1]; 0 for one that the lexicon knows nothing of."""
    return _compound(_phrases(text))


def _phrases(text: str) -> list[str]:
    """The text's phrases, each with the signs that end it; an emoji's words are one of their own.

    A long run of one sign is shortened: five of them say what a thousand do.
    """
    text = _LONG_RUN.sub(r"\1\1\1\1", considered(text).translate(_APOSTROPHES))
    if text.isupper():
        # Capitals stress a word beside others only.
        text = text.lower()
    parts: list[str] = []
    start = 0
    # Every emoji has become several words.
    spoken = considered(_translator.translate(text))
    for end in _PHRASE_END.finditer(spoken):
        parts.append(spoken[start : end.end()].rstrip(" ·\n"))
        start = end.end()
    parts.append(spoken[start:])
    return [part.strip() for part in parts if part.strip()]


def _compound(phrases: list[str]) -> float:
    found = float(_analyzer.polarity_scores(_PAUSE.join(phrases))["compound"])
    return found if math.isfinite(found) else 0.0


def _strengthens(word: str) -> bool:
    return word.lower() in _analyzer.booster


def _counted(phrases: list[str]) -> tuple[int, int]:
    """How many words are positive and how many negative where they stand."""
    signs = [sign for phrase in phrases for sign in _signs(_WORD.findall(phrase.lower()))]
    return sum(sign > 0 for sign in signs), sum(sign < 0 for sign in signs)


def _signs(words: list[str]) -> Iterator[float]:
    for place, word in enumerate(words):
        value = _analyzer.lexicon.get(word, 0.0)
        if word == "no" and place + 1 < len(words):
            # It negates what follows and says nothing by itself.
            continue
        before = words[max(0, place - _NEGATION_REACH) : place]
        turned = negated(before) or "no" in before[-2:]
        yield -value if turned else value
