"""Input that cannot be used: a typed error each time, and the session as usable as before."""

from __future__ import annotations

import asyncio
from typing import Any

import pydantic
import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from gmi.personas.errors import (
    ConfigurationError,
    CredentialRefusedError,
    MessageTooLargeError,
    PermissionDeniedError,
    PersonaMismatchError,
    PersonaNotFoundError,
    RequestMismatchError,
    SessionBusyError,
    SessionClosedError,
    SessionNotFoundError,
    SessionUserMismatchError,
    ToolNotFoundError,
    TurnNotFoundError,
    ValidationError,
)
from gmi.personas.messages import ImagePart, Message, TextPart
from gmi.personas.options import CompletionOptions
from gmi.worker import Session
from gmi.workflows import SessionConfig
from gmi.workflows.turns import HostResult

from ..conftest import Stage
from ..support.scripted_model import Barrier, Text


@pytest.fixture(autouse=True)
def answers(stage: Stage) -> None:
    stage.model.on("usable", Text("yes"))


async def usable(session: Session) -> None:
    assert (await session.send("usable?")).response_text == "yes"


async def foreign(stage: Stage, session: Session, name: str, *payload: Any) -> ApplicationError:
    """The refusal that a client without this library gets from an update."""
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await handle.execute_update(name, args=list(payload))
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


@pytest.mark.parametrize(
    "content",
    ["", " \n\t", [], [TextPart(text="  ")], [ImagePart()], [ImagePart(url="x", blob="y")]],
    ids=["nothing", "blanks", "no parts", "blank part", "no source", "two sources"],
)
async def test_an_empty_message_is_refused(stage: Stage, content: Any) -> None:
    session = stage.session()
    with pytest.raises(ValidationError) as caught:
        await session.send(content)
    assert caught.value.code == "SYS_VALIDATION_ERROR"
    await usable(session)
    raw = content if isinstance(content, str) else [part.model_dump() for part in content]
    refusal = await foreign(stage, session, "submit_turn", {"content": raw, "user_id": "kim"})
    assert refusal.type == "SYS_VALIDATION_ERROR"
    await usable(session)


@pytest.mark.parametrize("content", [None, 5, b"bytes", {"type": "text"}, [None]])
async def test_what_is_no_message_is_refused_with_advice(stage: Stage, content: Any) -> None:
    session = stage.session()
    with pytest.raises(ValidationError, match=r"send text|content"):
        await session.send(content)
    await usable(session)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"session_id": ""}, "The session id ''"),
        ({"session_id": 5}, "The session id 5"),
        ({"session_id": "a b"}, "The session id 'a b'"),
        ({"user_id": " "}, "The user id ' '"),
        ({"user_id": None}, "The user id None"),
    ],
)
async def test_an_id_that_is_not_usable_is_refused(
    stage: Stage, given: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValidationError, match=word):
        stage.client.session(**given)


async def test_only_what_there_is_can_be_read(stage: Stage) -> None:
    session = stage.session()
    with pytest.raises(ValidationError, match=r"'mnd' to read; did you mean 'mind'\?"):
        await anext(session.read("mnd"))  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="limit"):
        await anext(session.read("turns", limit=0))


async def test_a_session_that_was_never_used_has_no_memory_yet(stage: Stage) -> None:
    session = stage.session()
    with pytest.raises(SessionNotFoundError, match=r"send a message or call initialize\(\) first"):
        await session.memory.recall("anything")
    await session.initialize()
    assert await session.memory.recall("anything") == []


async def test_a_message_over_a_megabyte_is_refused_with_its_size(stage: Stage) -> None:
    session = stage.session()
    text = "x" * 1_100_000
    with pytest.raises(MessageTooLargeError) as caught:
        await session.send(text)
    assert caught.value.details["limit"] == 1_000_000
    assert caught.value.details["bytes"] > 1_100_000
    await usable(session)
    refusal = await foreign(stage, session, "submit_turn", {"content": text, "user_id": "kim"})
    assert refusal.type == "MESSAGE_TOO_LARGE"
    assert refusal.details[0]["bytes"] > 1_100_000
    await usable(session)


