from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from gmi.personas.confusion import CONFUSION_PHRASES, confusion_phrases
from gmi.personas.parts import SentimentTracking
from gmi.personas.sentiment import (
    EVENTS,
    LONG_CHARS,
    Event,
    Observed,
    Sentiment,
    SentimentSettings,
    SentimentState,
    Trend,
    considered,
    forgotten,
    observed,
)

NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
ON = SentimentSettings(enabled=True)

AWFUL = Sentiment.of(-0.7, 0.8, negative=1)
POOR = Sentiment.of(-0.4, 0.3, negative=1)
PLAIN = Sentiment.of(0.0, 0.0)
FAIR = Sentiment.of(0.4, 0.2, positive=1)
GREAT = Sentiment.of(0.8, 0.9, positive=1)
UNKNOWN = Sentiment.unknown("de")


class Conversation:
    """Turns that are observed one after the other."""

    def __init__(self, settings: SentimentSettings = ON) -> None:
        self.settings = settings
        self.state = SentimentState()
        self.turns = 0

    def hear(
        self, sentiment: Sentiment, text: str = "the table", **given: Any
    ) -> tuple[Event, ...]:
        self.turns += 1
        self.state, events = observed(
            self.state,
            sentiment,
            turn=f"turn-{self.turns}",
            text=text,
            now=NOW + timedelta(minutes=self.turns),
            settings=self.settings,
            **given,
        )
        return events

    def types(self, sentiment: Sentiment, text: str = "the table", **given: Any) -> list[str]:
        return [event.type for event in self.hear(sentiment, text, **given)]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        state = self.state
        return (state.frustration, state.confusion, state.satisfaction, state.listless)


def test_an_intense_bad_turn_frustrates_at_once_and_a_second_one_gravely() -> None:
    talk = Conversation()
    (first,) = talk.hear(AWFUL)
    (second,) = talk.hear(AWFUL)
    assert (first.type, first.severity) == ("user_frustrated", "medium")
    assert first.turn == "turn-1"
    assert first.at == NOW + timedelta(minutes=1)
    assert first.metadata == {
        "triggered_by": "sentiment",
        "sentiment_score": -0.7,
        "sentiment_polarity": "negative",
        "sentiment_intensity": 0.8,
        "consecutive_turns": 1,
    }
    assert (second.severity, second.metadata["consecutive_turns"]) == ("high", 2)


def test_mildly_bad_turns_frustrate_from_the_second_one_in_a_row_on() -> None:
    talk = Conversation()
    assert talk.types(POOR) == []
    (second,) = talk.hear(POOR)
    (third,) = talk.hear(POOR)
    assert (second.type, second.severity) == ("user_frustrated", "high")
    assert third.metadata["consecutive_turns"] == 3


def test_an_intense_good_turn_satisfies_and_mild_ones_from_the_third_on() -> None:
    assert Conversation().types(GREAT) == ["user_satisfied"]
    talk = Conversation()
    assert talk.types(FAIR) == []
    assert talk.types(FAIR) == []
    (third,) = talk.hear(FAIR)
    assert (third.type, third.severity) == ("user_satisfied", "low")
    assert third.metadata["consecutive_turns"] == 3


@pytest.mark.parametrize("other", [PLAIN, FAIR])
def test_another_kind_of_turn_starts_the_count_again(other: Sentiment) -> None:
    talk = Conversation()
    talk.hear(POOR)
    assert talk.types(other) == []
    assert talk.types(POOR) == []
    assert talk.counts == (1, 0, 0, 0)


def test_thresholds_themselves_count_as_neither() -> None:
    talk = Conversation()
    for score in (-0.3, 0.3):
        assert talk.types(Sentiment.of(score, 1.0)) == []
    assert talk.counts == (0, 0, 0, 2)
    assert Conversation().types(Sentiment.of(-0.9, 0.6)) == []
    assert Conversation().types(Sentiment.of(0.9, 0.5)) == []


