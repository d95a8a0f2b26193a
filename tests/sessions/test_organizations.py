"""Two organizations may have users of the same id: what one of them said stays with that one."""

from __future__ import annotations

import itertools

import pytest

from gmi.personas.errors import SessionUserMismatchError
from gmi.worker import Session
from gmi.workflows.memory import scope_owner, user_scope_id
from gmi.workflows.session_records import SessionConfig

from ..conftest import Stage
from ..support.scripted_model import Text
from .test_memory import prompt_of, told

_names = itertools.count(1)


def session_of(stage: Stage, org: str, user: str = "1", persona: str = "mindful") -> Session:
    return stage.client.session(
        f"organized-{next(_names)}",
        persona=persona,
        user_id=user,
        org=org,
        config=SessionConfig(model="openai:scripted", fallback=[]),
    )


async def contents(stage: Stage, user: str, org: str = "") -> set[str]:
    return {item["content"] async for item in stage.client.memory.list(user_id=user, org=org)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("1", "acme"), ("1", "other")),
        (("1", "acme"), ("acme/1", "")),
        (("b/c", "a"), ("c", "a/b")),
        (("a/b", ""), ("a%2Fb", "")),
        (("1", ""), ("1", "acme")),
    ],
)
def test_no_two_users_share_a_scope(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert user_scope_id(*one) != user_scope_id(*other)
    assert scope_owner(user_scope_id(*one)) == one
    assert scope_owner(user_scope_id(*other)) == other


async def test_users_of_one_id_in_two_organizations_recall_only_their_own(stage: Stage) -> None:
    for org in ("acme", "other"):
        await told(stage, session_of(stage, org), f"The sesame word of {org} is walnut")
    stage.model.on("sesame word you", Text("Walnut."))
    await session_of(stage, "acme").send("What sesame word you know?")
    prompt = prompt_of(stage.model, "sesame word you")
    assert "word of acme" in prompt
    assert "word of other" not in prompt


async def test_a_users_memories_are_looked_at_and_erased_with_the_organization(
    stage: Stage,
) -> None:
    for org in ("north", "south"):
        session = session_of(stage, org, user="ida")
        await told(stage, session, f"My locker in the {org} is green")
        await session.memory.remember(f"Ida of the {org} likes tea")
    assert await contents(stage, "ida") == set()
    assert {"My locker in the north is green", "Ida of the north likes tea"} <= await contents(
        stage, "ida", "north"
    )
    [note] = await stage.client.memory.search("likes tea", user_id="ida", org="south", limit=1)
    assert (note["content"], note["scope"]) == ("Ida of the south likes tea", "user:south/ida")
    assert (await stage.client.memory.forget(user_id="ida"))["traces"] == 0
    erased = await stage.client.memory.forget(user_id="ida", org="north")
    assert erased["traces"] == 3
    assert await contents(stage, "ida", "north") == set()
    assert "My locker in the south is green" in await contents(stage, "ida", "south")


async def test_what_a_user_says_of_an_answer_is_theirs_and_not_confirmed_by_anybody(
    stage: Stage,
) -> None:
    session = session_of(stage, "west", user="uma")
    await told(stage, session, "Tell me of the dromedary")
    ack = await session.record_user_feedback(
        "negative", text="Too long", correction="A dromedary has one hump"
    )
    assert len(ack.memories) == 2
    found = [await session.memory.show(id_) for id_ in ack.memories]
    by_hand = await session.memory.remember("Uma rides on Sundays")
    assert [(item["source"], item["scope"]) for item in found] == [
        ("user_statement", "user:west/uma")
    ] * 2
    assert by_hand["source"] == "human_approval"
    assert all(item["confidence"] < by_hand["confidence"] for item in found)
    assert all(item["strength"] < by_hand["strength"] for item in found)


async def test_a_session_serves_no_other_organization(stage: Stage) -> None:
    session = session_of(stage, "acme")
    await told(stage, session, "The sesame word is walnut")
    other = stage.client.session(session.id, user_id="1", org="other")
    with pytest.raises(SessionUserMismatchError):
        await other.send("What did I say?")
    await stage.client.temporal.get_workflow_handle(session.workflow_id).terminate()
    again = stage.client.session(session.id, user_id="1", org="other")
    with pytest.raises(SessionUserMismatchError):
        await again.send("What did I say?")
