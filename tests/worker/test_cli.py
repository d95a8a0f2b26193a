from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

import pytest

from gmi.worker.cli import run

from .command_line import CommandLine


async def test_send_prints_the_answer_alone_on_stdout(gmi: CommandLine, session_id: str) -> None:
    result = await gmi("send", session_id, "say exactly: Good morning")
    assert (result.code, result.out) == (0, "[offline stand-in] Good morning\n")
    assert "offline:offline" in result.err


async def test_send_reads_a_dash_from_stdin(gmi: CommandLine, session_id: str) -> None:
    result = await gmi("send", session_id, "-", stdin="say exactly: from\na pipe")
    assert result.out == "[offline stand-in] from\na pipe\n"


async def test_send_gives_the_whole_turn_as_json(gmi: CommandLine, session_id: str) -> None:
    result = await gmi("send", session_id, "Hello", "--json")
    assert result.code == 0
    assert result.err == ""
    assert result.json["status"] == "done"
    assert result.json["is_final"] is True
    assert "Hello" in result.json["response_text"]


async def test_sending_twice_with_one_request_id_makes_one_turn(
    gmi: CommandLine, session_id: str
) -> None:
    first = await gmi("send", session_id, "Hello", "--request-id", "r1", "--json")
    second = await gmi("send", session_id, "Hello", "--request-id", "r1", "--json")
    assert first.json["turn"] == second.json["turn"]
    turns = await gmi("turns", session_id, "--json")
    assert [row["turn"] for row in turns.json] == [first.json["turn"]]


async def test_send_without_waiting_prints_the_turn_that_was_accepted(
    gmi: CommandLine, session_id: str
) -> None:
    ticket = await gmi("send", session_id, "Hello", "--no-wait", "--json")
    assert ticket.json["output"] is None
    later = await gmi("send", session_id, "And again", "--json")
    assert later.json["status"] == "done"
    turns = await gmi("turns", "-w", f"gmi-session-{session_id}", "--json")
    assert [row["turn"] for row in turns.json] == [ticket.json["turn"], later.json["turn"]]


async def test_a_failed_turn_ends_with_1_and_its_code(gmi: CommandLine, session_id: str) -> None:
    result = await gmi("send", session_id, "fail with 400")
    assert result.code == 1
    assert result.err.startswith("error: LLM_PROVIDER_ERROR: ")


async def test_the_host_answers_a_call_that_waits(gmi: CommandLine, session_id: str) -> None:
    asked = await gmi("send", session_id, 'call ask_host with {"question": "q?"}')
    assert asked.code == 0
    assert asked.out == ""
    assert f"gmi answer {session_id} " in asked.err

    pending = await gmi("pending", session_id, "--json")
    [waiting] = pending.json["calls"]
    assert waiting["call"]["name"] == "ask_host"
    assert waiting["call"]["arguments"] == {"question": "q?"}

    table = await gmi("pending", session_id)
    assert table.out.splitlines()[1].split("\t")[:3] == [
        waiting["call"]["id"],
        "ask_host",
        "external",
    ]

    answered = await gmi("answer", session_id, waiting["call"]["id"], "forty-two")
    assert answered.code == 0
    assert answered.out == "[offline stand-in] ask_host answered: forty-two\n"
    assert (await gmi("pending", session_id, "--json")).json["calls"] == []


async def test_an_answer_can_be_any_json_value(gmi: CommandLine, session_id: str) -> None:
    asked = await gmi("send", session_id, 'call ask_host with {"question": "q?"}', "--json")
    call = asked.json["tool_calls"][0]["id"]
    answered = await gmi("answer", session_id, call, "--json-value", '{"n": [1, 2]}')
    assert "ask_host answered: " in answered.out
    assert json.loads(answered.out.split("answered: ")[1]) == {"n": [1, 2]}


async def test_an_answer_can_be_a_failure(gmi: CommandLine, session_id: str) -> None:
    asked = await gmi("send", session_id, 'call ask_host with {"question": "q?"}', "--json")
    call = asked.json["tool_calls"][0]["id"]
    answered = await gmi("answer", session_id, call, "--error", "nobody is in")
    assert "ask_host failed: " in answered.out
    assert "nobody is in" in answered.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--approve"], "Order confirmed: 2 × tea."),
        (["--deny", "too much tea"], "too much tea"),
    ],
)
async def test_an_approval_is_given_or_denied(
    gmi: CommandLine, session_id: str, words: list[str], said: str
) -> None:
    asked = await gmi(
        "send", session_id, 'call confirm_order with {"item": "tea", "quantity": 2}', "--json"
    )
    [call] = asked.json["tool_calls"]
    assert call["reason"] == "approval"
    answered = await gmi("answer", session_id, call["id"], *words)
    assert said in answered.out