def test_a_persona_sets_thresholds_turns_and_the_window() -> None:
    tracking = SentimentTracking(
        enabled=True,
        history_window=2,
        frustration_threshold=-0.5,
        satisfaction_threshold=0.9,
        consecutive_turns_for_trigger=3,
    )
    talk = Conversation(SentimentSettings.from_tracking(tracking))
    bad = Sentiment.of(-0.6, 0.2)
    assert [talk.types(item) for item in (POOR, GREAT, bad, bad, bad)] == [
        [],
        [],
        [],
        [],
        ["user_frustrated"],
    ]
    assert [trend.turn for trend in talk.state.trends] == ["turn-4", "turn-5"]


def test_settings_come_from_the_persona() -> None:
    assert not SentimentSettings.from_tracking(None).enabled
    own = SentimentTracking(
        method="llm", model_id="small", provider_id="ollama", history_window=500
    )
    settings = SentimentSettings.from_tracking(own)
    assert (settings.method, settings.model, settings.window) == ("llm", "ollama:small", 10)
    odd = SentimentTracking(method="trained_classifier", frustration_threshold=float("nan"))
    assert SentimentSettings.from_tracking(odd).method == "own"
    assert SentimentSettings.from_tracking(odd).frustration == -0.3


CONFUSED = [
    ("I don't understand", ["don't understand"]),
    ("I don’t understand", ["don't understand"]),
    ("I do not understand", ["do not understand"]),
    ("dont understand", ["dont understand"]),
    ("huh", ["huh"]),
    ("Huh, what?", ["huh"]),
    ("What?? No", ["??"]),
    ("I am UNCLEAR about it", ["unclear"]),
    ("not sure", ["not sure"]),
    ("What do you mean?", ["what do you mean"]),
    ("It doesn’t make sense to me", ["doesn't make sense"]),
    ("I'm confused, please explain", ["confused", "explain"]),
    ("explain that again", ["explain"]),
    ("Please clarify section two.", ["clarify"]),
    ("explain and clarify it", ["explain", "clarify"]),
]
CLEAR = [
    "explain please",
    "Explain recursion to me",
    "Thus, uhhuh",
    "explained",
    "the nuclear plant",
    "I am not confused",
    "I am no longer confused",
    "It isn't unclear at all",
    "I am not. Sure, go on",
    "Is that all?",
    "",
]


@pytest.mark.parametrize(("text", "phrases"), CONFUSED)
def test_phrases_of_confusion_confuse(text: str, phrases: list[str]) -> None:
    (event,) = Conversation().hear(PLAIN, text)
    assert (event.type, event.severity) == ("user_confused", "medium")
    assert event.metadata == {
        "triggered_by": "keyword",
        "consecutive_turns": 1,
        "evidence_preview": text,
        "trigger_keywords": phrases,
    }


@pytest.mark.parametrize("text", CLEAR)
def test_a_plain_request_and_a_part_of_a_word_do_not_confuse(text: str) -> None:
    assert confusion_phrases(text) == ()
    assert Conversation().types(PLAIN, text) == []


def test_every_phrase_is_found_where_it_stands_among_words() -> None:
    for phrase in CONFUSION_PHRASES:
        assert phrase in confusion_phrases(f"Well {phrase.upper()} once again")


def test_a_text_torn_between_words_confuses() -> None:
    torn = Sentiment.of(0.0, 0.9, positive=3, negative=3)
    (event,) = Conversation().hear(torn)
    assert event.metadata["triggered_by"] == "sentiment"
    assert event.metadata["trigger_keywords"] == []
    assert Conversation().types(Sentiment.of(0.0, 0.9, positive=2, negative=2)) == []


def test_confused_turns_are_counted_and_neutral_ones_are_not_confused() -> None:
    talk = Conversation()
    assert talk.types(PLAIN) == []
    (first,) = talk.hear(PLAIN, "huh")
    (second,) = talk.hear(PLAIN, "what do you mean")
    assert (first.severity, second.severity) == ("medium", "high")
    assert talk.counts == (0, 2, 0, 3)
    talk.hear(PLAIN)
    assert talk.counts == (0, 0, 0, 4)


