"""The tokenizer and the inverted index, checked against plain counting."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from gmi.activities.memory.words import WordIndex, tokenize

WORDS = ["river", "bridge", "lamp", "garden", "violin", "harbour", "copper", "meadow", "train"]


def texts(count: int, seed: int = 7) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 8))) for _ in range(count)]


def held(index: WordIndex, word: str) -> dict[int, float]:
    rows, counts = index.postings(tokenize(word)[0])
    return dict(zip(rows.tolist(), counts.tolist(), strict=True))


def counted(all_texts: list[str], word: str) -> dict[int, float]:
    found = {row: Counter(text.split())[word] for row, text in enumerate(all_texts)}
    return {row: float(count) for row, count in found.items() if count}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Running, runs and RAN", ["run", "run", "ran"]),
        ("Where did you put the keys?", ["put", "key"]),
        ("Kim's brother isn't here", ["kim", "brother"]),
        ("Größe in Zürich", ["größe", "zürich"]),
        ("the ﬁle №5", ["file", "no5"]),
        ("私は猫です", ["私は", "は猫", "猫で", "です"]),
        ("iPhone手机", ["iphon", "手机"]),
        ("", []),
        ("?! …", []),
    ],
)
def test_a_text_is_cut_into_the_stems_of_its_words(text: str, words: list[str]) -> None:
    assert tokenize(text) == words


def test_a_word_without_end_is_cut() -> None:
    assert tokenize("x" * 5000) == ["x" * 64]


def test_postings_count_every_row_however_the_rows_came() -> None:
    all_texts = texts(500)
    at_once, one_by_one = WordIndex(), WordIndex()
    at_once.add(all_texts)
    for text in all_texts:
        one_by_one.add([text])
    for word in WORDS:
        assert held(at_once, word) == held(one_by_one, word) == counted(all_texts, word)
    lengths = [len(text.split()) for text in all_texts]
    assert at_once.lengths.tolist() == one_by_one.lengths.tolist() == lengths


def test_the_rows_of_a_word_ascend() -> None:
    index = WordIndex()
    for text in texts(300):
        index.add([text])
    rows, _ = index.postings("river")
    assert rows.tolist() == sorted(set(rows.tolist()))


def test_an_unknown_word_is_in_no_row() -> None:
    index = WordIndex()
    index.add(["river"])
    rows, counts = index.postings("mountain")
    assert len(rows) == len(counts) == 0


def test_compacting_leaves_the_rows_that_stay_as_they_were() -> None:
    all_texts = texts(400)
    keep = np.array([row % 3 != 0 for row in range(400)])
    index = WordIndex()
    for text in all_texts:
        index.add([text])
    index.compact(keep)
    stayed = [text for text, stays in zip(all_texts, keep, strict=True) if stays]
    assert len(index) == len(stayed)
    index.add(["river violin"])
    stayed.append("river violin")
    for word in WORDS:
        assert held(index, word) == counted(stayed, word)


def test_compacting_everything_away_leaves_an_index_that_can_be_filled_again() -> None:
    index = WordIndex()
    index.add(["river", "bridge"])
    index.compact(np.zeros(2, bool))
    assert len(index) == 0
    assert held(index, "river") == {}
    index.add(["river"])
    assert held(index, "river") == {0: 1.0}


def test_memory_is_said_to_grow_with_the_words() -> None:
    small, large = WordIndex(), WordIndex()
    small.add(texts(10))
    large.add(texts(2000))
    assert large.bytes > small.bytes + 2000 * 8
