"""Consolidation on a real Temporal server: schedules, kills, two workers."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import (
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleUpdate,
    WorkflowHandle,
)
from temporalio.service import RPCError

from gmi.activities.memory.reembedding import BATCH
from gmi.activities.memory.store import Find, Writing
from gmi.activities.memory.traces import DAY, HOUR, Scope, Trace
from gmi.activities.store import open_store
from gmi.activities.store.memory.sql import SQLMemoryStore
from gmi.personas.errors import PersonaNotFoundError
from gmi.worker.consolidation import consolidate, schedule_id
from gmi.workflows.memory import Consolidate, MaintenanceReport

from ..conftest import MakeStage, Stage
from ..support.databases import locked
from ..support.scripted_model import Barrier, Text

NOW = 1_800_000_000.0
LONG_AGO = NOW - 400 * DAY


class Town:
    """A stage whose workers serve one persona that remembers.

    Attributes:
        persona: Its id; no other test has it.
        memory: The memories, seen from beside the workers.
    """

    def __init__(self, stage: Stage, folder: Path, memory: SQLMemoryStore) -> None:
        self.stage = stage
        self.folder = folder
        self.memory = memory
        self.persona = f"keeper-{uuid.uuid4().hex[:8]}"

    @property
    def schedule(self) -> ScheduleHandle:
        return self.stage.client.temporal.get_schedule_handle(schedule_id(self.persona))

    def write_persona(self, **memory: Any) -> None:
        data = {
            "id": self.persona,
            "name": "Keeper",
            "description": "Keeps memories.",
            "version": "1.0.0",
            "baseSystemPrompt": "You keep memories.",
            "memoryConfig": {"mechanisms": {}, **memory},
        }
        self.folder.mkdir(exist_ok=True)
        (self.folder / "keeper.json").write_text(json.dumps(data))

    async def worker(self, **memory: Any) -> None:
        """Start a worker that finds the persona with these memory settings."""
        self.write_persona(**memory)
        await self.stage.worker(GMI_PERSONAS=str(self.folder), DEFAULT_PERSONA_ID=self.persona)

    async def remembers(self, content: str, user: str = "ada", **fields: Any) -> str:
        """Put a memory in that is due for its gist."""
        fields = {"created_at": NOW - 61 * DAY, "last_access": NOW, "retrievals": 2, **fields}
        trace = Trace(
            str(uuid.uuid4()),
            Scope("user", f"{user}-{self.persona}"),
            content,
            persona_id=self.persona,
            **fields,
        )
        await self.memory.write(Writing(now=NOW, new=[trace]))
        return trace.id

    async def get(self, trace_id: str) -> Trace:
        [found] = await self.memory.find(Find(ids=[trace_id], faded=True))
        return found

    async def tidy(self, now: float | None = NOW) -> MaintenanceReport:
        return await consolidate(
            self.stage.client.temporal,
            self.persona,
            task_queue=self.stage.client.task_queue,
            now=now,
        )

    async def start(self) -> WorkflowHandle[Any, MaintenanceReport]:
        """Start a consolidation at :data:`NOW`."""
        return await self.stage.client.temporal.start_workflow(
            "GMIConsolidation",
            Consolidate(persona=self.persona, now=NOW),
            id=f"tidy-{self.persona}",
            task_queue=self.stage.client.task_queue,
            result_type=MaintenanceReport,
        )

    async def described(
        self, holds: Callable[[ScheduleDescription], bool], seconds: float = 30
    ) -> ScheduleDescription:
        """The schedule, once it is as wanted."""
        async with asyncio.timeout(seconds):
            while True:
                with suppress(RPCError):
                    found = await self.schedule.describe()
                    if holds(found):
                        return found
                await asyncio.sleep(0.05)

    async def gone(self) -> None:
        """Returns once there is no schedule."""
        async with asyncio.timeout(30):
            while True:
                try:
                    await self.schedule.describe()
                except RPCError:
                    return
                await asyncio.sleep(0.05)

    async def reports(self, found: ScheduleDescription) -> list[MaintenanceReport]:
        """What the scheduled runs came to, those that go on still included."""
        temporal = self.stage.client.temporal
        reports = []
        for action in found.info.recent_actions:
            run = action.action
            assert isinstance(run, ScheduleActionExecutionStartWorkflow)
            handle = temporal.get_workflow_handle(
                run.workflow_id,
                run_id=run.first_execution_run_id,
                result_type=MaintenanceReport,
            )
            reports.append(await asyncio.wait_for(handle.result(), 60))
        return reports


@pytest.fixture
async def town(make_stage: MakeStage, tmp_path: Path) -> AsyncIterator[Town]:
    stage = await make_stage(workers=0)
    async with open_store(stage.database_url) as store:
        town = Town(stage, tmp_path / "personas", SQLMemoryStore(store.database))
        yield town
        with suppress(RPCError):
            await town.schedule.delete()


def any_schedule(found: ScheduleDescription) -> bool:
    return True


async def test_a_worker_makes_a_schedule_that_tidies_when_it_is_triggered(town: Town) -> None:
    faint = await town.remembers("it rained", last_access=LONG_AGO)
    await town.worker()
    made = await town.described(any_schedule)
    [interval] = made.schedule.spec.intervals
    assert interval.every.total_seconds() == HOUR
    assert await made.memo() == {"persona": town.persona}
    await town.schedule.trigger()
    ran = await town.described(lambda found: found.info.num_actions == 1)
    [report] = await town.reports(ran)
    assert (report.persona, report.scopes, report.pruned) == (town.persona, 1, 1)
    assert not (await town.get(faint)).active


async def test_at_an_interval_of_a_second_it_runs_again_and_again(town: Town) -> None:
    guessed = await town.remembers("hm", source="reflection", last_access=0.0, retrievals=0)
    before = await town.get(guessed)
    await town.worker(
        consolidation={"interval": 1},
        mechanisms={"sourceConfidenceDecay": {"rule": "hourly"}},
        decay={"pruningThreshold": 0},
    )
    found = await town.described(lambda found: found.info.num_actions >= 4)
    assert found.schedule.policy.overlap.name == "SKIP"
    reports = await town.reports(found)
    assert len(reports) >= 4
    # What is done once an hour was done once.
    assert {report.scopes for report in reports} == {1}
    assert sum(report.faded for report in reports) == 1
    factor = (await town.get(guessed)).stability / before.stability
    assert 0.5 < factor < 0.8


async def test_the_injected_clock_shrinks_a_memory_of_sixty_days(town: Town) -> None:
    old = await town.remembers("word " * 40)
    await town.worker()
    assert (await town.tidy(NOW - 2 * DAY)).gisted == 0
    assert (await town.tidy(NOW)).gisted == 1
    assert "..." in (await town.get(old)).content
    assert (await town.tidy(NOW)).gisted == 0


async def test_a_worker_killed_in_the_middle_is_resumed_after_the_last_finished_scope(
    town: Town,
) -> None:
    model = town.stage.model
    old = [await town.remembers(f"the story of {user}", user) for user in ("a", "b", "c")]
    model.on("story of a", Text("Gist of a."))
    model.on("story of b", Text("Lost"), Barrier("mid"), times=1)
    model.on("story of b", Text("Gist of b."))
    model.on("story of c", Text("Gist of c."))
    settings = {"consolidation": {"model": "openai:scripted"}}
    await town.worker(**settings)
    running = await town.start()
    await model.reached("mid")
    await progressed(running, 1)
    town.stage.workers[0].kill()
    # What was finished stands; what was not has not begun.
    assert (await town.get(old[0])).content == "Gist of a."
    assert (await town.get(old[1])).content == "the story of b"
    await town.worker(**settings)
    report = await asyncio.wait_for(running.result(), 60)
    assert (report.scopes, report.gisted) == (3, 3)
    for trace_id, name in zip(old, "abc", strict=True):
        trace = await town.get(trace_id)
        assert (trace.content, trace.strength) == (f"Gist of {name}.", 0.4)
    assert [len(model.asked(f"story of {name}")) for name in "abc"] == [1, 2, 1]


async def test_what_was_committed_before_a_kill_is_not_done_a_second_time(town: Town) -> None:
    model = town.stage.model
    old = await town.remembers("the story of a")
    model.on("story of a", Text("Gist of a."))
    # The scope is tidied; what is left of it is the vector of the new words.
    model.on_embedding("Gist of a", Barrier("after the commit"))
    settings = {"embedding": "openai:vectors", "consolidation": {"model": "openai:scripted"}}
    await town.worker(**settings)
    running = await town.start()
    await model.reached("after the commit")
    assert (await town.get(old)).content == "Gist of a."
    town.stage.workers[0].kill()
    model.embed_again()
    await town.worker(**settings)
    report = await asyncio.wait_for(running.result(), 60)
    assert (report.scopes, report.gisted, report.waiting_for_vectors) == (1, 1, 0)
    assert (await town.get(old)).strength == 0.4
    assert len(model.asked("story of a")) == 1
    assert set(await town.memory.vectors([old], "openai:vectors")) == {old}


async def test_another_embedding_model_embeds_everything_anew_through_a_kill(town: Town) -> None:
    model = town.stage.model
    count = 2 * BATCH + 10
    ids = [
        await town.remembers(f"story{n:03} of ada", retrievals=0, created_at=NOW + n)
        for n in range(count)
    ]
    await town.worker(embedding="openai:old")
    assert (await town.tidy()).embedded == count
    assert len(model.embedded) == count
    town.stage.workers[0].kill()
    # The newest are embedded first: this one is in the second batch.
    model.on_embedding(f"story{BATCH:03}", Barrier("mid"))
    await town.worker(embedding="openai:new")
    running = await town.start()
    await model.reached("mid")
    assert len(await town.memory.vectors(ids, "openai:new")) == BATCH
    town.stage.workers[1].kill()
    model.embed_again()
    await town.worker(embedding="openai:new")
    report = await asyncio.wait_for(running.result(), 60)
    assert report.waiting_for_vectors == 0
    assert set(await town.memory.vectors(ids, "openai:new")) == set(ids)
    assert set(await town.memory.vectors(ids, "openai:old")) == set(ids)
    # Only the batch that was under way was embedded a second time.
    assert len(model.embedded) == 2 * count + BATCH


async def test_a_store_that_is_locked_in_the_middle_is_waited_for(town: Town) -> None:
    model = town.stage.model
    old = [await town.remembers(f"the story of {user}", user) for user in ("a", "b")]
    model.on("story of a", Text("Gist of a."))
    model.on("story of b", Barrier("mid"), Text("Gist of b."))
    await town.worker(consolidation={"model": "openai:scripted"})
    running = await town.start()
    await model.reached("mid")
    with locked(town.stage.database_url):
        model.open("mid")
        # The time that the store is away is what this test is about.
        await asyncio.sleep(3)
    report = await asyncio.wait_for(running.result(), 60)
    assert (report.scopes, report.gisted) == (2, 2)
    assert [(await town.get(id_)).strength for id_ in old] == [0.4, 0.4]


async def test_two_workers_make_one_schedule_and_share_its_runs(town: Town) -> None:
    for user in "abcd":
        await town.remembers(f"the story of {user}", user, last_access=LONG_AGO)
    town.write_persona()
    await asyncio.gather(town.worker(), town.worker())
    await town.described(any_schedule)
    await town.schedule.trigger()
    found = await town.described(lambda found: found.info.num_actions == 1)
    [report] = await town.reports(found)
    assert (report.scopes, report.pruned) == (4, 4)
    assert not any("schedule" in worker.output.lower() for worker in town.stage.workers)


async def test_two_consolidations_at_once_do_everything_once(town: Town) -> None:
    old = [await town.remembers(f"the story of {user}", user) for user in "abcdef"]
    await town.worker()
    await town.worker()
    await town.described(any_schedule)
    await town.start()
    await town.tidy()
    for trace_id in old:
        assert (await town.get(trace_id)).strength == 0.4


async def test_a_changed_interval_changes_the_schedule_and_leaves_it_paused(town: Town) -> None:
    await town.worker()
    await town.described(any_schedule)
    await town.schedule.pause(note="not now")
    await town.worker(consolidation={"interval": 600})
    found = await town.described(
        lambda found: found.schedule.spec.intervals[0].every.total_seconds() == 600
    )
    assert found.schedule.state.paused
    assert found.schedule.state.note == "not now"


@pytest.mark.parametrize("off", [{"consolidation": {"enabled": False}}, {"enabled": False}])
async def test_a_persona_that_turns_it_off_has_its_schedule_removed(
    town: Town, off: dict[str, Any]
) -> None:
    await town.worker()
    await town.described(any_schedule)
    await town.worker(**off)
    await town.gone()


async def test_the_schedule_of_another_queues_workers_is_left_alone(town: Town) -> None:
    await town.worker()
    await town.described(any_schedule)

    def moved(known: Any) -> ScheduleUpdate:
        schedule = known.description.schedule
        assert isinstance(schedule.action, ScheduleActionStartWorkflow)
        schedule.action.task_queue = "elsewhere"
        return ScheduleUpdate(schedule=schedule)

    await town.schedule.update(moved)
    await town.worker(consolidation={"interval": 600})
    async with asyncio.timeout(30):
        while "belongs to the workers of the queue 'elsewhere'" not in said(town):
            await asyncio.sleep(0.05)
    found = await town.schedule.describe()
    assert found.schedule.spec.intervals[0].every.total_seconds() == HOUR


async def test_a_persona_that_nobody_knows_is_refused(town: Town) -> None:
    await town.worker()
    with pytest.raises(PersonaNotFoundError, match="nobody"):
        await consolidate(
            town.stage.client.temporal, "nobody", task_queue=town.stage.client.task_queue
        )


def said(town: Town) -> str:
    return "".join(worker.output for worker in town.stage.workers[-1:])


async def progressed(running: WorkflowHandle[Any, Any], done: int) -> None:
    """Returns once the server has been told how many scopes are finished."""
    async with asyncio.timeout(30):
        while True:
            found = await running.describe()
            for pending in found.raw_description.pending_activities:
                for payload in pending.heartbeat_details.payloads:
                    if json.loads(payload.data)["done"] == done:
                        return
            await asyncio.sleep(0.05)