async def test_a_message_just_under_a_megabyte_is_taken(stage: Stage) -> None:
    session = stage.session(model="openai:gpt-4.1")
    stage.model.on("enormous", Text("read it"))
    assert (await session.send("enormous " + "y" * 990_000)).response_text == "read it"
    assert (await session.state()).state_bytes < 30_000


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("submit_turn", ()),
        ("submit_turn", ("text",)),
        ("submit_turn", ({"content": "x"},)),
        ("submit_turn", ({"content": "x", "user_id": "kim", "colour": "red"},)),
        ("submit_turn", ({"content": "x", "user_id": "kim", "options": {"heat": 1}},)),
        ("submit_turn", ({"content": "x", "user_id": "kim", "request_id": ""},)),
        ("tool_results", ()),
        ("tool_results", ({"results": 1},)),
        ("tool_results", ({"results": [], "rest": "wait"},)),
        ("await_turn", (None,)),
        ("stop_turn", ({"turn": 1},)),
        ("replace_history", ({"messages": [{"role": "pirate"}]},)),
        ("refresh_persona", ("x",)),
        ("close", (7,)),
        ("initialize", ({"persona": "tuned"},)),
        ("clear_history", ({"forget": False},)),
        ("clear_history", ([],)),
    ],
)
async def test_a_malformed_call_of_a_foreign_client_is_refused(
    stage: Stage, name: str, payload: tuple[Any, ...]
) -> None:
    session = stage.session("foreign")
    await session.initialize()
    assert (await foreign(stage, session, name, *payload)).type == "SYS_VALIDATION_ERROR"
    await usable(session)


async def test_a_call_that_takes_no_input_may_be_given_an_empty_one(stage: Stage) -> None:
    session = stage.session("empty-input")
    await session.initialize()
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    for payload in ({}, None):
        assert (await handle.execute_update("initialize", payload))["status"] == "ready"
        assert (await handle.execute_update("clear_history", payload))["status"] == "done"


@pytest.mark.parametrize("encoding", [b"json/plain", b"binary/unheard-of"])
async def test_a_payload_that_does_not_decode_is_refused_without_quoting_it(
    stage: Stage, encoding: bytes
) -> None:
    session = stage.session("undecodable")
    await session.initialize()
    bad = RawValue(Payload(metadata={"encoding": encoding}, data=b"{secret words \xff"))
    refusal = await foreign(stage, session, "submit_turn", bad)
    assert refusal.type == "SYS_VALIDATION_ERROR"
    assert "15 bytes" in refusal.message
    assert encoding.decode() in refusal.message
    said: BaseException | None = refusal
    while said is not None:
        assert "secret" not in repr(said)
        said = said.__cause__
    handle = stage.client.temporal.get_workflow_handle(session.workflow_id)
    await handle.signal("tool_results", bad)
    assert "secret" not in (await session.pending()).warnings[-1]
    await usable(session)


async def test_an_unknown_persona_is_refused_and_the_id_stays_free(stage: Stage) -> None:
    wrong = stage.client.session("no-persona", user_id="kim", persona="nobody")
    with pytest.raises(PersonaNotFoundError) as caught:
        await wrong.send("hello")
    assert set(caught.value.details["known"]) >= {"plain", "tuned"}
    with pytest.raises(SessionNotFoundError):
        [item async for item in wrong.read("turns")]
    await usable(stage.session("no-persona"))


async def test_a_persona_of_other_users_is_refused(stage: Stage) -> None:
    with pytest.raises(PermissionDeniedError):
        await stage.client.session("locked-1", user_id="kim", persona="locked").send("hello")
    config = SessionConfig(model="openai:scripted", fallback=[])
    await usable(stage.client.session("locked-1", user_id="ada", persona="locked", config=config))