async def test_with_rest_wait_a_turn_collects_several_answers(
    gmi: CommandLine, session_id: str
) -> None:
    asked = await gmi(
        "send",
        session_id,
        'call ask_host with {"question": "a?"} and call ask_host with {"question": "b?"}',
        "--json",
    )
    first, second = [call["id"] for call in asked.json["tool_calls"]]
    collected = await gmi("answer", "--rest", "wait", session_id, first, "A", "--json")
    assert collected.json["pending"] == [second]
    assert collected.json["resumed"] is False
    ended = await gmi("answer", "--rest", "wait", session_id, second, "B")
    assert ended.out == "[offline stand-in] ask_host answered: A; ask_host answered: B\n"


async def test_a_paused_turn_is_stopped(gmi: CommandLine, session_id: str) -> None:
    asked = await gmi("send", session_id, 'call ask_host with {"question": "q?"}', "--json")
    stopped = await gmi("stop", session_id, "--json")
    assert stopped.json["turns"] == {asked.json["turn"]: "abandoned"}
    after = await gmi("send", session_id, "Hello")
    assert after.code == 0


async def test_turns_trace_and_usage_show_what_happened(gmi: CommandLine, session_id: str) -> None:
    sent = await gmi("send", session_id, "call get_time", "--json")
    turn = sent.json["turn"]

    turns = await gmi("turns", session_id)
    header, row = turns.out.splitlines()
    assert header.split("\t")[:3] == ["turn", "kind", "status"]
    assert row.split("\t")[:4] == [turn, "text", "done", "offline"]

    trace = await gmi("trace", session_id, "--turn", turn, "--json")
    types = [entry["type"] for entry in trace.json]
    assert "TOOL_EXECUTION_RESULT" in types
    last = await gmi("trace", session_id, "--limit", "2", "--json")
    assert len(last.json) == 2

    usage = await gmi("usage", session_id, "--json")
    assert usage.json["turns"] == 1
    assert usage.json["usage"]["prompt_tokens"] == sent.json["usage"]["prompt_tokens"]
    assert "offline:offline" in (await gmi("usage", session_id)).out


async def test_a_trace_says_what_it_cut_and_shows_it_when_asked(
    gmi: CommandLine, session_id: str
) -> None:
    await gmi("send", session_id, 'call calculate with {"expression": "' + "1+" * 60 + '1"}')
    cut = await gmi("trace", session_id)
    assert "…" in cut.out
    assert "--full" in cut.err
    full = await gmi("trace", session_id, "--full")
    assert "…" not in full.out
    assert full.err == ""
    entries = (await gmi("trace", session_id, "--json")).json
    shown = [line.split("\t")[3] for line in full.out.splitlines()[1:]]
    assert shown == [
        json.dumps(entry["details"], ensure_ascii=False) if entry["details"] else ""
        for entry in entries
    ]


async def test_list_finds_sessions_by_persona_and_user(gmi: CommandLine, session_id: str) -> None:
    await gmi("send", session_id, "Hello", "--user", "ada")
    listed = await gmi("list", "--user", "ada", "--persona", "v_researcher", "--json")
    [found] = listed.json
    assert found["session_id"] == session_id
    assert found["attributes"]["GmiUser"] == "ada"
    assert (await gmi("list", "--user", "nobody", "--json")).json == []


async def test_a_closed_session_is_refused_and_a_new_send_opens_it_again(
    gmi: CommandLine, session_id: str
) -> None:
    await gmi("send", session_id, "Hello")
    assert (await gmi("close", session_id)).code == 0
    again = await gmi("close", session_id)
    assert again.code == 5
    assert again.err.startswith("error: SESSION_CLOSED: ")
    reopened = await gmi("send", session_id, "Hello")
    assert "I was shown 1 turn" in reopened.out


