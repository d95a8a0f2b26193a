"""The options that verbs share, and what they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ...workflows.state import WORKFLOW_PREFIX
from ..settings import Settings
from .exit_codes import UsageError
from .output import Output

Verbs = argparse._SubParsersAction  # argparse has no public name for it


@dataclass(frozen=True)
class Context:
    """What a verb is given.

    Attributes:
        args: The parsed command line.
        settings: The environment's settings, with the command line's over them.
        output: Where results go.
    """

    args: argparse.Namespace
    settings: Settings
    output: Output

    @property
    def named_session(self) -> str | None:
        """The session that the command line names, if it names one."""
        named: str | None = getattr(self.args, "session", None)
        workflow: str | None = getattr(self.args, "workflow_id", None)
        if workflow is not None:
            named = workflow.removeprefix(WORKFLOW_PREFIX)
        return named or None

    @property
    def session_id(self) -> str:
        """The session that the command line names.

        Raises:
            UsageError: It names none.
        """
        named = self.named_session
        if named is None:
            raise UsageError("Name the session: SESSION, --session or --workflow-id.")
        return named

    @property
    def user(self) -> str:
        """Who speaks."""
        given: str | None = getattr(self.args, "user", None)
        return given or self.settings.user


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise UsageError(f"{message}; `{self.prog} --help` shows what there is.")


@dataclass(frozen=True, slots=True)
class Grammar:
    """Adds verbs to the parser.

    Attributes:
        verbs: Where they are added.
        session_named: The command line names the session by an option, so no verb takes it as
            its first word.
    """

    verbs: Verbs[Parser]
    session_named: bool

    def verb(self, name: str, run: Any, help: str) -> Parser:
        """Add a verb that needs no session."""
        parser: Parser = self.verbs.add_parser(name, help=help, description=help)
        add_global(parser, argparse.SUPPRESS)
        parser.set_defaults(run=run)
        return parser

    def session_verb(self, name: str, run: Any, help: str, *, optional: bool = False) -> Parser:
        """Add a verb that works on one session."""
        parser = self.verb(name, run, help)
        if not self.session_named:
            parser.add_argument(
                "session",
                metavar="SESSION",
                nargs="?" if optional else None,
                help="the session's id",
            )
        parser.add_argument(
            "--session", dest="session", default=argparse.SUPPRESS, help="the session's id"
        )
        parser.add_argument(
            "-w", "--workflow-id", help=f"its workflow's id, {WORKFLOW_PREFIX}SESSION"
        )
        parser.add_argument("--user", help="who speaks (default: GMI_USER, else local)")
        parser.set_defaults(session=None)
        return parser


def add_global(parser: argparse.ArgumentParser, default: Any) -> None:
    """Add the options that every verb takes, before or after its name."""
    group = parser.add_argument_group("connection and output")
    group.add_argument("--address", default=default, help="host:port of the Temporal server")
    group.add_argument("--namespace", default=default, help="Temporal namespace")
    group.add_argument("--profile", default=default, help="profile of Temporal's configuration")
    group.add_argument(
        "--config-file", type=Path, default=default, help="Temporal's configuration file"
    )
    group.add_argument("--task-queue", default=default, help="task queue of the workers")
    group.add_argument(
        "--json",
        action="store_true",
        default=False if default is None else default,
        help="results and errors as JSON: one value (lists are arrays) on one line; chat, watch "
        "and replay print a line for each answer, chunk or history",
    )


def at_least(least: int) -> Callable[[str], int]:
    """What reads a whole number that is not below ``least``."""

    def read(text: str) -> int:
        refusal = f"{text[:100]!r} is no whole number of at least {least}"
        try:
            value = int(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(refusal) from error
        if value < least:
            raise argparse.ArgumentTypeError(refusal)
        return value

    return read


def names_session(argv: list[str]) -> bool:
    """Whether a command line names its session by an option."""
    return any(
        word in ("--session", "--workflow-id", "-w")
        or word.startswith(("--session=", "--workflow-id="))
        for word in argv
    )