async def test_an_unknown_tool_is_refused(stage: Stage) -> None:
    with pytest.raises(ToolNotFoundError) as caught:
        await stage.session("no-tool", tools=["echo", "hammer"]).send("hello")
    assert "echo" in caught.value.details["known"]
    await usable(stage.session("no-tool"))


@pytest.mark.parametrize("model", ["scripted", "nowhere:model", "openai:"])
async def test_an_unknown_model_is_refused_when_the_session_opens(stage: Stage, model: str) -> None:
    name = f"no-model-{model.partition(':')[0]}-{len(model)}"
    with pytest.raises(ConfigurationError, match="provider"):
        await stage.session(name, model=model).send("hello")
    await usable(stage.session(name))


async def test_an_unknown_model_of_one_turn_fails_that_turn(stage: Stage) -> None:
    session = stage.session()
    output = await session.send("hello", model="nowhere:model")
    assert output.error is not None
    assert output.error.code == "SYS_CONFIGURATION_ERROR"
    assert "nowhere" in output.error.message
    await usable(session)


async def test_a_raw_key_is_refused_everywhere(stage: Stage) -> None:
    key = "sk-live-1234567890"
    with pytest.raises(CredentialRefusedError) as caught:
        stage.session("raw-key", credentials={"openai": key})
    assert key not in caught.value.message
    handle = await stage.client.temporal.start_workflow(
        "GMISession",
        {"session_id": "raw-key", "user_id": "kim", "config": {"credentials": {"openai": key}}},
        id="gmi-session-raw-key",
        task_queue=stage.client.task_queue,
    )
    refusal = await foreign(stage, stage.session("raw-key"), "initialize")
    assert refusal.type == "CREDENTIAL_REFUSED"
    assert key not in refusal.message
    await handle.result()
    await usable(stage.session("raw-key"))


async def test_a_credential_that_the_worker_does_not_allow_is_refused(stage: Stage) -> None:
    session = stage.session(credentials={"openai": "env:HOME"})
    output = await session.send("hello")
    assert output.error is not None
    assert output.error.code == "CREDENTIAL_REFUSED"


async def test_another_user_is_refused(stage: Stage) -> None:
    session = stage.session()
    await session.initialize()
    with pytest.raises(SessionUserMismatchError):
        await stage.session(session.id, user_id="mallory").send("hello")
    await usable(session)


async def test_another_persona_is_refused(stage: Stage) -> None:
    session = stage.session()
    await session.initialize()
    other = stage.client.session(session.id, user_id="kim", persona="tuned")
    with pytest.raises(PersonaMismatchError, match="refresh_persona"):
        await other.send("hello")
    await usable(session)


async def test_a_closed_session_is_refused_and_its_id_opens_empty(stage: Stage) -> None:
    session = stage.session()
    stage.model.on("remember", Text("noted"))
    await session.send("remember me")
    key = session.key
    other = (await stage.reconnect()).session(session.id, user_id="kim")
    await other.state()
    await session.close()
    with pytest.raises(SessionClosedError):
        await session.send("usable?")
    with pytest.raises(SessionClosedError):
        await other.send("usable?")
    fresh = stage.session(session.id)
    await usable(fresh)
    assert fresh.key != key
    assert [m.text for m in await fresh.get_conversation_history()] == ["usable?", "yes"]
    with pytest.raises(SessionClosedError):
        await other.send("usable?")


async def test_an_unknown_session_is_typed(stage: Stage) -> None:
    session = stage.session("never-opened")
    for call in (session.state, session.pending, session.get_reasoning_trace, session.stop):
        with pytest.raises(SessionNotFoundError):
            await call()


