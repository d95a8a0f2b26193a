from __future__ import annotations

from gmi.personas.emotion import Interlocutor
from gmi.personas.mind import (
    HAPPENED_CHARS,
    MAX_HAPPENED,
    MAX_WORKING_BYTES,
    Mind,
    TaskContext,
)


def test_what_happened_is_told_in_a_line_each_with_its_source() -> None:
    mind = Mind().told_of("A door\n  opened", Interlocutor())
    mind = mind.told_of("Hello", Interlocutor(name="Kim"))
    assert mind.happened == ("A door opened", "Kim: Hello")
    assert mind.source == Interlocutor(name="Kim")


def test_only_the_newest_of_what_happened_is_kept_and_long_words_are_cut() -> None:
    mind = Mind()
    for number in range(MAX_HAPPENED + 2):
        mind = mind.told_of(f"{number} " + "x" * 1000, Interlocutor())
    assert [line[:2] for line in mind.happened] == ["2 ", "3 ", "4 "]
    assert {len(line) for line in mind.happened} == {HAPPENED_CHARS}


def test_the_oldest_notes_give_way_when_working_memory_is_full() -> None:
    mind = Mind()
    for number in range(20):
        mind = mind.noted({f"note-{number}": "x" * 1000})
    assert len(mind.model_dump_json()) < MAX_WORKING_BYTES + 1024
    assert list(mind.working)[-1] == "note-19"
    assert "note-0" not in mind.working


def test_a_note_of_nothing_is_forgotten_and_one_written_again_is_the_newest() -> None:
    mind = Mind().noted({"a": 1, "b": 2}).noted({"a": 3})
    assert list(mind.working) == ["b", "a"]
    assert mind.noted({"a": None}).working == {"b": 2}


def test_notes_of_the_conversation_go_with_its_words_and_the_personas_own_stay() -> None:
    mind = Mind().noted({"own": 1, "both": 1}).noted({"both": 2, "heard": 3}, "t1")
    assert mind.noted_in == {"both": "t1", "heard": "t1"}
    assert mind.noted({"both": 4}).noted_in == {"heard": "t1"}
    assert mind.without_notes(["heard"]).noted_in == {"both": "t1"}
    left = mind.without_words_of(["t0"])
    assert (left.working, left.noted_in) == ({"own": 1}, {})


def test_other_words_of_a_complexity_are_taken_as_it_and_unknown_ones_stay() -> None:
    words = {
        word: TaskContext(complexity=word).complexity
        for word in ("low", "medium", "High", "advanced", "odd")
    }
    assert words == {
        "low": "simple",
        "medium": "moderate",
        "High": "complex",
        "advanced": "advanced",
        "odd": "odd",
    }


def test_a_mind_is_the_same_after_json() -> None:
    mind = Mind().told_of("Hello", Interlocutor(name="Kim", extensions={"b": "1", "a": "2"}))
    again = Mind.model_validate_json(mind.model_dump_json())
    assert again == mind
    assert again.source is not None
    assert list(again.source.extensions) == ["b", "a"]
