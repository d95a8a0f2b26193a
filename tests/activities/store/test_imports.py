from __future__ import annotations

from typing import Any

from gmi.personas.messages import Message
from gmi.workflows.pages import Read
from gmi.workflows.steps import At, Segment

from .reading import load_history


def user(content: str) -> Message:
    return Message(role="user", content=content)


async def listed(life: Any) -> dict[str, bool]:
    page = await life.store.read(Read(what="turns", session_id=life.session_id))
    return {item["turn"]: item["hidden"] for item in page.items}


async def replace(
    life: Any, turn: str, messages: list[Message], *, forget: bool = True
) -> tuple[At, list[str]]:
    """Replace the history twice, as a repeated activity does; both must say the same."""
    life.parent, life.branch, life.depth = None, f"root-{turn}", 0
    at, opening = life.at(turn), life.opening(turn, kind="import")
    said = [
        await life.store.import_history(
            at,
            opening=opening,
            messages=messages,
            forget=forget,
            output=life.output(turn),
            trace=[],
        )
        for _ in range(2)
    ]
    assert said[0] == said[1]
    life.parent, life.depth = turn, 1
    return at, said[0]


async def seen(life: Any) -> list[str]:
    history = await load_history(
        life,
        life.at("next"),
        step=0,
        path=[Segment(branch=life.branch, depth=life.depth)],
        parent=life.parent,
        partials=[],
        limit=20,
    )
    assert history.left_out == 0
    return [message.text for message in history.earlier]


async def test_a_given_history_is_what_later_turns_see(life: Any) -> None:
    await life.whole_turn("t1")
    given = [user("given"), Message(role="assistant", content="answer")]
    await replace(life, "import-1", given)
    assert await seen(life) == ["given", "answer"]
    await life.whole_turn("t2")
    assert await seen(life) == ["given", "answer", "question t2", "answer to t2"]
    row = await life.store.get_session(life.session)
    assert (row.head, row.head_branch, row.head_depth) == ("t2", "root-import-1", 2)


async def test_an_empty_history_leaves_nothing_to_see(life: Any) -> None:
    await life.whole_turn("t1")
    _, hidden = await replace(life, "import-1", [])
    assert hidden == ["t1"]
    assert await seen(life) == []
    page = await life.store.read(Read(what="messages", session_id=life.session_id))
    assert page.items == []


async def test_turns_whose_input_the_new_history_holds_are_not_hidden(life: Any) -> None:
    for turn, said in (("t1", "same"), ("t2", "other"), ("t3", "same"), ("t4", "kept")):
        await life.whole_turn(turn, said=said)
    _, hidden = await replace(life, "import-1", [user("kept"), user("same")])
    # One message claims one turn, the newest first.
    assert hidden == ["t2", "t1"]
    assert await listed(life) == {
        "t1": True,
        "t2": True,
        "t3": False,
        "t4": False,
        "import-1": False,
    }


async def test_without_forgetting_nothing_is_hidden(life: Any) -> None:
    await life.whole_turn("t1")
    _, hidden = await replace(life, "import-1", [user("new")], forget=False)
    assert hidden == []
    assert await listed(life) == {"t1": False, "import-1": False}
    assert await seen(life) == ["new"]


async def test_a_second_import_names_only_what_it_hid_itself(life: Any) -> None:
    await life.whole_turn("t1")
    await replace(life, "import-1", [])
    await life.whole_turn("t2")
    _, hidden = await replace(life, "import-2", [])
    assert hidden == ["t2", "import-1"]


async def test_the_trace_of_a_hidden_turn_keeps_its_lines_without_details(life: Any) -> None:
    await life.reply(await life.begin("t1"))
    late = life.at("t1")
    entries = [life.entry(1, "t1", secret="a"), life.entry(2, None, reason="b")]
    await life.store.save_session(life.at(), closed=False, state=None, trace=entries)
    await replace(life, "import-1", [])
    # The end of the forgotten turn may be recorded after the import.
    await life.store.close_turn(
        late.model_copy(update={"counter": life.counter + 1}),
        status="done",
        output=life.output("t1"),
        opening=None,
        layout=[2],
        messages=[],
        trace=[life.entry(3, "t1", secret="c")],
        head="import-1",
    )
    page = await life.store.read(Read(what="trace", session_id=life.session_id))
    assert [(item["message"], item["details"]) for item in page.items] == [
        ("entry 1", {}),
        ("entry 2", {"reason": "b"}),
        ("entry 3", {}),
    ]
    page = await life.store.read(Read(what="turns", session_id=life.session_id))
    assert [item["preview"] for item in page.items] == ["", ""]


async def test_a_long_given_history_is_cut_to_the_newest_messages(life: Any) -> None:
    await replace(life, "import-1", [user(f"m{n}") for n in range(500)])
    history = await load_history(
        life,
        life.at("next"),
        step=0,
        path=[Segment(branch=life.branch, depth=1)],
        parent="import-1",
        partials=[],
        limit=20,
    )
    assert [message.text for message in history.earlier] == [f"m{n}" for n in range(480, 500)]
    assert history.left_out == 480