def test_one_turn_raises_several_events_in_their_order() -> None:
    talk = Conversation()
    assert talk.types(AWFUL, "huh", recent_errors=3) == [
        "user_frustrated",
        "user_confused",
        "error_threshold_exceeded",
    ]
    assert talk.types(GREAT, "huh", recent_errors=2) == list(EVENTS)[1:4]


def test_two_errors_among_the_last_entries_are_an_event_each_turn() -> None:
    talk = Conversation()
    assert talk.types(PLAIN, recent_errors=1) == []
    for _ in range(2):
        (event,) = talk.hear(PLAIN, recent_errors=2)
        assert (event.type, event.severity) == ("error_threshold_exceeded", "high")
        assert event.metadata == {
            "triggered_by": "error",
            "error_count": 2,
            "consecutive_turns": 2,
        }


SHORT = [9, 7, 5]


def test_four_listless_short_turns_in_a_row_are_low_engagement() -> None:
    talk = Conversation()
    found = [
        talk.types(PLAIN, text, recent_user_lengths=SHORT) for text in ("on it", "ok", "a", "b")
    ]
    assert found == [[], [], [], ["low_engagement"]]
    (again,) = talk.hear(PLAIN, "c", recent_user_lengths=SHORT)
    assert again.severity == "medium"
    assert again.metadata == {
        "triggered_by": "pattern",
        "consecutive_turns": 5,
        "mean_length": 7,
    }


def test_turns_that_ask_or_are_confused_count_as_listless_as_well() -> None:
    talk = Conversation()
    found = [talk.types(PLAIN, text) for text in ("ok", "which one?", "huh", "who?", "not sure")]
    assert found == [[], [], ["user_confused"], ["low_engagement"], [*EVENTS[1:2], EVENTS[4]]]
    assert talk.state.listless == 5


@pytest.mark.parametrize(("sentiment", "text"), [(FAIR, "nice"), (POOR, "poor")])
def test_who_feels_something_is_engaged(sentiment: Sentiment, text: str) -> None:
    talk = Conversation()
    for _ in range(3):
        talk.hear(PLAIN, "ok")
    assert "low_engagement" not in talk.types(sentiment, text)
    assert talk.state.listless == 0


@pytest.mark.parametrize(("lengths", "low"), [([10, 139], False), ([50], False), ([9, 90], True)])
def test_long_messages_are_engagement(lengths: Sequence[int], low: bool) -> None:
    talk = Conversation()
    for _ in range(3):
        talk.hear(PLAIN, "ok")
    assert ("low_engagement" in talk.types(PLAIN, "ok", recent_user_lengths=lengths)) is low


def test_a_sentiment_that_is_not_known_leaves_the_counts_alone_and_raises_nothing() -> None:
    talk = Conversation()
    talk.hear(POOR)
    talk.hear(POOR)
    assert talk.types(UNKNOWN, "so ein Tag") == []
    assert talk.counts == (2, 0, 0, 0)
    (event,) = talk.hear(POOR)
    assert event.metadata["consecutive_turns"] == 3
    assert talk.types(UNKNOWN, "was??") == ["user_confused"]
    idle = Conversation()
    for _ in range(4):
        idle.hear(PLAIN, "ok")
    assert idle.types(UNKNOWN, "na ja?") == []
    assert idle.state.listless == 4


def test_an_empty_text_and_a_turn_seen_before_change_nothing() -> None:
    talk = Conversation()
    talk.hear(AWFUL)
    before = talk.state
    assert talk.hear(AWFUL, "  ") == ()
    assert talk.state == before
    same = observed(before, AWFUL, turn="turn-1", text="again", now=NOW, settings=ON)
    assert same == Observed(before)


def test_the_trend_keeps_ten_turns_with_an_excerpt_each() -> None:
    talk = Conversation()
    assert talk.state.current is None
    for _ in range(12):
        talk.hear(PLAIN, "é" * 300)
    trends = talk.state.trends
    assert [trend.turn for trend in trends] == [f"turn-{number}" for number in range(3, 13)]
    assert {trend.excerpt for trend in trends} == {"é" * 100}
    assert {trend.length for trend in trends} == {300}
    assert talk.state.current == "neutral"
    assert len(talk.state.model_dump_json().encode()) < 6_000


