from __future__ import annotations

import math
from typing import Any

import pytest

from gmi.activities.memory.encoding import (
    arousal_effect,
    encode,
    encoding_weights,
    felt,
)
from gmi.activities.memory.features import Features, attention_features
from gmi.activities.memory.ranges import intensity
from gmi.activities.memory.traces import HOUR, Affect
from gmi.personas.errors import ValidationError

from .making import affect
from .rows import rows, table

NEUTRAL = Affect()
MOODS = table("encoding")["moods"]
TRAITS = table("encoding")["traits"]
FEATURES = table("encoding")["features"]


@pytest.mark.parametrize("row", rows("encoding", "weights"))
def test_traits_set_what_is_attended_to(row: dict[str, Any]) -> None:
    weights = encoding_weights(row["traits"])
    for name in ("novelty", "procedure", "emotion", "social", "cooperation", "ethics"):
        assert getattr(weights, name) == pytest.approx(row[name], abs=1e-12)


@pytest.mark.parametrize("row", rows("encoding", "arousal_effect"))
def test_arousal_helps_most_in_the_middle(row: dict[str, Any]) -> None:
    assert arousal_effect(row["arousal"]) == pytest.approx(row["factor"], abs=1e-12)


@pytest.mark.parametrize("row", rows("encoding", "felt"))
def test_a_content_is_felt_with_a_share_of_the_mood(row: dict[str, Any]) -> None:
    found = felt(affect(row["mood"]), row["sentiment"])
    assert [found.valence, found.arousal, found.dominance] == pytest.approx(row["affect"])
    assert intensity(found) == pytest.approx(row["intensity"], abs=1e-12)


def test_every_row_of_encoding_comes_out() -> None:
    found = rows("encoding", "encoding")
    assert len(found) == 360
    for row in found:
        encoded = encode(
            affect(MOODS[row["mood"]]),
            row["sentiment"],
            Features(**FEATURES[row["features"]]),
            TRAITS[row["traits"]],
        )
        assert encoded.strength == pytest.approx(row["strength"], abs=1e-12), row
        assert encoded.stability == pytest.approx(row["stability"], rel=1e-12), row
        assert encoded.importance == pytest.approx(row["importance"], abs=1e-12), row
        assert encoded.flashbulb is row["flashbulb"]


@pytest.mark.parametrize("row", rows("encoding", "texts"))
def test_a_text_is_encoded_by_its_words_and_its_sentiment(row: dict[str, Any]) -> None:
    encoded = encode(NEUTRAL, row["sentiment"], attention_features(row["text"]))
    assert encoded.strength == pytest.approx(row["strength"], abs=1e-12)
    assert encoded.stability == pytest.approx(row["stability"], rel=1e-12)
    assert encoded.intensity == pytest.approx(row["intensity"], abs=1e-12)
    given = encoded.affect
    assert [given.valence, given.arousal, given.dominance] == pytest.approx(row["affect"])


def test_a_shock_burns_in() -> None:
    shaken = Affect(valence=-0.9, arousal=0.9, dominance=-0.5)
    encoded = encode(shaken, -1.0, Features(emotion=True), {"emotionality": 1.0})
    # v = -.7 - .27 = -.97, awake .95: .9215 is above .8
    assert encoded.intensity == pytest.approx(0.9215)
    assert encoded.flashbulb
    strength = 0.5 * 0.3 * (1 + 0.9215 * 0.5) * 0.675 * (1 + 0.9 * 0.3) * 2
    assert encoded.strength == pytest.approx(strength)
    assert encoded.stability == pytest.approx(5 * HOUR * (1 + 6 * strength))


def test_only_an_intensity_above_the_limit_is_a_shock() -> None:
    at_limit = encode(Affect(valence=-1.0, arousal=1.0), 0.0, Features())
    assert at_limit.intensity == 0.3
    assert not at_limit.flashbulb
    just_over = encode(Affect(valence=0.34, arousal=1.0), 1.0, Features())
    assert just_over.flashbulb
    below = encode(Affect(valence=0.33, arousal=1.0), 1.0, Features())
    assert not below.flashbulb


