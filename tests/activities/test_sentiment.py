from __future__ import annotations

import math
import random
from typing import NamedTuple

import pytest

from gmi.activities.sentiment import SentimentScorers, english_sentiment, plain_language, valence
from gmi.personas.sentiment import Sentiment

POSITIVE = """
great|GREAT!!!|good|love|I love this ❤️ so much|I am happy|I am so happy today|happily|thanks|super
Thank you!|Thanks a lot, this is perfect|haha|excellent work|awesome|cool stuff|best ever|fine
wonderful amazing excellent superb|the the the the great|not unhappy|never bad|👍|😀|🎉
""".replace("\n", "|").strip("|")

NEGATIVE = """
I am unhappy|I hate this|hate|terrible|This is terrible, awful and horrible!|I am very frustrated!
frustrated|This is so frustrating, nothing works|confused|I'm confused|error|error error error|fail
broken|stupid|This sucks|damn|wtf|bad bad good|I lost my job and my dog died|My mother is sick|ugh
worst ever|die|abandon abandoned abandons|can't stand it|does not work and I am angry|no|👎|😡|🤬
""".replace("\n", "|").strip("|")

NEUTRAL = """
What do you mean?|huh|bug|What time is it in Tokyo?|She said hello|awesome_thing|self-conscious
whatever|12345|never mind|the table|!!!|I dont understand this at all|yes|okay|sure|explain please
Please help me|I would like to book a table for two|it is ten to five
""".replace("\n", "|").strip("|")


@pytest.mark.parametrize("text", POSITIVE.split("|"))
def test_these_feel_positive(text: str) -> None:
    assert english_sentiment(text).polarity == "positive"


@pytest.mark.parametrize("text", NEGATIVE.split("|"))
def test_these_feel_negative(text: str) -> None:
    assert english_sentiment(text).polarity == "negative"


@pytest.mark.parametrize("text", NEUTRAL.split("|"))
def test_these_feel_neither_way(text: str) -> None:
    found = english_sentiment(text)
    assert (found.polarity, found.known) == ("neutral", True)


class Difference(NamedTuple):
    """A text that a scorer by sums of stemmed words judges otherwise.

    Attributes:
        summed: The score of such a scorer, which has no scale; negation turns the whole rest of
            its text, or nothing at all.
        ours: The score here.
        why: What makes the difference.
    """

    text: str
    summed: float
    ours: float
    why: str


NO_WORDS = math.nan
DIFFERENCES = [
    Difference("", NO_WORDS, 0.0, "nothing was said, which is neutral and a number"),
    Difference("!!!", NO_WORDS, 0.0, "signs alone are neutral and a number"),
    Difference("😡", NO_WORDS, -0.5719, "emoji count"),
    Difference("great", 3.0, 0.6249, "one scale, bounded"),
    Difference("error error error", -6.0, -0.7964, "one scale, bounded"),
    Difference("not good", 3.0, -0.3412, "a negated word counts the other way"),
    Difference("never bad", -3.0, 0.431, "a negated word counts the other way"),
    Difference("I do not hate it", -3.0, 0.4585, "a negated word counts the other way"),
    Difference("it is not bad at all, I like it", -1.0, 0.6542, "a negation ends with its phrase"),
    Difference("does not work and I am angry", 0.4286, -0.5106, "a negation ends with its phrase"),
    Difference("can't stand it", 0.0, -0.4588, "contractions negate"),
    Difference("happily", 0.0, 0.5574, "words are looked up as they are, not by their stem"),
    Difference("fine", -2.0, 0.2023, "no two words share a stem by accident"),
    Difference("yes", 1.0, 0.0, "assent is not joy"),
    Difference("Please help me", 2.0, 0.0, "a request is not joy"),
    Difference("I would like to book a table for two", 2.0, 0.0, "a request is not joy"),
    Difference("happy\nsad\nhappy", -2.0, 0.6486, "no word is passed over"),
]


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.why + ": " + repr(row.text))
def test_the_differences_to_a_scorer_by_sums_are_meant(row: Difference) -> None:
    assert english_sentiment(row.text).score == pytest.approx(row.ours, abs=0.002)
    assert row.ours != row.summed


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("not good", "negative"),
        ("This is not good. I love the rest of it", "positive"),
        ("I can't. Great day!", "positive"),
        ("No problem, thanks!", "positive"),
        ("no. great idea", "positive"),
        ("never bad", "positive"),
        ("It isn't bad", "positive"),
        ("I don't like it", "negative"),
        ("I do not like it — great picture", "positive"),
        ("not good 😊", "positive"),
    ],
)
def test_a_negation_acts_up_to_the_end_of_its_phrase(text: str, whole: str) -> None:
    assert english_sentiment(text).polarity == whole


@pytest.mark.parametrize("sign", ["’", "‘", "ʼ", "`"])
def test_a_typographic_apostrophe_is_an_apostrophe(sign: str) -> None:
    plain = english_sentiment("I don't like it, it isn't good")
    assert english_sentiment(f"I don{sign}t like it, it isn{sign}t good") == plain
    assert plain.polarity == "negative"


def test_words_are_counted_with_the_negations_of_their_phrase() -> None:
    found = english_sentiment("not bad, not good, great and awful; no problem")
    assert (found.positive, found.negative) == (3, 2)


