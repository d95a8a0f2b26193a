"""The verb memory, over a real server and worker."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest

from .command_line import CommandLine


@pytest.fixture
def user() -> str:
    """A user of the test's own."""
    return f"user-{uuid.uuid4().hex[:8]}"


async def remembered(gmi: CommandLine, user: str, number: int) -> list[dict[str, Any]]:
    """The user's memories, once there are so many: a turn is remembered after its answer."""
    async with asyncio.timeout(60):
        while True:
            listed = await gmi("memory", "list", "--user", user, "--json")
            assert listed.code == 0, listed.err
            if len(listed.json) >= number:
                found: list[dict[str, Any]] = listed.json
                return found
            await asyncio.sleep(0.2)


async def told(gmi: CommandLine, session_id: str, user: str, text: str) -> None:
    sent = await gmi("send", session_id, text, "--user", user)
    assert sent.code == 0, sent.err


async def test_what_was_said_is_listed_found_and_shown(
    gmi: CommandLine, session_id: str, user: str
) -> None:
    await told(gmi, session_id, user, "My sister Ottilie breeds alpacas")
    rows = await remembered(gmi, user, 2)
    said = next(row for row in rows if row["role"] == "user")
    assert said["scope"] == f"user:{user}"
    assert "alpacas" in said["content"]

    table = await gmi("memory", "list", "--scope", f"user:{user}")
    lines = table.out.splitlines()
    assert lines[0].split("\t") == ["id", "scope", "type", "strength", "age", "content"]
    assert len(lines) == 2

    found = await gmi("memory", "search", "who breeds alpacas?", "--user", user, "--json")
    assert found.json[0]["id"] == said["id"]
    assert 0 < found.json[0]["score"] <= 1

    shown = await gmi("memory", "show", said["id"], "--json")
    assert shown.json["content"] == said["content"]
    assert shown.json["links"] == []

    counted = await gmi("memory", "stats", "--user", user, "--json")
    assert counted.json["counts"]["traces"] == 2
    assert sum(counted.json["strength"]) == 2


async def test_without_a_worker_a_person_is_told_what_is_missing(gmi: CommandLine) -> None:
    terminal = await gmi.terminal("memory", "stats", "--task-queue", "nobody-polls-this")
    try:
        await terminal.see("No worker polls the task queue 'nobody-polls-this'")
    finally:
        terminal.close()


async def test_a_search_without_a_place_looks_in_the_users_own_memory(gmi: CommandLine) -> None:
    found = await gmi("memory", "search", "xyzzy plugh", "--json")
    assert (found.code, found.json) == (0, [])


async def test_forgetting_erases_and_says_what(
    gmi: CommandLine, session_id: str, user: str
) -> None:
    await told(gmi, session_id, user, "My locker has the number 4711")
    rows = await remembered(gmi, user, 2)
    one = await gmi("memory", "forget", rows[0]["id"], "--yes", "--json")
    assert one.json["traces"] == 1
    rest = await gmi("memory", "forget", "--user", user, "--yes")
    assert rest.code == 0
    assert rest.out.startswith("Erased 1 memories, ")
    assert "Forgot 0 learned changes." in rest.out
    assert (await gmi("memory", "list", "--user", user, "--faded", "--json")).json == []


async def test_where_nobody_can_be_asked_only_a_clear_yes_erases(
    gmi: CommandLine, session_id: str, user: str
) -> None:
    await told(gmi, session_id, user, "My shelf has the number 4712")
    await remembered(gmi, user, 2)
    refused = await gmi("memory", "forget", "--user", user, "--json", stdin="y\n")
    assert (refused.code, refused.error["code"]) == (2, "USAGE")
    assert "--yes" in refused.error["message"]
    assert len(await remembered(gmi, user, 2)) == 2