def test_what_is_out_of_range_counts_as_its_end() -> None:
    inside = encode(Affect(1, 1, 1), 1.0, Features(topic_relevance=1.0), {"openness": 1.0})
    outside = encode(Affect(3, 9, 2), 5.0, Features(topic_relevance=7.0), {"openness": 4.0})
    assert outside == inside
    assert 0 <= outside.strength <= 1
    assert 0 <= outside.importance <= 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValidationError, match="sentiment"):
        encode(NEUTRAL, bad, Features())
    with pytest.raises(ValidationError, match="arousal"):
        encode(Affect(arousal=bad), 0.0, Features())
    with pytest.raises(ValidationError, match="openness"):
        encode(NEUTRAL, 0.0, Features(), {"openness": bad})
    with pytest.raises(ValidationError, match="topic_relevance"):
        encode(NEUTRAL, 0.0, Features(topic_relevance=bad))


def test_a_longer_base_makes_every_memory_hold_longer() -> None:
    plain = encode(NEUTRAL, 0.0, Features())
    longer = encode(NEUTRAL, 0.0, Features(), base_stability=10 * HOUR)
    assert longer.stability == pytest.approx(10 * plain.stability)
    assert longer.strength == plain.strength


@pytest.mark.parametrize("row", rows("encoding", "attention_features"))
def test_words_show_what_calls_for_attention(row: dict[str, Any]) -> None:
    found = attention_features(row["text"])
    names = ("novelty", "procedure", "emotion", "social", "cooperation", "ethics", "contradiction")
    assert sorted(name for name in names if getattr(found, name)) == row["found"]
    assert found.topic_relevance == 0.5


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("Actually, that's not right", "contradiction"),
        ("I changed my mind about the flat", "contradiction"),
        ("First boil the water, then add the tea", "procedure"),
        ("1. open it\n2. read it", "procedure"),
        ("How to repot a fern", "procedure"),
        ("My friend moved to Lyon", "social"),
        ("Could you help me?", "cooperation"),
        ("I was so angry", "emotion"),
        ("I discovered a bakery", "novelty"),
        ("He lied to all of us", "ethics"),
        ("We ask for transparency", "ethics"),
        ("No, it is on Friday", "contradiction"),
        ("It is fine. No, take the other", "contradiction"),
        ("In fact it was Friday", "contradiction"),
        ("That was a mistake", "contradiction"),
        ("The date was corrected", "contradiction"),
        ("However, that isn’t the date", "contradiction"),
        ("He was never there, actually", "contradiction"),
        ("Actually the number is wrong", "contradiction"),
        ("First, boil the water", "procedure"),
        ("Then, wait", "procedure"),
        ("and finally, drink it", "procedure"),
        ("See step-2 for the wires", "procedure"),
        ("Call me when you are there", "social"),
        ("Let's discuss this on Monday", "social"),
        ("Let us discuss this", "social"),
        ("They told Ann about it", "social"),
        ("I asked about the plants and him", "social"),
        ("I am sorry", "emotion"),
        ("what a day 😡", "emotion"),
        ("❤️", "emotion"),
        ("A unique stamp", "novelty"),
    ],
)
def test_more_sentences_show_what_they_are_about(text: str, feature: str) -> None:
    assert getattr(attention_features(text), feature)


@pytest.mark.parametrize(
    "text",
    [
        "Actually, tea is on the table",
        "However, the bus came at ten",
        "The bus is not here. Actually it is",
        "There is no one in the garden",
        "They bloom in May and I water them",
        "He has a blue car",
        "Then the first bus came, and the last",
        "🍰 and 🚗",
    ],
)
def test_words_that_only_count_beside_others_do_not_count_alone(text: str) -> None:
    assert attention_features(text) == Features()


@pytest.mark.parametrize("text", ["renewal", "unhappyish", "Sheffield", "steps", "injustices"])
def test_a_word_within_a_word_does_not_count(text: str) -> None:
    assert attention_features(text) == Features()
