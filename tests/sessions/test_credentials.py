"""Whose key a call carries: the worker's own, or one that a session names."""

from __future__ import annotations

from ..conftest import Stage
from ..support.scripted_model import Text
from .conftest import SECRET


async def test_a_session_may_name_a_key_that_the_worker_allows(stage: Stage) -> None:
    stage.model.on("named-1", Text("x"))
    session = stage.session(credentials={"openai": "env:TENANT_KEY"})
    output = await session.send("named-1")
    assert output.status == "done"
    assert stage.model.key_of("named-1") == f"{SECRET}-tenant"
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    assert SECRET not in (await handle.fetch_history()).to_json()


async def test_without_a_name_the_workers_own_key_is_used(stage: Stage) -> None:
    stage.model.on("named-2", Text("x"))
    await stage.session().send("named-2")
    assert stage.model.key_of("named-2") == f"{SECRET}-openai"


async def test_a_name_that_is_not_allowed_is_refused_without_being_looked_up(
    stage: Stage,
) -> None:
    session = stage.session(credentials={"openai": "env:GMI_DATABASE_URL"})
    output = await session.send("named-3")
    assert output.error is not None
    assert output.error.code == "CREDENTIAL_REFUSED"
    assert "sqlite" not in str(output)
    assert not stage.model.asked("named-3")