def test_a_message_that_is_only_known_in_part_counts_with_its_own_length() -> None:
    talk = Conversation()
    found = [talk.types(PLAIN, "(large input)", length=LONG_CHARS) for _ in range(4)]
    assert found == [[], [], [], []]
    assert talk.state.listless == 4
    assert talk.state.trends[-1].length == LONG_CHARS


def test_a_trend_that_an_older_release_wrote_counts_as_long() -> None:
    talk = Conversation()
    talk.hear(PLAIN, "ok")
    told = talk.state.trends[0].model_dump(mode="json", exclude={"length"})
    assert Trend.model_validate(told).length == LONG_CHARS


def test_confusion_is_found_in_the_middle_of_a_long_text() -> None:
    text = "x " * 3_000 + "I am confused. " + "x " * 3_000
    assert Conversation().types(PLAIN, text) == ["user_confused"]


def test_forgotten_turns_lose_their_words_and_keep_their_numbers() -> None:
    talk = Conversation()
    talk.hear(AWFUL, "my secret, huh")
    talk.hear(POOR, "kept, huh")
    state = forgotten(talk.state, {"turn-2"})
    assert [trend.excerpt for trend in state.trends] == ["", "kept, huh"]
    assert state.trends[0].score == -0.7
    assert state.frustration == talk.state.frustration
    text = state.model_dump_json()
    assert "secret" not in text
    assert "kept, huh" in text


def test_state_and_events_survive_json_exactly() -> None:
    talk = Conversation()
    events = talk.hear(Sentiment.of(-1 / 3, 2 / 3), "huh")
    assert SentimentState.model_validate_json(talk.state.model_dump_json()) == talk.state
    assert len(events) == 2
    for event in events:
        assert Event.model_validate_json(event.model_dump_json()) == event


def test_a_state_written_by_a_later_release_is_read() -> None:
    assert SentimentState.model_validate({"frustration": 2, "joy": 1}).frustration == 2


@pytest.mark.parametrize(
    ("score", "polarity"),
    [
        (0.049, "neutral"),
        (0.05, "positive"),
        (-0.05, "negative"),
        (-0.0, "neutral"),
        (7, "positive"),
    ],
)
def test_the_polarity_follows_the_score(score: float, polarity: str) -> None:
    found = Sentiment.of(score, 5)
    assert (found.polarity, found.intensity) == (polarity, 1)
    assert abs(found.score) <= 1


@pytest.mark.parametrize("bad", [float("nan"), float("-nan")])
def test_what_is_no_number_is_no_sentiment(bad: float) -> None:
    with pytest.raises(ValidationError):
        Sentiment.of(bad, 0.0)
    with pytest.raises(ValidationError):
        Sentiment.of(0.0, bad)


def test_a_long_text_is_looked_at_from_both_ends() -> None:
    assert considered("a" * 4_000) == "a" * 4_000
    assert considered("a" * 9_000 + "z" * 9_000) == "a" * 2_000 + "\n" + "z" * 2_000
    assert Conversation().types(PLAIN, "x " * 9_000 + "huh") == ["user_confused"]


COUNTS = [
    # Elsewhere every turn between the thresholds counts as confused, and a turn outside them never
    # does, whatever it says. Here the count tells of confused turns.
    (PLAIN, "the table", 1, 0),
    (PLAIN, "I don't understand", 1, 1),
    (AWFUL, "I am confused", 0, 1),
    (GREAT, "great, but huh", 0, 1),
]


@pytest.mark.parametrize(("sentiment", "text", "elsewhere", "here"), COUNTS)
def test_the_count_of_confused_turns_counts_confused_turns(
    sentiment: Sentiment, text: str, elsewhere: int, here: int
) -> None:
    talk = Conversation()
    talk.hear(sentiment, text)
    assert talk.state.confusion == here