async def test_a_name_that_is_empty_erases_nothing(
    gmi: CommandLine, session_id: str, user: str
) -> None:
    await told(gmi, session_id, user, "My drawer has the number 4713")
    await remembered(gmi, user, 2)
    for words in (
        ["--turn", ""],
        ["--persona", ""],
        ["--session", ""],
        ["--user", ""],
        ["--scope", ""],
        [""],
        ["--user", user, "--text", ""],
        ["--user", user, "--text", "  "],
        ["--user", user, "--type", "nonsense"],
    ):
        refused = await gmi("memory", "forget", *words, "--yes", "--json")
        assert (refused.code, refused.error["code"]) == (2, "SYS_VALIDATION_ERROR"), words
    assert len(await remembered(gmi, user, 2)) == 2


async def test_what_was_said_cannot_turn_the_writing_around(
    gmi: CommandLine, session_id: str, user: str
) -> None:
    said = "I own a \x1b[31mred \u202ekayak\u2069\u200f here"
    await told(gmi, session_id, user, said)
    [row] = [row for row in await remembered(gmi, user, 2) if row["role"] == "user"]
    assert "\u202ekayak\u2069\u200f" in row["content"]
    for verb in (
        ["list", "--user", user],
        ["show", row["id"]],
        ["search", "kayak", "--user", user],
    ):
        for form in ([], ["--json"]):
            out = (await gmi("memory", *verb, *form)).out
            assert "kayak" in out
            assert not {"\x1b", "\u202e", "\u2069", "\u200f"} & set(out), (verb, form)


async def test_in_a_terminal_forgetting_asks_first(
    gmi: CommandLine, session_id: str, user: str
) -> None:
    await told(gmi, session_id, user, "Ducks swim in the pond")
    await remembered(gmi, user, 2)
    terminal = await gmi.terminal("memory", "forget", "--user", user)
    try:
        await terminal.see("Erase these memories for good? [y/N]")
        assert "Ducks swim" in terminal.shown
        terminal.type("n\n")
        await terminal.see("Nothing was erased.")
        assert await terminal.end() == 130
    finally:
        terminal.close()
    assert len(await remembered(gmi, user, 2)) == 2
    terminal = await gmi.terminal("memory", "forget", "--user", user, "--yes")
    try:
        await terminal.see("Erased 2 memories")
        assert await terminal.end() == 0
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["forget"], 2, "SYS_VALIDATION_ERROR"),
        (["forget", "--text", "alpacas"], 2, "SYS_VALIDATION_ERROR"),
        (["show", "nothing"], 4, "SYS_RESOURCE_NOT_FOUND"),
        (["list", "--session", "nobody"], 4, "SESSION_UNKNOWN"),
        (["list", "--scope", "anna"], 2, "SYS_VALIDATION_ERROR"),
        (["list", "--type", "nonsense"], 2, "SYS_VALIDATION_ERROR"),
        (["stats", "--type", "nonsense"], 2, "SYS_VALIDATION_ERROR"),
        (["list", "--turn", ""], 2, "SYS_VALIDATION_ERROR"),
        (["list", "--text", ""], 2, "SYS_VALIDATION_ERROR"),
        (["show", ""], 2, "SYS_VALIDATION_ERROR"),
        (["list", "--limit", "-1"], 2, "USAGE"),
        (["list", "--limit", "0"], 2, "USAGE"),
        (["list", "--limit", "many"], 2, "USAGE"),
        (["search", "x", "--limit", "-1"], 2, "USAGE"),
        (["forget", "x"], 2, "USAGE"),
        (["search", " "], 2, "SYS_VALIDATION_ERROR"),
        (["search", "x", "--limit", "1000"], 2, "SYS_VALIDATION_ERROR"),
        ([], 2, "USAGE"),
    ],
)
async def test_what_cannot_be_done_ends_with_its_code(
    gmi: CommandLine, words: list[str], code: int, error: str
) -> None:
    result = await gmi("memory", *words, "--json")
    assert (result.code, json.loads(result.err)["error"]["code"]) == (code, error)
