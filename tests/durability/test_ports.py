"""The store's ports with two workers: each waits for a store that is locked, and works once."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pytest
from temporalio.service import RPCError, RPCStatusCode

from gmi.personas.errors import SessionNotFoundError
from gmi.personas.messages import Message
from gmi.worker import Session
from gmi.worker.status import PendingActivity, pending_activities
from gmi.workflows.turns import HostResult

from ..conftest import MakeStage, Stage
from ..support.databases import locked
from ..support.scripted_model import Call, Text


class Deed(ABC):
    """One use of a port by a session of its own: what leads up to it, itself, and what is left.

    Attributes:
        activity: The port's activity.
    """

    activity: ClassVar[str]
    config: ClassVar[dict[str, Any]] = {}

    def __init__(self, stage: Stage) -> None:
        self.name = type(self).__name__
        self.stage = stage
        # A user of its own, so that nobody is reminded of what another deed said.
        self.session = stage.session(user_id=self.name, **self.config)
        self.long = f"so many words of {self.name} " * 350
        # In this order: the last message may come with what is remembered of the first.
        stage.model.on(f"after {self.name}", Text("at last"))
        stage.model.on(f"before {self.name}", Text("at first"))

    async def prepare(self) -> None:
        """What happens while the store is free."""
        await self.session.send(f"before {self.name}")

    @abstractmethod
    async def do(self) -> None:
        """The deed; ends when it is answered."""

    @abstractmethod
    async def check(self) -> None:
        """It was done once."""

    @property
    def waits(self) -> bool:
        """Whether a locked store is in its way."""
        return True

    async def at_rest(self) -> None:
        """Wait until nothing of what led up to it is still being done."""
        async with asyncio.timeout(40):
            while await self.pending():
                await asyncio.sleep(0.02)

    async def under_way(self) -> PendingActivity:
        """Wait until a worker has the deed's activity in hand."""
        async with asyncio.timeout(40):
            while True:
                for found in await self.pending():
                    if found.activity == self.activity and found.worker:
                        return found
                await asyncio.sleep(0.02)

    async def pending(self) -> list[PendingActivity]:
        handle = self.stage.client.temporal.get_workflow_handle(self.session.workflow_id)
        try:
            return pending_activities(await handle.describe())
        except RPCError as error:
            # A session that is being opened may not be there yet.
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            return []

    async def goes_on(self, *earlier: str, session: Session | None = None) -> None:
        """The next message is answered, with these texts before it."""
        name = f"after {self.name}"
        output = await asyncio.wait_for((session or self.session).send(name), 30)
        assert output.response_text == "at last"
        [asked] = self.stage.model.asked(name)
        said = [m["content"] or "" for m in asked["messages"] if m["role"] != "system"]
        assert said[:-1] == list(earlier)
        assert said[-1].endswith(name)

    async def noted(self, text: str) -> int:
        """Entries of the stored trace that hold ``text``; no entry is there twice."""
        entries = [entry async for entry in self.session.read("trace")]
        assert len(entries) == len({entry["seq"] for entry in entries})
        return sum(text in entry["message"] for entry in entries)


class ReplaceHistory(Deed):
    activity = "gmi.store.import_history"

    async def do(self) -> None:
        given = [Message(role="user", content="given"), Message(role="assistant", content="taken")]
        output = await self.session.replace_history(given)
        assert output.status == "done"

    async def check(self) -> None:
        history = await self.session.get_conversation_history()
        assert [m.text for m in history] == ["given", "taken"]
        await self.goes_on("given", "taken")
        assert [t["kind"] for t in await self.session.turns()] == ["text", "import", "text"]
        assert await self.noted("The history was replaced.") == 1


class RefreshPersona(Deed):
    activity = "gmi.store.refresh_persona"

    async def do(self) -> None:
        self.ack = await self.session.refresh_persona("nerf_generalist")

    async def check(self) -> None:
        assert (await self.session.get_persona()).id == "nerf_generalist"
        await self.goes_on(f"before {self.name}", "at first")
        first, last = (
            self.stage.model.asked(f"{when} {self.name}")[0]["messages"][0]["content"]
            for when in ("before", "after")
        )
        assert first != last
        assert await self.noted("The session runs persona nerf_generalist.") == 1
        [row] = [item async for item in self.session.read("session")]
        assert row["persona_digest"] == self.ack.digest


class Release(Deed):
    activity = "gmi.store.save_session"
    config: ClassVar[dict[str, Any]] = {"idle_timeout": 4}

    async def do(self) -> None:
        handle = self.stage.client.temporal.get_workflow_handle(self.session.workflow_id)
        await handle.result()

    async def check(self) -> None:
        [row] = [item async for item in self.session.read("session")]
        assert row["closed_at"] is None
        await self.goes_on(f"before {self.name}", "at first")
        assert self.session.key == row["session"]
        assert len(await self.session.turns()) == 2
        assert await self.noted("The session goes on where it was.") == 1


