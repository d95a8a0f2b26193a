from __future__ import annotations

import json
from typing import Any

import pytest
from temporalio import workflow

from gmi.worker.cli import run
from gmi.worker.cli.schema_verb import HANDLERS, document
from gmi.workflows import GMISession

from .command_line import CommandLine


def test_the_schema_names_every_handler_of_the_session_and_no_other() -> None:
    defined = workflow._Definition.must_from_class(GMISession)
    kinds: dict[str | None, set[str]] = {}
    for kind, found in (
        ("update", defined.updates),
        ("signal", defined.signals),
        ("query", defined.queries),
    ):
        for name in found:
            kinds.setdefault(name, set()).add(kind)
    shown: dict[str | None, set[str]] = {
        name: set(handler.kinds) for name, handler in HANDLERS.items()
    }
    assert shown == kinds


def test_the_schema_gives_every_handlers_own_result() -> None:
    defined = workflow._Definition.must_from_class(GMISession)
    for name, handler in HANDLERS.items():
        if "query" in handler.kinds:
            assert defined.queries[name].ret_type is handler.result
        if "update" in handler.kinds:
            assert defined.updates[name].ret_type is handler.result


async def test_a_terminal_is_shown_the_schema_indented_and_a_pipe_gets_one_line(
    gmi: CommandLine,
) -> None:
    piped = await gmi("schema")
    assert piped.out.count("\n") == 1
    terminal = await gmi.terminal("schema")
    try:
        assert await terminal.end() == 0
        await terminal.see("\n}\n")
    finally:
        terminal.close()
    assert terminal.shown.startswith('{\n  "$schema"')
    assert json.loads(terminal.shown) == piped.json


def test_every_reference_in_the_schema_leads_somewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == document()
    references: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                references.add(value["$ref"])
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(shown)
    assert "#/$defs/SubmitTurn" in references
    assert {ref.removeprefix("#/$defs/") for ref in references} <= set(shown["$defs"])
    assert shown["handlers"]["tool_results"]["kind"] == ["update", "signal"]
