"""Recall and encoding together, on a real store: every mechanism changes what is found or kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmi.activities.memory.cache import ScopeCache
from gmi.activities.memory.clusters import Cluster, dumped
from gmi.activities.memory.context import Shown, assemble_context
from gmi.activities.memory.index import SearchFilter
from gmi.activities.memory.recall import Recaller, Recollection
from gmi.activities.memory.store import Find, Link, Writing
from gmi.activities.memory.traces import DAY, Affect
from gmi.activities.store import SQLStore
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.errors import ConfigurationError
from gmi.personas.memory import MemorySettings

from ...support.word_vectors import word_vector
from .conversation import NOW, Life, WordEmbedder

MakeLife = Callable[..., Any]


@pytest.fixture
def live(store: SQLStore, memory: SQLMemoryStore) -> MakeLife:
    async def make(*, embedder: bool = True, traits: Any = None, reranker: Any = None, **s: Any):  # type: ignore[no-untyped-def]
        settings = MemorySettings.model_validate({"mechanisms": {}, **s})
        model = WordEmbedder() if embedder else None
        return await Life(store, memory, settings, model, traits or {}, reranker).open()

    return make


def contents(found: Recollection) -> list[str]:
    return [item.trace.content for item in found.items]


@pytest.mark.parametrize("embedder", [True, False])
async def test_what_was_said_is_found_by_vectors_and_by_words_alone(
    live: MakeLife, embedder: bool
) -> None:
    life = await live(embedder=embedder)
    await life.says("My sister breeds alpacas in Grindelwald")
    await life.says("The weather is fine today")
    assert contents(await life.recalls("who breeds alpacas"))[0].startswith("My sister")


async def test_a_reply_is_filed_under_the_thread_and_what_was_said_under_the_user(
    live: MakeLife,
) -> None:
    life = await live()
    await life.says("I like figs", "Figs are fine fruit")
    said, answered = await life.standing("I like figs"), await life.standing("Figs are fine fruit")
    assert (said.scope, said.type, said.source) == (life.user, "episodic", "user_statement")
    assert (answered.scope, answered.type, answered.source) == (
        life.thread,
        "semantic",
        "agent_inference",
    )
    assert said.importance > 0
    assert said.persona_id == answered.persona_id == life.owner.persona_id


async def test_strong_feelings_are_encoded_more_strongly(live: MakeLife) -> None:
    life = await live(embedder=False)
    await life.says("I am utterly devastated and furious, this is horrible")
    await life.says("The table is made of wood and it stands there")
    strong = await life.standing("I am utterly devastated and furious, this is horrible")
    calm = await life.standing("The table is made of wood and it stands there")
    assert strong.affect.valence < -0.5
    assert strong.intensity > calm.intensity
    assert strong.strength > calm.strength


async def test_encoding_a_turn_again_adds_nothing(live: MakeLife) -> None:
    life = await live()
    first = await life.says("I like figs", "Noted")
    life.depth -= 1
    again = await life.says("I like figs", "Noted")
    assert again.ids == first.ids
    assert (first.applied, again.applied) == (True, False)
    assert len(await life.memory.find(Find(scopes=[life.user, life.thread]))) == 2


async def test_no_scopes_recall_nothing(live: MakeLife) -> None:
    life = await live()
    await life.says("I like figs")
    assert (await life.recalls("figs", scopes=[])).items == []


async def test_within_a_session_only_the_own_path_counts(live: MakeLife) -> None:
    life = await live()
    await life.says("I like figs")
    await life.says("I like plums")
    here = SearchFilter(session=life.session, path=[("main", 1)])
    assert contents(await life.recalls("what do I like", where=here)) == ["I like figs"]
    other = SearchFilter(session="another", path=[])
    assert len((await life.recalls("what do I like", where=other)).items) == 2


async def test_recalling_strengthens_once_for_each_turn(live: MakeLife) -> None:
    life = await live()
    await life.says("I like figs")
    found = await life.recalls("figs", now=NOW + DAY)
    await life.says("More about figs please", now=NOW + DAY, recalled=found)
    life.depth -= 1
    await life.says("More about figs please", now=NOW + DAY, recalled=found)
    figs = await life.standing("I like figs")
    assert figs.retrievals == 1
    assert figs.last_access == NOW + DAY
    assert figs.stability > 3600


async def test_reconsolidation_moves_a_recalled_memory_toward_the_mood(live: MakeLife) -> None:
    gloomy = Affect(-1.0, 0.5, 0.0)
    moved = []
    for mechanisms in ({}, {"reconsolidation": {"enabled": False}}):
        life = await live(mechanisms=mechanisms)
        await life.says("I like figs")
        before = await life.standing("I like figs")
        found = await life.recalls("figs")
        await life.says("hm", recalled=found, mood=gloomy)
        after = await life.standing("I like figs")
        moved.append(after.affect.valence - before.affect.valence)
    assert moved[0] < 0 == moved[1]


async def test_memories_like_the_recalled_ones_that_were_not_recalled_are_suppressed(
    live: MakeLife,
) -> None:
    kept = []
    for mechanisms in ({}, {"retrievalInducedForgetting": {"enabled": False}}):
        life = await live(mechanisms=mechanisms, topK=1)
        await life.says("the red boat lies in the harbour of Bergen")
        await life.says("the red boat lies in the harbour of Tromso")
        await life.says("something else entirely")
        before = {t.id: t.stability for t in await life.memory.find(Find(scopes=[life.user]))}
        found = await life.recalls("the red boat lies in the harbour of Bergen")
        [recalled] = found.items
        await life.says("thanks", recalled=found)
        after = {t.id: t.stability for t in await life.memory.find(Find(scopes=[life.user]))}
        kept.append(
            [id_ for id_ in before if after[id_] < before[id_] and id_ != recalled.trace.id]
        )
    assert (len(kept[0]), kept[1]) == (1, [])


async def test_an_old_memory_can_come_up_by_itself(live: MakeLife) -> None:
    life = await live(topK=1, mechanisms={"involuntaryRecall": {"probability": 1.0}})
    await life.says("the attic smelled of apples")
    await life.says("the train timetable hangs here")
    found = await life.recalls("train timetable", now=NOW + 30 * DAY)
    assert found.involuntary is not None
    assert found.involuntary.content == "the attic smelled of apples"
    text = assemble_context(
        [Shown(item.trace) for item in found.items],
        now=NOW + 30 * DAY,
        token_budget=1600,
        involuntary=found.involuntary,
    ).text
    assert "the attic smelled of apples" in text
    assert (await life.recalls("train timetable", now=NOW + DAY)).involuntary is None


async def test_openness_makes_memories_come_up_by_themselves_more_often(live: MakeLife) -> None:
    counts = []
    for openness in (0.0, 1.0):
        life = await live(topK=1, traits={"openness": openness})
        await life.says("the attic smelled of apples")
        await life.says("the train timetable hangs here")
        found = [
            (await life.recalls("train timetable", now=NOW + 30 * DAY, seed=str(n))).involuntary
            for n in range(150)
        ]
        counts.append(sum(trace is not None for trace in found))
    assert counts[0] < counts[1]


async def test_a_memory_that_almost_came_up_reaches_the_prompt_as_an_honest_hint(
    live: MakeLife,
) -> None:
    life = await live(topK=1)
    await life.says("In Bergen we saw the red boat of Ingrid")
    await life.says("In Bergen we saw the red boat again and again")
    found = await life.recalls("Tell me of the red boat in Bergen we saw")
    assert found.feelings
    context = assemble_context(
        [Shown(item.trace) for item in found.items],
        now=NOW,
        token_budget=1600,
        half=found.feelings,
    )
    hidden = found.feelings[0].trace_id
    assert "feeling of knowing" in context.text or "nearly sure" in context.text
    assert hidden in context.hinted
    silent = await live(topK=1, mechanisms={"feelingOfKnowing": {"enabled": False}})
    await silent.says("In Bergen we saw the red boat of Ingrid")
    await silent.says("In Bergen we saw the red boat again and again")
    assert not (await silent.recalls("Tell me of the red boat in Bergen we saw")).feelings


async def test_what_fits_a_known_cluster_is_encoded_weaker_and_the_new_stronger(
    live: MakeLife,
) -> None:
    strengths = {}
    for name, mechanisms in (("on", {}), ("off", {"schemaEncoding": {"enabled": False}})):
        life = await live(mechanisms=mechanisms)
        centre = np.array(word_vector("coffee in the morning"), dtype=np.float32)
        kept = {"model": "test:words", "clusters": dumped([Cluster("c1", centre, 5)])}
        await life.memory.keep_consolidated(life.owner.persona_id, life.user, NOW, kept)
        await life.says("coffee in the morning")
        await life.says("zebras gallop over wide plains")
        strengths[name] = (
            (await life.standing("coffee in the morning")).strength,
            (await life.standing("zebras gallop over wide plains")).strength,
        )
    assert strengths["on"][0] < strengths["off"][0]
    assert strengths["on"][1] > strengths["off"][1]


async def test_saying_the_same_again_weakens_the_older_memory(live: MakeLife) -> None:
    life = await live()
    await life.says("the red boat lies in the harbour")
    before = await life.standing("the red boat lies in the harbour")
    await life.says("the red boat lies in the harbour now")
    after = await life.standing("the red boat lies in the harbour")
    newer = await life.standing("the red boat lies in the harbour now")
    assert after.strength < before.strength
    assert newer.strength < before.strength


async def test_memories_recalled_together_are_linked_and_wake_each_other(live: MakeLife) -> None:
    life = await live(topK=1)
    await life.says("the password of the cellar")
    await life.says("zebras gallop over wide plains")
    one = await life.standing("the password of the cellar")
    two = await life.standing("zebras gallop over wide plains")
    assert contents(await life.recalls("password cellar", settings=life.scaled)) == [one.content]
    await life.memory.write(Writing(now=NOW, links=[Link(one.id, two.id, "co_recalled", 1.0)]))
    wide = life.scaled.model_copy(update={"top_k": 5})
    woken = next(
        item
        for item in (await life.recalls("password cellar", settings=wide)).items
        if item.trace.id == two.id
    )
    assert woken.activation > 0
    before = await life.memory.links([one.id])
    found = await life.recalls("password cellar", settings=wide)
    await life.says("ok", recalled=found)
    after = await life.memory.links([one.id])
    assert sum(link.weight for link in after) >= sum(link.weight for link in before)


async def test_activation_lifts_a_memory_over_one_that_was_better(live: MakeLife) -> None:
    life = await live(topK=10, weights={"graphActivation": 0.9})
    await life.says("figs figs figs are sweet fruit")
    await life.says("figs are also sold here at noon")
    await life.says("plums and figs")
    plain = contents(await life.recalls("figs sweet fruit"))
    last = await life.standing(plain[-1])
    seeds = [await life.standing(content) for content in plain[:-1]]
    links = [Link(seed.id, last.id, "co_recalled", 1.0) for seed in seeds]
    await life.memory.write(Writing(now=NOW, links=links))
    lifted = contents(await life.recalls("figs sweet fruit"))
    assert lifted.index(last.content) < plain.index(last.content)


async def test_activation_does_not_leave_the_scopes_that_are_read(live: MakeLife) -> None:
    life, stranger = await live(), await live()
    await life.says("the password of the cellar")
    await stranger.says("a stranger's secret")
    one = await life.standing("the password of the cellar")
    two = await stranger.standing("a stranger's secret")
    await life.memory.write(Writing(now=NOW, links=[Link(one.id, two.id, "entity", 1.0)]))
    assert contents(await life.recalls("password cellar")) == [one.content]


async def test_a_model_that_is_down_leaves_the_words_with_a_warning(live: MakeLife) -> None:
    life = await live()
    await life.says("My sister breeds alpacas")
    life.embedder.down = True
    found = await life.recalls("alpacas")
    assert contents(found) == ["My sister breeds alpacas"]
    assert found.warnings[0].startswith("RECALL_WITHOUT_VECTORS")


async def test_an_imagined_memory_is_searched_with_where_the_persona_wants_it(
    live: MakeLife,
) -> None:
    async def imagine(text: str) -> str:
        return "alpacas are kept by somebody"

    life = await live(hyde=True)
    await life.says("alpacas are kept by Ottilie")
    await life.says("what a lovely morning")
    assert contents(await life.recalls("animals?", imagine=imagine))[0].startswith("alpacas")
    plain = await live(hyde=False)
    await plain.says("alpacas are kept by Ottilie")
    before = list(plain.embedder.texts)
    await plain.recalls("animals?", imagine=imagine)
    assert plain.embedder.texts[len(before) :] == ["animals?"]


async def test_a_model_that_imagines_nothing_leaves_a_warning(live: MakeLife) -> None:
    async def imagine(text: str) -> str:
        raise ConfigurationError("no model is configured")

    life = await live(hyde=True)
    await life.says("alpacas are kept by Ottilie")
    found = await life.recalls("alpacas", imagine=imagine)
    assert contents(found) == ["alpacas are kept by Ottilie"]
    assert found.warnings[0].startswith("RECALL_WITHOUT_HYDE")


async def test_a_reranker_has_three_tenths_of_the_say(live: MakeLife) -> None:
    class Backwards:
        async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            return [1.0 if "plums" in text else 0.0 for text in texts]

    orders = []
    for rerank in (False, True):
        life = await live(reranker=Backwards(), rerank=rerank)
        await life.says("figs and apples")
        await life.says("figs and plums")
        orders.append((await life.recalls("figs apples")).items)
    assert orders[0][0].trace.content == "figs and apples"
    plain = {item.trace.content: item.score for item in orders[0]}
    mixed = {item.trace.content: item.score for item in orders[1]}
    assert mixed["figs and plums"] == pytest.approx(0.7 * plain["figs and plums"] + 0.3, abs=1e-6)
    assert mixed["figs and apples"] == pytest.approx(0.7 * plain["figs and apples"], abs=1e-6)


@pytest.mark.parametrize("answer", [[0.5], [float("nan"), 0.5], None])
async def test_a_reranker_that_fails_leaves_the_order_and_a_warning(
    live: MakeLife, answer: Any
) -> None:
    class Broken:
        async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            if answer is None:
                raise RuntimeError("out of order")
            return answer

    life = await live(reranker=Broken(), rerank=True)
    await life.says("figs and apples")
    await life.says("figs and plums")
    found = await life.recalls("figs apples")
    assert contents(found) == ["figs and apples", "figs and plums"]
    assert found.warnings[0].startswith("RECALL_WITHOUT_RERANKER")


async def test_the_same_question_at_the_same_time_finds_the_same_whatever_came_before(
    live: MakeLife,
) -> None:
    life = await live()
    words = ["boat", "harbour", "figs", "rain", "chess", "garden", "coffee", "train"]
    chance = random.Random(7)
    for _ in range(30):
        await life.says(" ".join(chance.sample(words, 4)))
    first = [(i.trace.id, i.score) for i in (await life.recalls("boat rain chess")).items]
    fresh = Recaller(life.memory, ScopeCache(life.memory), life.embedder)
    life.recaller = fresh
    again = [(i.trace.id, i.score) for i in (await life.recalls("boat rain chess")).items]
    assert [id_ for id_, _ in first] == [id_ for id_, _ in again]
    assert [s for _, s in first] == pytest.approx([s for _, s in again])


async def test_only_what_may_be_used_for_the_purpose_comes_up(live: MakeLife) -> None:
    life = await live(purpose="fact_claim")
    await life.says("figs are blue")
    proven = replace(await life.standing("figs are blue"), id="proven-" + life.session)
    confirmed = replace(proven, content="figs are purple", source="human_approval")
    allowed = replace(proven, id="own-" + life.session, content="figs are sweet")
    allowed.policy = {"fact_claim": True}
    await life.memory.write(Writing(now=NOW, new=[confirmed, allowed]))
    found = contents(await life.recalls("what are figs like"))
    assert sorted(found) == ["figs are purple", "figs are sweet"]
    anything = await life.recalls(
        "what are figs like", settings=life.scaled.model_copy(update={"purpose": "any"})
    )
    assert len(anything.items) == 3