class Close(Deed):
    activity = "gmi.store.save_session"

    async def do(self) -> None:
        await self.session.close()

    async def check(self) -> None:
        [row] = [item async for item in self.session.read("session")]
        assert row["closed_at"] is not None
        assert await self.noted("The session closed.") == 1
        again = self.stage.session(self.session.id, user_id=self.name)
        await self.goes_on(session=again)
        assert again.key != row["session"]
        assert len(await again.turns()) == 1


class KeepInput(Deed):
    activity = "gmi.store.put_blobs"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        stage.model.on(f"many words of {self.name}", Text("read"))

    async def do(self) -> None:
        output = await self.session.send(self.long, request_id="long")
        assert output.response_text == "read"

    async def check(self) -> None:
        [asked] = self.stage.model.asked(self.long)
        assert asked["messages"][-1]["content"].endswith(self.long)
        await self.goes_on(f"before {self.name}", "at first", self.long, "read")
        history = [m.text for m in await self.session.get_conversation_history()]
        assert history[2:4] == [self.long, "read"]
        assert [t["request_id"] for t in await self.session.turns()][1] == "long"


class KeepResult(Deed):
    activity = "gmi.store.put_blobs"

    async def prepare(self) -> None:
        self.stage.model.on("ask around", Call("ask_person", {"question": "?"}, id="asked"))
        self.stage.model.on("ask around", Text("I see"), calls=1)
        assert (await self.session.send("ask around")).status == "waiting"

    async def do(self) -> None:
        result = HostResult(call_id="asked", content=self.long)
        output = await self.session.handle_tool_results([result])
        assert output.response_text == "I see"

    async def check(self) -> None:
        assert len(self.stage.model.asked("ask around")) == 2
        history = await self.session.get_conversation_history()
        assert [m.role for m in history] == ["user", "assistant", "tool", "assistant"]
        assert history[2].text == self.long
        again = await self.session.answer([HostResult(call_id="asked", content=self.long)])
        assert again.duplicates == ["asked"]
        await self.goes_on("ask around", "", self.long, "I see")


class Read(Deed):
    activity = "gmi.store.read"

    async def do(self) -> None:
        self.read = await self.session.get_conversation_history()

    async def check(self) -> None:
        assert [m.text for m in self.read] == [f"before {self.name}", "at first"]
        await self.goes_on(f"before {self.name}", "at first")

    @property
    def waits(self) -> bool:
        # A reader of a SQLite file never waits for a writer.
        return not self.stage.database_url.startswith("sqlite")

    async def pending(self) -> list[PendingActivity]:
        temporal = self.stage.client.temporal
        found: list[PendingActivity] = []
        query = f"WorkflowType = 'GMIRead' AND TaskQueue = '{self.stage.client.task_queue}'"
        async for run in temporal.list_workflows(f"{query} AND ExecutionStatus = 'Running'"):
            handle = temporal.get_workflow_handle(run.id, run_id=run.run_id)
            found += pending_activities(await handle.describe())
        return found


class Open(Deed):
    activity = "gmi.store.open_session"

    async def prepare(self) -> None:
        self.other = (await self.stage.reconnect()).session(self.session.id, user_id=self.name)
        with pytest.raises(SessionNotFoundError):
            await self.session.turns()

    async def do(self) -> None:
        mine, theirs = await asyncio.gather(self.session.initialize(), self.other.initialize())
        assert mine.session_key == theirs.session_key

    async def check(self) -> None:
        await self.goes_on()
        assert [t["seq"] for t in await self.session.turns()] == [1]
        assert await self.noted("The session opened") == 1


# The released session comes last: it is let go four seconds after it was prepared.
DEEDS = (ReplaceHistory, RefreshPersona, Close, KeepInput, KeepResult, Read, Open, Release)


async def test_every_port_waits_for_a_store_that_is_locked_for_five_seconds(
    make_stage: MakeStage,
) -> None:
    stage = await make_stage(workers=2)
    deeds = [kind(stage) for kind in DEEDS]
    for deed in deeds:
        await deed.prepare()
        await deed.at_rest()
    with locked(stage.database_url):
        doing = {deed.name: asyncio.create_task(deed.do()) for deed in deeds}
        for deed in deeds:
            if deed.waits:
                await deed.under_way()
        # The time that the store is away is what this test is about.
        await asyncio.sleep(5)
        ended = {name for name, task in doing.items() if task.done()}
        assert ended == {deed.name for deed in deeds if not deed.waits}
    await asyncio.wait_for(asyncio.gather(*doing.values()), 30)
    for deed in deeds:
        await deed.check()


@pytest.mark.parametrize("kind", [ReplaceHistory, Close, KeepInput, Open])
async def test_a_worker_killed_while_a_port_waits_for_the_store_is_replaced(
    make_stage: MakeStage, kind: type[Deed]
) -> None:
    stage = await make_stage(workers=2)
    deed = kind(stage)
    await deed.prepare()
    await deed.at_rest()
    with locked(stage.database_url):
        doing = asyncio.create_task(deed.do())
        waiting = await deed.under_way()
        [victim] = [w for w in stage.workers if waiting.worker.startswith(f"{w.pid}@")]
        victim.kill()
        # The time that the store is away is what this test is about.
        await asyncio.sleep(5)
        assert not doing.done()
    await asyncio.wait_for(doing, 40)
    await deed.check()
