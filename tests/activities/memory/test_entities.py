from __future__ import annotations

import pytest

from gmi.activities.memory.entities import MAX_ENTITIES, entities_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I moved to Oslo with Tomas last May.", ("oslo", "tomas")),
        ("My sister Clara loves Bach, Mozart and Ella Fitzgerald.",
         ("clara", "bach", "mozart", "ella fitzgerald")),
        ("She studies at the University of Oslo.", ("university of oslo",)),
        ("Anna and Tom Miller went to New York.", ("anna", "tom miller", "new york")),
        ("Caroline went home.", ("caroline",)),
        ("Rex's vet is Dr. Ingrid Berg.", ("rex", "ingrid berg")),
        ("Rex", ("rex",)),
        ("Call Mum\n- Buy milk\n- Ask O'Brien", ("mum", "o'brien")),
        ("Hey Mel! Good to see you!", ("mel",)),
        ("We visited NASA.", ("nasa",)),
    ],
)  # fmt: skip
def test_names_are_found(text: str, found: tuple[str, ...]) -> None:
    assert entities_of(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello there",
        "Yesterday it rained. Then we went home. Everything was fine.",
        "I'm tired. I'll go. OK!",
        "On Monday we meet.",
        'He said "I am so very tired of it all, really, believe me."',
    ],
)
def test_the_beginning_of_a_sentence_is_no_name(text: str) -> None:
    assert entities_of(text) == ()


def test_handles_dates_years_and_titles_are_found() -> None:
    text = 'Ping @ada_l on 2024-05-12 or 3 May 2021 about #python, "Dune Messiah" and 1984.'
    assert entities_of(text) == (
        "@ada_l",
        "2024-05-12",
        "3 may 2021",
        "#python",
        "dune messiah",
        "1984",
    )


@pytest.mark.parametrize("text", ["It cost 2,019 dollars.", "a v1984 b", "20.1984", "1999%"])
def test_other_numbers_are_no_years(text: str) -> None:
    assert entities_of(text) == ()


def test_a_name_counts_once_whatever_its_case() -> None:
    assert entities_of("we saw Oslo, then OSLO, then oslo") == ("oslo",)


def test_no_more_than_twelve_are_found() -> None:
    text = "we met " + ", ".join(f"Name{chr(97 + n)}" for n in range(20))
    assert len(entities_of(text)) == MAX_ENTITIES


@pytest.mark.parametrize("piece", ["A", "A b ", "@", '"A', "Of Of ", " ", "\n", "(", "1984 ", "’"])
def test_a_long_odd_text_is_read_in_time(piece: str) -> None:
    found = entities_of(piece * 10_000)
    assert len(found) <= MAX_ENTITIES
