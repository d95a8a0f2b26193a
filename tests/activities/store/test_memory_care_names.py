"""What names and looks for memories: nothing empty, nothing that cannot be kept, either case."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from gmi.activities.memory.store import Find
from gmi.activities.memory.traces import Scope
from gmi.activities.store import SQLStore
from gmi.activities.store.pages import cursor
from gmi.personas.errors import PermissionDeniedError, RequestMismatchError, ValidationError
from gmi.workflows.decode import parse
from gmi.workflows.memory import Care, CareAnswer

from .caring import NOW, SmallEmbedder, World
from .conftest import Life

NAMES = ("user_id", "persona", "session_id", "turn", "request_id", "after")
LISTS = ("scopes", "ids", "types", "tags")


@pytest.fixture
def world(store: SQLStore) -> World:
    return World(store)


async def asked(world: World, kind: str, **given: Any) -> CareAnswer:
    """Ask with what crosses the wire."""
    whole = {"kind": kind, "now": NOW, "request_id": str(uuid.uuid4())} | given
    return await world.serve(parse(whole, Care))


@pytest.mark.parametrize("kind", ["list", "search", "stats", "remember", "correct", "forget"])
@pytest.mark.parametrize("name", [*NAMES, "text"])
async def test_an_empty_name_is_refused(world: World, kind: str, name: str) -> None:
    await world.keep(world.trace())
    whole = {"user_id": world.user, "text": "alpacas"} | {name: ""}
    with pytest.raises(ValidationError, match=name):
        await asked(world, kind, **whole)
    assert await world.left() == ["alpacas hum"]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("sign", ["", "a\x00b", "a\ud800b"])
async def test_a_list_holds_only_names_that_can_be_kept(world: World, name: str, sign: str) -> None:
    with pytest.raises(ValidationError, match=name):
        await asked(world, "list", user_id=world.user, **{name: [sign]})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sign", ["a\x00b", "a\ud800b"])
async def test_a_name_that_cannot_be_kept_is_refused(world: World, name: str, sign: str) -> None:
    with pytest.raises(ValidationError, match=name):
        await asked(world, "list", **{name: sign})


@pytest.mark.parametrize("empty", [{"turn": ""}, {"persona": ""}, {"text": ""}, {"text": "   "}])
async def test_nothing_is_erased_where_what_names_it_is_empty(
    world: World, empty: dict[str, str]
) -> None:
    await world.ask("remember", text="Anna is allergic to nuts", user_id=world.user)
    with pytest.raises(ValidationError):
        await asked(world, "forget", **({"user_id": world.user} | empty))
    with pytest.raises(ValidationError):
        await asked(world, "forget", **empty)
    assert await world.left() == ["Anna is allergic to nuts"]


@pytest.mark.parametrize(
    "empty",
    [
        {"user_id": ""},
        {"persona_id": ""},
        {"session": ""},
        {"turn": ""},
        {"text": ""},
        {"ids": [""]},
    ],
)
def test_the_store_is_never_asked_for_what_has_no_name(empty: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="empty"):
        Find(**empty)


@pytest.mark.parametrize("kind", ["list", "stats", "search", "forget"])
async def test_a_type_that_there_is_none_of_is_refused(world: World, kind: str) -> None:
    with pytest.raises(ValidationError, match="types"):
        await asked(world, kind, user_id=world.user, text="alpacas", types=["nonsense"])


@pytest.mark.parametrize("time", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_a_cursor_whose_time_is_none_is_refused(world: World, time: str) -> None:
    with pytest.raises(ValidationError, match="cursor"):
        await asked(world, "list", user_id=world.user, after=json.dumps([time, "x"]))


@pytest.mark.parametrize("id_", ["a\x00b", "a\ud800b"])
async def test_a_cursor_that_holds_what_cannot_be_kept_is_refused(world: World, id_: str) -> None:
    with pytest.raises(ValidationError, match="cursor"):
        await asked(world, "list", user_id=world.user, after=cursor("1.0", id_))


async def test_words_with_nul_are_kept_once_and_found_again(world: World) -> None:
    given = {"text": "a\x00b kumquat", "user_id": world.user, "request_id": str(uuid.uuid4())}
    [first] = (await asked(world, "remember", **given)).items
    [again] = (await asked(world, "remember", **given)).items
    assert again == first
    assert first["content"] == "a\ufffdb kumquat"
    found = await asked(world, "list", user_id=world.user, text="a\x00B")
    assert [item["id"] for item in found.items] == [first["id"]]
    with pytest.raises(RequestMismatchError):
        await asked(world, "remember", **(given | {"text": "a b kumquat"}))


async def test_half_a_character_is_refused_wherever_words_are_taken(world: World) -> None:
    for kind in ("list", "search", "remember", "forget"):
        with pytest.raises(ValidationError, match="text"):
            await asked(world, kind, user_id=world.user, text="kum\ud800quat")


@pytest.mark.parametrize(
    ("content", "looked_for"),
    [
        ("Ärger mit Özil", ["Ärger", "ärger", "ÄRGER", "A\u0308rger", "öZIL"]),
        ("ПРИВЕТ мир", ["привет", "Привет", "МИР"]),
        ("Hauptstraße", ["STRASSE", "straße", "Strasse"]),
        ("ΟΔΥΣΣΕΥΣ", ["οδυσσευς", "οδυσσευσ"]),
        ("100% of_it \\ here", ["0% OF_IT", "\\ HERE"]),
        ("cafe\u0301 noir", ["CAFÉ"]),
    ],
)
async def test_words_are_found_in_either_case_on_every_database(
    world: World, content: str, looked_for: list[str]
) -> None:
    await world.keep(world.trace(content), world.trace("something else"))
    for text in looked_for:
        found = await asked(world, "list", user_id=world.user, text=text)
        assert [item["content"] for item in found.items] == [content], text
    gone = await asked(world, "forget", user_id=world.user, text=looked_for[-1])
    assert gone.counts["traces"] == 1
    assert await world.left() == ["something else"]


async def test_a_sign_that_means_any_other_in_a_pattern_means_itself(world: World) -> None:
    await world.keep(world.trace("plain words"))
    for text in ("%", "_", "p%s", "plai_", "*", "[a-z]"):
        assert (await asked(world, "list", user_id=world.user, text=text)).items == []


async def test_a_text_longer_than_any_pattern_can_be_looked_for(world: World) -> None:
    await world.keep(world.trace("short"))
    assert (await asked(world, "list", user_id=world.user, text="y" * 100_000)).items == []


async def test_a_corrected_memory_is_found_by_its_new_words_alone(world: World) -> None:
    made = world.trace("Über Rom")
    await world.keep(made)
    await world.ask("correct", ids=[made.id], text="Über Öslo")
    assert len((await asked(world, "list", user_id=world.user, text="ÖSLO")).items) == 1
    assert (await asked(world, "list", user_id=world.user, text="rom")).items == []


@pytest.mark.parametrize("with_vectors", [False, True])
async def test_a_search_by_type_finds_what_many_of_another_type_outrank(
    store: SQLStore, with_vectors: bool
) -> None:
    world = World(store, SmallEmbedder() if with_vectors else None)
    await world.keep(*(world.trace(f"apple number {n}") for n in range(30)))
    await world.ask("remember", text="apple fact", user_id=world.user)
    found = await world.ask(
        "search", text="apple number 3", user_id=world.user, types=["semantic"], limit=5
    )
    assert [item["content"] for item in found.items] == ["apple fact"]


@pytest.mark.parametrize("scope", ["user:bob", "thread:other", "persona:vera", "organization:acme"])
async def test_a_session_remembers_only_where_it_reads(
    world: World, life: Life, scope: str
) -> None:
    word = f"quagmire{uuid.uuid4().hex[:6]}"
    given = {"text": word, "session_id": life.session_id, "readable": True}
    with pytest.raises(PermissionDeniedError, match=scope):
        await asked(world, "remember", **given, scopes=[scope])
    assert (await asked(world, "list", scopes=[scope], text=word)).items == []


async def test_a_session_remembers_for_its_user_its_persona_and_itself(
    world: World, life: Life
) -> None:
    given = {"text": "a note", "session_id": life.session_id, "readable": True}
    own = Scope("thread", life.session)
    for scope in ("user:ada", "persona:mira", f"{own.kind}:{own.id}"):
        [item] = (await asked(world, "remember", **given, scopes=[scope])).items
        assert item["scope"] == scope
    [item] = (await asked(world, "remember", **given)).items
    assert item["scope"] == "user:ada"
