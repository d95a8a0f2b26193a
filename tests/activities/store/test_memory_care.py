"""Looking at memories, putting some in, correcting them; on both databases."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest

from gmi.activities.memory.cache import vector_of
from gmi.activities.memory.store import Link
from gmi.activities.memory.traces import DAY, Scope
from gmi.activities.store import SQLStore
from gmi.activities.store.pages import PAGE_BYTES
from gmi.personas.errors import (
    MessageTooLargeError,
    NotFoundError,
    RequestMismatchError,
    SessionNotFoundError,
    ValidationError,
)

from .caring import MODEL, NOW, SmallEmbedder, World
from .conftest import Life


@pytest.fixture
def world(store: SQLStore) -> World:
    return World(store)


@pytest.fixture
def embedded(store: SQLStore) -> World:
    return World(store, SmallEmbedder())


async def test_a_list_goes_from_the_newest_on_page_by_page(world: World) -> None:
    times = [NOW - 10.0, NOW - 5.5, NOW - 5.5, NOW - 0.123456, NOW - 20]
    made = [world.trace(f"memory {n}", created_at=at) for n, at in enumerate(times)]
    await world.keep(*made)
    seen: list[str] = []
    after: str | None = None
    for _ in range(5):
        page = await world.ask("list", scopes=[f"user:{world.user}"], limit=2, after=after)
        assert len(page.items) <= 2
        seen += [item["id"] for item in page.items]
        after = page.next
        if after is None:
            break
    newest_first = sorted(made, key=lambda t: (-t.created_at, t.id))
    assert sorted(seen) == sorted(t.id for t in made)
    assert [seen[0], seen[-2], seen[-1]] == [
        newest_first[0].id,
        newest_first[-2].id,
        newest_first[-1].id,
    ]


async def test_an_item_tells_whose_it_is_how_old_and_how_strong_now(world: World) -> None:
    await world.keep(world.trace("alpacas hum", strength=0.8, stability=DAY))
    [item] = (await world.ask("list", scopes=[f"user:{world.user}"])).items
    assert item["scope"] == f"user:{world.user}"
    assert item["age"] == "yesterday"
    assert item["strength"] == pytest.approx(0.8 / np.e, abs=1e-6)
    assert item["created_at"].endswith("+00:00")
    assert (item["persona"], item["said_by"]) == ("mira", "the user said")


async def test_a_page_stays_below_its_bound(world: World) -> None:
    await world.keep(*(world.trace("é" * 4000, created_at=NOW - n) for n in range(60)))
    seen: list[str] = []
    pages, after = 0, None
    while pages == 0 or after is not None:
        page = await world.ask("list", scopes=[f"user:{world.user}"], limit=200, after=after)
        assert len(page.model_dump_json().encode()) <= PAGE_BYTES
        seen += [item["id"] for item in page.items]
        pages, after = pages + 1, page.next
    assert pages > 1
    assert len(set(seen)) == len(seen) == 60


@pytest.mark.parametrize("cursor", ["x", "[1,2]", '["x","y"]', '["NaN"]', '["[]","y"]'])
async def test_a_foreign_cursor_is_refused(world: World, cursor: str) -> None:
    with pytest.raises(ValidationError, match="cursor"):
        await world.ask("list", after=cursor)


async def test_a_list_is_narrowed_by_words_type_and_whether_it_faded(world: World) -> None:
    await world.keep(
        world.trace("Alpacas hum"),
        world.trace("ducks swim", type="semantic"),
        world.trace("gone", active=False),
    )

    async def found(**asked: Any) -> set[str]:
        answer = await world.ask("list", scopes=[f"user:{world.user}"], **asked)
        return {item["content"] for item in answer.items}

    assert await found() == {"Alpacas hum", "ducks swim"}
    assert await found(text="alpacas") == {"Alpacas hum"}
    assert await found(types=["semantic"]) == {"ducks swim"}
    assert await found(faded=True) == {"Alpacas hum", "ducks swim", "gone"}


async def test_a_user_is_the_scope_and_what_was_made_in_the_sessions(
    world: World, life: Life
) -> None:
    thread = Scope("thread", life.session)
    await world.keep(world.trace("a reply", scope=thread, session=life.session, role="assistant"))
    await world.keep(world.trace("said", scope=Scope("user", "ada"), session=life.session))
    found = await world.ask("list", user_id="ada", text="a reply")
    assert [item["session"] for item in found.items] == [life.session]
    made = await world.ask("list", session_id=life.session_id)
    assert {item["content"] for item in made.items} == {"a reply", "said"}
    with pytest.raises(SessionNotFoundError):
        await world.ask("list", session_id="nobody")


async def test_what_a_session_can_read_is_what_its_recall_reads(world: World, life: Life) -> None:
    word = f"quagmire{uuid.uuid4().hex[:6]}"
    await world.keep(
        world.trace(f"{word} of ada", scope=Scope("user", "ada")),
        world.trace(f"{word} of the persona", scope=Scope("persona", "mira")),
        world.trace(f"{word} of another", scope=Scope("user", "bob")),
    )
    read = await world.ask("list", session_id=life.session_id, readable=True, text=word)
    assert {item["content"] for item in read.items} == {f"{word} of ada", f"{word} of the persona"}
    found = await world.ask("search", session_id=life.session_id, text=word)
    assert {item["content"] for item in found.items} == {
        f"{word} of ada",
        f"{word} of the persona",
    }


async def test_a_search_ranks_by_relevance_and_changes_nothing(embedded: World) -> None:
    made = [
        embedded.trace("Ottilie breeds alpacas in Grindelwald"),
        embedded.trace("ducks swim in the pond"),
        embedded.trace("the weather was fine"),
    ]
    await embedded.keep(*made)
    before = await embedded.store.versions([embedded.scope])
    answer = await embedded.ask("search", text="who breeds alpacas?", user_id=embedded.user)
    assert answer.items[0]["id"] == made[0].id
    scores = [item["score"] for item in answer.items]
    assert scores == sorted(scores, reverse=True)
    assert await embedded.store.versions([embedded.scope]) == before


async def test_a_search_goes_on_by_words_when_the_embedding_model_is_down(embedded: World) -> None:
    await embedded.keep(embedded.trace("alpacas hum"))
    assert embedded.embedder is not None
    embedded.embedder.down = True
    answer = await embedded.ask("search", text="alpacas", user_id=embedded.user)
    assert [item["content"] for item in answer.items] == ["alpacas hum"]
    assert answer.warnings[0].startswith("RECALL_WITHOUT_VECTORS")


@pytest.mark.parametrize(
    "asked", [{"text": "alpacas"}, {"user_id": "x"}, {"text": " ", "user_id": "x"}]
)
async def test_a_search_without_a_place_or_text_is_refused(
    world: World, asked: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match="needs"):
        await world.ask("search", **asked)


async def test_show_tells_links_vectors_and_what_was_made_of_it(world: World) -> None:
    one, other = world.trace("alpacas hum"), world.trace("llamas spit")
    schema = world.trace(
        "animals", role="schema", source="reflection", mechanisms={"derived_from": [one.id]}
    )
    vector = vector_of(MODEL, np.ones(4, np.float32))
    await world.keep(one, other, schema, vectors={one.id: vector})
    await world.keep(links=[Link(one.id, other.id, "co_recalled", 0.3)])
    answer = await world.ask("show", ids=[one.id])
    assert answer.items[0]["content"] == "alpacas hum"
    assert answer.details["links"] == [
        {"id": other.id, "kind": "co_recalled", "weight": 0.3, "content": "llamas spit"}
    ]
    assert answer.details["vectors"] == {MODEL: 1}
    assert [item["content"] for item in answer.details["derived"]] == ["animals"]


async def test_show_of_what_is_not_there_or_not_in_reach_is_refused(world: World) -> None:
    made = world.trace()
    await world.keep(made)
    for asked in ({"ids": ["nothing"]}, {"ids": [made.id], "scopes": ["user:somebody-else"]}):
        with pytest.raises(NotFoundError):
            await world.ask("show", **asked)
    with pytest.raises(ValidationError, match="one memory"):
        await world.ask("show", ids=[made.id, "other"])


async def test_stats_count_kinds_strengths_and_vectors(embedded: World) -> None:
    strong = embedded.trace(strength=0.95, last_access=NOW, type="semantic")
    weak = embedded.trace(strength=0.95, stability=3600.0)
    gone = embedded.trace(active=False)
    vector = vector_of(MODEL, np.ones(26, np.float32))
    old = vector_of("test:old", np.ones(3, np.float32))
    await embedded.keep(strong, weak, gone, vectors={strong.id: vector, weak.id: old})
    answer = await embedded.ask("stats", scopes=[f"user:{embedded.user}"])
    assert answer.counts["traces"] == 3
    assert answer.counts["active"] == 2
    assert answer.counts["waiting_for_vectors"] == 1
    assert answer.counts["type:semantic"] == 1
    assert answer.details["vectors"] == {MODEL: 1, "test:old": 1}
    assert answer.details["strength"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert answer.details["embedding"] == MODEL


async def test_a_memory_put_in_twice_is_there_once(embedded: World) -> None:
    asked = {
        "text": " Anna is allergic to nuts ",
        "scopes": [f"user:{embedded.user}"],
        "tags": ["health"],
        "request_id": str(uuid.uuid4()),
    }
    [first] = (await embedded.ask("remember", **asked)).items
    [second] = (await embedded.ask("remember", **asked)).items
    assert first == second
    assert await embedded.left() == ["Anna is allergic to nuts"]
    assert (first["role"], first["source"], first["importance"]) == ("note", "human_approval", 0.8)
    assert first["tags"] == ["note", "health"]
    assert first["entities"] == ["anna"]
    assert (await embedded.ask("show", ids=[first["id"]])).details["vectors"] == {MODEL: 1}
    with pytest.raises(RequestMismatchError):
        await embedded.ask("remember", **(asked | {"text": "something else"}))


async def test_a_memory_put_in_lasts_for_years(world: World) -> None:
    [item] = (await world.ask("remember", text="a birthday", scopes=[f"user:{world.user}"])).items
    later = await world.ask("show", ids=[item["id"]], now=NOW + 365 * DAY)
    assert later.items[0]["strength"] > 0.25


async def test_a_memory_is_put_in_though_the_embedding_model_is_down(embedded: World) -> None:
    assert embedded.embedder is not None
    embedded.embedder.down = True
    answer = await embedded.ask("remember", text="nuts", scopes=[f"user:{embedded.user}"])
    assert answer.warnings[0].startswith("KEPT_WITHOUT_VECTOR")
    assert await embedded.left() == ["nuts"]


async def test_a_session_remembers_for_its_user_and_persona(world: World, life: Life) -> None:
    answer = await world.ask("remember", text="a note", session_id=life.session_id)
    assert answer.items[0]["scope"] == "user:ada"
    assert answer.items[0]["persona"] == "mira"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"text": "x"}, ValidationError),
        ({"text": "x", "scopes": ["user:a", "user:b"]}, ValidationError),
        ({"text": "x", "scopes": ["anna"]}, ValidationError),
        ({"text": "x", "scopes": ["planet:mars"]}, ValidationError),
        ({"text": " ", "scopes": ["user:a"]}, ValidationError),
        ({"text": "x" * 4001, "scopes": ["user:a"]}, MessageTooLargeError),
    ],
)
async def test_what_cannot_be_put_in_is_refused(
    world: World, asked: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await world.ask("remember", **asked)


async def test_a_correction_changes_words_vector_and_trust(embedded: World) -> None:
    wrong = embedded.trace(
        "Anna lives in Rome",
        confidence=0.4,
        active=False,
        entities=("rome",),
        mechanisms={"temporal_gist": {"at": 1.0}},
    )
    made_of_it = embedded.trace("Romans", role="schema", mechanisms={"derived_from": [wrong.id]})
    await embedded.keep(wrong, made_of_it)
    old = vector_of("test:old", np.ones(3, np.float32))
    await embedded.keep(vectors={wrong.id: old})
    answer = await embedded.ask("correct", ids=[wrong.id], text="Anna lives in Oslo")
    [item] = answer.items
    assert item["content"] == "Anna lives in Oslo"
    assert item["entities"] == ["anna", "oslo"]
    assert (item["source"], item["confidence"], item["corrected"]) == ("human_approval", 0.95, True)
    assert (item["active"], item["gist"]) == (True, False)
    assert answer.counts == {"derived": 1}
    assert await embedded.left() == ["Anna lives in Oslo"]
    shown = await embedded.ask("show", ids=[wrong.id])
    assert shown.details["vectors"] == {MODEL: 1}
    assert shown.details["mechanisms"]["corrected"]["source"] == "user_statement"


async def test_a_correction_needs_one_memory_and_words(world: World) -> None:
    made = [world.trace("one"), world.trace("two")]
    await world.keep(*made)
    with pytest.raises(ValidationError, match="text"):
        await world.ask("correct", ids=[made[0].id])
    with pytest.raises(ValidationError, match="which memories"):
        await world.ask("correct", text="right")
    with pytest.raises(ValidationError, match="More than one"):
        await world.ask("correct", text="right", ids=[t.id for t in made])
    with pytest.raises(NotFoundError):
        await world.ask("correct", text="right", ids=["nothing"])


async def test_clusters_are_shown_without_their_centres(world: World) -> None:
    persona = f"persona-{world.user}"
    await world.keep(world.trace(persona_id=persona))
    await world.store.keep_consolidated(
        persona, world.scope, NOW, {"clusters": [{"id": "c1", "members": 5, "centroid": "AAA="}]}
    )
    answer = await world.ask("clusters", persona=persona)
    assert answer.items == [{"scope": f"user:{world.user}", "id": "c1", "members": 5}]
    with pytest.raises(ValidationError):
        await world.ask("clusters")


async def test_health_is_operational_when_all_is_well(embedded: World) -> None:
    await embedded.keep(embedded.trace())
    report = (await embedded.ask("health", scopes=[f"user:{embedded.user}"])).details
    assert report["overall_status"] == "OPERATIONAL"
    assert report["rag_system_stats"]["details"]["waiting_for_vectors"] == 1


async def test_health_is_degraded_while_the_embedding_model_is_down(embedded: World) -> None:
    assert embedded.embedder is not None
    embedded.embedder.down = True
    report = (await embedded.ask("health")).details
    assert report["overall_status"] == "DEGRADED"
    assert "it sleeps" in report["issues"][0]["description"]


async def test_health_is_limited_when_nothing_was_tidied_for_long(world: World) -> None:
    scope = Scope("persona", "mira")
    await world.keep(world.trace(scope=scope))
    await world.store.keep_consolidated("mira", scope, NOW - 1000.0, {})
    asked = {"persona": "mira", "scopes": ["persona:mira"]}
    assert (await world.ask("health", **asked)).details["overall_status"] == "OPERATIONAL"
    late = await world.ask("health", **asked, now=NOW + 10 * DAY)
    assert late.details["overall_status"] == "LIMITED"
    assert "ten days ago" in late.details["issues"][-1]["description"]
