"""Candidates: what words find, what vectors find, and the one relevance of both."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from gmi.activities.memory.candidates import CONTEXT_LENGTH, Candidates, find_candidates, passage
from gmi.activities.memory.index import ScopeIndex, SearchFilter
from gmi.activities.memory.places import place_of
from gmi.activities.memory.ranking import (
    LENGTH_WEIGHT,
    NEIGHBOUR_WEIGHT,
    SATURATION,
    Searched,
    rank_words,
)
from gmi.activities.memory.traces import Scope, Trace

USER, THREAD = Scope("user", "kim"), Scope("thread", "s1")
MODEL = "test:model"


def said(
    depth: int, content: str, role: str = "user", *, scope: Scope = USER, **facts: object
) -> Trace:
    made = Trace(
        id=f"{role}-{depth}",
        scope=scope,
        content=content,
        session="s1",
        turn=f"turn-{depth}",
        branch="main",
        depth=depth,
        role=role,
        created_at=float(depth),
    )
    return replace(made, **facts)  # type: ignore[arg-type]


def index_of(*traces: Trace, scope: Scope = USER, model: str | None = None) -> ScopeIndex:
    index = ScopeIndex(scope, model)
    index.apply(traces)
    return index


def told(found: Candidates) -> dict[str, float]:
    return {t.id: float(r) for t, r in zip(found.traces, found.relevance, strict=True)}


def test_nothing_is_found_where_nothing_is() -> None:
    assert len(find_candidates([], "river")) == 0
    assert len(find_candidates([index_of()], "river", vector=[1.0, 0.0], model=MODEL)) == 0
    assert len(find_candidates([index_of(said(1, "lamp"))], "river")) == 0
    assert len(find_candidates([index_of(said(1, "lamp"))], "of the")) == 0


def test_words_are_found_by_their_stems_and_a_rare_word_weighs_more() -> None:
    index = index_of(
        *(said(i, f"walking by the river {i}", session=f"s{i}") for i in range(1, 9)),
        said(20, "a violin by itself", session="t"),
    )
    found = find_candidates([index], "Did I walk with violins?")
    assert found.traces[0].content == "a violin by itself"
    assert {t.content for t in found.traces[1:]} == {
        f"walking by the river {i}" for i in range(1, 9)
    }
    assert found.relevance[0] > 2 * found.relevance[1]


def test_an_answer_is_found_by_the_words_of_its_question_in_another_scope() -> None:
    users = index_of(
        said(1, "I adopted a dog"),
        said(2, "Rex!"),
        *(said(depth, "nothing new today") for depth in range(10, 30)),
    )
    replies = index_of(
        said(1, "Lovely, what is its name?", "assistant", scope=THREAD), scope=THREAD
    )
    alone = told(find_candidates([users], "name"))
    assert alone == {}
    together = told(find_candidates([users, replies], "name of the dog"))
    assert together["user-2"] > 0
    assert set(together) == {"user-1", "assistant-1", "user-2"}


def test_neighbours_are_those_of_the_same_session_and_branch() -> None:
    index = index_of(
        said(1, "a violin"),
        said(2, "next", id="same"),
        said(2, "next", id="branch", branch="other"),
        said(2, "next", id="session", session="s2"),
        said(2, "next", id="gist", role="gist"),
        said(4, "next", id="far"),
    )
    assert set(told(find_candidates([index], "violin"))) == {"user-1", "same"}


def test_a_neighbour_that_may_not_be_seen_lends_no_words() -> None:
    index = index_of(said(1, "a violin"), said(2, "next"))
    hidden = SearchFilter(exclude_turns=[("s1", "turn-1")])
    assert len(find_candidates([index], "violin", wanted=hidden)) == 0


def by_definition(traces: list[Trace], words: list[str]) -> dict[str, float]:
    """The ranking spelled out: a text's words, and at a part of their weight its neighbours'."""
    places = {place_of(trace): trace for trace in traces}
    own = {trace.id: Counter(trace.content.split()) for trace in traces}
    average = sum(sum(c.values()) for c in own.values()) / len(traces)
    found: dict[str, float] = {}
    for trace in traces:
        score = 0.0
        for word in words:
            holding = sum(word in counts for counts in own.values())
            idf = math.log(1 + (len(traces) - holding + 0.5) / (holding + 0.5))
            count = float(own[trace.id][word])
            for distance in (-2, -1, 1, 2):
                near = places.get(place_of(trace) + distance)
                count += NEIGHBOUR_WEIGHT * own[near.id][word] if near is not None else 0.0
            length = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * sum(own[trace.id].values()) / average
            score += idf * count * (SATURATION + 1) / (count + SATURATION * length)
        found[trace.id] = score
    return found


def test_the_ranking_is_bm25_with_neighbours_over_all_scopes() -> None:
    chance = random.Random(2)
    words = [f"w{n}" for n in range(25)]
    traces = []
    for depth in range(60):
        for role, scope in (("user", USER), ("assistant", THREAD)):
            if chance.random() < 0.8:
                text = " ".join(chance.choices(words, k=chance.randint(1, 9)))
                traces.append(said(depth, text, role, scope=scope))
    by_scope = [
        index_of(*(t for t in traces if t.scope == scope), scope=scope) for scope in (USER, THREAD)
    ]
    ranked = rank_words(
        "w1 w7 w7 w20 unknown",
        [Searched(i.words, i.places, i.mask(SearchFilter())) for i in by_scope],
    )
    found = {
        index.trace(row).id: float(score)
        for index, scores in zip(by_scope, ranked.scores, strict=True)
        for row, score in enumerate(scores)
    }
    assert found == pytest.approx(by_definition(traces, ["w1", "w7", "w20"]), rel=1e-4)


def test_without_a_vector_the_relevance_is_the_share_of_the_words() -> None:
    index = index_of(said(1, "red violin"), said(9, "red lamp"), said(19, "blue lamp"))
    found = find_candidates([index], "red violin")
    assert found.relevance.tolist() == found.words.tolist()
    assert told(found)["user-1"] == pytest.approx(1.0)
    assert 0 < told(found)["user-9"] < 1
    assert np.isnan(found.similarity).all()


def test_a_faint_match_is_not_made_a_full_one_by_being_the_best() -> None:
    index = index_of(*(said(10 * i, f"tea number{i}") for i in range(1, 40)), said(9, "a tea"))
    many = "tea violin harbour meadow copper bridge garden lamp"
    assert find_candidates([index], many).relevance.max() < 0.2


def random_vectors(count: int, seed: int = 1) -> dict[str, list[float]]:
    chance = np.random.default_rng(seed)
    return {f"user-{10 * n}": chance.standard_normal(32).tolist() for n in range(1, count + 1)}


def test_a_vector_finds_what_no_word_does() -> None:
    index = ScopeIndex(USER, MODEL)
    vectors = random_vectors(200)
    index.apply([said(10 * n, f"number{n}") for n in range(1, 201)], vectors)
    near = (np.array(vectors["user-70"]) + 0.2 * np.array(vectors["user-80"])).tolist()
    found = find_candidates([index], "nothing alike", vector=near, model=MODEL, limit=5)
    assert found.traces[0].id == "user-70"
    assert len(found) == 5
    assert found.similarity[0] > 0.9
    assert found.relevance[0] > 0.4 > found.relevance[1]


def test_words_and_vectors_together_beat_either() -> None:
    index = ScopeIndex(USER, MODEL)
    vectors = random_vectors(200)
    texts = {10 * n: "plain talk" for n in range(1, 201)} | {70: "a violin", 90: "the violin"}
    index.apply([said(depth, text) for depth, text in texts.items()], vectors)
    mixed = (np.array(vectors["user-70"]) + np.array(vectors["user-80"])).tolist()
    found = told(find_candidates([index], "violin", vector=mixed, model=MODEL))
    assert next(iter(found)) == "user-70"
    assert found["user-70"] > found["user-80"]
    assert found["user-70"] > found["user-90"]


def test_a_trace_without_a_vector_is_judged_by_its_words() -> None:
    index = ScopeIndex(USER, MODEL)
    index.apply([said(10, "a violin"), said(50, "a lamp"), said(90, "tea")], {"user-90": [1, 0]})
    found = find_candidates([index], "violin", vector=[1.0, 0.0], model=MODEL)
    assert told(found)["user-10"] == pytest.approx(1.0)
    assert "user-50" not in told(found)
    assert "user-90" in told(found)


def test_a_query_of_another_model_is_not_compared() -> None:
    index = ScopeIndex(USER, MODEL)
    index.apply([said(10, "a violin"), said(90, "tea")], {"user-90": [1, 0], "user-10": [0, 1]})
    found = find_candidates([index], "violin", vector=[1.0, 0.0, 0.0], model="test:another")
    assert list(told(found)) == ["user-10"]
    assert np.isnan(found.similarity).all()


def test_equally_good_ones_come_the_newest_first() -> None:
    index = index_of(*(said(10 * n, "a lamp") for n in (3, 1, 2)))
    assert list(told(find_candidates([index], "lamp"))) == ["user-30", "user-20", "user-10"]


def test_no_more_than_the_limit_are_found_and_they_are_the_best() -> None:
    index = index_of(*(said(10 * n, "lamp " * (1 + n % 7) + "and tea" * n) for n in range(1, 60)))
    every = list(told(find_candidates([index], "lamp")))
    assert list(told(find_candidates([index], "lamp", limit=4))) == every[:4]


def test_the_relevance_of_what_was_not_found_is_on_the_same_scale() -> None:
    index = ScopeIndex(USER, MODEL)
    vectors = random_vectors(60)
    index.apply([said(10 * n, f"number{n}") for n in range(1, 61)], vectors)
    query = vectors["user-70"]
    full = told(find_candidates([index], "number9", vector=query, model=MODEL, limit=60))
    few = find_candidates([index], "number9", vector=query, model=MODEL, limit=2)
    for id_, relevance in full.items():
        assert few.relevance_of(id_) == pytest.approx(relevance, abs=1e-6)
    assert few.relevance_of("unknown") == 0
    index.apply([said(990, "later")])
    assert few.relevance_of("user-990") == 0


def test_candidates_stay_when_the_scope_changes() -> None:
    index = index_of(said(1, "a violin"), said(9, "a lamp"))
    found = find_candidates([index], "violin")
    index.remove(["user-1"])
    assert [t.content for t in found.traces] == ["a violin"]
    assert found.relevance_of("user-1") == 0


def test_a_short_answer_is_embedded_with_what_was_said_before_it() -> None:
    before, answer = said(1, "x" * 1000 + " What is its name?", "assistant"), said(2, "Rex!")
    assert passage(answer) == "Rex!"
    text = passage(answer, before)
    assert text.endswith(" What is its name?\nRex!")
    assert len(text) == CONTEXT_LENGTH + len("\nRex!")
