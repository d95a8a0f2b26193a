"""The program: parses a command line, runs its verb, and ends with a documented exit code."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import inspect
import os
import sys
import traceback
from contextlib import suppress
from importlib.metadata import version
from typing import NoReturn

from ..settings import Settings
from . import (
    chat_verb,
    doctor_verb,
    ending_verbs,
    memory_verbs,
    mind_verb,
    pause_verbs,
    reading_verbs,
    replay_verb,
    schema_verb,
    serving_verbs,
    turn_verbs,
)
from .arguments import Context, Grammar, Parser, add_global, names_session
from .core_log import keep_stdout_clean
from .exit_codes import MEANINGS, ExitCode, error_of, exit_code
from .output import Output

_GROUPS = (
    serving_verbs,
    chat_verb,
    turn_verbs,
    pause_verbs,
    reading_verbs,
    memory_verbs,
    mind_verb,
    ending_verbs,
    replay_verb,
    doctor_verb,
    schema_verb,
)


def main() -> NoReturn:
    """Run the process's command line and end the process."""
    # As `python -m` has it: GMI_TOOLS may name a module of this directory.
    if sys.path[:1] != [os.getcwd()]:
        sys.path.insert(0, os.getcwd())
    keep_stdout_clean()
    try:
        code = run(sys.argv[1:])
    except Exception:
        traceback.print_exc()
        code = ExitCode.FAILED
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # The interpreter's own way out can abort in the Temporal client's threads, after all is done.
    os._exit(code)


def run(argv: list[str]) -> int:
    """Run a command line.

    Args:
        argv: The words after the program's name.

    Returns:
        The exit code; see :data:`~gmi.worker.cli.exit_codes.MEANINGS`.
    """
    output = Output("--json" in argv)
    try:
        args = parser(argv).parse_args(argv)
        settings = Settings.from_environment()
        if args.task_queue is not None:
            settings = dataclasses.replace(settings, task_queue=args.task_queue)
        context = Context(args, settings, Output(args.json))
        if inspect.iscoroutinefunction(args.run):
            return int(asyncio.run(args.run(context)))
        return int(args.run(context))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; what is left to write has no place.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except SystemExit as end:
        return int(end.code or 0)
    except Exception as error:
        shown = error_of(error)
        if shown is None:
            raise
        output.error(shown)
        return exit_code(shown)


def parser(argv: list[str]) -> argparse.ArgumentParser:
    """The parser for a command line."""
    codes = "\n".join(f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())
    top = Parser(
        prog="gmi",
        description="Durable minds on Temporal.",
        epilog=f"exit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"gmi {version('durable-gmi')}")
    add_global(top, None)
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    grammar = Grammar(verbs, names_session(argv))
    for group in _GROUPS:
        group.add(grammar)
    return top