async def test_watch_shows_turns_and_ends_when_the_session_closes(
    gmi: CommandLine, session_id: str
) -> None:
    await gmi("send", session_id, "Hello")
    watching = await gmi.start("watch", session_id, "--json")
    assert watching.stdout is not None
    # It shows what comes from its start on, and nobody else can know when that is.
    seen = asyncio.create_task(_watched_turn(watching.stdout))
    while not seen.done():
        await gmi("send", session_id, "Hello", "--no-wait")
    await seen

    asked = await gmi("send", session_id, "say exactly: watched", "--no-wait", "--json")
    chunks = await _watched_turn(watching.stdout)
    while chunks[0]["turn"] != asked.json["turn"]:
        chunks = await _watched_turn(watching.stdout)
    text = "".join(chunk["content"] for chunk in chunks if chunk["type"] == "text_delta")
    assert text == "[offline stand-in] watched"
    assert (await gmi("close", session_id)).code == 0
    assert await asyncio.wait_for(watching.wait(), 30) == 0


async def _watched_turn(lines: asyncio.StreamReader) -> list[dict[str, Any]]:
    """The chunks that watch prints up to a turn's end."""
    chunks: list[dict[str, Any]] = []
    while not chunks or chunks[-1]["type"] != "final_response_marker":
        line = await lines.readline()
        assert line, "watch ended early"
        chunks.append(json.loads(line))
    return chunks


async def test_replay_fits_a_recorded_session(gmi: CommandLine, session_id: str) -> None:
    await gmi("send", session_id, "call get_time")
    result = await gmi("replay", "--session", session_id, "--json")
    assert result.code == 0
    assert result.json["problem"] is None
    assert result.json["events"] > 10


async def test_replay_ends_with_1_when_the_history_does_not_fit(
    gmi: CommandLine, session_id: str
) -> None:
    await gmi("send", session_id, "Hello")
    temporal = await gmi.history(session_id)
    changed = temporal.replace("gmi.model.run_step", "gmi.model.other_step")
    assert changed != temporal
    (gmi.directory / "fits.json").write_text(temporal)
    (gmi.directory / "changed.json").write_text(changed)
    assert (await gmi("replay", "fits.json")).code == 0
    result = await gmi("replay", "fits.json", "changed.json")
    assert result.code == 1
    first, second = result.out.splitlines()[:2]
    assert first == "fits.json: fits"
    assert "ondeterminis" in second


async def test_an_unknown_persona_ends_with_4(gmi: CommandLine, session_id: str) -> None:
    result = await gmi("send", session_id, "Hello", "--persona", "nobody", "--json")
    assert result.code == 4
    assert result.error["code"] == "PERSONA_NOT_FOUND"
    assert "v_researcher" in result.error["details"]["known"]


