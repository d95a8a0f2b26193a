"""Consolidation: each mechanism changes what is stored, once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gmi.activities.memory.store import Link, Writing
from gmi.activities.memory.traces import DAY, HOUR, Affect
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.memory import MemorySettings

from .mind import NOW, Mind
from .models import TopicEmbedder, Writer, wording


async def test_a_faint_memory_is_given_up_and_deleted_a_month_later(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    faint = await mind.remembers("it rained", last_access=NOW - 91 * DAY)
    recent = await mind.remembers("it snowed", last_access=NOW - 89 * DAY)
    moving = await mind.remembers("it burned", last_access=NOW - 91 * DAY, intensity=0.5)
    report = await mind.tidy()
    assert report.pruned == 1
    assert not (await mind.get(faint)).active
    assert [(await mind.get(id_)).active for id_ in (recent, moving)] == [True, True]
    assert (await mind.tidy(NOW + 29 * DAY)).removed == 0
    assert (await mind.tidy(NOW + 31 * DAY)).removed == 1
    assert faint not in {trace.id for trace in await mind.all()}


async def test_what_comes_from_a_doubtful_source_holds_less_long_once_an_hour(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory, mechanisms={"sourceConfidenceDecay": {"rule": "hourly"}})
    told = await mind.remembers("I live in Oslo")
    guessed = await mind.remembers("She may like snow", source="agent_inference", stability=100.0)
    assert (await mind.tidy()).faded == 1
    assert (await mind.get(guessed)).stability == pytest.approx(80)
    assert (await mind.get(told)).stability == HOUR
    assert (await mind.tidy(NOW + 60)).faded == 0
    assert (await mind.tidy(NOW + HOUR)).faded == 1
    assert (await mind.get(guessed)).stability == pytest.approx(64)


async def test_an_agitating_memory_is_calmed_once_an_hour(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    fright = await mind.remembers("fire!", affect=Affect(-0.9, 0.9, 0.0), intensity=0.8)
    assert (await mind.tidy()).regulated == 1
    calmed = await mind.get(fright)
    assert calmed.affect.valence == pytest.approx(-0.9 * 0.85)
    assert calmed.affect.arousal < 0.9
    assert (await mind.tidy(NOW + 1)).regulated == 0
    assert (await mind.get(fright)).affect == calmed.affect


async def test_an_old_memory_shrinks_to_its_gist_at_sixty_days(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    words = " ".join(f"word{i}" for i in range(50))
    old = await mind.remembers(words, retrievals=2, mood="calm", entities=("Rex",))
    assert (await mind.tidy(NOW + 59 * DAY)).gisted == 0
    assert (await mind.get(old)).content == words
    assert (await mind.tidy(NOW + 60 * DAY)).gisted == 1
    gist = await mind.get(old)
    assert gist.content == " ".join(f"word{i}" for i in range(30)) + "... (Rex) [calm]"
    assert gist.strength == pytest.approx(0.4)
    assert (await mind.tidy(NOW + 120 * DAY)).gisted == 0


async def test_a_configured_model_writes_the_gist_and_its_bill_is_reported(
    memory: SQLMemoryStore,
) -> None:
    mind, writer = Mind(memory), Writer("Rex likes walks.")
    mind.wording = wording(writer)
    old = await mind.remembers("Rex ran and ran", retrievals=3)
    report = await mind.tidy(NOW + 61 * DAY)
    assert (report.gisted, report.usage.total_tokens) == (1, 12)
    assert (await mind.get(old)).content == "Rex likes walks."
    assert "Rex ran and ran" in writer.asked[0]


async def test_a_text_that_is_corrected_while_its_gist_is_written_stays_correct(
    memory: SQLMemoryStore,
) -> None:
    mind, writer = Mind(memory), Writer("Rex likes walks.")
    mind.wording = wording(writer)
    old = await mind.remembers("Rex ran", retrievals=3)

    async def correct() -> None:
        right = replace(await mind.get(old), content="Rex swam")
        await memory.write(Writing(now=NOW, new=[right]))

    writer.meanwhile = correct
    assert (await mind.tidy(NOW + 61 * DAY)).gisted == 0
    assert (await mind.get(old)).content == "Rex swam"


async def test_a_gist_waits_for_a_model_that_is_away_and_the_rest_is_done(
    memory: SQLMemoryStore,
) -> None:
    mind, writer = Mind(memory), Writer()
    mind.wording = wording(writer)
    writer.down = True
    old = await mind.remembers("Rex ran", retrievals=3, importance=0.9, next_at=NOW)
    report = await mind.tidy(NOW + 61 * DAY)
    assert report.gisted == 0
    assert [warning.split(":")[0] for warning in report.warnings] == ["GIST_LATER"]
    assert (await mind.get(old)).content == "Rex ran"
    writer.down = False
    assert (await mind.tidy(NOW + 61 * DAY)).gisted == 1


async def test_what_matters_is_rehearsed_when_its_interval_is_due(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    due = await mind.remembers("a", importance=0.7, next_at=NOW - 1, interval=HOUR)
    later = await mind.remembers("b", importance=0.7, next_at=NOW + 1)
    trifle = await mind.remembers("c", importance=0.2, next_at=NOW - 1)
    assert (await mind.tidy()).rehearsed == 1
    found = await mind.get(due)
    assert (found.interval, found.next_at) == (2 * HOUR, NOW + 2 * HOUR)
    assert found.stability == pytest.approx(1.2 * HOUR)
    assert (found.retrievals, found.last_access) == (0, NOW)
    for other in (later, trifle):
        assert (await mind.get(other)).stability == HOUR
    assert (await mind.tidy()).rehearsed == 0


async def test_memories_of_one_day_are_linked_by_name_and_by_moment(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    a = await mind.remembers("Ada came", entities=("ada",), created_at=NOW - 3 * HOUR)
    b = await mind.remembers("Ada went", entities=("Ada", "oslo"), created_at=NOW - HOUR)
    c = await mind.remembers("it rained", created_at=NOW - HOUR + 100)
    await mind.remembers("Ada long ago", entities=("ada",), created_at=NOW - 2 * DAY)
    report = await mind.tidy()
    assert report.links == 2
    assert await mind.links("entity") == {(a, b): 0.5}
    assert await mind.links("sequence") == {(b, c): 0.3}
    assert (await mind.tidy()).links == 0
    assert await mind.links("entity") == {(a, b): 0.5}


async def test_branches_and_sessions_make_no_sequence(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    await mind.remembers("a")
    await mind.remembers("b", branch="other")
    await mind.remembers("c", session="s2")
    await mind.tidy()
    assert await mind.links("sequence") == {}


async def test_the_same_run_tidies_a_scope_once_and_reports_the_same(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory, mechanisms={"sourceConfidenceDecay": {"rule": "hourly"}})
    await mind.remembers("fire!", affect=Affect(-0.9, 0.9, 0.0), source="reflection")
    await mind.remembers("Ada came", entities=("ada",), last_access=NOW - 91 * DAY)
    first = await mind.tidy(run="one")
    stood = await mind.all()
    # A day later nothing that is marked with a time would hold it back.
    again = await mind.tidy(NOW + DAY, run="one")
    assert again == first
    assert (first.pruned, first.faded, first.regulated) == (1, 1, 1)
    assert await mind.all() == stood


async def test_two_attempts_at_once_tidy_a_scope_once(memory: SQLMemoryStore) -> None:
    mind = Mind(memory, mechanisms={"sourceConfidenceDecay": {"rule": "hourly"}})
    guessed = await mind.remembers("hm", source="agent_inference", stability=100.0)
    a = await mind.remembers("Ada came", entities=("ada",))
    b = await mind.remembers("Ada went", entities=("ada",))
    first, second = await asyncio.gather(mind.tidy(run="one"), mind.tidy(run="one"))
    assert first == second
    assert first.faded == 1
    assert (await mind.get(guessed)).stability == pytest.approx(80)
    assert (await mind.links("entity"))[a, b] == 0.5


async def test_links_that_recall_made_stay_as_strong_as_they_were(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    a = await mind.remembers("Ada came", entities=("ada",))
    b = await mind.remembers("Ada went", entities=("ada",))
    await memory.write(Writing(now=NOW, links=[Link(a, b, "entity", 0.9)]))
    assert (await mind.tidy()).links == 1
    assert await mind.links("entity") == {(a, b): 0.9}


async def test_more_memories_than_a_run_looks_at_are_taken_in_turn(memory: SQLMemoryStore) -> None:
    mind = Mind(memory, consolidation={"maxTraces": 10})
    for number in range(23):
        await mind.remembers(
            f"memory {number}", created_at=NOW - number, last_access=NOW - 91 * DAY
        )
    found = [await mind.tidy() for _ in range(4)]
    assert {report.traces for report in found[:3]} == {10}
    assert sum(report.pruned for report in found) == 23


async def test_another_personas_memories_are_embedded_and_otherwise_left_alone(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    mind.embedder = TopicEmbedder()
    await mind.remembers("mine")
    other = await mind.remembers("it rained", persona_id="somebody", last_access=NOW - 91 * DAY)
    report = await mind.tidy()
    assert (report.traces, report.pruned, report.embedded) == (1, 0, 2)
    assert (await mind.get(other)).active


async def test_without_mechanisms_none_of_them_runs(memory: SQLMemoryStore) -> None:
    mind = Mind(memory, mechanisms=None)
    fright = await mind.remembers(
        "fire " * 40, affect=Affect(-0.9, 0.9, 0.0), source="reflection", retrievals=5
    )
    stood = await mind.get(fright)
    report = await mind.tidy(NOW + 61 * DAY)
    assert (report.gisted, report.faded, report.regulated, report.clusters) == (0, 0, 0, 0)
    assert await mind.get(fright) == stood


async def test_changes_of_traits_are_suggested_only_where_the_persona_wants_them(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory, mechanisms={"personaDrift": {"enabled": True}})
    for number in range(10):
        await mind.remembers(f"quarrel {number}", affect=Affect(-0.8, 0.6, 0.0))
    [first, *_] = await mind.maintainer().suggest()
    assert (first["trait"], first["traces"]) == ("agreeableness", 10)
    assert first["delta"] < 0
    mind.settings = MemorySettings.model_validate({"mechanisms": {}})
    assert await mind.maintainer().suggest() == []


async def test_a_scope_where_nothing_changed_is_passed_over_until_something_is_due(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    due = await mind.remembers("a", importance=0.7, next_at=NOW + 5 * HOUR, stability=10 * HOUR)
    assert (await mind.tidy()).traces == 1
    version = await memory.versions([mind.scope])
    assert (await mind.tidy(NOW + 3 * HOUR)).traces == 0
    assert await memory.versions([mind.scope]) == version
    report = await mind.tidy(NOW + 6 * HOUR)
    assert (report.traces, report.rehearsed) == (1, 1)
    assert (await mind.get(due)).interval == 2 * HOUR
    # That it changed something is no reason to look away.
    assert (await mind.tidy(NOW + 6 * HOUR)).traces == 1
    assert (await mind.tidy(NOW + 6 * HOUR)).traces == 0
    await mind.remembers("b")
    assert (await mind.tidy(NOW + 6 * HOUR)).traces == 2


async def test_changed_settings_look_at_every_scope_again(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    faint = await mind.remembers("it rained", last_access=NOW - 50 * DAY)
    await mind.tidy()
    assert (await mind.tidy()).traces == 0
    mind.settings = MemorySettings.model_validate({"mechanisms": {}, "decay": {"keepDays": 40}})
    assert (await mind.tidy()).pruned == 1
    assert not (await mind.get(faint)).active


async def test_a_link_that_is_asked_for_twice_weighs_what_it_should(
    memory: SQLMemoryStore,
) -> None:
    mind = Mind(memory)
    a, b, c = [await mind.remembers(text) for text in "abc"]
    await memory.write(Writing(now=NOW, links=[Link(b, c, "entity", 0.9)]))
    for _ in range(2):
        wanted = [Link(a, b, "entity", 0.5), Link(b, c, "entity", 0.5)]
        await memory.write(Writing(now=NOW, at_least=wanted))
    assert await mind.links("entity") == {(a, b): 0.5, (b, c): 0.9}


async def test_a_memory_that_is_active_is_not_deleted(memory: SQLMemoryStore) -> None:
    mind = Mind(memory)
    active = await mind.remembers("a")
    inactive = await mind.remembers("b", active=False)
    await memory.write(Writing(now=NOW, removed=[active, inactive]))
    assert [trace.id for trace in await mind.all()] == [active]
