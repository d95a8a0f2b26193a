from __future__ import annotations

import os
import signal
from collections.abc import Callable

from gmi.worker.cli.chat_commands import HELP

from .command_line import CommandLine, children, eventually

Alone = Callable[..., CommandLine]


async def test_a_pipe_is_answered_with_nothing_running_and_goes_on_the_next_time(
    alone: Alone,
) -> None:
    gmi = alone()
    first = await gmi("chat", stdin="Hello\n")
    assert first.code == 0
    assert first.out.count("\n") == 1
    assert 'You said: "Hello". I was shown 1 turn' in first.out
    assert "OPENAI_API_KEY" in first.err

    second = await gmi("chat", stdin="One\n\nTwo\n")
    assert second.code == 0
    one, two = second.out.splitlines()
    assert "I was shown 2 turns" in one
    assert "I was shown 3 turns" in two

    assert (await gmi("list")).code == 3, "the server ends with the chat"


async def test_a_pipe_cannot_answer_for_a_person(gmi: CommandLine, session_id: str) -> None:
    result = await gmi("chat", session_id, stdin='call ask_host with {"question": "q?"}\nHello\n')
    assert result.code == 0
    assert "Nobody can answer ask_host here" in result.err
    assert "ask_host failed" in result.out.splitlines()[0]
    assert 'You said: "Hello"' in result.out.splitlines()[1]


async def test_a_pipe_does_not_give_up_what_somebody_else_waits_for(
    gmi: CommandLine, session_id: str
) -> None:
    await gmi("send", session_id, 'call ask_host with {"question": "q?"}')
    result = await gmi("chat", session_id, stdin="Hello\n")
    assert result.code == 5
    assert result.out == ""
    assert result.err.startswith("error: CONVERSATION_BUSY: ")
    [call] = (await gmi("pending", session_id, "--json")).json["calls"]
    assert call["call"]["name"] == "ask_host"


async def test_a_failed_turn_in_a_pipe_is_told_at_the_end(
    gmi: CommandLine, session_id: str
) -> None:
    result = await gmi("chat", session_id, stdin="fail with 400\nsay exactly: still here\n")
    assert result.code == 1
    assert result.out == "[offline stand-in] still here\n"
    assert "error: LLM_PROVIDER_ERROR: " in result.err


async def test_a_chosen_server_that_does_not_answer_is_not_replaced(alone: Alone) -> None:
    gmi = alone(TEMPORAL_ADDRESS="127.0.0.1:1")
    result = await gmi("chat", stdin="Hello\n")
    assert result.code == 3
    assert result.err.startswith("error: SERVER_UNREACHABLE: ")
    assert not (gmi.directory / ".gmi").exists()


async def test_a_worker_that_cannot_start_ends_the_chat_with_its_reason(alone: Alone) -> None:
    result = await alone(GMI_TOOLS="no_such_module")("chat", stdin="Hello\n")
    assert result.code == 1
    assert "no_such_module" in result.err


async def test_ctrl_c_stops_the_turn_and_the_session_goes_on(alone: Alone) -> None:
    terminal = await alone(GMI_OFFLINE_DELAY="0.05").terminal("chat")
    try:
        await terminal.see("/help")
        await terminal.see("OPENAI_API_KEY")
        await terminal.see("> ")
        terminal.type("say 5000 words\n")
        await terminal.see("word30 ")
        terminal.type("\x03")
        await terminal.see("\nstopped")
        await terminal.see("> ")
        terminal.type("Hello\n")
        await terminal.see('You said: "Hello"')
        await terminal.see("offline:offline · ")
        await terminal.see("> ")
        terminal.type("\x03")
        assert await terminal.end() == 0
    finally:
        terminal.close()


async def test_a_killed_worker_is_replaced_and_the_text_comes_again(alone: Alone) -> None:
    terminal = await alone(GMI_OFFLINE_DELAY="0.05").terminal("chat")
    try:
        await terminal.see("> ")
        terminal.type("say 100 words\n")
        await terminal.see("word20 ")
        [worker] = [
            pid for pid, line in children(terminal.process.pid).items() if "worker --json" in line
        ]
        os.kill(worker, signal.SIGKILL)
        await terminal.see("the worker was lost; the step starts again")
        answer = await terminal.see("word100")
        assert answer.split() == ["[offline", "stand-in]", *(f"word{n}" for n in range(3, 101))]
        await terminal.see("> ")
        terminal.type("/quit\n")
        assert await terminal.end() == 0
    finally:
        terminal.close()


async def test_the_terminal_asks_for_answers_and_approvals(
    gmi: CommandLine, session_id: str
) -> None:
    terminal = await gmi.terminal("chat", session_id)
    try:
        await terminal.see("> ")
        terminal.type('call ask_host with {"question": "How many?"}\n')
        await terminal.see("→ ask_host(")
        await terminal.see("ask_host: How many?")
        await terminal.see("answer> ")
        terminal.type("forty-two\n")
        await terminal.see("[offline stand-in] ask_host answered: forty-two")
        await terminal.see("> ")
        terminal.type('call confirm_order with {"item": "tea", "quantity": 2}\n')
        await terminal.see("Run confirm_order(")
        terminal.type("y\n")
        await terminal.see("confirm_order answered: Order confirmed: 2 × tea.")
        await terminal.see("> ")
        terminal.type("/quit\n")
        assert await terminal.end() == 0
    finally:
        terminal.close()


async def test_a_call_left_waiting_is_asked_for_by_the_next_chat(
    gmi: CommandLine, session_id: str
) -> None:
    await gmi("send", session_id, 'call ask_host with {"question": "Still there?"}')
    terminal = await gmi.terminal("chat", session_id)
    try:
        await terminal.see("ask_host: Still there?")
        terminal.type("yes\n")
        await terminal.see("ask_host answered: yes")
        await terminal.see("> ")
        terminal.type("/quit\n")
        assert await terminal.end() == 0
    finally:
        terminal.close()


async def test_the_commands_of_a_chat(gmi: CommandLine, session_id: str) -> None:
    terminal = await gmi.terminal("chat", session_id)
    try:
        await terminal.see("> ")
        terminal.type("say exactly: noted\n")
        await terminal.see("[offline stand-in] noted")
        terminal.type("/help\n")
        for command, _ in HELP:
            await terminal.see(command)
        terminal.type("/turns\n")
        await terminal.see("done")
        await terminal.see("say exactly: noted")
        terminal.type("/trace 1\n")
        await terminal.see("message")
        terminal.type("/usage\n")
        await terminal.see("offline:offline")
        terminal.type("/persona\n")
        await terminal.see("v_researcher: V.")
        terminal.type("/persona nobody\n")
        await terminal.see("error: PERSONA_NOT_FOUND: ")
        terminal.type("/dance\n")
        await terminal.see("There is no command /dance")
        terminal.type("/quit\n")
        assert await terminal.end() == 0
    finally:
        terminal.close()


async def test_a_closed_terminal_leaves_nothing_running(alone: Alone) -> None:
    terminal = await alone().terminal("chat")
    await terminal.see("> ")
    started = children(terminal.process.pid)
    assert len(started) == 2
    terminal.close()
    await terminal.end()

    def gone() -> bool:
        return not any(_alive(pid) for pid in started)

    await eventually(gone)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