@pytest.mark.parametrize(
    "words",
    [
        ["pending", "ghost"],
        ["turns", "ghost"],
        ["trace", "ghost"],
        ["usage", "ghost"],
        ["stop", "ghost"],
        ["close", "ghost"],
        ["watch", "ghost"],
        ["answer", "ghost", "call", "value"],
    ],
    ids=lambda words: str(words[0]),
)
async def test_an_unknown_session_ends_with_4(
    gmi: CommandLine, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    address = gmi.environ["TEMPORAL_ADDRESS"]
    code = await asyncio.to_thread(run, [*words, "--address", address])
    shown = capsys.readouterr()
    assert code == 4
    assert shown.err.startswith("error: SESSION_UNKNOWN: ")
    assert shown.out == ""


async def test_another_users_session_ends_with_5(gmi: CommandLine, session_id: str) -> None:
    await gmi("send", session_id, "Hello", "--user", "ada")
    result = await gmi("send", session_id, "Hello", "--user", "eve")
    assert result.code == 5
    assert result.err.startswith("error: SESSION_USER_MISMATCH: ")


async def test_a_message_during_a_pause_ends_with_5(gmi: CommandLine, session_id: str) -> None:
    await gmi("send", session_id, 'call ask_host with {"question": "q?"}')
    busy = await gmi("send", session_id, "Hello")
    assert busy.code == 5
    assert busy.err.startswith("error: CONVERSATION_BUSY: ")
    assert (await gmi("send", session_id, "Hello", "--on-pause", "answer")).code == 0


@pytest.mark.parametrize(
    ("opening", "refused", "code", "told"),
    [
        ("Hello", ["send", "{}", "Hello", "--user", "eve"], "SESSION_USER_MISMATCH", "--user"),
        (
            "Hello",
            ["send", "{}", "Hello", "--persona", "nerf_generalist"],
            "SESSION_PERSONA_MISMATCH",
            "gmi chat SESSION --persona",
        ),
        (
            'call ask_host with {"question": "q?"}',
            ["send", "{}", "Hello"],
            "CONVERSATION_BUSY",
            "--on-pause answer",
        ),
        (
            'call confirm_order with {"item": "tea", "quantity": 2}',
            ["answer", "{}", "CALL", "yes"],
            "SYS_VALIDATION_ERROR",
            "--approve",
        ),
        (
            'call ask_host with {"question": "q?"}',
            ["answer", "{}", "CALL", "--approve"],
            "SYS_VALIDATION_ERROR",
            "--json-value",
        ),
    ],
)
async def test_an_error_that_speaks_to_programs_has_a_hint_for_people(
    gmi: CommandLine,
    session_id: str,
    opening: str,
    refused: list[str],
    code: str,
    told: str,
) -> None:
    opened = await gmi("send", session_id, opening, "--json")
    call = next((call["id"] for call in opened.json["tool_calls"]), "none")
    words = [{"{}": session_id, "CALL": call}.get(word, word) for word in refused]
    for_people = await gmi(*words)
    error, hint = for_people.err.splitlines()
    assert error.startswith(f"error: {code}: ")
    assert hint.startswith("hint: ")
    assert told in hint
    for_programs = await gmi(*words, "--json")
    assert for_programs.error["code"] == code
    assert "hint" not in for_programs.err


async def test_an_answer_to_nothing_ends_with_5(gmi: CommandLine, session_id: str) -> None:
    await gmi("send", session_id, "Hello")
    result = await gmi("answer", session_id, "no-such-call", "value")
    assert result.code == 5
    assert result.err.startswith("error: TOOL_CALL_NOT_PENDING: ")


async def test_an_unknown_turn_is_not_stopped(gmi: CommandLine, session_id: str) -> None:
    await gmi("send", session_id, "Hello")
    result = await gmi("stop", session_id, "no-such-turn")
    assert result.code == 4
    assert result.err.startswith("error: TURN_UNKNOWN: ")


async def test_ctrl_c_ends_a_command_with_130(gmi: CommandLine, session_id: str) -> None:
    await gmi("send", session_id, "Hello")
    watching = await gmi.start("watch", session_id)
    assert watching.stderr is not None
    assert b"Watching" in await watching.stderr.readline()
    watching.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(watching.wait(), 30) == 130


async def test_a_call_that_nobody_serves_says_so_while_it_waits(
    gmi: CommandLine, session_id: str
) -> None:
    sending = await gmi.start("send", session_id, "Hello", "--task-queue", "nobody")
    assert sending.stderr is not None
    told = await asyncio.wait_for(sending.stderr.readline(), 30)
    assert b"No worker polls the task queue 'nobody'" in told
    sending.kill()
    await sending.wait()


async def test_the_user_can_come_from_the_environment(gmi: CommandLine, session_id: str) -> None:
    ada = CommandLine(gmi.directory, {**gmi.environ, "GMI_USER": "ada"})
    assert (await ada("send", session_id, "Hello")).code == 0
    assert (await gmi("send", session_id, "Hello")).code == 5


@pytest.mark.parametrize("words", [["list"], ["send", "s", "Hello"], ["doctor"]])
def test_without_a_server_commands_end_with_3(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--address", "127.0.0.1:1"]) == 3
    shown = capsys.readouterr()
    assert "No Temporal server answers at 127.0.0.1:1" in shown.out + shown.err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["dance"],
        ["send", "s"],
        ["pending"],
        ["answer", "s", "call", "--json-value", "{"],
        ["answer", "s", "call"],
        ["send", "s", "Hello", "--image", "cat.png"],
        ["replay"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_ends_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert capsys.readouterr().err.startswith("error: USAGE: ")


def test_a_file_that_is_not_there_ends_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "no-such-history.json"]) == 4
    assert "no-such-history.json" in capsys.readouterr().err


def test_the_help_lists_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "130  interrupted by Ctrl-C" in shown
    assert "3  no Temporal server answers" in shown


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("gmi 0.")


async def test_commands_load_no_database_library_until_they_need_it() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c"),
        "import gmi.worker.cli, sys; print(sorted({'sqlalchemy', 'numpy'} & set(sys.modules)))",
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert out == b"[]\n"