def test_an_intensifier_strengthens_and_thins_nothing_out() -> None:
    plain, strong = english_sentiment("I am sad"), english_sentiment("I am really very sad")
    assert strong.score < plain.score
    assert strong.intensity == plain.intensity


def test_capitals_stress_a_word_beside_others_only() -> None:
    assert english_sentiment("this is GREAT stuff").score > valence("this is great stuff")
    assert english_sentiment("THIS IS GREAT STUFF") == english_sentiment("this is great stuff")


def test_feeling_among_many_other_words_is_less_intense() -> None:
    short = english_sentiment("This is terrible")
    long = english_sentiment("This is what the paper called a terrible turn of the weather")
    assert short.intensity > 0.6 > long.intensity > 0


def test_a_writing_without_latin_letters_is_not_known() -> None:
    for text in ("これは素晴らしい", "Очень плохо", "ممتاز"):
        assert english_sentiment(text) == Sentiment.unknown("en")
    assert english_sentiment("これは素晴らしい 😊").known


HOSTILE = [
    "\x00",
    "\ud800",
    "·" * 50,
    " · · · good · · ·",
    "but " * 2_000,
    "not " * 3_000,
    "great" * 5_000,
    "(" * 9_000,
    "👨‍👩‍👧‍👦" * 900,
    "‮reversed‬ nan NaN inf -inf 1e999",
    "never so this no or nor " * 300,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_gives_what_is_no_number(text: str) -> None:
    check_ranges(english_sentiment(text))


def test_random_texts_stay_in_their_ranges() -> None:
    draw = random.Random(7)
    pieces = [
        "not ",
        "good",
        "bad ",
        "!",
        "?",
        "😡",
        "😀",
        "no ",
        "\n",
        ", ",
        "but ",
        "very ",
        "n't ",
    ]
    for _ in range(400):
        check_ranges(english_sentiment("".join(draw.choices(pieces, k=draw.randrange(60)))))


def check_ranges(found: Sentiment) -> None:
    assert -1 <= found.score <= 1
    assert 0 <= found.intensity <= 1
    assert Sentiment.model_validate_json(found.model_dump_json()) == found


def test_of_a_very_long_text_the_beginning_and_the_end_are_looked_at() -> None:
    log = "line three of the list\n" * 400
    middle = log[:6_000] + " terrible " * 50 + log
    assert english_sentiment(middle).polarity == "neutral"
    assert english_sentiment(middle + " this is terrible").polarity == "negative"
    assert english_sentiment("I love it: " + middle).polarity == "positive"


def test_the_valence_is_the_score() -> None:
    for text in ("I love it", "never good. great", ""):
        assert valence(text) == english_sentiment(text).score


class Shouting:
    """A host's scorer: whoever shouts is angry."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    async def score(self, text: str, language: str) -> Sentiment:
        self.seen.append((len(text), language))
        return Sentiment.of(-0.8 if text.isupper() else 0.0, 0.9, language=language)


async def test_english_is_scored_whatever_its_region_and_by_default() -> None:
    scorers = SentimentScorers()
    for language in (None, "en", "en-US", "EN_gb"):
        found = await scorers.score("I hate it", language)
        assert (found.polarity, found.language) == ("negative", "en")


async def test_a_language_without_a_scorer_is_not_known() -> None:
    for language in ("de", "pt-BR", "xx"):
        found = await SentimentScorers().score("good", language)
        assert found == Sentiment.unknown(plain_language(language))


async def test_a_host_registers_a_scorer_of_its_own_for_a_language() -> None:
    scorers, own = SentimentScorers(), Shouting()
    scorers.register("de-AT", own)
    found = await scorers.score("DAS IST SCHRECKLICH", "de-DE")
    assert (found.polarity, found.language) == ("negative", "de")
    await scorers.score("x" * 100_000, "de")
    assert own.seen == [(19, "de"), (4_001, "de")]


async def test_a_hosts_scorer_replaces_the_english_one() -> None:
    scorers = SentimentScorers()
    scorers.register("en", Shouting())
    assert (await scorers.score("I hate it")).polarity == "neutral"


async def test_the_hosts_own_method_asks_no_built_in_scorer() -> None:
    scorers = SentimentScorers()
    assert await scorers.score("I hate it", method="own") == Sentiment.unknown("en")
    scorers.register("en", Shouting())
    assert (await scorers.score("I HATE IT", method="own")).polarity == "negative"


async def test_an_empty_text_says_nothing() -> None:
    assert not (await SentimentScorers().score("  \n")).known


@pytest.mark.parametrize("sign", "😡🤬😤😒🙄😖😣😫🤢🤮💩👎😠😢😭💔❌")
def test_these_emoji_feel_negative(sign: str) -> None:
    for text in (sign, f"the table {sign}", f"{sign}{sign}", f"the table{sign}and the chair"):
        assert english_sentiment(text).polarity == "negative"


@pytest.mark.parametrize("sign", "👍👏🙌🤩💯🔥😀😊😍🥳👌🎉")
def test_these_emoji_feel_positive(sign: str) -> None:
    for text in (sign, f"the table {sign}", f"{sign}{sign}", f"not the table {sign}"):
        assert english_sentiment(text).polarity == "positive"