async def test_an_unknown_turn_is_typed(stage: Stage) -> None:
    session = stage.session()
    await session.initialize()
    for call in (session.get_turn, session.wait):
        with pytest.raises(TurnNotFoundError):
            await call("no-such-turn")
    refusal = await foreign(stage, session, "await_turn", {"turn": "no-such-turn"})
    assert refusal.type == "TURN_UNKNOWN"
    with pytest.raises(TurnNotFoundError):
        await session.stop("no-such-turn")
    assert "TURN_UNKNOWN" in (await session.pending()).warnings[-1]
    await usable(session)


async def test_a_request_id_makes_one_turn(stage: Stage) -> None:
    session = stage.session()
    stage.model.on("once-1", Barrier("once"), Text("single"))
    sends = [asyncio.create_task(session.send("once-1", request_id="r1")) for _ in range(5)]
    await stage.model.reached("once")
    stage.model.open("once")
    outputs = await asyncio.gather(*sends)
    assert {output.turn for output in outputs} == {outputs[0].turn}
    assert (await session.send("once-1", request_id="r1")).turn == outputs[0].turn
    assert len(stage.model.asked("once-1")) == 1
    with pytest.raises(RequestMismatchError):
        await session.send("once-1, changed", request_id="r1")
    await usable(session)


async def test_a_request_id_is_known_after_the_session_has_forgotten_it(stage: Stage) -> None:
    session = stage.session()
    stage.model.on("old-1", Text("from then"))
    old = await session.send("old-1", request_id="r1")
    await session.messages()
    # A session whose workflow was ended from outside goes on from the store, with no memory of
    # its requests.
    # Not by the same kind of call, which the server would answer by itself.
    await stage.client.temporal.get_workflow_handle(session.workflow_id).terminate()
    again = await (await session.stream("old-1", request_id="r1")).result()
    assert (again.turn, again.response_text) == (old.turn, "from then")
    assert len(stage.model.asked("old-1")) == 1
    await stage.client.temporal.get_workflow_handle(session.workflow_id).terminate()
    with pytest.raises(RequestMismatchError):
        await session.send("old-1, changed", request_id="r1")
    assert not stage.model.asked("old-1, changed")
    await usable(session)
    assert [m.text for m in await session.get_conversation_history()] == [
        "old-1",
        "from then",
        "usable?",
        "yes",
    ]
    found = await session.get_turn(old.turn)
    assert found is not None
    assert (found.status, found.response_text) == ("done", "from then")
    assert [row["status"] for row in await session.turns()] == ["done", "done"]


async def test_a_sender_who_will_not_wait_is_told_that_a_turn_runs(stage: Stage) -> None:
    session = stage.session()
    stage.model.on("running-1", Barrier("running"), Text("x"))
    stream = await session.stream("running-1")
    await stage.model.reached("running")
    with pytest.raises(SessionBusyError):
        await session.send("usable?", sends="refuse")
    for change in (session.clear_history, lambda: session.replace_history([])):
        with pytest.raises(SessionBusyError):
            await change()
    stage.model.open("running")
    await stream.result()
    await usable(session)


async def test_options_with_unknown_keys_are_refused() -> None:
    with pytest.raises(pydantic.ValidationError):
        CompletionOptions.model_validate({"temprature": 1})
    with pytest.raises(pydantic.ValidationError):
        SessionConfig.model_validate({"max_tools": 1})


@pytest.mark.parametrize("bad", ["", " x", "a/b", "-x", "y" * 201])
async def test_a_session_id_that_cannot_be_used_is_refused(stage: Stage, bad: str) -> None:
    with pytest.raises(ValidationError):
        stage.client.session(bad or " ", user_id="kim")


@pytest.mark.parametrize("content", ["half \ud800", "\udfff"])
async def test_text_that_json_cannot_hold_is_refused(stage: Stage, content: str) -> None:
    session = stage.session()
    with pytest.raises(ValidationError, match="cannot be written as JSON"):
        await session.send(content)
    for bad in (content, object()):
        with pytest.raises(ValidationError):
            await session.answer([HostResult(call_id="c", content=bad)])
    with pytest.raises(ValidationError):
        await session.replace_history([Message(role="user", content=content)])
    await usable(session)
